/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that makes output files with the privileges that there are when it is forked, so that
 * the caller can drop its own for good while files are still made by the rules of
 * sb_output_file_new(). It knows its paths from the beginning and accepts no others; it parses
 * nothing. The caller writes to the files through descriptors that it hands over.
 *
 * It ends when the caller's process ends, in whatever way it does, and removes what was not
 * committed. One thread at a time uses a writer. -ECHILD means: the process has ended, so nothing
 * can be made or committed any more. @i is below @nr of sb_writer_new().
 */
#ifndef SB_WORKERS_WRITER_H
#define SB_WORKERS_WRITER_H

#include <stddef.h>

struct sb_writer;

/*
 * Fork the process. The caller ends *ret_writer with sb_writer_free().
 * @paths: @nr of them, only used during the call, because the fork has a copy; none stands for an
 *	open descriptor of the caller (sb_output_is_fd())
 * @confine: called in the new process, to drop privileges that it does not need; if it does not
 *	return 0, that process ends, and all further calls return -ECHILD. NULL: keep all
 *
 * Thread: the main one, before there are others. Return: 0; -ENOMEM; or a negative errno of
 * sb_peer_new(); *ret_writer is untouched then.
 */
int sb_writer_new(const char *const *paths, size_t nr, int (*confine)(void),
		  struct sb_writer **ret_writer);

/*
 * Make the file @paths[@i]; if it was made before and not committed, that one is removed first. For
 * a FIFO this waits until it has a reader.
 * Return: a descriptor to write to, which the caller closes; -EINTR after a signal; -ECHILD; or as
 * sb_output_file_new(): -EISDIR, -EACCES, -ENOENT, -EEXIST, -EPERM and others.
 */
int sb_writer_open(struct sb_writer *writer, size_t i);
/*
 * Give the file of sb_writer_open() its name; everything must have been written. Return: 0,
 * -ECHILD, or another negative errno as sb_output_file_commit(): it does not have its name.
 */
int sb_writer_commit(struct sb_writer *writer, size_t i);
/* Remove what sb_writer_open() made, unless it was committed. */
void sb_writer_discard(struct sb_writer *writer, size_t i);

/* End the process, which removes what was not committed, and wait for it. Accepts NULL. */
void sb_writer_free(struct sb_writer *writer);

#endif
