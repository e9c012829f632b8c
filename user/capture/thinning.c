// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/thinning.h"

#include <unistd.h>

#include "base/log.h"
#include "base/time.h"
#include "capture/perf_event.h"
#include "parser.h"
#include "sb_abi.h"
#include "views/skel.h"

#define TIMER_STEPS_MAX 10u /* 1024 periods: of 999 Hz, one tick a second */
#define TIMER_JUMP_MAX	3u
#define VIEW_STEPS_MAX	10u
/* What is left out of waits at the first step is far more than half of them. */
#define VIEW_JUMP_MAX	2u

static struct sb_governor_reading read_cost(const struct sb_thinning *thinning, uint64_t bpf_ns)
{
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct sb_parser_stats parser;

	sb_parser_stats(thinning->opts.parser, &parser);

	return (struct sb_governor_reading){
		.now_ns = sb_now_ns(),
		.bpf_ns = bpf_ns,
		.own_ns = sb_cpu_time_ns() + parser.cpu_ns,
		.nr_cpus = nr_cpus > 0 ? (uint32_t)nr_cpus : 1,
	};
}

static bool has_timer(const struct sb_thinning *thinning)
{
	return thinning->opts.view->timer && !thinning->opts.view->thin;
}

/* Down to 1 Hz. */
static uint32_t timer_steps(uint32_t freq_hz)
{
	uint32_t steps = 0;

	while (steps < TIMER_STEPS_MAX && freq_hz >> (steps + 1))
		steps++;
	return steps;
}

void sb_thinning_init(struct sb_thinning *thinning, const struct sb_thinning_opts *opts,
		      struct sampler_bpf *skel)
{
	const struct sb_view *view = opts->view;

	*thinning = (struct sb_thinning){ .opts = *opts, .skel = skel };
	if (view->cannot_thin)
		thinning->why_not = view->cannot_thin(skel, opts->view_opts);
	else if (!view->thin && !view->timer)
		thinning->why_not = "its samples cannot be made fewer";
}

void sb_thinning_release(struct sb_thinning *thinning)
{
	sb_vec_release(&thinning->timers);
}

static void slow_down(const struct sb_thinning *thinning, const struct sb_thinning_timer *timer)
{
	uint32_t weight = 1u << thinning->step;
	int err;

	if (timer->cpu >= SB_TICK_CPUS)
		return;
	err = sb_perf_slow_down(timer->fd, thinning->opts.event, thinning->opts.freq_hz, weight);
	if (err)
		sb_debug("the timer of CPU %u keeps its rate: error %d", timer->cpu, -err);
	else
		thinning->skel->bss->tick_weights[timer->cpu] = (uint16_t)weight;
}

int sb_thinning_add_timer(struct sb_thinning *thinning, int fd, uint32_t cpu)
{
	struct sb_thinning_timer timer = { .fd = fd, .cpu = cpu };

	if (cpu < SB_TICK_CPUS)
		thinning->skel->bss->tick_weights[cpu] = 1;
	if (thinning->step)
		slow_down(thinning, &timer);
	return sb_vec_push(&thinning->timers, timer);
}

void sb_thinning_forget_timer(struct sb_thinning *thinning, uint32_t cpu)
{
	size_t i;

	for (i = 0; i < thinning->timers.nr; i++)
		if (thinning->timers.at[i].cpu == cpu)
			thinning->timers.at[i--] = thinning->timers.at[--thinning->timers.nr];
}

void sb_thinning_forget_timers(struct sb_thinning *thinning)
{
	thinning->timers.nr = 0;
}

void sb_thinning_start(struct sb_thinning *thinning, uint64_t bpf_ns)
{
	const struct sb_governor_reading now = read_cost(thinning, bpf_ns);
	bool is_timer = has_timer(thinning);
	struct sb_governor_opts opts = {
		.limit = thinning->opts.limit,
		.step_max = is_timer ? timer_steps(thinning->opts.freq_hz) : VIEW_STEPS_MAX,
		.jump_max = is_timer ? TIMER_JUMP_MAX : VIEW_JUMP_MAX,
	};

	if (thinning->why_not)
		opts.step_max = 0;
	sb_governor_init(&thinning->governor, &opts, &now);
}

static void apply(struct sb_thinning *thinning, uint32_t step)
{
	const struct sb_view *view = thinning->opts.view;
	uint64_t weight;
	size_t i;

	thinning->step = step;
	if (has_timer(thinning)) {
		for (i = 0; i < thinning->timers.nr; i++)
			slow_down(thinning, &thinning->timers.at[i]);
		return;
	}
	weight = view->thin(thinning->skel, thinning->opts.view_opts, step, thinning->mean);
	if (thinning->worst < weight)
		thinning->worst = weight;
}

void sb_thinning_tick(struct sb_thinning *thinning, uint64_t bpf_ns, uint64_t mean)
{
	const struct sb_governor_reading now = read_cost(thinning, bpf_ns);
	uint32_t step;

	if (!thinning->step)
		thinning->mean = mean ? mean : 1;
	step = sb_governor_step(&thinning->governor, &now);
	sb_debug("cost of a window: %.2f %% of the machine; step %u",
		 100 * thinning->governor.stats.last, step);
	if (step != thinning->step)
		apply(thinning, step);
}

void sb_thinning_stats(const struct sb_thinning *thinning, struct sb_thinning_stats *ret_stats)
{
	*ret_stats = (struct sb_thinning_stats){
		.governor = thinning->governor.stats,
		.limit = thinning->opts.limit,
		.weight = thinning->worst,
		.why_not = thinning->why_not,
	};
	if (has_timer(thinning))
		ret_stats->rate_hz = (double)thinning->opts.freq_hz /
				     (double)(1u << thinning->governor.stats.step_worst);
}
