/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that makes output files with the privileges that there are when it is forked, so that
 * the caller can drop its own for good while files are still made by the rules of base/fs.h: a file
 * has no name, or a temporary one, until it is committed; a device or a FIFO is written directly;
 * below sudo, files are of the user who called it. It knows its paths from the beginning and
 * accepts no others; it parses nothing. The caller writes to the files through descriptors that it
 * hands over.
 *
 * It ends when the caller's process ends, in whatever way it does, and removes what was not
 * committed. Order: sb_writer_new(), before the caller drops its privileges; for each file
 * sb_writer_open(), write(2), sb_writer_commit() or sb_writer_discard(); sb_writer_free().
 *
 * One thread at a time uses a writer, and each call waits for the process's answer. -ECHILD means:
 * the process has ended, so nothing can be made or committed any more, and only sb_writer_free() is
 * left. @i is below @nr of sb_writer_new(); if it is not, the process ends. @writer is not NULL
 * unless a contract says so.
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
 * socketpair(2) or fork(2); *ret_writer is untouched then.
 */
int sb_writer_new(const char *const *paths, size_t nr, int (*confine)(void),
		  struct sb_writer **ret_writer);

/*
 * Make the file @paths[@i]; if it was made before and not committed, that one is removed first. For
 * a FIFO this waits until it has a reader.
 * Return: a descriptor to write to, which the caller closes, before or after the commit; -EINTR
 * after a signal while it waits for a reader; -ECHILD; -EMFILE, also when the caller has no room
 * for the descriptor; -EISDIR; -EACCES, -ENOENT; -EEXIST: only root could replace the file; -EPERM:
 * a FIFO of another user; -ENOMEM; or another negative errno of open(2) or fcntl(2). After -EMFILE
 * the file may have been made: sb_writer_discard() removes it, and so do the calls that would
 * remove what was not committed. After other errors there is none.
 */
int sb_writer_open(struct sb_writer *writer, size_t i);
/*
 * Give the file of sb_writer_open() its name; everything must have been written. Does nothing for a
 * device or a FIFO. Return: 0; -ECHILD; -EBADF: sb_writer_open() has not made it, or it was
 * committed already; or another negative errno of naming the file, which is removed then, or of
 * closing it, when it has its name already. sb_writer_open() can make it again.
 */
int sb_writer_commit(struct sb_writer *writer, size_t i);
/* Remove what sb_writer_open() made, unless it was committed. The descriptor stays the caller's to
 * close. */
void sb_writer_discard(struct sb_writer *writer, size_t i);

/* End the process, which removes what was not committed, wait for it, and free. Accepts NULL. */
void sb_writer_free(struct sb_writer *writer);

#endif
