/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What programs of Go hold, by the heap profile that they keep themselves (interp/core/go_heap.h).
 * It is looked at when the run begins, about once a second, and at its end; the difference makes
 * counts, in place of those of the process's pages. Of a stack and a size of objects it is known
 * only how many are in use, not which of them: what came in the run is how much that has grown. For
 * `leak` it is the growth that was there at each look of the run's second half.
 *
 * Processes that are not targets by ID, or whose profile cannot be used, are counted by pages.
 *
 * The processes are no slot of the registry (process/process.h): 16 at most, they are an array that
 * is filled before the run begins, and nobody asks for one by its process. The registry would need
 * the number of execs, which /proc does not tell. And it would forget a process that has ended, but
 * the report at the end of the run still tells the state and the counts of that process.
 *
 * Order: new() -> expect() -> after each drain counts(), with look() before it when counts are
 * wanted -> free().
 *
 * Internal to capture, but for the figures. Thread: the session's. No pointer may be NULL unless a
 * contract says so.
 */
#ifndef SB_CAPTURE_GOHEAP_H
#define SB_CAPTURE_GOHEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/sb_abi.h"
#include "interp/core/go_heap.h"

struct sb_drain;
struct sb_goheap;
struct sb_resident;

/* Processes that are followed. Each has up to 17 looks at its buckets, of 24 bytes: at most 36 MiB
 * for each process. */
#define SB_GOHEAP_PROCESSES_MAX 16u

struct sb_goheap_opts {
	uint64_t seed;	   /* random; no program may know it */
	bool is_of_growth; /* count what came in the first half of the run */
	bool is_summed;	   /* a count is what changed since the last one, modulo 2^64 */
};

/* Make it; @opts is copied. The caller ends *ret_goheap with sb_goheap_free(). Return: 0; -ENOMEM:
 * *ret_goheap is untouched. */
int sb_goheap_new(const struct sb_goheap_opts *opts, struct sb_goheap **ret_goheap);
/* Free it. Accepts NULL. */
void sb_goheap_free(struct sb_goheap *goheap);

/* Follow a process from now on; once for each. @is_new: it has yet to call execve(), and all that
 * it holds then came in the run. Return: 0, also if it has ended, is no program of Go, or there is
 * no room for it; -ENOMEM: it is not followed, and nothing else has changed. */
int sb_goheap_expect(struct sb_goheap *goheap, uint32_t tgid, bool is_new);
/* Look at all processes, because counts are wanted: sb_goheap_counts() makes them, after the next
 * drain. Those whose profile can be used are taken out of the counts of @resident
 * (sb_resident_leave()). Why one cannot be read is in sb_goheap_process.state. */
void sb_goheap_look(struct sb_goheap *goheap, struct sb_resident *resident);
/* Add the counts of the last sb_goheap_look() to the drain's last batch, with their stacks. If an
 * earlier call has added them already, this one instead looks again at the processes that are due.
 * @view: the index of the view in the session's. Return: 0; -ENOMEM: some are missing. */
int sb_goheap_counts(struct sb_goheap *goheap, struct sb_drain *drain, uint32_t view);

struct sb_goheap_stats {
	uint32_t nr; /* programs of Go that were followed */
	struct sb_goheap_process {
		uint32_t tgid;
		char comm[SB_COMM_LEN];
		enum sb_go_heap_state state; /* READ: its counts come from its profile */
		uint64_t rate;		     /* of the last look */
		uint64_t nr_cycles; /* collections that ended between the first and the last look */
		uint64_t early_ns;  /* the part of the run that is_of_growth counts */
	} at[SB_GOHEAP_PROCESSES_MAX];
	uint32_t nr_left_out; /* targets beyond these, which may be programs of Go */
};
/* Get the figures: of the last sb_goheap_look(). */
void sb_goheap_stats(const struct sb_goheap *goheap, struct sb_goheap_stats *ret_stats);

#endif
