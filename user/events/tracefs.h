/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's list of tracepoints, "events/CATEGORY/NAME" of tracefs. Where tracefs is mounted
 * nowhere, it is mounted for us alone, without a place in the file system, until the descriptor is
 * closed. Order: sb_tracefs_open(), which gives @events_fd of the others, which do not close it;
 * close(2). Thread: any. Pointers are not NULL, and nothing is kept. */
#ifndef SB_EVENTS_TRACEFS_H
#define SB_EVENTS_TRACEFS_H

#include <stdbool.h>
#include <stdint.h>

/* Open the directory "events". Return: the descriptor, which the caller closes; -EACCES or -EPERM
 * without privilege; -ENODEV when the kernel has no tracefs; or another negative errno of mounting
 * or opening it. */
int sb_tracefs_open(void);

/*
 * Call @fn for each tracepoint whose category and name match these globs, in no order.
 * @fn: gets @arg, both names, valid during the call, and the ID that perf_event_open(2) takes; a
 *	return value other than 0 ends the search and is returned
 *
 * Return: 0, also if no tracepoint matches; what @fn returned; or a negative errno of reading the
 * directories.
 */
int sb_tracefs_each(int events_fd, const char *category, const char *name,
		    int (*fn)(void *arg, const char *category, const char *name, uint64_t id),
		    void *arg);

/* Read what the record of tracepoint @name, "CATEGORY:NAME", is made of, the file "format".
 * @ret_text: NUL-terminated, freed by the caller with free(); untouched on error. Return: 0;
 * -EINVAL if @name has no colon, or a slash; -ENOENT if there is no such tracepoint; -EFBIG beyond
 * 64 KiB; -ENOMEM; or another negative errno of open(2) or read(2). */
int sb_tracefs_read_format(int events_fd, const char *name, char **ret_text);

/* Return: whether there is a category with exactly this name; false also when it has a slash, or
 * when this cannot be read. */
bool sb_tracefs_has_category(int events_fd, const char *category);

#endif
