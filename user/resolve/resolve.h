/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The resolver turns the batches of capture into rows of a profile: each address becomes a frame
 * with a name, or with the reason why it has none. It runs after each drain, while the sampled
 * processes still live. Samples of several views go into one profile, where their series tell them
 * apart. Stacks are kept, because the BPF side ships each one once; the ones that are not needed
 * any more are evicted.
 *
 * Order: sb_resolver_new(); for each batch sb_resolver_note_pending() if
 * sb_resolver_wants_pending(), then sb_resolver_add(), and give sb_resolver_evicted() to the BPF
 * side; at last sb_resolver_free(). Between batches the profile may be sealed and cleared, and
 * sb_resolver_move() goes on in another one. Not thread-safe: one thread at a time for a resolver
 * and its profile. No pointer may be NULL unless a contract says so.
 */
#ifndef SB_RESOLVE_RESOLVE_H
#define SB_RESOLVE_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/sb_abi_interp.h"
#include "capture/batch.h"
#include "model/profile.h"
#include "symbolizer/sb_sym.h"

struct sb_interp;
struct sb_processes;
struct sb_resolver;

/* The words of --by, indexed by the attribute that they stand for: SB_ATTR_COMM to
 * SB_ATTR_CONTAINER. */
extern const char *const sb_root_names[SB_ATTR_CONTAINER + 1];
/*
 * Return: the bits SB_BY_* of the fields that the BPF side must fill in sb_sample_key, because the
 * root frame @root shows them: SB_BY_THREAD, _CPU or _CGROUP; 0 if every key has them. Those of all
 * root frames together are for sb_session_opts.by. @root: SB_ATTR_COMM to SB_ATTR_CONTAINER, which
 * is not checked. Any thread.
 */
uint32_t sb_root_by(enum sb_attr_kind root);

#define SB_ROOTS_MAX 8

/* What to do with waits of idle workers (waits.h). Waits for locks are not concerned. */
enum sb_idle_mode {
	SB_IDLE_SHOW, /* add a leaf frame "[idle: epoll]" */
	SB_IDLE_DIM,  /* put them below a root frame "[idle]" */
	SB_IDLE_DROP, /* leave them out, and count them */
};

/* How a file is named. */
enum sb_file_text {
	SB_FILE_TEXT_PATH, /* its path; "[pipe]", "[socket: tcp]" for those without one */
	SB_FILE_TEXT_BASE, /* the last part of it */
	SB_FILE_TEXT_NONE, /* nothing */
	SB_FILE_TEXT_FULL, /* its path, "pipe:[1234]", "socket:[1234]" as in /proc/PID/fd */
};

/* What to do with frames of interpreters, and with the native frames that run them. */
enum sb_interp_mode {
	SB_INTERP_AUTO, /* replace the interpreter's loop and glue by them */
	SB_INTERP_OFF,	/* no frames of interpreters */
	SB_INTERP_ONLY, /* no native frames in stacks that have any of an interpreter */
	SB_INTERP_BOTH, /* show all of both */
};

/* Properties of a view that the resolver needs: see struct sb_view. What they point to is borrowed
 * for the life of the resolver. */
struct sb_resolve_view {
	/* Globs for names of kernel frames, ended by NULL; NULL: none. Of the first few from the
	 * leaf on, the one nearest to the root that matches is cut off, and all nearer the leaf. */
	const char *const *trim;
	const char *(*op_name)(uint32_t op); /* NULL: no operation has a name */
	const char *value_name;		     /* of values (SB_OBJECT_VALUE); NULL: it has none */
	bool state_at_root, state_at_leaf; /* the thread's state is a root frame, or a leaf frame */
	/* An interrupt's stack stands for itself, not for the thread that it interrupted. */
	bool is_of_wakers;
	bool has_idle; /* waits for work are told from waits for locks (waits.h) */
};

struct sb_resolve_opts {
	enum sb_attr_kind roots[SB_ROOTS_MAX]; /* root first; with nr_roots 0: SB_ATTR_COMM */
	size_t nr_roots;
	bool delimited;	      /* add a frame "-" between the user and the kernel part */
	bool offsets;	      /* frames of one function differ by offset */
	bool hides_addresses; /* "[anon]" and "[kernel]" without the address */
	bool lines;	      /* frames of one function differ by line */
	bool modules;	      /* frames have the name of their module */
	uint32_t sides;	      /* SB_SIDE_*: the parts of stacks that were asked for */
	struct sb_resolve_view views[SB_VIEWS_MAX]; /* by sb_sample_key.view */
	enum sb_idle_mode idle;
	enum sb_file_text file;
	struct sb_processes *processes; /* borrowed; NULL: a private registry, which never evicts */
	struct sb_interp *interp;	/* borrowed; NULL: no frames of interpreters */
	enum sb_interp_mode interp_mode;
	const char *const *labels; /* borrowed: keys; root frames "KEY=value" above the roots */
	size_t nr_labels;	   /* up to SB_LABELS_MAX */
	size_t stacks_max;	   /* number of stacks from which eviction begins; 0: 16,384 */
	uint64_t idle_batches;	   /* evict stacks that so many batches did not have; 0: 128 */
	/*
	 * Assigns each sample to a series; its row in the profile gets that number, and there are
	 * no root frames. NULL: there are root frames, and all samples are in series 0.
	 * @labels: the values of the labels above, in their order; NULL where the thread has none
	 * Return: 0 or -ENOMEM.
	 */
	int (*series)(void *arg, const struct sb_sample_key *key, const char *const *labels,
		      uint32_t *ret_series);
	void *series_arg;
	/* Called now and then while sb_resolver_add() goes on, which can take seconds, for what
	 * must not wait so long. It may read the figures (sb_resolver_stats()), and call nothing
	 * else of the resolver. NULL: nothing to do. */
	void (*progress)(void *arg);
	void *progress_arg;
	const char *path_glob; /* leave out samples of files that do not match; NULL: none */
	uint32_t
		depth_max; /* frames of a user stack with frames of interpreters, at most; 0: no limit */
};

/*
 * Make a resolver that appends to @profile, which is not sealed. @opts is copied; @sym, @profile
 * and pointers in @opts are borrowed until sb_resolver_free(), @profile until sb_resolver_move().
 * Return: 0 and *ret_resolver, owned by the caller; -ENOMEM, and *ret_resolver is untouched.
 */
int sb_resolver_new(const struct sb_resolve_opts *opts, struct sb_symbolizer *sym,
		    struct sb_profile *profile, struct sb_resolver **ret_resolver);
/* Free the resolver, not the profile; NULL is allowed. */
void sb_resolver_free(struct sb_resolver *resolver);

/*
 * Append the samples of a batch, which is what one drain of the BPF side gives (capture/batch.h),
 * to the profile, which the resolver borrows (sb_resolver_new(), sb_resolver_move()); what is still
 * needed of the batch is copied. Before, the symbolizer must have got the mmap, fork, exec and exit
 * events up to the batch's samples. Return: 0; -ENOMEM; -E2BIG when the profile is full; -EBADMSG
 * when an object of the batch is malformed. After an error some samples were added, and the
 * resolver is only to be freed.
 */
int sb_resolver_add(struct sb_resolver *resolver, const struct sb_batch *batch);
/* Return: whether stacks are about to be evicted, so that before the next batch
 * sb_resolver_note_pending() must be called with those that pending samples reference
 * (sb_session_pending()). */
bool sb_resolver_wants_pending(const struct sb_resolver *resolver);
/* Note that pending samples reference these stacks: the round of eviction that is about to end
 * spares them. Unknown IDs are ignored. Call it also with @nr 0 (@ids may be NULL then), because it
 * spares the stacks of wakers, too, which are known here. @ids is only read. */
void sb_resolver_note_pending(struct sb_resolver *resolver, const struct sb_stack_id *ids,
			      size_t nr);
/*
 * Get what the BPF side must forget after the last batch (sb_session_forget()): stacks that are
 * evicted, or will be soon, because their process has ended or they were not sampled for long;
 * evicted labels; and unwanted objects, whose further samples it is to leave out. The arrays are
 * the resolver's, valid until the next sb_resolver_add(); they have no elements if nothing is to be
 * forgotten.
 */
void sb_resolver_evicted(const struct sb_resolver *resolver, struct sb_batch_evicted *ret_evicted);
/*
 * Append to @profile from now on. It is empty, and borrowed as that of sb_resolver_new(). Frames of
 * kernel stacks and objects, which are resolved once, and of the slowest calls are copied to it.
 * The old profile is not used any more. Return: 0; -ENOMEM, -E2BIG: then the resolver is only to be
 * freed.
 */
int sb_resolver_move(struct sb_resolver *resolver, struct sb_profile *profile);
/* Add a row with the one frame "[residual]" in series 0 to @profile, which is not sealed, for
 * weight that is missing from the expected total (wall: threads x time), in the unit of the
 * profile's weights. Needs no resolver. Return: 0; -ENOMEM; -E2BIG; on error no row is added. */
int sb_resolver_add_residual(struct sb_profile *profile, uint64_t weight);

/* Texts that say why a stack was cut, indexed by enum sb_stack_status; NULL: it was not. */
extern const char *const sb_cut_names[SB_STACK_STATUS_MAX];

/* Counts of samples, for one runtime of an interpreter. */
struct sb_resolve_runtime {
	uint64_t nr_inside; /* with frames of its loop, of generated code, or of its own */
	uint64_t nr_found;  /* with frames of its own */
	uint64_t nr_cut;    /* of these, those whose walk did not reach the root */
	uint64_t nr_frames, nr_unreadable;
	uint64_t nr_odd; /* with different numbers of segments and of native frames of the loop */
};

struct sb_resolve_stats {
	uint64_t nr_samples, weight; /* in the profile; weight in the BPF side's unit */
	uint64_t idle_weight;	     /* left out by SB_IDLE_DROP */
	uint64_t lock_weight;	     /* of waits for locks, in the profile */
	uint64_t nr_evicted;	     /* stacks */
	uint64_t nr_unwanted;	     /* samples left out by path_glob */
	uint64_t nr_missing_objects; /* samples whose object was never shipped */
	uint64_t state_weight[SB_STATE_MAX];
	uint64_t nr_stacks;	 /* distinct ones, kernel and user */
	uint64_t nr_processes;	 /* distinct ones */
	uint64_t nr_user_stacks; /* samples with a user stack */
	/* Samples by the status of their user stack: of the native part or, if that is complete, of
	 * the interpreter's. */
	uint64_t nr_status[SB_STACK_STATUS_MAX];
	uint64_t nr_cut;	/* samples with an incomplete stack, each counted once */
	uint64_t nr_kernel_cut; /* samples whose kernel stack reached the kernel's limit of depth */
	uint64_t nr_labelled;	/* samples with one of the labels */
	uint64_t nr_missing_labels; /* samples whose labels were never shipped */
	uint64_t nr_other_labels;   /* samples with "(other)": too many sets at a time */
	uint64_t nr_missing_stacks; /* samples whose stack was never shipped */
	uint64_t nr_shared_out;	    /* samples split by time, because mappings changed meanwhile */
	uint64_t nr_frames;	    /* physical frames of samples */
	struct sb_resolve_runtime runtime[SB_RUNTIME_MAX];
	uint64_t nr_unnamed[SB_SYM_REASON_MAX]; /* of these, without a name, by reason */
};
/* Get the totals since sb_resolver_new() of the view with index @view, below SB_VIEWS_MAX, which is
 * not checked; nr_stacks and nr_evicted are of all views. *ret_stats is overwritten. At any time
 * between two batches, or after the last one. */
void sb_resolver_stats(const struct sb_resolver *resolver, uint32_t view,
		       struct sb_resolve_stats *ret_stats);

struct sb_slowest;
/* Return: the slowest calls since sb_resolver_new() (slowest.h), not NULL; an empty list if no view
 * was asked for them. It is the resolver's, and changes with each sb_resolver_add(). Frames are IDs
 * of the resolver's profile. */
const struct sb_slowest *sb_resolver_slowest(const struct sb_resolver *resolver);

#endif
