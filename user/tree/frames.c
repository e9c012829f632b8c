// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tree/frames.h"

enum { OTHER, CODE = 1 << 0, TOLD = 1 << 1, CODE_TOLD = CODE | TOLD };

const struct sb_fg_kind_row sb_fg_kinds[SB_FG_KIND_MAX] = {
#define SB_KIND(kind, suffix, role, legend, frame) \
	[SB_FG_##kind] = { suffix, legend, ((role)&CODE) != 0, ((role)&TOLD) != 0 },
#include "tree/frames.def"
	[SB_FG_GAP] = { "", "", false, true },
};
