/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The steps of walkers, reading through struct sb_memory: before sb_step_<runtime>.h. */
#ifndef SB_INTERP_STEP_OUTSIDE_H
#define SB_INTERP_STEP_OUTSIDE_H

#include "interp/memory.h"

#define SB_STEP_READ(mem, dst, len, addr) sb_memory_read(mem, dst, len, addr)
#include "sb_interp_step.h"

#endif
