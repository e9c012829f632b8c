/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows of table.c; for the outputs themselves only. */
#ifndef SB_OUTPUT_OUTPUTS_H
#define SB_OUTPUT_OUTPUTS_H

#include "output/output.h"

extern const struct sb_output sb_output_folded, sb_output_svg, sb_output_bt, sb_output_distr;
extern const struct sb_output sb_output_pprof, sb_output_speedscope, sb_output_firefox;
extern const struct sb_output sb_output_callgrind, sb_output_json, sb_output_html, sb_output_otlp;

#endif
