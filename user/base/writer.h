/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process of its own that makes output files, with the privileges there were when it was forked;
 * so that we can lay ours down for good, and files are still made by the rules of
 * sb_output_file_new(). It knows the paths from the beginning, and takes no others; it parses
 * nothing. What it makes is written by us, through a descriptor that it hands over.
 *
 * It ends with us, whatever our end is, and removes what was not committed.
 */
#ifndef SB_BASE_WRITER_H
#define SB_BASE_WRITER_H

#include <stddef.h>

struct sb_writer;

/*
 * Fork. Before threads are made. @paths are copied by the fork; none stands for a descriptor of ours
 * (sb_output_is_fd()). @confine is called in the new process, to give up what it does not need; NULL: nothing.
 * Return: 0 or a negative errno.
 */
int sb_writer_new(const char *const *paths, size_t nr, int (*confine)(void),
		  struct sb_writer **ret_writer);

/* Make the file for @paths[@i]. Return: a descriptor to write to, which the caller closes, or a
 * negative errno, as sb_output_file_new(). Waits for the reader of a FIFO: -EINTR after a signal. */
int sb_writer_open(struct sb_writer *writer, size_t i);
/* Give the file its name. All must have been written. Return: 0 or a negative errno. */
int sb_writer_commit(struct sb_writer *writer, size_t i);
/* Remove what sb_writer_open() made. */
void sb_writer_discard(struct sb_writer *writer, size_t i);

/* Wait for its end. Accepts NULL. */
void sb_writer_free(struct sb_writer *writer);

#endif
