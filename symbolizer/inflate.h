/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The xz stream in .gnu_debugdata, with bounds on what it may grow to. Internal. Thread-safe. */
#ifndef SB_INFLATE_H
#define SB_INFLATE_H

#include <stddef.h>

#include "budget.h"

/*
 * sb_inflate_xz() - unpack an xz stream
 * @budget: charged for the output, before it grows, and for the decoder; may be NULL
 * @ret_out: *@ret_len bytes with a NUL behind them, which the caller frees
 *
 * Return: 0; -EBADMSG (broken); -EFBIG (beyond the budget, larger than any symbol table, or wants more memory than
 * xz -9); -ENOMEM.
 */
int sb_inflate_xz(const void *in, size_t in_len, struct sb_budget *budget, char **ret_out,
		  size_t *ret_len);

#endif
