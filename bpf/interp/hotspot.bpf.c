// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Its functions call one another, and calls may be eight deep. */
#define SB_INTERP_DIRECT
#include "bpf/core/sb_interp.bpf.h"

#include "bpf/step/sb_step_hotspot.h"

SB_INTERP_NATIVE(hotspot)
