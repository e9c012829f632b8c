/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Batches -> profile: addresses become frames with a name or a reason, while processes live. Samples of several
 * views go into one profile, where only their roots can tell them apart: series.
 * Stacks are remembered for the whole run (the BPF side ships each once). Not thread-safe.
 */
#ifndef SB_RESOLVE_RESOLVE_H
#define SB_RESOLVE_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/batch.h"
#include "sb_abi_interp.h"
#include "sb_sym.h"

struct sb_interp;
struct sb_profile;
struct sb_resolver;

/* Root frames, outermost first. */
enum sb_root {
	SB_ROOT_COMM,	   /* "nginx" */
	SB_ROOT_PID,	   /* "nginx-1302" */
	SB_ROOT_THREAD,	   /* "nginx-1302/1305" */
	SB_ROOT_CPU,	   /* "cpu 3" */
	SB_ROOT_CGROUP,	   /* "/system.slice/nginx.service" */
	SB_ROOT_CONTAINER, /* "3f4e1c..." or "[host]" */
	SB_ROOT_MAX,
};
/* Names for --by, indexed by the enum. */
extern const char *const sb_root_names[SB_ROOT_MAX];
/* Bits of SB_BY_* that the key must be split by for @root. */
uint32_t sb_root_by(enum sb_root root);

#define SB_ROOTS_MAX 8

/* What becomes of waits of idle workers, see waits.h. Waits for locks are never among them. */
enum sb_idle_mode {
	SB_IDLE_SHOW, /* a mark behind the leaf: "[idle: epoll]" */
	SB_IDLE_DIM,  /* apart: below the root "[idle]" */
	SB_IDLE_DROP, /* left out and counted */
};

/* What is said of a file. */
enum sb_file_text {
	SB_FILE_TEXT_PATH, /* its path; "[pipe]", "[socket: tcp]" for those without one */
	SB_FILE_TEXT_BASE, /* the last part of it */
	SB_FILE_TEXT_NONE, /* nothing */
	SB_FILE_TEXT_FULL, /* its path, "pipe:[1234]", "socket:[1234]" as in /proc/PID/fd */
};

/* What becomes of the frames of interpreters, and of the native ones that run them. */
enum sb_interp_mode {
	SB_INTERP_AUTO, /* in the place of the interpreter's loop and of its glue */
	SB_INTERP_OFF,
	SB_INTERP_ONLY, /* no native frames, where there are any of an interpreter */
	SB_INTERP_BOTH, /* beside all native frames */
};

/* What views say of themselves; see struct sb_view. */
struct sb_resolve_view {
	const char *const *trim;
	const char *(*op_name)(uint32_t op);
	bool state_at_root, state_at_leaf;
	bool is_of_wakers;
	bool has_idle;
};

struct sb_resolve_opts {
	enum sb_root roots[SB_ROOTS_MAX]; /* nr_roots 0: SB_ROOT_COMM */
	size_t nr_roots;
	bool delimited;	      /* a frame "-" between user and kernel part */
	bool offsets;	      /* frames of one function differ by offset */
	bool hides_addresses; /* "[anon]" and "[kernel]" without the address */
	bool lines;	      /* frames of one function differ by line */
	bool modules;	      /* frames know their module */
	uint32_t sides;	      /* SB_SIDE_*: which parts were asked for */
	struct sb_resolve_view views[SB_VIEWS_MAX]; /* by sb_sample_key.view */
	enum sb_idle_mode idle;
	enum sb_file_text file;
	struct sb_interp *interp; /* borrowed; NULL: no frames of interpreters */
	enum sb_interp_mode interp_mode;
	const char *const
		*labels;  /* borrowed: keys of labels, frames "KEY=value" outside of all roots */
	size_t nr_labels; /* up to SB_LABELS_MAX */
	size_t stacks_max; /* so many are kept before those of no more use are forgotten; 0: 16,384 */
	uint64_t idle_batches; /* of no more use are those that were in none of so many; 0: 128 */
	/*
	 * Samples that are kept apart by more than roots can say: @series gives each a number, and a frame of
	 * that name (decimal) is the outermost one; there are no other roots then. @labels: the values of the
	 * labels above in this sample, NULL where its thread has none. NULL: roots. Return of
	 * @series: 0, -ENOMEM.
	 */
	int (*series)(void *arg, const struct sb_sample_key *key, const char *const *labels,
		      uint32_t *ret_series);
	void *series_arg;
	const char *path_glob; /* files that it does not match are left out; NULL: none is */
	uint32_t
		depth_max; /* frames of a user stack that has frames of interpreters, at most; 0: no limit */
};

int sb_resolver_new(const struct sb_resolve_opts *opts, struct sb_symbolizer *sym,
		    struct sb_profile *profile, struct sb_resolver **ret_resolver);
void sb_resolver_free(struct sb_resolver *resolver);

/* Append a batch to the profile. @sym must have been told of processes up to the batch. */
int sb_resolver_add(struct sb_resolver *resolver, const struct sb_batch *batch);
/* Before a batch. Return: whether stacks are about to be forgotten, of which those that samples under way will name
 * have to be kept. */
bool sb_resolver_asks(const struct sb_resolver *resolver);
/* These. An id that is not known is passed over. */
void sb_resolver_keep(struct sb_resolver *resolver, const struct sb_stack_id *ids, size_t nr);
/* Objects that turned out not to be wanted since the last call; valid until sb_resolver_add(). */
const uint64_t *sb_resolver_unwanted(struct sb_resolver *resolver, size_t *ret_nr);
/* Stacks that are forgotten, because their processes have ended, or are about to be, because nothing was sampled
 * there for long: the BPF side must forget them, too, or it would not ship them again. Of the last batch; valid until sb_resolver_add(). */
const struct sb_stack_id *sb_resolver_evicted(const struct sb_resolver *resolver, size_t *ret_nr);
/*
 * Go on in @profile, which is empty: frames that are kept for later samples get their numbers there. The old
 * one is not used any more. Return: 0, -ENOMEM, -E2BIG: neither can be used.
 */
int sb_resolver_move(struct sb_resolver *resolver, struct sb_profile *profile);
/* A process that comes again counts again in nr_processes: they are remembered up to here only. */
void sb_resolver_forget_processes(struct sb_resolver *resolver);
/* The same for sets of labels. */
const uint64_t *sb_resolver_evicted_labels(const struct sb_resolver *resolver, size_t *ret_nr);
/* What is missing to the whole (wall: threads x time) as a box of its own. */
int sb_resolver_add_residual(struct sb_profile *profile, uint64_t weight);

/* Why a stack was cut, by enum sb_stack_status; NULL: it was not. */
extern const char *const sb_cut_names[SB_STACK_STATUS_MAX];

/* Samples of one runtime. */
struct sb_resolve_runtime {
	uint64_t nr_inside; /* that have frames of its loop, of what it compiled, or of its own */
	uint64_t nr_found;  /* those that have its own */
	uint64_t nr_cut;    /* whose walk did not come to the root */
	uint64_t nr_frames, nr_unreadable;
	uint64_t nr_odd; /* where its segments and the loop's native frames are not as many */
};

struct sb_resolve_stats {
	uint64_t nr_samples, weight; /* in the profile; weight as the BPF side has it */
	uint64_t idle_weight;	     /* left out by SB_IDLE_DROP */
	uint64_t lock_weight;	     /* in the profile, of waits for locks */
	uint64_t nr_evicted;	     /* stacks forgotten */
	uint64_t nr_unwanted;	     /* samples left out by path_glob */
	uint64_t nr_missing_objects; /* samples whose object never came */
	uint64_t state_weight[SB_STATE_MAX];
	uint64_t nr_stacks;	 /* distinct, kernel and user */
	uint64_t nr_processes;	 /* distinct address spaces sampled */
	uint64_t nr_user_stacks; /* samples that have a user stack */
	/* Samples by the worth of their user stack: of its native part or, if that is whole, of the interpreter's. */
	uint64_t nr_status[SB_STACK_STATUS_MAX];
	uint64_t nr_cut;	/* samples of whose stacks anything is missing, each counted once */
	uint64_t nr_kernel_cut; /* samples whose kernel stack is as deep as the kernel gives */
	uint64_t nr_labelled;	/* samples that have one of the labels */
	uint64_t nr_missing_labels; /* samples whose labels never came */
	uint64_t nr_other_labels;   /* samples of "(other)": too many sets at a time */
	uint64_t nr_missing_stacks; /* samples whose stack never came through the ring */
	uint64_t nr_shared_out;	    /* samples below which another file was mapped meanwhile */
	uint64_t nr_frames;	    /* frames of samples, physical ones */
	struct sb_resolve_runtime runtime[SB_RUNTIME_MAX];
	uint64_t nr_unnamed[SB_SYM_REASON_MAX]; /* of these: without a name, by reason */
};
/* Of the view of that number; nr_stacks and nr_evicted are of all. */
void sb_resolver_stats(const struct sb_resolver *resolver, uint32_t view,
		       struct sb_resolve_stats *ret_stats);

#endif
