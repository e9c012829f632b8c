// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Its functions call one another, and calls may be eight deep. */
#define SB_INTERP_DIRECT
#include "bpf/core/sb_interp.bpf.h"

int sb_bpf_hotspot_between(struct sb_scratch *s, __s64 size);
#define HS_BETWEEN(w, walk, mem, size) sb_bpf_hotspot_between(mem, size)
#include "bpf/step/sb_step_hotspot.h"

__noinline int sb_bpf_hotspot_between(struct sb_scratch *s, __s64 size)
{
	if (!SB_INTERP_HAS(hotspot) || !s)
		return SB_STEP_FP_CHAIN;
	return hs_between(&s->interp.walk, &s->walk, s, size);
}

SB_INTERP_NATIVE(hotspot)
