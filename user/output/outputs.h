/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows of outputs.def, and what they share. Only for table.c and the outputs. Thread: any, one
 * for each stream. Pointers are not NULL. */
#ifndef SB_OUTPUT_OUTPUTS_H
#define SB_OUTPUT_OUTPUTS_H

#include "output/output.h"

#define SB_OUTPUT(name) extern const struct sb_output sb_output_##name;
#include "output/outputs.def"
#undef SB_OUTPUT

/* Write @len bytes and a newline to @out, a FILE *. Return: 0 or -EIO. */
int sb_put_line(void *out, const char *line, size_t len);

#endif
