/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sample under work. An assembly collects the frames of one sample, root first, as IDs of
 * frames that the profile owns. It is passed to every function that adds to the sample, next to the
 * caches that the function uses, so that a signature tells what a function can change. resolve.c
 * takes a batch apart into samples, and adds the frames of each one to the profile as one stack.
 * assembly.c appends frames, stack.c resolves one stack, merge.c puts interpreter frames into it,
 * sample_context.c adds what a sample has beyond its stacks. Internal to resolve; not thread-safe.
 * No argument is NULL unless a function says so.
 * Functions that return an int return 0, -ENOMEM, or -E2BIG when the profile is full. After an
 * error the whole batch is given up: frames pushed before remain, figures that were counted stay,
 * and the assembly can only be released.
 *
 * Order for each sample: set view, stats and nr_samples, empty frames, clear call; its labels;
 * sb_assembly_push_state_root(); the root frames; clear is_cut and user_count;
 * sb_assembly_push_user(), sb_assembly_push_kernel(), each if it has such a stack, with user_at,
 * kernel_at and end set at their borders; sb_assembly_find_reason(); sb_assembly_is_left_out(); if
 * it is not, sb_assembly_push_beyond(). If the sample counts several, sb_assembly_next_change()
 * comes first.
 *
 */
#ifndef SB_RESOLVE_ASSEMBLY_H
#define SB_RESOLVE_ASSEMBLY_H

#include "base/str.h"
#include "base/vec.h"
#include "interp/core/interp.h"
#include "model/profile.h"
#include "resolve/objects.h"
#include "resolve/resolve.h"
#include "resolve/stacks.h"
#include "resolve/waits.h"

/* A native frame of the user stack that is being put together. */
struct native_frame {
	uint64_t addr;
	uint64_t func;	    /* start of its function; 0: not known */
	size_t first;	    /* its first frame in assembly.frames; inlined functions follow */
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

/* The merge of the interpreter frames of a user stack into its native frames: merge.c. */
struct merge {
	SB_VEC(struct native_frame) natives; /* root first */
	SB_VEC(struct interp_segment) segments;
	struct sb_interp_anchors anchors;
	struct sb_space_key space;
	const struct sb_interp_frame *frames; /* of the interpreter, leaf first */
	uint32_t nr_frames;
	uint32_t status;	 /* how the interpreter's walk ended */
	bool is_whole;		 /* neither walk was cut */
	bool has_ahead;		 /* there are segments without a loop of their own */
	SB_VEC(uint32_t) merged; /* the result, root first */
	/* For each native and interpreter frame of the result: where it and its inlined ones begin
	 * in merged. */
	SB_VEC(uint32_t) units;
	struct sb_interp_name name; /* reused by each frame */
};

/* The user or kernel stack that is being resolved: stack.c. */
struct stack_part {
	size_t start;	     /* where it begins in assembly.frames */
	const uint64_t *ips; /* addresses of a user stack, leaf first; NULL: a kernel stack */
	SB_VEC(struct sb_sym_req) reqs; /* its addresses, root first */
	struct sb_frame_counts counts;
	bool is_of_calls;      /* SB_STACK_CALLS */
	bool is_broken;	       /* one of its return addresses is not in code */
	bool is_leaf_unmapped; /* its leaf is not in code */
	bool hides_callers;    /* inside the stack, callers may be missing */
};

struct assembly {
	/* Of the whole batch, borrowed. */
	const struct sb_resolve_opts *opts;
	struct sb_symbolizer *sym;
	struct sb_profile *profile; /* frames are interned here */
	/* Of the sample. */
	const struct sb_resolve_view *view;
	struct sb_resolve_stats *stats; /* of its view; borrowed */
	uint64_t nr_samples;		/* how many samples a stack counts for */
	uint32_t series;		/* 0 without opts.series */
	SB_VEC(uint32_t) frames;	/* root first */
	size_t user_at, kernel_at, end; /* where its stacks begin in frames, and where they end */
	bool is_cut;			/* one of its stacks is incomplete */
	uint64_t *user_count; /* stats->nr_status[], which counts its user stack; NULL: none does */
	struct sb_wait_reason reason;	   /* why its thread waits */
	const struct sb_object_call *call; /* it is one of the slowest; borrowed; NULL: it is not */
	struct sb_str text;		   /* reused by each frame */
	struct stack_part part;
	struct merge merge;
};
/* Free the buffers; what is borrowed stays. An assembly begins zero-initialized, with opts, sym and
 * profile set. After the release its buffers are empty, so it can be used or released again. */
void sb_assembly_release(struct assembly *assembly);

/*
 * Push a frame: as it is; of a name and a kind; that shows an attribute; that shows an attribute
 * which has only a text, or none (NULL). The profile copies strings.
 */
int sb_assembly_push_frame(struct assembly *assembly, const struct sb_frame *frame);
int sb_assembly_push(struct assembly *assembly, const char *name, enum sb_frame_kind kind);
int sb_assembly_push_attr(struct assembly *assembly, const struct sb_attr *attr);
int sb_assembly_push_mark(struct assembly *assembly, enum sb_attr_kind kind, const char *text);
/* Push @nr frames that the profile knows, by their IDs, root first. @ids: copied, so not a part of
 * assembly->frames, which may be moved; may be NULL if @nr is 0. Return: 0; -ENOMEM, and none is
 * pushed. */
int sb_assembly_push_ids(struct assembly *assembly, const uint32_t *ids, size_t nr);
/* Move the last frame to index @to of the frames; those from there on move up. There is at least
 * one frame, and @to is an index of one, which is not checked. user_at, kernel_at and end stay: the
 * caller adjusts those beyond @to if they are still needed. */
void sb_assembly_move_last(struct assembly *assembly, size_t to);
/* Reverse the order of @nr IDs of frames in place; @nr may be 0, and @ids NULL then. Any thread. */
void sb_reverse_ids(uint32_t *ids, size_t nr);
/* Return: the frame at index @i of the assembly, 0 being the root; the profile's, valid until the
 * next one is pushed. */
const struct sb_frame *sb_assembly_frame_at(const struct assembly *assembly, size_t i);

/* A user stack of a process at one point in time. */
struct user_stack {
	struct sb_stack_id ustack, istack; /* native, and of an interpreter; 0: none */
	/* The start of the process (CLOCK_BOOTTIME); the point in time (CLOCK_MONOTONIC). */
	uint64_t start_ns, time_ns;
	uint32_t tgid, exec_id; /* with start_ns: the address space */
};
/*
 * Push the frames of a user or kernel stack, with a mark where callers are missing, count them in
 * stats, and set is_cut if there is such a mark. For a stack that is not known only the mark "[lost
 * stack]" is pushed. sb_assembly_push_user() also sets user_count, if the stack is known.
 */
int sb_assembly_push_user(struct assembly *assembly, struct sb_stack_cache *stacks,
			  const struct user_stack *user);
int sb_assembly_push_kernel(struct assembly *assembly, struct sb_stack_cache *stacks,
			    struct sb_stack_id id);
/* Find when the mappings below @count's user stack change next after @from_ns (ns of the samples'
 * clock). *ret_ns is UINT64_MAX if they do not before its last sample, if the stack is not in
 * @stacks, and after an error. The caller divides the samples there, and asks again with that time.
 * Return: 0 or -ENOMEM. */
int sb_assembly_next_change(struct assembly *assembly, struct sb_stack_cache *stacks,
			    const struct sb_batch_count *count, uint64_t from_ns, uint64_t *ret_ns);
/*
 * Put the interpreter frames of @user->istack between the native frames of the user stack, and
 * leave out the native ones that they stand for. Only sb_assembly_push_user() calls it, when it has
 * pushed the native frames: they are the frames from part.start to the end, and merge.natives says
 * what each of them is. opts->interp is not NULL. part.counts is adjusted. @status: enum
 * sb_stack_status; in: how the native walk ended; out: how the interpreter's ended, if only that
 * one was cut; else untouched. Without frames of an interpreter the frames stay as they are.
 */
int sb_assembly_merge(struct assembly *assembly, struct sb_stack_cache *stacks,
		      const struct user_stack *user, uint32_t *status);

/* Cut leaf frames off a kernel stack that was just pushed: its frames are those from @first to the
 * last one. Of the frames that the globs of view->trim match, the one nearest to the root is cut
 * off, with all that are nearer to the leaf. Only the first few frames from the leaf on are looked
 * at, and none beyond the entry of an interrupt. view->trim is not NULL. The frames with a name
 * that are cut off are subtracted from part.counts.nr; the caller sets kernel_at and end
 * afterwards. */
void sb_assembly_trim(struct assembly *assembly, size_t first);
/*
 * If the stack of a waker is that of an interrupt, replace the frames of the interrupted thread,
 * which is not the waker, by "[interrupt]". @first, @kernel: where the waker's root frames and its
 * kernel frames begin; they end at the end. is_cut and what *user_count counts are undone then;
 * user_at, kernel_at and end are not adjusted, so they are not valid afterwards.
 */
int sb_assembly_cut_interrupted(struct assembly *assembly, size_t first, size_t kernel);
/* Push "[runqueue]" or "[throttled]" if the thread is in that state, and the view has the state as
 * a root frame. */
int sb_assembly_push_state_root(struct assembly *assembly, const struct sb_sample_key *key);
/*
 * Push what a sample has on the leaf side of its stacks: the operation, the reason of the wait, the
 * object's frames, and the state, if the view has it as a leaf frame. assembly->call is set if it
 * is one of the slowest calls. An object that is not known becomes a mark, and is counted.
 */
int sb_assembly_push_beyond(struct assembly *assembly, struct sb_object_cache *objects,
			    struct sb_stack_cache *stacks, const struct sb_sample_key *key);
/* Set assembly->reason to why the thread waits. */
void sb_assembly_find_reason(struct assembly *assembly, struct sb_wait_words *words,
			     const struct sb_sample_key *key);
/*
 * Return: whether the sample is left out because it is an idle wait, or its file is unwanted. Then
 * its weight is added to idle_weight, or the number of its samples to nr_unwanted, and the caller
 * takes back what its stacks added to the other figures. Call it once for a sample. @count: key,
 * weight and number of the sample.
 */
bool sb_assembly_is_left_out(struct assembly *assembly, struct sb_object_cache *objects,
			     const struct sb_batch_count *count);

#endif
