// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "bpf/core/sb_interp.bpf.h"

#include "bpf/step/sb_step_hotspot.h"

SB_INTERP_NATIVE(hotspot)
