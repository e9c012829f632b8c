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

#define CASE(number, name, kind)          \
	case SB_RUNTIME_##number:         \
		if (!SB_INTERP_HAS(name)) \
			break;            \
		return sb_bpf_##name##_##kind(s);

__noinline int sb_interp_begin(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (!s)
		return SB_STEP_END;
	switch (s->interp.walk.conf.runtime) {
#define SB_RUNTIME(number, name, how) BY_STATE_##how(CASE(number, name, begin))
#include "bpf/abi/sb_runtimes.def"
#undef SB_RUNTIME
	default:
		break;
	}
	return SB_STEP_END;
}

/*
 * Linux 5.15 wants loops to begin where they are entered, which this form sees to. Each runtime has
 * a loop of its own, because the verifier follows each iteration, and in a common one all calls.
 */
static __always_inline int round_of(struct sb_scratch *s, __u32 slot, int (*step)(__u32 slot))
{
	__u32 i = 0;
	int is;

	do {
		is = step(slot);
		i++;
		sb_opaque(i);
	} while (is == SB_STEP_GO_ON && i < SB_INTERP_ROUND);
	s->interp.nr_steps += i;
	return is;
}

__noinline int sb_interp_steps(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (!s)
		return SB_STEP_END;
	if (s->interp.nr_steps >= SB_INTERP_STEPS_MAX) {
		s->interp.walk.event.status = SB_STACK_DEPTH;
		return sb_interp_end(&s->interp.walk, SB_STACK_DEPTH);
	}
	switch (s->interp.walk.conf.runtime) {
#define CASE_ROUND(number, name)          \
	case SB_RUNTIME_##number:         \
		if (!SB_INTERP_HAS(name)) \
			break;            \
		return round_of(s, slot, sb_bpf_##name##_step);
#define SB_RUNTIME(number, name, how) BY_STATE_##how(CASE_ROUND(number, name))
#include "bpf/abi/sb_runtimes.def"
#undef SB_RUNTIME
	default:
		break;
	}
	return SB_STEP_END;
}

__noinline int sb_interp_native(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (!s)
		return SB_STEP_END;
	s->interp.walk.has_steps = 0;
	s->interp.nr_before = s->interp.walk.nr_frames;
	switch (s->interp.walk.conf.runtime) {
#define SB_RUNTIME(number, name, how) BY_NATIVE_##how(CASE(number, name, native))
#include "bpf/abi/sb_runtimes.def"
#undef SB_RUNTIME
	default:
		break;
	}
	return SB_STEP_FP_CHAIN;
}
