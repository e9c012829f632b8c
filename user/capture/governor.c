// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/governor.h"

#include "base/time.h"

#define WINDOW_NS_MIN	 (300ull * SB_NS_PER_MS)
/* If own time alone exceeds the limit, throttling does not help and the debt would grow without
 * end. It is cut at this multiple of sb_governor_burst_ns(). */
#define DEBT_TIMES_MAX	 2.0
/* Even when there is debt already, a burst has to cost one part of this many of
 * sb_governor_burst_ns() to end a window, so that windows are not arbitrarily short. */
#define BURSTS_MAX	 4
#define REPAYS		 0.5 /* of the limit: a step is to make less than this of the cost */
#define CALM		 0.7 /* of the limit: what would come back has to fit in with room to spare */
#define BPF_ROOM_MIN	 0.25 /* of the limit: our own time takes no more from BPF's room */
#define REREAD_MIN	 0.25 /* of the limit: less is no reason to read processes more seldom */
#define HELPED		 0.9  /* of the cost before, or less */
#define NR_CALM_WANTED	 4
#define NR_CALM_MAX	 64
/* After nr_calm_wanted times this, going back is tried, whatever the jump saved when it was
 * made. */
#define BLIND_TIMES	 16
#define NR_FUTILE_WANTED 8
#define NR_FUTILE_MAX	 64
/* Making tables for some thousand processes takes so long. Cost above the limit after that is not
 * start-up. */
#define STARTUP_NS_MAX	 (10ull * SB_NS_PER_SEC)

static double min(double a, double b)
{
	return a < b ? a : b;
}

static double max(double a, double b)
{
	return a > b ? a : b;
}

static double nr_cpus_of(const struct sb_governor_reading *reading)
{
	return reading->nr_cpus ? reading->nr_cpus : 1;
}

void sb_governor_init(struct sb_governor *governor, const struct sb_governor_opts *opts,
		      const struct sb_governor_reading *now)
{
	*governor = (struct sb_governor){
		.opts = *opts,
		.last = *now,
		.step_max = opts->step_max,
		.nr_calm_wanted = NR_CALM_WANTED,
		.nr_futile_wanted = NR_FUTILE_WANTED,
		.startup_ns = STARTUP_NS_MAX,
	};
	if (governor->opts.step_max > SB_GOVERNOR_STEPS_MAX)
		governor->opts.step_max = governor->step_max = SB_GOVERNOR_STEPS_MAX;
	if (!governor->opts.jump_max)
		governor->opts.jump_max = 1;
}

static void change(struct sb_governor *governor, uint32_t step)
{
	governor->step = step;
	governor->nr_windows = 0;
	governor->nr_calm = 0;
	governor->stats.nr_changes++;
	if (governor->stats.step_worst < step)
		governor->stats.step_worst = step;
}

/* The part of our own time that counts as a reason to sample less than at @step. */
static double counting(const struct sb_governor *governor, double own, uint32_t step)
{
	return governor->startup_ns || step >= governor->opts.own_step_max ? 0 : own;
}

/* The cost that BPF may have at @step. */
static double room(const struct sb_governor *governor, double own, uint32_t step)
{
	return max(governor->opts.limit - counting(governor, own, step),
		   governor->opts.limit * BPF_ROOM_MIN);
}

/* Throttle, by what @bpf and @own cost. Return: whether a step was taken. */
static bool lower(struct sb_governor *governor, double bpf, double own)
{
	double expected = bpf;
	uint32_t step = governor->step;

	while (expected > room(governor, own, step) && step < governor->step_max &&
	       step < governor->step + governor->opts.jump_max) {
		expected /= 2;
		step++;
	}
	if (step == governor->step)
		return false;
	/* The last step back was too early. */
	if (governor->nr_since_back && governor->nr_since_back <= 2 * governor->nr_calm_wanted &&
	    governor->nr_calm_wanted < NR_CALM_MAX)
		governor->nr_calm_wanted *= 2;
	governor->nr_since_back = 0;
	governor->jumps[governor->nr_jumps++] =
		(struct sb_governor_jump){ .from = governor->step, .before = bpf };
	change(governor, step);
	return true;
}

static void go_back(struct sb_governor *governor)
{
	change(governor, governor->jumps[--governor->nr_jumps].from);
}

/* Judge the last jump by the first window after it. Return: whether it was taken back. */
static bool judge_jump(struct sb_governor *governor, double bpf)
{
	struct sb_governor_jump *jump;

	if (!governor->nr_jumps)
		return false;
	jump = &governor->jumps[governor->nr_jumps - 1];
	if (jump->saved > 0)
		return false;
	jump->saved = jump->before / max(bpf, 1e-9);
	if (bpf <= jump->before * HELPED)
		return false;
	governor->step_max = jump->from;
	governor->nr_futile = governor->nr_futile_wanted;
	if (governor->nr_futile_wanted < NR_FUTILE_MAX)
		governor->nr_futile_wanted *= 2;
	go_back(governor);
	return true;
}

/* Whether to take one jump back, to see what that costs. */
static bool is_time_to_rise(struct sb_governor *governor, double bpf, double own)
{
	const struct sb_governor_jump *jump;
	uint32_t nr_steps;

	if (!governor->nr_jumps)
		return false;
	jump = &governor->jumps[governor->nr_jumps - 1];
	nr_steps = governor->step - jump->from;
	own = counting(governor, own, jump->from);
	if (bpf * (double)(1u << nr_steps) + own > CALM * governor->opts.limit) {
		governor->nr_calm = 0;
		return false;
	}
	governor->nr_calm++;
	if (bpf * jump->saved + own > CALM * governor->opts.limit)
		return governor->nr_calm >= BLIND_TIMES * governor->nr_calm_wanted;
	return governor->nr_calm >= governor->nr_calm_wanted;
}

static void account(struct sb_governor *governor, uint64_t ns, double bpf, double own)
{
	struct sb_governor_stats *stats = &governor->stats;
	double cost = bpf + own;

	governor->startup_ns = own > CALM * governor->opts.limit && governor->startup_ns > ns
				       ? governor->startup_ns - ns
				       : 0;
	if (governor->step)
		stats->lowered_ns += ns;
	stats->last = cost;
	stats->worst = max(stats->worst, cost);
	governor->nr_windows++;
	if (governor->nr_since_back)
		governor->nr_since_back++;
	if (governor->nr_futile && !--governor->nr_futile)
		governor->step_max = governor->opts.step_max;
}

static void decide(struct sb_governor *governor, double bpf, double own, uint64_t ns)
{
	double bpf_least = min(bpf, governor->bpf_before);
	double own_least = min(own, governor->own_before);

	if (governor->nr_windows == 1 && judge_jump(governor, bpf))
		return;
	if (governor->nr_windows < 2)
		return;
	if (bpf_least + own_least > governor->opts.limit) {
		if (lower(governor, bpf_least, own_least)) {
			governor->nr_calm = 0;
			return;
		}
		if (!governor->startup_ns || bpf_least > governor->opts.limit) {
			governor->stats.helpless_ns += ns;
			governor->stats.is_own_time = own_least > bpf_least;
		}
	}
	if (bpf_least + counting(governor, own_least, governor->step) > governor->opts.limit) {
		governor->nr_calm = 0;
	} else if (is_time_to_rise(governor, bpf, own)) {
		governor->nr_since_back = 1;
		go_back(governor);
	}
}

/*
 * With is_exact. Return: the cost that is expected with @times as many samples. The time in BPF is
 * proportional to them, and so is as much of our own time, which is spent on taking the samples.
 * The rest of it is spent on names and tables.
 */
static double expect(double bpf, double own, double times)
{
	return bpf * times + own + min(bpf, own) * (times - 1);
}

/* Take as many steps as repaying the debt needs, as long as the cost is that of BPF. Return:
 * whether one was taken. */
static bool repay(struct sb_governor *governor, double bpf, double own)
{
	const double limit = governor->opts.limit;
	uint32_t step = governor->step;
	double times = 1;

	while (step < governor->step_max && step < governor->step + governor->opts.jump_max &&
	       bpf * times > limit * BPF_ROOM_MIN &&
	       expect(bpf, step < governor->opts.own_step_max ? own : 0, times) > limit * REPAYS) {
		times /= 2;
		step++;
	}
	if (step == governor->step)
		return false;
	change(governor, step);
	return true;
}

/* Take back all steps that are no longer needed. */
static void rise(struct sb_governor *governor, double bpf, double own)
{
	const double limit = governor->opts.limit;
	uint32_t step = governor->step;
	double times = 2;

	/* A part of the limit is BPF's whatever our own time is, also while there is debt. */
	while (step && (bpf * times <= limit * BPF_ROOM_MIN * CALM ||
			(governor->debt_ns <= 0 && expect(bpf, own, times) <= limit * CALM))) {
		times *= 2;
		step--;
	}
	governor->nr_calm = step < governor->step ? governor->nr_calm + 1 : 0;
	if (governor->nr_calm >= NR_CALM_WANTED)
		change(governor, step);
}

/* With is_exact: repay what was spent above the limit, or take steps back. */
static void decide_exactly(struct sb_governor *governor, double bpf, double own, uint64_t ns,
			   const struct sb_governor_reading *now)
{
	const double all = (double)ns * nr_cpus_of(now);
	const double most = sb_governor_burst_ns(governor->opts.limit * nr_cpus_of(now));
	/* While the run starts up, our own time for names and tables does not count. */
	const bool is_early = governor->startup_ns && governor->step < governor->opts.own_step_max;
	const double counts = is_early ? min(bpf, own) : counting(governor, own, governor->step);

	governor->debt_ns += (bpf + counts - governor->opts.limit) * all;
	governor->debt_ns = min(max(governor->debt_ns, 0), most * DEBT_TIMES_MAX);
	governor->nr_over = bpf + counts > governor->opts.limit ? governor->nr_over + 1 : 0;
	if (!governor->nr_over || (governor->nr_over < 2 && governor->debt_ns <= most)) {
		rise(governor, bpf, counts);
	} else if (!repay(governor, bpf, counts)) {
		governor->stats.helpless_ns += ns;
		governor->stats.is_own_time = counts > bpf;
		rise(governor, bpf, counts);
	}
}

/* Decide on work that throttling does not save: reading processes again whose mappings change. */
static void be_thrifty(struct sb_governor *governor, double own, double reread, uint64_t ns)
{
	double own_least = min(own, governor->own_before);

	if (governor->thrift)
		governor->stats.thrift_ns += ns;
	governor->nr_thrift_windows++;
	if (governor->startup_ns)
		return;
	if (own_least > governor->opts.limit && reread > governor->opts.limit * REREAD_MIN) {
		governor->nr_thrift_calm = 0;
		if (governor->thrift == SB_GOVERNOR_THRIFT_MAX || governor->nr_thrift_windows < 2)
			return;
		governor->thrift++;
		governor->nr_thrift_windows = 0;
		if (governor->stats.thrift_worst < governor->thrift)
			governor->stats.thrift_worst = governor->thrift;
	} else if (reread * 2 + own > CALM * governor->opts.limit) {
		governor->nr_thrift_calm = 0;
	} else if (governor->thrift && ++governor->nr_thrift_calm >= NR_FUTILE_WANTED) {
		governor->thrift--;
		governor->nr_thrift_calm = governor->nr_thrift_windows = 0;
	}
}

bool sb_governor_is_burst(const struct sb_governor *governor, const struct sb_governor_reading *now)
{
	const struct sb_governor_reading *last = &governor->last;
	const double limit = governor->opts.limit * nr_cpus_of(now),
		     most = sb_governor_burst_ns(limit);

	return limit > 0 && governor->opts.is_exact && now->now_ns > last->now_ns &&
	       (double)(now->bpf_ns - last->bpf_ns) >
		       limit * (double)(now->now_ns - last->now_ns) +
			       max(most - governor->debt_ns, most / BURSTS_MAX);
}

uint32_t sb_governor_step(struct sb_governor *governor, const struct sb_governor_reading *now)
{
	const struct sb_governor_reading *last = &governor->last;
	uint64_t ns = now->now_ns - last->now_ns;
	double all = (double)ns * nr_cpus_of(now);
	bool is_burst = sb_governor_is_burst(governor, now);
	double bpf, own, reread;

	if (now->now_ns <= last->now_ns || (ns < WINDOW_NS_MIN && !is_burst))
		return governor->step;
	bpf = (double)(now->bpf_ns - last->bpf_ns) / all;
	own = (double)(now->own_ns - last->own_ns) / all;
	reread = (double)(now->reread_ns - last->reread_ns) / all;
	governor->last = *now;
	account(governor, ns, bpf, own);
	if (governor->opts.limit > 0) {
		if (governor->opts.is_exact)
			decide_exactly(governor, bpf, own, ns, now);
		else
			decide(governor, bpf, own, ns);
		be_thrifty(governor, own, reread, ns);
	}
	governor->bpf_before = bpf;
	governor->own_before = own;
	return governor->step;
}
