// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>

#include "base/cleanup.h"
#include "events/counter.h"
#include "views/skel.h"
#include "views/views.h"

/* Time is divided between the stacks of two ticks, so it must tick in all code that runs. */
static int check(const struct sb_view_opts *opts, const char **ret_why)
{
	const struct sb_counter *counter = opts->counter;

	if (!counter || sb_counter_is_clock(counter) || counter->type != PERF_TYPE_SOFTWARE)
		return 0;
	*ret_why =
		"wall divides the time of threads by a clock or a counter of the hardware, such as "
		"cpu-clock or cycles; use 'stackbpf oncpu -e' for all others";
	return -EINVAL;
}

static int prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	struct bpf_program *const programs[] = { skel->progs.sched_tick, skel->progs.sched_exec,
						 skel->progs.sched_exit };
	int err = sb_sched_prepare_whole(skel, opts);

	skel->rodata->cfg_sched_wall = true;
	return err ? err : sb_view_switch_on(programs, SB_ARRAY_SIZE(programs));
}

static struct bpf_program *timer(struct sampler_bpf *skel)
{
	return skel->progs.sched_tick;
}

static uint64_t expected(const struct sampler_bpf *skel)
{
	/* With spans, most of it is not wanted. */
	return skel->rodata->cfg_spans ? 0 : skel->bss->sched_expected_ns;
}

const struct sb_view sb_view_wall = {
	.kind = SB_VIEW_KIND(wall),
	.is_of_all_threads = true,
	.slots = 1u << SB_SCRATCH_SWITCH | 1u << SB_SCRATCH_TIMER,
	.other_slots = 1u << SB_SCRATCH_WAKE | 1u << SB_SCRATCH_ITER,
	.prefix = "sched_",
	.divisor = 1000,
	.state_place = SB_STATE_AT_LEAF,
	.has_idle = true,
	.trim = sb_sched_trim,
	.check = check,
	.prepare = prepare,
	.timer = timer,
	.begin = sb_sched_begin,
	.settle = sb_sched_settle,
	.pending = sb_sched_pending,
	.expected = expected,
};
