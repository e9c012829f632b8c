/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows of outputs.def. Only for table.c and the outputs. */
#ifndef SB_OUTPUT_OUTPUTS_H
#define SB_OUTPUT_OUTPUTS_H

#include "output/output.h"

#define SB_OUTPUT(name) extern const struct sb_output sb_output_##name;
#include "output/outputs.def"
#undef SB_OUTPUT

#endif
