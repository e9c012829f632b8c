/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The law by which a run is made cheaper while it costs too much: readings of its cost in, a step out.
 * Each step halves what is sampled, about; what that is, thinning.h knows. No clock, no kernel: it is
 * a function of its readings, so that tests can play any load to it. Not thread-safe.
 *
 * What it goes by:
 * - Two windows in a row are over the limit, each of a second or so: what comes once, such as the
 *   tables of a run's begin, is no reason.
 * - Time in BPF goes with the number of samples. Our own time does so in part only (names and tables are
 *   made once), so it may take room from BPF, but not more than three quarters: to sample less for
 *   what sampling does not cost helps nobody. It takes none while the run starts up, when processes, symbols and
 *   unwind tables are read for the first time, and none of a rate that the user asked for (own_step_max): that one
 *   gives way only to what its samples cost in BPF.
 * - A step that did not help (by a tenth, at least) is taken back: the cost is that of looking at each
 *   event, whether it becomes a sample or not. It is tried again after 8 windows, then 16, up to 64.
 * - Back it goes as it came, when the cost is calm and what was saved would fit in again; each time that
 *   was wrong, it waits twice as long. So one who is wrong is over the limit for two seconds, then less
 *   and less often, and nothing swings.
 */
#ifndef SB_CAPTURE_GOVERNOR_H
#define SB_CAPTURE_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

#define SB_GOVERNOR_STEPS_MAX 20u

struct sb_governor_opts {
	double limit; /* cost of the run, as a part of all CPUs: 0.01. 0: none, it stays at step 0 */
	uint32_t step_max;     /* at most SB_GOVERNOR_STEPS_MAX; 0: it cannot be made cheaper */
	uint32_t jump_max;     /* steps at once */
	uint32_t own_step_max; /* our own time takes no step beyond this one */
};

/* Sums since any point, which may be another one for each of them. */
struct sb_governor_reading {
	uint64_t now_ns;
	uint64_t bpf_ns; /* in our BPF programs, on all CPUs */
	uint64_t own_ns; /* CPU time of our process */
	uint32_t nr_cpus;
};

struct sb_governor_stats {
	uint64_t lowered_ns;  /* time above step 0 */
	uint64_t helpless_ns; /* time over the limit, where no step could be taken */
	uint32_t step_worst;
	uint32_t nr_changes;
	bool is_own_time;   /* what was over the limit then was our own time, mostly */
	double last, worst; /* cost of a window, as a part of all CPUs */
};

struct sb_governor {
	struct sb_governor_opts opts;
	struct sb_governor_reading last;
	struct sb_governor_stats stats;
	uint32_t step,
		step_max; /* now; step_max: lower than opts.step_max after a step that was futile */
	uint32_t nr_windows; /* since the last change */
	uint64_t startup_ns; /* that the start-up may still take; 0: it is over */
	uint32_t nr_calm, nr_calm_wanted, nr_since_back, nr_futile, nr_futile_wanted;
	double bpf_before, own_before; /* in the window before */
	struct sb_governor_jump {
		uint32_t from;
		double before,
			saved; /* cost in BPF, and by what the jump divided it; 0: not known yet */
	} jumps[SB_GOVERNOR_STEPS_MAX];
	uint32_t nr_jumps;
};

/* @now: the reading from which the first window counts. */
void sb_governor_init(struct sb_governor *governor, const struct sb_governor_opts *opts,
		      const struct sb_governor_reading *now);

/*
 * A window is over: to be called once a second or so; windows shorter than a third of a second are not
 * judged, the next reading has them. Return: the step from now on.
 */
uint32_t sb_governor_step(struct sb_governor *governor, const struct sb_governor_reading *now);

#endif
