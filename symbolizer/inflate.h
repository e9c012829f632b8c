/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The xz stream in .gnu_debugdata, with bounds on what it may grow to. Internal. Thread-safe. */
#ifndef SB_INFLATE_H
#define SB_INFLATE_H

#include <stddef.h>

/*
 * Return: 0 and *@ret_len bytes with a NUL behind them, which the caller frees; -EBADMSG (broken),
 * -EFBIG (larger than any symbol table, or wants more memory than xz -9), -ENOMEM.
 */
int sb_inflate_xz(const void *in, size_t in_len, char **ret_out, size_t *ret_len);

#endif
