/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decides when probes are attached whose traps alone would cost more than --max-overhead: in short
 * slices of time, at random distances that what the slices cost so far determines. A slice stands
 * for the time from the end of the one before to its own end, and its samples weigh as much more.
 * The distance does not depend on what a slice will see, so that sums are unbiased, but for the
 * time after the last slice, which sb_slicer_stats() says. It is a function of readings, without
 * clock and kernel: all times are by one clock of the caller, and all readings are sums that only
 * grow. Not thread-safe. No pointer may be NULL, and none is kept. Nothing is to be released.
 *
 * Order: init() -> prepare(), attach, begin() -> at the end of the slice stays(): if true, begin()
 * again, else detach, gap(), wait, and prepare().
 */
#ifndef SB_CAPTURE_SLICER_H
#define SB_CAPTURE_SLICER_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/abi/sb_abi.h"

/* Return: what probes have cost programs, in ns of CPU time: their traps and the BPF programs of
 * the run, without those that follow pages. @stat: SB_STAT_MAX sums, as sb_session_sum_stats()
 * gives them. @trap_ns: sb_trap_ns(), views/views.h. */
static inline uint64_t sb_probe_cost_ns(const uint64_t *stat, uint64_t trap_ns)
{
	return stat[SB_STAT_RUN_NS] - stat[SB_STAT_FAULTS_NS] + stat[SB_STAT_PROBE_HITS] * trap_ns;
}

struct sb_slicer_stats {
	uint64_t nr;	      /* slices that have ended */
	uint64_t attached_ns; /* their time, without gaps */
	uint64_t covered_ns;  /* the time that they stand for */
	uint64_t cost_ns;     /* CPU time, as read */
	uint64_t ended_ns;    /* when there could be no more slices: nothing was left to probe; 0 */
	double error;	      /* relative standard error of the number of events; 0: not known */
	double busy;	      /* CPUs that probes took during slices */
	/* What is missing in the sum because probes slow programs down, as a part of what it would
	 * be, if all events are of one thread that never waits for a CPU; 0: they are of several
	 * threads, because probes took the time of more than one CPU. */
	double missing;
};

/* Return: the part of the run for which probes were attached, at most 1, since the last slice may
 * be cut off by the end of the run; 0: there was no slice. @wall_ns: the duration of the run, which
 * may have gone on for long after its last slice. */
static inline double sb_slicer_attached(const struct sb_slicer_stats *stats, uint64_t wall_ns)
{
	const uint64_t ns = wall_ns > stats->covered_ns ? wall_ns : stats->covered_ns;

	if (stats->attached_ns > ns)
		return 1;
	return ns ? (double)stats->attached_ns / (double)ns : 0;
}

struct sb_slicer_reading {
	uint64_t now_ns;
	uint64_t hits;	  /* events that came to probes */
	uint64_t cost_ns; /* CPU time: traps, programs, and our own for attaching and detaching */
	uint64_t run_ns;  /* in all programs of the run */
	uint64_t nr_full; /* calls for which there was no room */
};

struct sb_slicer {
	double allowed;		   /* CPUs */
	uint64_t random;	   /* state of the generator; not 0 */
	uint64_t covered_to;	   /* end of the last slice, or the beginning of the run */
	uint64_t began_ns, end_ns; /* of this slice, or the last one */
	uint64_t began_cost_ns;
	uint64_t first_ns; /* beginning of the run */
	double cost, span,
		each;	       /* sums that decay: cost, time it was caused in, number of slices */
	bool is_staying;       /* the probes stay attached from the slice before */
	double rates, squares; /* sums of events per ns, and of the squares */
	struct sb_slicer_reading began;	    /* of this slice, when its probes were attached */
	double stands_for;		    /* ns, of this slice */
	uint64_t slices_ns, slices_cost_ns; /* sums of times and costs from there to their ends */
	/* Estimates of the sum: as it is, and as it would be if no thread was slowed down. */
	double estimate, unslowed;
	bool is_of_threads;
	struct sb_slicer_stats stats;
};

/* Start; what was in @slicer is overwritten. @allowed: CPUs that slices may cost on average, above
 * 0. @seed: any number. @now: the beginning of the run. */
void sb_slicer_init(struct sb_slicer *slicer, double allowed, uint64_t seed,
		    const struct sb_slicer_reading *now);

/* Before probes are attached, note in @slicer what was spent until @now, so that attaching is part
 * of the slice's cost. */
void sb_slicer_prepare(struct sb_slicer *slicer, const struct sb_slicer_reading *now);

/* Begin a slice at @now, when probes are attached. Return: when it ends. *@ret_weight: of a
 * sample, in units of 1 / 2^SB_SLICE_SHIFT (bpf/abi/sb_abi.h). */
uint64_t sb_slicer_begin(struct sb_slicer *slicer, const struct sb_slicer_reading *now,
			 uint64_t *ret_weight);

/* The slice has ended, and nothing is detached yet. Return: whether the probes can stay, because
 * all the time costs no more than is allowed. */
bool sb_slicer_stays(struct sb_slicer *slicer, const struct sb_slicer_reading *now);

/* The probes are detached, at @now. Return: the time to wait before sb_slicer_prepare(), in ns. */
uint64_t sb_slicer_gap(struct sb_slicer *slicer, const struct sb_slicer_reading *now);

/* Advance the generator in @slicer, which init() has seeded; at any time after that. Return: a
 * random number, at least 0 and less than 1. */
double sb_slicer_random(struct sb_slicer *slicer);

/* Get the figures so far. */
void sb_slicer_stats(const struct sb_slicer *slicer, struct sb_slicer_stats *ret_stats);

#endif
