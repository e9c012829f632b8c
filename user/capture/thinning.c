// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/thinning.h"

#include <assert.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/time.h"
#include "bpf/abi/sb_abi.h"
#include "capture/perf_event.h"
#include "events/counter.h"
#include "symbolizer/process/reader.h"
#include "symbolizer/unwind/parser.h"
#include "views/skel.h"

#define TIMER_STEPS_MAX 10u /* 1024 periods: of 999 Hz, one tick a second */
#define TIMER_JUMP_MAX	3u
#define VIEW_STEPS_MAX	10u
/* The first step leaves out far more than half of all waits. */
#define VIEW_JUMP_MAX	2u

static struct sb_governor_reading read_cost(const struct sb_thinning *thinning, uint64_t bpf_ns)
{
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct sb_parser_stats parser;
	struct sb_reader_stats readers;
	uint64_t reread_ns = 0;
	uint32_t i;

	for (i = 0; i < thinning->nr_rations; i++)
		reread_ns += sb_ration_spent_ns(thinning->rations[i]);

	sb_parser_stats(thinning->opts.parser, &parser);
	sb_reader_stats(&readers);
	return (struct sb_governor_reading){
		.now_ns = sb_now_ns(),
		.bpf_ns = bpf_ns,
		.own_ns = sb_cpu_time_ns() + parser.cpu_ns + readers.cpu_ns,
		.reread_ns = reread_ns,
		.nr_cpus = nr_cpus > 0 ? (uint32_t)nr_cpus : 1,
	};
}

static bool has_timer(const struct sb_thinned *thinned)
{
	return thinned->view->timer && !thinned->view->thin;
}

/* The number of steps down to 1 Hz, if there is a rate. */
static uint32_t timer_steps(uint32_t freq_hz)
{
	uint32_t steps = 0;

	while (steps < TIMER_STEPS_MAX && (!freq_hz || freq_hz >> (steps + 1)))
		steps++;
	return steps;
}

static void init_view(struct sb_thinning *thinning, struct sb_thinned *thinned)
{
	const struct sb_view *view = thinned->view;

	if (view->cannot_thin)
		thinned->why_not = view->cannot_thin(thinning->skel, thinning->opts.view_opts);
	else if (!view->thin && !view->timer)
		thinned->why_not = "this view cannot lower its sampling rate";
	if (!thinned->why_not)
		thinned->step_max =
			has_timer(thinned) ? timer_steps(thinning->opts.freq_hz) : VIEW_STEPS_MAX;
}

/* Let views of events take their steps before the timer. */
static void order(struct sb_thinning *thinning)
{
	uint32_t nr_before = 0;
	size_t i;

	for (i = 0; i < thinning->opts.views->nr; i++)
		if (!has_timer(&thinning->views[i]) && thinning->views[i].step_max > nr_before)
			nr_before = thinning->views[i].step_max;
	for (i = 0; i < thinning->opts.views->nr; i++)
		if (has_timer(&thinning->views[i]))
			thinning->views[i].nr_before = nr_before;
}

void sb_thinning_init(struct sb_thinning *thinning, const struct sb_thinning_opts *opts,
		      struct sampler_bpf *skel)
{
	size_t i;

	*thinning = (struct sb_thinning){ .opts = *opts, .skel = skel };
	for (i = 0; i < opts->views->nr; i++) {
		thinning->views[i].view = opts->views->at[i];
		init_view(thinning, &thinning->views[i]);
	}
	order(thinning);
}

void sb_thinning_release(struct sb_thinning *thinning)
{
	sb_vec_release(&thinning->timers);
}

static void slow_down(const struct sb_thinning *thinning, const struct sb_thinning_timer *timer,
		      uint32_t step)
{
	uint32_t weight = 1u << step;
	int err;

	if (timer->cpu >= SB_TICK_CPUS)
		return;
	err = sb_perf_slow_down(timer->fd, thinning->opts.view_opts->counter,
				thinning->opts.freq_hz, weight);
	if (err)
		sb_debug("the timer of CPU %u keeps its rate: error %d", timer->cpu, -err);
	else
		thinning->skel->bss->tick_weights[timer->cpu] = (uint16_t)weight;
}

int sb_thinning_add_timer(struct sb_thinning *thinning, int fd, uint32_t cpu)
{
	struct sb_thinning_timer timer = { .fd = fd, .cpu = cpu };
	size_t i;

	if (cpu < SB_TICK_CPUS)
		thinning->skel->bss->tick_weights[cpu] = 1;
	for (i = 0; i < thinning->opts.views->nr; i++)
		if (has_timer(&thinning->views[i]) && thinning->views[i].step)
			slow_down(thinning, &timer, thinning->views[i].step);
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

/* Return: how many steps views of events take before a timer takes any. */
static uint32_t steps_before_timers(const struct sb_thinning *thinning)
{
	uint32_t nr = UINT32_MAX;
	size_t i;

	for (i = 0; i < thinning->opts.views->nr; i++)
		if (has_timer(&thinning->views[i]))
			nr = thinning->views[i].nr_before;
	return nr;
}

void sb_thinning_start(struct sb_thinning *thinning, uint64_t bpf_ns)
{
	const struct sb_governor_reading now = read_cost(thinning, bpf_ns);
	struct sb_governor_opts opts = {
		.limit = thinning->opts.limit,
		.jump_max = TIMER_JUMP_MAX,
	};
	bool has_events = false;
	size_t i;

	for (i = 0; i < thinning->opts.views->nr; i++) {
		const struct sb_thinned *thinned = &thinning->views[i];

		if (thinned->step_max && opts.step_max < thinned->nr_before + thinned->step_max)
			opts.step_max = thinned->nr_before + thinned->step_max;
		if (thinned->step_max && !has_timer(thinned)) {
			opts.is_exact =
				thinned->view->thins_exactly && (opts.is_exact || !has_events);
			has_events = true;
		}
	}
	if (has_events)
		opts.jump_max = opts.is_exact ? VIEW_STEPS_MAX : VIEW_JUMP_MAX;
	opts.own_step_max =
		thinning->opts.is_freq_asked ? steps_before_timers(thinning) : opts.step_max;
	sb_governor_init(&thinning->governor, &opts, &now);
}

/* Return: the view's own step at the governor's step. */
static uint32_t step_of(const struct sb_thinned *thinned, uint32_t step)
{
	step = step > thinned->nr_before ? step - thinned->nr_before : 0;
	return step < thinned->step_max ? step : thinned->step_max;
}

static void apply(struct sb_thinning *thinning, struct sb_thinned *thinned, uint32_t step)
{
	uint64_t weight;
	size_t i;

	thinned->step = step;
	if (has_timer(thinned)) {
		for (i = 0; i < thinning->timers.nr; i++)
			slow_down(thinning, &thinning->timers.at[i], step);
		return;
	}
	weight = thinned->view->thin(thinning->skel, thinning->opts.view_opts, step, thinned->mean);
	if (thinned->worst < weight)
		thinned->worst = weight;
}

void sb_thinning_add_ration(struct sb_thinning *thinning, struct sb_ration *ration)
{
	assert(thinning->nr_rations < SB_ARRAY_SIZE(thinning->rations));
	thinning->rations[thinning->nr_rations++] = ration;
}

void sb_thinning_tick(struct sb_thinning *thinning, uint64_t bpf_ns, const uint64_t *means)
{
	const struct sb_governor_reading now = read_cost(thinning, bpf_ns);
	uint32_t step, mine;
	size_t i;

	if (!means && !sb_governor_is_burst(&thinning->governor, &now))
		return;
	step = sb_governor_step(&thinning->governor, &now);
	sb_debug("cost of a window: %.2f %% of the machine, %.2f in BPF; step %u",
		 100 * thinning->governor.stats.last, 100 * thinning->governor.bpf_before, step);
	for (i = 0; i < thinning->nr_rations; i++)
		sb_ration_set_thrift(thinning->rations[i], thinning->governor.thrift);
	for (i = 0; i < thinning->opts.views->nr; i++) {
		struct sb_thinned *thinned = &thinning->views[i];

		if (!thinned->step)
			thinned->mean = means && means[i] ? means[i] : 1;
		mine = step_of(thinned, step);
		if (mine != thinned->step)
			apply(thinning, thinned, mine);
	}
}

void sb_thinning_stats(const struct sb_thinning *thinning, uint32_t view,
		       struct sb_thinning_stats *ret_stats)
{
	const struct sb_thinned *thinned = &thinning->views[view];
	uint32_t worst = step_of(thinned, thinning->governor.stats.step_worst);

	*ret_stats = (struct sb_thinning_stats){
		.governor = thinning->governor.stats,
		.limit = thinning->opts.limit,
		.weight = thinned->worst,
		.why_not = thinned->why_not,
	};
	/* Only other views were throttled. */
	if (!worst)
		ret_stats->governor.lowered_ns = 0;
	if (has_timer(thinned) && thinning->opts.freq_hz)
		ret_stats->rate_hz = (double)thinning->opts.freq_hz / (double)(1u << worst);
	else if (has_timer(thinned) && worst)
		ret_stats->weight = thinning->opts.view_opts->counter->period << worst;
}
