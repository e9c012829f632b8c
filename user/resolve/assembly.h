/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of a resolver. resolve.c has batches and samples, stack.c one stack, merge.c
 * interpreter frames in native stacks, beyond.c what a sample has beyond its stacks. All functions
 * work on the one sample whose stack is being put together in `frames`, root first: to push is to
 * append there. Called by the resolver's thread only.
 */
#ifndef SB_RESOLVE_RESOLVE_PRIV_H
#define SB_RESOLVE_RESOLVE_PRIV_H

#include "base/str.h"
#include "base/vec.h"
#include "interp/core/interp.h"
#include "model/profile.h"
#include "resolve/labels.h"
#include "resolve/objects.h"
#include "resolve/resolve.h"
#include "resolve/stacks.h"
#include "resolve/waits.h"

/* A native frame of the user stack that is being put together. */
struct native_frame {
	uint64_t addr;
	uint64_t func;	    /* start of its function; 0: not known */
	size_t first;	    /* its first frame in `frames`; inlined functions follow */
	const char *name;   /* or NULL */
	const char *module; /* valid as long as the symbolizer */
	bool is_marked;	    /* SB_IP_INTERP: the native walk found an interpreter frame here */
	bool is_generated;  /* code that is not in a file */
	uint8_t reason; /* enum sb_sym_reason under which it was counted; SB_SYM_OK: it has a name */
	uint32_t anchor;  /* the runtime whose loop it belongs to; 0: none */
	uint32_t caller;  /* with an anchor: enum sb_interp_anchor_kind of its caller */
	uint32_t segment; /* index of the segment that it stands for (merge.c); UINT32_MAX: none */
};

/* Frames of an interpreter between two parts of C: see merge.c. */
struct interp_segment {
	uint32_t runtime;
	uint32_t first, nr; /* frames, leaf first */
	bool is_ready;	    /* it ended in SB_INTERP_READY, which is not counted in nr */
	bool is_placed;	    /* a place in the native stack was found */
	bool is_ahead;	    /* it has no loop frame of its own, */
	size_t before;	    /* and goes before this native frame; their number: to the leaf end */
};

/* The user part of a sample's stack, which is about to be put together. */
struct user_part {
	struct sb_stack_id ustack, istack;
	uint64_t start_ns, time_ns;
	uint32_t tgid, exec_id;
};

/* Offsets in `frames` of the parts of a stack. */
struct sb_stack_parts {
	size_t user, kernel, end;
};

struct sb_resolver {
	struct sb_resolve_opts opts;
	struct sb_symbolizer *sym;
	struct sb_profile *profile;
	struct sb_stack_cache stacks;
	struct sb_object_cache objects;
	struct sb_label_cache labels;
	struct sb_wait_words words;
	struct sb_processes *own_processes; /* opts.processes, if it was made here; or NULL */
	uint32_t mark_epoch;		    /* of marks on processes that were counted */
	struct sb_resolve_stats view_stats[SB_VIEWS_MAX];
	/* The view whose sample is being put together, and its figures. */
	const struct sb_resolve_view *view;
	struct sb_resolve_stats *stats;
	uint32_t series; /* of that sample; 0 without opts.series */
	/* The stack being put together, root first. */
	SB_VEC(uint32_t) frames;
	SB_VEC(struct sb_sym_req) reqs;
	uint64_t nr_samples;	       /* how many samples the stack stands for */
	struct sb_frame_counts counts; /* of the part that is being looked up */
	size_t part_start;	       /* where that part begins in `frames` */
	bool is_cut;		       /* the sample's stacks are incomplete */
	bool is_broken;		       /* one of its return addresses is not in code */
	bool hides_callers;	       /* inside the stack, callers may be missing */
	const uint64_t *ips_at;	       /* the addresses of that part, leaf first */
	bool is_leaf_unmapped;	       /* its leaf is not in code */
	struct sb_str text;
	/* Interpreters: merge.c. */
	const uint64_t
		*marks_at; /* addresses with SB_IP_INTERP, leaf first; NULL: not of interest */
	SB_VEC(struct native_frame) natives; /* root first, of the user part */
	SB_VEC(struct interp_segment) segments;
	SB_VEC(uint32_t) merged;
	SB_VEC(uint32_t)
	units; /* for each frame of the merged stack, where it and its inlined ones begin in `merged` */
	struct sb_interp_anchors anchors;
	struct sb_interp_name name;
	/* What a sample has beyond its stacks: beyond.c. */
	struct sb_stack_parts parts;  /* of the stack being put together */
	SB_VEC(const char *) names;   /* of some of its frames */
	struct sb_wait_reason reason; /* why its thread waits */
};

/*
 * Push a frame: as it is; of a name and a kind; that shows an attribute; that shows an attribute
 * which has only a text, or none (NULL). The profile copies strings. Return: 0; -ENOMEM; -E2BIG
 * when the profile is full.
 */
int sb_resolver_push_frame(struct sb_resolver *resolver, const struct sb_frame *frame);
int sb_resolver_push(struct sb_resolver *resolver, const char *name, enum sb_frame_kind kind);
int sb_resolver_push_attr(struct sb_resolver *resolver, const struct sb_attr *attr);
int sb_resolver_push_mark(struct sb_resolver *resolver, enum sb_attr_kind kind, const char *text);
/*
 * Push the frames of a user or kernel stack, with a mark where callers are missing, and count them
 * in `stats`. For a stack that is not known only the mark "[lost stack]" is pushed. Return: as
 * sb_resolver_push_frame().
 */
int sb_resolver_push_user(struct sb_resolver *resolver, const struct user_part *part);
int sb_resolver_push_kernel(struct sb_resolver *resolver, struct sb_stack_id id);
/* Find when the mappings below @count's user stack change next after @from_ns (ns of the samples'
 * clock); *ret_ns is UINT64_MAX if not before its last sample. Return: 0 or -ENOMEM. */
int sb_resolver_next_change(struct sb_resolver *resolver, const struct sb_batch_count *count,
			    uint64_t from_ns, uint64_t *ret_ns);

/*
 * Put the interpreter frames of @part in their places among the native frames, which lie in
 * `frames` from part_start on and are described in `natives`. Afterwards `units` says where each
 * frame begins; it is empty if there were no interpreter frames. @status: how the native walk
 * ended; if it was complete, it is set to how the interpreter's walk ended. Return: as
 * sb_resolver_push_frame().
 */
int sb_resolver_merge(struct sb_resolver *resolver, const struct user_part *part, uint32_t *status);
/* Cut the leaf frames that sb_view.trim names off the kernel stack, which is in `frames` from
 * @first on. The view has a list `trim`. */
void sb_resolver_trim(struct sb_resolver *resolver, size_t first);
/*
 * If the stack of a waker is that of an interrupt, replace the frames of the interrupted thread,
 * which is not the waker, by "[interrupt]". @first, @kernel: offsets in `frames` where the waker's
 * root frames and its kernel frames begin; they end at the end. Return: as
 * sb_resolver_push_frame().
 */
int sb_resolver_cut_interrupted(struct sb_resolver *resolver, size_t first, size_t kernel);
/*
 * Push what a sample has beyond its stacks: before them "[runqueue]" or "[throttled]", if the view
 * has the state as a root frame; behind them the operation, the reason of the wait, the object's
 * frames, and the state as a leaf frame. Return: as sb_resolver_push_frame().
 */
int sb_resolver_push_state_root(struct sb_resolver *resolver, const struct sb_sample_key *key);
int sb_resolver_push_beyond(struct sb_resolver *resolver, const struct sb_sample_key *key);
/* Set `reason` to why the thread waits. Call it when both stacks were pushed, and before
 * sb_resolver_is_left_out() and sb_resolver_push_beyond(). */
void sb_resolver_find_reason(struct sb_resolver *resolver, const struct sb_sample_key *key);
/* Return: whether the sample is left out because it is an idle wait, or its file is unwanted. It is
 * counted in nr_unwanted or idle_weight then. */
bool sb_resolver_is_left_out(struct sb_resolver *resolver, const struct sb_batch_count *count);

#endif
