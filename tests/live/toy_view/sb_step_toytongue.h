/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runtime "toytongue" of tests/live/toy_view.py: a walk that ends where it begins. */
#ifndef SB_STEP_TOYTONGUE_H
#define SB_STEP_TOYTONGUE_H

#include "bpf/step/sb_interp_step.h"

static __always_inline enum sb_step sb_toytongue_begin(struct sb_interp_walk *w, void *mem)
{
	return sb_interp_end(w, SB_STACK_COMPLETE);
}

static __always_inline enum sb_step sb_toytongue_step(struct sb_interp_walk *w, void *mem)
{
	return sb_interp_end(w, SB_STACK_COMPLETE);
}

#endif
