/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Decompression of the xz stream in .gnu_debugdata, which gives an image for sb_elf_new_image().
 * Internal to the symbolizer. Thread: any, one at a time for each budget. No pointer is NULL unless
 * it says so. */
#ifndef SB_INFLATE_H
#define SB_INFLATE_H

#include <stddef.h>

#include "symbolizer/elf/budget.h"

/**
 * sb_inflate_xz() - decompress an xz stream
 * @budget: charged for the output, the memory of the decoder and the work, before they grow; may
 *	be NULL
 * @ret_out: *@ret_len bytes with a NUL appended, which the caller frees; both are untouched on
 *	error
 *
 * Return: 0; -EBADMSG (broken); -EFBIG (beyond the budget, larger than any symbol table, or the
 * decoder needs more memory than for xz -9); -ENOMEM.
 */
int sb_inflate_xz(const void *in, size_t in_len, struct sb_budget *budget, char **ret_out,
		  size_t *ret_len);

#endif
