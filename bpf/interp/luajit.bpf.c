// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "bpf/core/sb_interp.bpf.h"

#include "bpf/step/sb_step_luajit.h"

SB_INTERP_WALKER(luajit)
SB_INTERP_NATIVE(luajit)
