/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes a range of a store to one file, in any output format. Called by the export command. */
#ifndef SB_EXPORT_FILE_H
#define SB_EXPORT_FILE_H

#include "store/ask.h"

/*
 * Write the profile that answers @ask to @path, in the format of its extension. The file is
 * replaced as a whole; on error it is as before. @ret_answer: figures of the answer, may be NULL;
 * also set with -ENODATA, and after other errors of writing; untouched after those of the query.
 * Other pointers are not NULL, and none is kept. Not thread-safe: one thread at a time for a store.
 * Return: 0; -ENODATA if nothing was recorded, or the format needs durations; -EINVAL if no format
 * has this extension, or the range is empty; -E2BIG if the profile or the number of files of the
 * store is too large; -ENOMEM; other errors of I/O.
 */
int sb_export_file(struct sb_store *store, const struct sb_ask *ask, const char *path,
		   struct sb_store_answer *ret_answer);

#endif
