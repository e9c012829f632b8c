/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A range of a store as one file, of any format that outputs have. */
#ifndef SB_EXPORT_FILE_H
#define SB_EXPORT_FILE_H

#include "store/ask.h"

/*
 * Write what @ask asks for to @path, in the format of its extension; the file appears as a whole.
 * Return: 0; -ENODATA: nothing was recorded; -EINVAL: no format has that extension; others.
 */
int sb_export_file(struct sb_store *store, const struct sb_ask *ask, const char *path,
		   struct sb_store_answer *ret_answer);

#endif
