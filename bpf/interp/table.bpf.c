// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The walker of each runtime: see sb_runtimes.def. */
#include "bpf/core/sb_interp.bpf.h"

/* What a row says about "how": whether there is such a walker. */
#define BY_STATE_STATE(code) code
#define BY_STATE_NATIVE(code)
#define BY_STATE_BOTH(code) code
#define BY_NATIVE_STATE(code)
#define BY_NATIVE_NATIVE(code) code
#define BY_NATIVE_BOTH(code)   code

#define SB_RUNTIME(number, name, how) \
	BY_STATE_##how(SB_INTERP_HAS_WALKER(name);) BY_NATIVE_##how(SB_INTERP_HAS_NATIVE(name);)
#include "bpf/abi/sb_runtimes.def"
#undef SB_RUNTIME

#define CASE(number, call)        \
	case SB_RUNTIME_##number: \
		return call(s);

__noinline int sb_interp_begin(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (!s)
		return SB_STEP_END;
	switch (s->interp.walk.conf.runtime) {
#define SB_RUNTIME(number, name, how) BY_STATE_##how(CASE(number, sb_bpf_##name##_begin))
#include "bpf/abi/sb_runtimes.def"
#undef SB_RUNTIME
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
#define SB_RUNTIME(number, name, how) BY_STATE_##how(CASE(number, sb_bpf_##name##_step))
#include "bpf/abi/sb_runtimes.def"
#undef SB_RUNTIME
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
#define SB_RUNTIME(number, name, how) BY_NATIVE_##how(CASE(number, sb_bpf_##name##_native))
#include "bpf/abi/sb_runtimes.def"
#undef SB_RUNTIME
	default:
		return SB_STEP_FP_CHAIN;
	}
}
