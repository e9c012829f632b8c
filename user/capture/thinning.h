/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Throttles the views of a run as the governor decides (governor.h, --max-overhead). Timers fire
 * once in 2, 4, ... of their periods, and each sample has that weight; views of events do it
 * themselves (sb_view.thin). So sums stay right on average. When several views run at once, those
 * of events take all their steps first, the same step for each, because their cost grows with the
 * load of the machine. The timer follows last: its cost is constant and small.
 *
 * A timer has a period and a weight, and the weight is written right after the period. A timer
 * whose period is set begins a new one, so a sample has the wrong weight only if this thread is
 * held up for a whole period between the two writes. (The period of a clock that the kernel hands
 * to BPF programs is the one that the event was opened with: hw.last_period.) Other counters
 * (--event) need no weight: of these the kernel hands over the present period.
 *
 * Thread: the session's. No privilege is needed once the timers are open. No pointer may be NULL
 * unless a comment says so.
 *
 * Order: sb_view.prepare() -> sb_thinning_init() -> load -> add timers and rations ->
 * sb_thinning_start() -> sb_thinning_tick() about once a second -> sb_thinning_release(). Timers
 * can be added and forgotten from load on.
 */
#ifndef SB_CAPTURE_THINNING_H
#define SB_CAPTURE_THINNING_H

#include <stdint.h>

#include "base/ration.h"
#include "base/vec.h"
#include "capture/governor.h"
#include "views/view.h"

struct sb_thinning_opts {
	const struct sb_views *views;	      /* borrowed, like the next */
	const struct sb_view_opts *view_opts; /* for all of them */
	double limit;	    /* of the cost, as a part of all CPUs: 0.01; 0: no limit */
	uint32_t freq_hz;   /* of the timers, at step 0; 0: they have a period of events */
	bool is_freq_asked; /* by the user: then it is lowered only for its cost in BPF */
	const struct sb_parser *parser; /* borrowed: its CPU time counts, too; or NULL */
};

/* The state of one view. */
struct sb_thinned {
	const struct sb_view *view;
	uint32_t step, step_max; /* in force; the highest */
	uint32_t nr_before;	 /* steps of the governor that other views take first */
	uint64_t mean;		 /* for sb_view.thin; 0: not known yet */
	uint64_t worst;		 /* the highest weight that sb_view.thin returned */
	const char *why_not;	 /* why it cannot be throttled; NULL: it can */
};

struct sb_thinning {
	struct sb_thinning_opts opts;
	struct sampler_bpf *skel;
	struct sb_thinned views[SB_VIEWS_MAX];
	SB_VEC(struct sb_thinning_timer {
		int fd; /* borrowed from the link that holds it */
		uint32_t cpu;
	})
	timers;
	struct sb_governor governor;
	struct sb_ration *rations[4];
	uint32_t nr_rations;
};

struct sb_thinning_stats {
	struct sb_governor_stats governor;
	double limit;	     /* part of all CPUs: 0.01 is 1 %; 0: none */
	double rate_hz;	     /* the lowest rate of the timer; 0: the view has none */
	uint64_t weight;     /* the highest weight of a sample, in the BPF side's unit; 0: none */
	const char *why_not; /* a constant: why the view cannot be throttled, the end of a sentence;
			      * NULL: it can be */
};

/* Initialize @thinning, which may be uninitialized, with all views at step 0, the rate that was
 * asked for. @opts is copied; its pointers and @skel are borrowed until sb_thinning_release(). */
void sb_thinning_init(struct sb_thinning *thinning, const struct sb_thinning_opts *opts,
		      struct sampler_bpf *skel);
/* Free memory; timers and rations stay their owners', and timers keep their rate. */
void sb_thinning_release(struct sb_thinning *thinning);

/* Add the timer of a CPU, opened at freq_hz, and set it to the step in force; @fd stays with the
 * caller, who keeps it open until the timer is forgotten. The timer of a CPU from SB_TICK_CPUS on
 * is never throttled. Return: 0; -ENOMEM: it keeps the step in force from now on. */
int sb_thinning_add_timer(struct sb_thinning *thinning, int fd, uint32_t cpu);
/* Forget the timer of CPU @cpu, if it has one; sb_thinning_forget_timers(): all timers. Called
 * before they are closed. */
void sb_thinning_forget_timer(struct sb_thinning *thinning, uint32_t cpu);
void sb_thinning_forget_timers(struct sb_thinning *thinning);

/* Begin to govern, when everything is attached. It may be called again as long as nothing was
 * throttled, which the caller ensures: the governor begins anew, and no timer or view is set back.
 * @bpf_ns: time in BPF programs so far, in ns, summed over all CPUs. */
void sb_thinning_start(struct sb_thinning *thinning, uint64_t bpf_ns);

/* Add a ration (base/ration.h), borrowed until sb_thinning_release(): it limits work which does not
 * depend on the number of samples, and which the governor may order to be done less often. At most
 * four, which the caller ensures. */
void sb_thinning_add_ration(struct sb_thinning *thinning, struct sb_ration *ration);

/* End a window of the governor, and set the step of each view and the thrift of each ration.
 * @bpf_ns: time in BPF programs so far, in ns, summed over all CPUs. @means: for each view, in the
 * order of opts.views, the mean weight of its samples so far, in the BPF side's unit; 0 when there
 * was no sample yet; not kept. That of a view that is throttled is not looked at. NULL: the window
 * has not come to its end, and ends only if it is a burst (governor.h). */
void sb_thinning_tick(struct sb_thinning *thinning, uint64_t bpf_ns, const uint64_t *means);

/* Get the figures so far of the view with index @view in opts.views, which is not checked. What the
 * governor did is the same for all views, but for the time above step 0. */
void sb_thinning_stats(const struct sb_thinning *thinning, uint32_t view,
		       struct sb_thinning_stats *ret_stats);

#endif
