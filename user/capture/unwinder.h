/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Provides the unwinder in the kernel with unwind tables and mappings. Tables lie in one bounded
 * pool of memory, mapped into BPF maps, and are shared by all processes that map the same file. A
 * thread fills the pool when the BPF side asks (ring `uw_needs`). Sampling never waits for it:
 * until a table is ready, samples are shipped as struct sb_event_raw.
 *
 *	unwinder.c	the thread: requests, and the maps of the BPF side
 *	uwprocs.c	processes: lists of their executable mappings, read from /proc
 *	uwtables.c	files: a table for each, compiled when it is first needed; when the
 *			pool is full, the least recently used one is evicted
 *	uwtouch.c	pages of stacks that were swapped out or never read
 *	uwpool.c	the pool: parts of 4 MiB, allocated when needed
 *
 * Thread: the session's, for all functions but sb_unwinder_tell(). No pointer may be NULL unless a
 * contract says so. The sequence is new -> prepare (each BPF object, before it is loaded) -> start
 * (with the one that was loaded) -> free. All other functions but sb_unwinder_serve_interps() and
 * sb_unwinder_first() need a start that succeeded.
 */
#ifndef SB_CAPTURE_UNWINDER_H
#define SB_CAPTURE_UNWINDER_H

#include <stdbool.h>
#include <stdint.h>

struct sampler_bpf;
struct sb_uw_need_event;
struct sb_parser_seat;
struct sb_processes;
struct sb_unwinder;

#define SB_UNWINDER_POOL_BYTES_DEFAULT (64u << 20)

struct sb_unwinder_stats {
	uint64_t nr_pool_bytes, nr_pool_bytes_peak, nr_pool_bytes_max; /* tables and lists */
	uint64_t nr_tables;					       /* ready now */
	uint64_t nr_tables_built;  /* since the start, rebuilt ones included */
	uint64_t nr_tables_failed; /* files with unusable CFI: unwound by frame pointers */
	uint64_t nr_evictions;
	uint64_t nr_rows, build_ns; /* of all tables that were built */
	uint64_t nr_processes;	    /* lists of mappings that are published now */
	uint64_t nr_refused;	    /* requests, processes, mappings or files beyond a bound */
	uint64_t nr_needs;	    /* requests that were served */
	uint64_t nr_touched;	    /* pages of stacks that were brought in */
};

/*
 * Make the pool. A thread allocates its first part at once, because that takes as long as loading
 * the programs.
 * @pool_bytes_max: rounded up to parts, at least one; 0: the default
 * @parser: compiles the tables; borrowed until sb_unwinder_free(); NULL: the unwinder's thread does
 *
 * Return: 0, and the caller ends *ret_unwinder with sb_unwinder_free(); -ENOMEM; or a negative
 * errno of making the memory or the thread; *ret_unwinder is untouched then.
 */
int sb_unwinder_new(uint64_t pool_bytes_max, struct sb_parser_seat *parser,
		    struct sb_unwinder **ret_unwinder);
/*
 * Set sizes and settings of an open BPF object, before it is loaded. Return: 0; or a negative errno
 * of libbpf, and then @skel is not to be loaded.
 */
int sb_unwinder_prepare(const struct sb_unwinder *unwinder, struct sampler_bpf *skel);
/* Start the threads, between sb_privileges_begin() and sb_privileges_settle()
 * (workers/privileges.h), because they drop their own privileges. @skel, loaded, and @processes
 * must outlive the unwinder. Return: 0; or a negative errno: -ENOMEM, or that of reading a map,
 * making a descriptor or a thread. After any error the unwinder can only be freed. */
int sb_unwinder_start(struct sb_unwinder *unwinder, struct sampler_bpf *skel,
		      struct sb_processes *processes);
/* End the threads, in any state, and free. Programs of the BPF object must be detached. Accepts
 * NULL. */
void sb_unwinder_free(struct sb_unwinder *unwinder);

/*
 * Whom to tell that the BPF side asked which interpreters a process has. The unwinder reads the
 * mappings anyway, so it can say whether all files are known to have none. Called on the unwinder's
 * thread, with pointers that are valid during the call; they must not call functions of the
 * unwinder. The struct is borrowed as long as the unwinder lives, and set before programs are
 * attached.
 */
struct stat;
struct sb_unwinder_interps {
	/* Follow the side-band records of a process from now on. */
	void (*follow)(void *arg, uint32_t tgid);
	/* Whether a file is known to have no interpreter. */
	bool (*is_plain)(void *arg, const struct stat *st);
	/* The request. @is_plain: the mappings were read since follow(), and is_plain() holds for
	 * all. @since_ns: CLOCK_MONOTONIC, after follow() and before they were read. */
	void (*need)(void *arg, const struct sb_uw_need_event *need, uint64_t since_ns,
		     bool is_plain);
	void *arg;
};
void sb_unwinder_serve_interps(struct sb_unwinder *unwinder,
			       const struct sb_unwinder_interps *interps);

/*
 * Pass on a side-band record, which is copied; NULL: there are no more for now. If the list of the
 * process is published and older than the record, it is read again, or, for an exec or exit,
 * dropped; not at once, because most processes end soon, and the BPF side asks if it needs it. Any
 * thread; does not block for long.
 */
struct sb_sideband;
void sb_unwinder_tell(struct sb_unwinder *unwinder, const struct sb_sideband *event);

/* Let the thread read the mappings of @tgid and build its tables at once, because it is about to be
 * sampled. Does not wait for it. What fails, also for lack of memory, is tried again when the BPF
 * side asks. */
void sb_unwinder_expect(struct sb_unwinder *unwinder, uint32_t tgid);
/* Serve requests about @tgid before all others, from now on; there is one such process, which
 * another call replaces (0: none). */
void sb_unwinder_first(struct sb_unwinder *unwinder, uint32_t tgid);
/* Let the thread build the table of a file at once, because @tgid is about to map it. @fd: closed
 * by the unwinder, in any case; -1: the vDSO. Does not wait for it. What fails, also for lack of
 * memory, is tried again when the BPF side asks. */
void sb_unwinder_expect_file(struct sb_unwinder *unwinder, int fd, uint32_t tgid);
/* Wait until all is done that sb_unwinder_expect() and sb_unwinder_expect_file() have asked for,
 * or has failed, but no longer than @until (CLOCK_MONOTONIC). */
struct timespec;
void sb_unwinder_settle(struct sb_unwinder *unwinder, const struct timespec *until);

/* Return: the ration that limits how much time goes into reading long lists of mappings again, for
 * the governor, which may have that done less often (sb_thinning_add_ration()). Valid as long as
 * @unwinder. */
struct sb_ration *sb_unwinder_ration(struct sb_unwinder *unwinder);

/* Get the figures of when the thread had served its requests last; nr_touched is of now. */
void sb_unwinder_stats(struct sb_unwinder *unwinder, struct sb_unwinder_stats *ret_stats);

#endif
