/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a run is made cheaper while it costs too much (--max-overhead): the steps of governor.h, put into
 * force. Timers fire once in 2, 4, ... of their periods, and a sample weighs as many; other views know
 * themselves (sb_view.thin). Sums stay what they were, on average. Of views that run at once, those of events take
 * all of their steps first, the same of each: what they cost goes with what the machine does. A timer costs what it
 * costs, which is little, and follows when they are at their end.
 *
 * What is in force for a timer is two things, its period and the weight of its ticks, and the second
 * one is written at once after the first: a timer whose period is set begins a new one, so a tick of
 * the wrong weight comes only if this thread is held up for a whole period between the two. (The period
 * that the kernel hands to programs is the one that the clock was opened with: hw.last_period.)
 *
 * One thread. No privilege is needed once the timers are open.
 */
#ifndef SB_CAPTURE_THINNING_H
#define SB_CAPTURE_THINNING_H

#include <stdint.h>

#include "base/vec.h"
#include "capture/governor.h"
#include "views/view.h"

struct sb_thinning_opts {
	const struct sb_views *views;
	const struct sb_view_opts *view_opts;
	double limit; /* see struct sb_governor_opts */
	const char *event;
	uint32_t freq_hz;   /* of the timers */
	bool is_freq_asked; /* by the user: it gives way to the cost of its samples only */
	const struct sb_parser *parser; /* borrowed: what it costs counts as well; may be NULL */
};

/* Of one view. */
struct sb_thinned {
	const struct sb_view *view;
	uint32_t step, step_max; /* in force; the last one that it can take */
	uint32_t nr_before;	 /* steps that others take first */
	uint64_t mean;		 /* see sb_view.thin; 0: not known yet */
	uint64_t worst;		 /* what sb_view.thin said at the highest step */
	const char *why_not;
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
};

struct sb_thinning_stats {
	struct sb_governor_stats governor;
	double limit;	     /* 0: none */
	double rate_hz;	     /* the lowest; 0: the view has no timer */
	uint64_t weight;     /* the highest that made a sample, in the BPF side's unit; 0: none */
	const char *why_not; /* the view cannot be made cheaper: the end of a sentence, or NULL */
};

/* @opts is copied, what it points to is borrowed. The view has been prepared. */
void sb_thinning_init(struct sb_thinning *thinning, const struct sb_thinning_opts *opts,
		      struct sampler_bpf *skel);
void sb_thinning_release(struct sb_thinning *thinning);

/* Another timer, which fires at the rate that was asked for. Return: 0 or a negative errno. */
int sb_thinning_add_timer(struct sb_thinning *thinning, int fd, uint32_t cpu);
/* Forget the timer of a CPU, or all of them, before they are closed. */
void sb_thinning_forget_timer(struct sb_thinning *thinning, uint32_t cpu);
void sb_thinning_forget_timers(struct sb_thinning *thinning);

/* Everything is attached; @bpf_ns so far. */
void sb_thinning_start(struct sb_thinning *thinning, uint64_t bpf_ns);

/* Once a second or so. @means: of each view, the weight of a sample so far, 0: there is none yet. */
void sb_thinning_tick(struct sb_thinning *thinning, uint64_t bpf_ns, const uint64_t *means);

/* Of the view of that number; what the governor did is that of all. */
void sb_thinning_stats(const struct sb_thinning *thinning, uint32_t view,
		       struct sb_thinning_stats *ret_stats);

#endif
