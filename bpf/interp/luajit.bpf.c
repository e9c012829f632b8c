// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sb_interp.bpf.h"
#include "sb_step_luajit.h"

SB_INTERP_WALKER(luajit)
SB_INTERP_NATIVE(luajit)
