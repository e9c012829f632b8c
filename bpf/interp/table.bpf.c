// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* All runtimes: a row in one of the tables for each walker. */
#include "sb_interp.bpf.h"

/* clang-format off */
/* Runtimes that are walked by their state, or whose frames of a native one are found step by step. */
#define SB_WALKERS(row) \
	row(SB_RUNTIME_LUA, lua) \
	row(SB_RUNTIME_LUAJIT, luajit) \
	row(SB_RUNTIME_PERL, perl) \
	row(SB_RUNTIME_PHP, php) \
	row(SB_RUNTIME_PYTHON, python) \
	row(SB_RUNTIME_RUBY, ruby)
/* Runtimes whose frames lie on the native stack: row(number, name). */
#define SB_NATIVES(row) \
	row(SB_RUNTIME_HOTSPOT, hotspot) \
	row(SB_RUNTIME_LUA, lua) \
	row(SB_RUNTIME_LUAJIT, luajit) \
	row(SB_RUNTIME_PHP, php) \
	row(SB_RUNTIME_V8, v8)
/* clang-format on */

#define DECLARE_WALKER(number, name) SB_INTERP_HAS_WALKER(name);
#define DECLARE_NATIVE(number, name) SB_INTERP_HAS_NATIVE(name);
SB_WALKERS(DECLARE_WALKER)
SB_NATIVES(DECLARE_NATIVE)

#define CASE(number, call) \
	case number:       \
		return call(s);
#define CASE_BEGIN(number, name)  CASE(number, sb_bpf_##name##_begin)
#define CASE_STEP(number, name)	  CASE(number, sb_bpf_##name##_step)
#define CASE_NATIVE(number, name) CASE(number, sb_bpf_##name##_native)

__noinline int sb_interp_begin(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (!s)
		return SB_STEP_END;
	switch (s->interp.walk.conf.runtime) {
		SB_WALKERS(CASE_BEGIN)
	default:
		return SB_STEP_END;
	}
}

__noinline int sb_interp_step(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (!s)
		return SB_STEP_END;
	switch (s->interp.walk.conf.runtime) {
		SB_WALKERS(CASE_STEP)
	default:
		return SB_STEP_END;
	}
}

__noinline int sb_interp_native(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (!s)
		return SB_STEP_END;
	s->interp.walk.has_steps = 0;
	s->interp.nr_before = s->interp.walk.nr_frames;
	switch (s->interp.walk.conf.runtime) {
		SB_NATIVES(CASE_NATIVE)
	default:
		return SB_STEP_FP_CHAIN;
	}
}
