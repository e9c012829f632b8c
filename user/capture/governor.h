/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decides when a run is throttled because it costs too much (--max-overhead), and when it is sped
 * up again. It is a function of cost readings, without clock and kernel, so that tests can play any
 * load to it. Each step halves the number of samples, roughly; what that means for a view is in
 * thinning.h. Not thread-safe. No pointer may be NULL, and none is kept.
 *
 * Order: sb_governor_init(), then sb_governor_step() about once a second, and in between when
 * sb_governor_is_burst(). Nothing is to be released; `stats` can be read at any time.
 *
 * The rules:
 * - It throttles when two windows in a row (of about a second) are over the limit. A single peak,
 *   such as the unwind tables at the start of a run, is ignored.
 * - Time in BPF is proportional to the number of samples. CPU time of the process is so only in
 *   part, because names and tables are made once. So own time reduces what is left of the limit for
 *   BPF, but to no less than a quarter: sampling less does not save what sampling does not cost.
 *   Own time does not count at all while the run starts up (processes, symbols and tables are read
 *   for the first time), nor against a rate that the user asked for (own_step_max), which is
 *   lowered only for its cost in BPF.
 * - When own time is over the limit, and a quarter of the limit or more is spent on reading
 *   processes again whose mappings change, these are read half as often, down to an eighth
 *   (thrift). Samples are not affected.
 * - A step that did not reduce the cost by at least a tenth is taken back: the cost is then that of
 *   looking at each event, sampled or not. It is tried again after 8 windows, then 16, up to 64.
 * - It goes back the way it came when the cost is low enough for what was saved to fit in again.
 *   Each time that was wrong, it waits twice as long before the next. So the limit is exceeded for
 *   two seconds at a time, less and less often, and the rate does not oscillate.
 *
 * If each step is known to halve the time in BPF (is_exact), the governor keeps an account: CPU
 * time that is spent above the limit is debt, which is repaid later. It throttles when two windows
 * in a row are over the limit. It also throttles as soon as the debt exceeds
 * sb_governor_burst_ns(), without waiting for the end of the window. It takes as many steps as
 * bring the cost to half of the limit. When the debt is repaid, and four windows in a row show that
 * there is room, it takes back all steps that are no longer needed, at once. So from about twenty
 * seconds on, a storm costs no more than the limit on average, and the rate is back a few seconds
 * after its end. While the run starts up, own time counts up to the time in BPF, because about as
 * much is spent on the samples.
 */
#ifndef SB_CAPTURE_GOVERNOR_H
#define SB_CAPTURE_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Return: how much CPU time (ns) may be spent above a limit of @cpus CPUs before something is done
 * about it: what five seconds at the limit are, and no more than 200 ms, which programs get over
 * unnoticed.
 */
static inline double sb_governor_burst_ns(double cpus)
{
	const double ns = cpus * 5e9;

	return ns < 200e6 ? ns : 200e6;
}

#define SB_GOVERNOR_STEPS_MAX  20u
#define SB_GOVERNOR_THRIFT_MAX 3u

struct sb_governor_opts {
	double limit; /* cost of the run as a part of all CPUs: 0.01; 0: none, it stays at step 0 */
	uint32_t step_max;     /* up to SB_GOVERNOR_STEPS_MAX; 0: the run cannot be throttled */
	uint32_t jump_max;     /* most steps at once; 0: one */
	uint32_t own_step_max; /* CPU time of the process causes no step beyond this one */
	bool is_exact;	       /* each step is known to halve the time in BPF */
};

/* Sums that only grow. Each may begin at any value; only differences count. */
struct sb_governor_reading {
	uint64_t now_ns;    /* of any clock that does not go back */
	uint64_t bpf_ns;    /* time in our BPF programs, on all CPUs */
	uint64_t own_ns;    /* CPU time of our processes */
	uint64_t reread_ns; /* part of own_ns: reading again processes whose mappings change */
	uint32_t nr_cpus;   /* now, no sum; 0 counts as 1 */
};

struct sb_governor_stats {
	uint64_t lowered_ns;  /* time above step 0 */
	uint64_t helpless_ns; /* time over the limit in which no step could be taken */
	uint32_t step_worst;
	uint32_t nr_changes;
	uint32_t thrift_worst;
	uint64_t thrift_ns; /* time above thrift 0 */
	bool is_own_time;   /* in helpless_ns, most of the cost was own time */
	double last, worst; /* cost of one window, as a part of all CPUs */
};

struct sb_governor {
	struct sb_governor_opts opts;
	struct sb_governor_reading last;
	struct sb_governor_stats stats;
	uint32_t step,
		step_max; /* now; step_max is below opts.step_max for a while after a futile step */
	uint32_t nr_windows; /* since the last change */
	uint32_t thrift; /* processes whose mappings change are read 2^thrift times less often */
	uint32_t nr_thrift_windows, nr_thrift_calm;
	uint64_t startup_ns; /* how long the start-up may still last; 0: it is over */
	uint32_t nr_calm, nr_calm_wanted, nr_since_back, nr_futile, nr_futile_wanted;
	double bpf_before, own_before; /* of the last window */
	uint32_t nr_over; /* with is_exact: successive windows that were over the limit */
	double debt_ns;	  /* with is_exact: CPU time above the limit that is not repaid yet */
	struct sb_governor_jump {
		uint32_t from;
		double before,
			saved; /* cost in BPF before; the factor by which it fell; 0: not known */
	} jumps[SB_GOVERNOR_STEPS_MAX];
	uint32_t nr_jumps;
};

/* Start to govern, at step 0; what was in @governor is overwritten. @now: the reading that begins
 * the first window. Both are copied. */
void sb_governor_init(struct sb_governor *governor, const struct sb_governor_opts *opts,
		      const struct sb_governor_reading *now);

/* Return: whether the window has become a burst at @now, for which sb_governor_step(), with the
 * same @now, need not wait until the window is as long as it should be; false if not
 * opts.is_exact. Nothing changes. */
bool sb_governor_is_burst(const struct sb_governor *governor,
			  const struct sb_governor_reading *now);

/* End a window. One of less than 0.3 s without a burst is not judged, but becomes part of the next,
 * and the step stays. Return: the step to use from now on, 0 to opts.step_max; governor->thrift is
 * set, too. Each step halves the samples; 0 is the rate that was asked for. */
uint32_t sb_governor_step(struct sb_governor *governor, const struct sb_governor_reading *now);

#endif
