/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Serves the walk in the kernel with unwind tables: one bounded pool of table memory, shared by all
 * processes that map the same file, filled through mmap by a thread of its own when the BPF side
 * asks (ring `uw_needs`). Sampling never waits for it: until a table stands, samples go the way of
 * struct sb_event_raw.
 *
 *	unwinder.c	the thread: requests and the maps of the BPF side
 *	uwprocs.c	processes: their executable mappings, read from /proc
 *	uwtables.c	files -> bins: one table a file, compiled when first needed, evicted when the
 *			pool is full, least recently sampled first
 *	uwtouch.c	pages of stacks that were not there
 *	uwpool.c	the pool: parts of 4 MiB, made when needed; extents of words
 *
 * All functions but the threads' are called by the owner of the session, except
 * sb_unwinder_tell().
 */
#ifndef SB_CAPTURE_UNWINDER_H
#define SB_CAPTURE_UNWINDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sampler_bpf;
struct sb_uw_need_event;
struct sb_parser_seat;
struct sb_unwinder;

#define SB_UNWINDER_POOL_BYTES_DEFAULT (64u << 20)

struct sb_unwinder_stats {
	uint64_t nr_pool_bytes, nr_pool_bytes_peak, nr_pool_bytes_max; /* in tables and lists */
	uint64_t nr_tables;					       /* that stand now */
	uint64_t nr_tables_built;  /* since the start, rebuilt ones included */
	uint64_t nr_tables_failed; /* files whose CFI could not be used: frame pointers there */
	uint64_t nr_evictions;
	uint64_t nr_rows, build_ns; /* of all that were built */
	uint64_t nr_processes;	    /* lists of mappings published now */
	uint64_t nr_refused;	    /* processes, mappings, files at a bound */
	uint64_t nr_needs;	    /* requests served */
	uint64_t nr_touched;	    /* pages of stacks brought in */
};

/*
 * new -> prepare (each object, before it is loaded) -> start (the one that was) -> free
 *
 * The memory of tables is made first, by a thread of its own: it takes as long as to load the programs.
 * @pool_bytes_max: 0 for the default; at least one part is used. @parser: borrowed, who compiles tables;
 * NULL: the thread does. Return: 0 or a negative errno.
 */
int sb_unwinder_new(uint64_t pool_bytes_max, struct sb_parser_seat *parser,
		    struct sb_unwinder **ret_unwinder);
/* Return: 0 or a negative errno. */
int sb_unwinder_prepare(const struct sb_unwinder *unwinder, struct sampler_bpf *skel);
/* @skel lives until the unwinder is freed. Return: 0 or a negative errno. */
int sb_unwinder_start(struct sb_unwinder *unwinder, struct sampler_bpf *skel);
void sb_unwinder_free(struct sb_unwinder *unwinder);

/*
 * Before programs are attached: whom to tell that it was asked which interpreters there are in a process, and
 * whether none can be, as far as is_plain() says so of each file that it maps. On the thread; lives as long as the
 * unwinder does.
 */
struct stat;
struct sb_unwinder_interps {
	/* From here on it is noticed when the process maps more. */
	void (*follow)(void *arg, uint32_t tgid);
	bool (*is_plain)(void *arg, const struct stat *st);
	void (*need)(void *arg, const struct sb_uw_need_event *need, bool is_plain);
	void *arg;
};
void sb_unwinder_serve_interps(struct sb_unwinder *unwinder,
			       const struct sb_unwinder_interps *interps);

/*
 * What side-band records say of a process, or NULL: that was all for now. If its list was published, and read
 * before that, it is read anew, or forgotten; not at once, because most processes end soon, and the BPF side asks
 * when it needs it. Any thread; never blocks for long.
 */
struct sb_sideband;
void sb_unwinder_tell(struct sb_unwinder *unwinder, const struct sb_sideband *event);

/* @tgid is about to be sampled: its mappings are read, and its tables built, at once. */
void sb_unwinder_expect(struct sb_unwinder *unwinder, uint32_t tgid);
/* What is asked for about @tgid goes before what is asked for about others. */
void sb_unwinder_first(struct sb_unwinder *unwinder, uint32_t tgid);
/* The file @fd, or the vDSO (-1), is about to be mapped by @tgid: its table is built at once. @fd is closed. */
void sb_unwinder_expect_file(struct sb_unwinder *unwinder, int fd, uint32_t tgid);
/* Wait for what is expected, but not beyond @until (CLOCK_MONOTONIC). */
struct timespec;
void sb_unwinder_settle(struct sb_unwinder *unwinder, const struct timespec *until);

void sb_unwinder_stats(struct sb_unwinder *unwinder, struct sb_unwinder_stats *ret_stats);

#endif
