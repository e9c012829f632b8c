/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes a range of a store to one file, in any output format. Called by the export command. */
#ifndef SB_EXPORT_FILE_H
#define SB_EXPORT_FILE_H

#include "store/ask.h"

/*
 * Write the profile that answers @ask to @path, in the format of its extension. The file is
 * replaced as a whole. Return: 0; -ENODATA if nothing was recorded; -EINVAL if no format has this
 * extension; -ENOMEM; other errors of I/O.
 */
int sb_export_file(struct sb_store *store, const struct sb_ask *ask, const char *path,
		   struct sb_store_answer *ret_answer);

#endif
