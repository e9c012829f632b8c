// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sb_abi.h"
#include "views/views.h"

const struct sb_view sb_view_offcpu = {
	.name = "offcpu",
	.title = "Off-CPU Time",
	.unit = "us",
	.summary = "where threads wait, and how long",
	.event = "waits",
	.empty = "no thread of the targets waited",
	.slots = 1u << SB_SCRATCH_SWITCH,
	.divisor = 1000,
	.state_place = SB_STATE_AT_ROOT,
	.has_idle = true,
	.trim = sb_sched_trim,
	.prepare = sb_sched_prepare_whole,
	.begin = sb_sched_begin,
	.settle = sb_sched_settle,
};
