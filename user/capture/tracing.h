/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decides how long programs stay attached to functions that may be called too often: as long as
 * their cost is below --max-overhead. A run begins without knowing how often that is, so it
 * traces all calls and looks at what they cost; when it is too much it gives up, and another view
 * that ran beside has the result. What is spent above the limit fills a bucket, which what is spent
 * below it empties, so that a short burst is no reason to give up. It is a function of readings,
 * without clock and kernel. Not thread-safe. No pointer may be NULL.
 */
#ifndef SB_CAPTURE_TRACING_H
#define SB_CAPTURE_TRACING_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/slicer.h"

/* Why the traced calls are not the result. */
enum sb_tracing_end {
	SB_TRACING_NOT_ENDED,
	SB_TRACING_COST,     /* they cost too much */
	SB_TRACING_FULL,     /* there was no room for all that is held */
	SB_TRACING_BLIND,    /* they explain less than half of what came by pages */
	SB_TRACING_UNHOOKED, /* what gives memory back cannot be probed any more */
	SB_TRACING_UNSEEN,   /* slices of time saw too little of what is held */
	SB_TRACING_MAX,
};

struct sb_tracing_stats {
	bool is_on;	 /* the run is one that may give up */
	bool is_sampled; /* from `traced_ns` on, calls were traced in slices */
	enum sb_tracing_end end;
	uint64_t
		traced_ns; /* from the beginning of the run until it gave up or went over to slices, or so far */
	double hits_per_s; /* probes that programs came to; of SB_TRACING_COST: when it gave up */
	double each_ns;	   /* CPU time for each, in the same time */
	double cost;	   /* CPUs, in the same time */
	uint64_t calls, pages; /* bytes in the result by calls and by pages, at the end; 0 */
	uint64_t nr_slices;    /* that have ended; 0 */
};

struct sb_tracing {
	double allowed;	 /* CPUs */
	double level_ns; /* of the bucket: CPU time */
	struct sb_slicer_reading first, last;
	struct sb_slicer_reading rise; /* when the bucket was empty last */
	bool is_sampled;
	enum sb_tracing_end end;
};

/* Begin. @allowed: CPUs, above 0. @now: the beginning of the run. */
void sb_tracing_init(struct sb_tracing *tracing, double allowed,
		     const struct sb_slicer_reading *now);

/* Look at the cost so far, while calls are traced. @now: the counters since the beginning of the
 * run, copied. Return: whether to go on; if not, detach. */
bool sb_tracing_goes_on(struct sb_tracing *tracing, const struct sb_slicer_reading *now);

/* After sb_tracing_goes_on() has returned false: do not give up, but trace calls in slices, whose
 * cost is the slicer's matter (slicer.h). */
void sb_tracing_sample(struct sb_tracing *tracing);

/* Give up: the other view has the result. @why: any value but SB_TRACING_NOT_ENDED; a reason that
 * was set before is replaced. */
void sb_tracing_give_up(struct sb_tracing *tracing, enum sb_tracing_end why);

/* What was seen of a run in which calls were traced in slices, at its end. */
struct sb_tracing_seen {
	uint64_t run_ns;     /* its duration */
	uint64_t nr_slices;  /* that have ended */
	uint64_t nr_pieces;  /* struct sb_held_estimate.nr */
	uint64_t nr_at_once; /* the same, nr_at_once */
	uint64_t call_bytes; /* in the result by calls */
	uint64_t page_bytes; /* in the result by pages */
};
/* Return: whether that is enough for a result by calls. What was allocated in the first half of the
 * run counts, and whether it was given back by the end. */
bool sb_tracing_saw_enough(const struct sb_tracing *tracing, const struct sb_tracing_seen *seen);

/* Return: the time to wait before the next look. */
uint64_t sb_tracing_look_ns(const struct sb_tracing *tracing);

/* Get the figures up to the last look, or until calls were traced in slices; `calls`, `pages`
 * and `nr_slices` are 0. */
void sb_tracing_stats(const struct sb_tracing *tracing, struct sb_tracing_stats *ret_stats);

#endif
