/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the files of this folder: resolve.c has the whole, stack.c one stack, beyond.c what is beyond it. */
#ifndef SB_RESOLVE_RESOLVE_PRIV_H
#define SB_RESOLVE_RESOLVE_PRIV_H

#include "base/index.h"
#include "base/str.h"
#include "base/vec.h"
#include "interp/interp.h"
#include "model/profile.h"
#include "resolve/labels.h"
#include "resolve/objects.h"
#include "resolve/resolve.h"
#include "resolve/waits.h"

/* Physical frames of one stack, and how many of them have no name, by reason. */
struct frame_counts {
	uint32_t nr, nr_unnamed[SB_SYM_REASON_MAX];
};

struct known_stack {
	struct sb_stack_id id;
	uint32_t status, flags;
	uint32_t nr_ips, nr_frames;
	bool has_one_meaning; /* whatever is mapped and unmapped meanwhile */
	size_t first_ip;      /* in ips */
	size_t first_frame;   /* in kernel_frames; kernel stacks only, once resolved */
	bool is_resolved;
	bool is_single;		    /* see struct sb_batch_stack */
	uint32_t tgid;		    /* of the process that was last seen in it; 0: none yet */
	uint64_t batch;		    /* that was last seen in */
	bool is_doubtful;	    /* the BPF side has been told to forget it */
	struct frame_counts counts; /* with is_resolved */
};

/* One frame of machine code of the user stack being put together. */
struct native_frame {
	uint64_t addr;
	uint64_t func;	    /* where its function begins, or 0 */
	size_t first;	    /* its frames in `frames`: what was inlined comes behind */
	const char *name;   /* or NULL */
	const char *module; /* lives as long as the symbolizer */
	bool is_marked;	    /* SB_IP_INTERP */
	bool is_generated;  /* code without a file */
	uint8_t reason;	    /* enum sb_sym_reason, that it is counted under; SB_SYM_OK: it is not */
	uint32_t anchor;    /* runtime whose loop it is of, 0: none */
	uint32_t caller;    /* of such: enum sb_interp_anchor_kind of the frame that called it */
	uint32_t segment;   /* that stands for it, see merge.c; none: UINT32_MAX */
};

/* Frames of an interpreter between two pieces of C. */
struct interp_segment {
	uint32_t runtime;
	uint32_t first, nr; /* frames, leaf first */
	bool is_ready;	    /* it ended in SB_INTERP_READY, which is not among its frames */
	bool is_placed;
	bool is_ahead; /* it has no loop of its own, see merge.c, */
	size_t before; /* and comes before this native frame; at the end: their number */
};

/* A user stack to be put together. */
struct user_part {
	struct sb_stack_id ustack, istack;
	uint64_t start_ns, time_ns;
	uint32_t tgid, exec_id;
};

/* Where the parts of a stack lie in frames. */
struct sb_stack_parts {
	size_t user, kernel, end;
};

/* An address space, for counting the processes of a view. */
struct space {
	uint64_t start_ns;
	uint64_t batch; /* that it was last seen in */
	uint32_t tgid, view;
};
static inline uint64_t sb_space_hash(const struct space *space)
{
	uint64_t hash = space->start_ns * 31 + ((uint64_t)space->view << 32 | space->tgid);

	return sb_hash(&hash, sizeof(hash), 0);
}

struct sb_resolver {
	struct sb_resolve_opts opts;
	struct sb_symbolizer *sym;
	struct sb_profile *profile;
	SB_VEC(struct known_stack) stacks;
	struct sb_index stacks_index;
	/* So many stacks, objects, spaces: time to look which are of no more use; shed.c. */
	size_t shed_at, objects_shed_at, spaces_shed_at;
	uint64_t doubt_ends; /* the batch with which those that are doubtful can go; 0: none are */
	uint64_t nr_batches;
	SB_VEC(struct sb_stack_id) evicted; /* by the last batch */
	SB_VEC(uint64_t) ips;
	SB_VEC(uint32_t) kernel_frames;
	SB_VEC(struct space) spaces;
	struct sb_index spaces_index;
	struct sb_resolve_stats view_stats[SB_VIEWS_MAX];
	uint64_t nr_stacks, nr_evicted; /* of all */
	/* Of the view whose sample is being put together. */
	const struct sb_resolve_view *view;
	struct sb_resolve_stats *stats;
	/* The stack being put together, root first. */
	SB_VEC(uint32_t) frames;
	SB_VEC(struct sb_sym_req) reqs;
	uint64_t nr_samples;	    /* that it stands for */
	struct frame_counts counts; /* of the part being looked up */
	size_t part_start;	    /* where that part begins in frames */
	bool is_cut;		    /* something of the sample's stacks is missing */
	bool is_broken;		    /* a caller in it lies where no code was */
	bool hides_callers;	    /* within it, callers may be missing */
	const uint64_t *ips_at;	    /* the addresses of that part, leaf first */
	bool is_leaf_unmapped;	    /* and so does its leaf */
	struct sb_str text;
	/* Interpreters; merge.c. */
	const uint64_t
		*marks_at; /* of the stack being resolved, leaf first; NULL: not of interest */
	SB_VEC(struct native_frame) natives; /* root first, of the user part */
	SB_VEC(struct interp_segment) segments;
	SB_VEC(uint32_t) merged;
	SB_VEC(uint32_t)
	units; /* where each frame of the merged stack begins in `merged`: some have inlined ones */
	struct sb_interp_anchors anchors;
	struct sb_interp_name name;
	/* What stands beyond stacks; beyond.c. */
	struct sb_objects objects;
	struct sb_labels_table labels;
	size_t nr_unwanted_told;
	struct sb_stack_parts parts;  /* of the stack being put together */
	SB_VEC(const char *) names;   /* of some of its frames */
	struct sb_wait_reason reason; /* why it waits */
	SB_VEC(uint8_t)
	words; /* by the number of a frame in the profile: what beyond.c knows of its name */
};

/* Append a frame. Return: 0, -ENOMEM, -E2BIG. */
int sb_resolver_push_frame(struct sb_resolver *resolver, const struct sb_frame *frame);
int sb_resolver_push(struct sb_resolver *resolver, const char *name, enum sb_frame_kind kind);
/* Append the frames of a user or kernel stack, root first, and count what they are worth. */
int sb_resolver_push_user(struct sb_resolver *resolver, const struct user_part *part);
int sb_resolver_push_kernel(struct sb_resolver *resolver, struct sb_stack_id id);
/* When the code below @count changes next, after @from_ns; UINT64_MAX: it stays what it is. Return: 0 or -ENOMEM. */
int sb_resolver_next_change(struct sb_resolver *resolver, const struct sb_batch_count *count,
			    uint64_t from_ns, uint64_t *ret_ns);

/*
 * Put the frames of interpreters of @part where they belong among the native ones, which are there from
 * part_start on, and are listed in `natives`. `units` says where each frame begins; it is empty if there were none
 * to put there. @status: how the native walk ended; if that is whole, it becomes how the interpreter's walk ended.
 * Return: 0 or -ENOMEM, -E2BIG.
 */
int sb_resolver_merge(struct sb_resolver *resolver, const struct user_part *part, uint32_t *status);
struct known_stack *sb_resolver_find_stack(struct sb_resolver *resolver, struct sb_stack_id id);

/* Forget stacks that no sample can name any more, if there are many. Return: 0 or -ENOMEM. */
int sb_resolver_shed(struct sb_resolver *resolver);

/* After a kernel stack was resolved to the frames from @first on: cut what is not its matter. */
void sb_resolver_trim(struct sb_resolver *resolver, size_t first);
/*
 * A stack of a waker whose roots begin at @first and kernel frames at @kernel: if it is that of an
 * interrupt, drop those who were interrupted and have nothing to do with it.
 */
int sb_resolver_cut_interrupted(struct sb_resolver *resolver, size_t first, size_t kernel);
/* Before and after the stack: what else is known of the sample. */
int sb_resolver_push_state_root(struct sb_resolver *resolver, const struct sb_sample_key *key);
int sb_resolver_push_beyond(struct sb_resolver *resolver, const struct sb_sample_key *key);
/* After its stacks: find out why the thread waits, for the two below and for sb_resolver_push_beyond(). */
void sb_resolver_find_reason(struct sb_resolver *resolver, const struct sb_sample_key *key);
/* Return: whether the sample is left out: an idle wait, an unwanted file. Those are counted. */
bool sb_resolver_is_left_out(struct sb_resolver *resolver, const struct sb_batch_count *count);

static inline bool sb_stack_is_there(struct sb_stack_id id)
{
	return id.lo || id.hi;
}

#endif
