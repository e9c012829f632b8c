/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lets bpf/step/sb_step_<runtime>.h, included after this, read through struct sb_memory (void
 * *mem). */
#ifndef SB_INTERP_STEP_OUTSIDE_H
#define SB_INTERP_STEP_OUTSIDE_H

#include "interp/core/memory.h"

#define SB_STEP_READ(mem, dst, len, addr) sb_memory_read(mem, dst, len, addr)
#include "bpf/step/sb_interp_step.h"

#endif
