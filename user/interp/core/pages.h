/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pages of many processes, read together. A walker learns from each page which one it needs next,
 * and an access to a page costs two switches of processes (symbolizer/process/reader.h). So where
 * many threads are walked, all walks go on until each lacks a page; these pages are read by one
 * request; and the walks begin anew, until none lacks a page. Used for threads that sleep: what a
 * walk needs does not change meanwhile. One thread at a time. No pointer is NULL.
 *
 * Order: set is_noting; then, until sb_pages_fetch() returns false, reset is_short before each
 * walk, which is done if is_short is still false after it; reset both, and make the walks that are
 * left; sb_pages_clear() before the next set of walks; sb_pages_release().
 */
#ifndef SB_INTERP_PAGES_H
#define SB_INTERP_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/vec.h"
#include "symbolizer/process/reader.h"

#define SB_PAGE_BYTES 4096u
/* Pages that are kept: 4 MiB. Beyond it, each access reads for itself. */
#define SB_PAGES_MAX  1024u

/* Zero-initialize: there are no pages then. */
struct sb_pages {
	uint32_t tgid; /* of the next reads; set by the caller, or by sb_interp_walk_outside() */
	/* Set by the caller: a page that is not there is noted for sb_pages_fetch(), and not
	 * read. */
	bool is_noting;
	/* A page was noted, by a read that lacked it or by sb_pages_want(). Until the caller resets
	 * it, all reads fail that would note one. */
	bool is_short;
	struct sb_index index;
	SB_VEC(struct sb_page {
		uint32_t tgid;
		uint64_t addr;
		uint8_t *bytes; /* NULL: it could not be read */
	})
	at;
	struct sb_reader_want wants[SB_READER_AHEAD_MAX], pointers[SB_READER_AHEAD_MAX];
	uint32_t nr_wants, nr_pointers;
	uint32_t nr_targets; /* pointers whose targets the last request has read */
	uint32_t ended_tgid; /* a process of which a read returned -ESRCH; 0: none */
};

/* Remove all pages and all that were noted, and reset is_short and ended_tgid; tgid and is_noting
 * stay. */
void sb_pages_clear(struct sb_pages *pages);
/* Remove all pages and all that were noted, and free the memory; @pages can be used again. */
void sb_pages_release(struct sb_pages *pages);
/*
 * Read @len bytes of the process pages->tgid: from pages that are there, or else from the process,
 * unless pages->is_noting. For struct sb_memory.read; @arg is the struct sb_pages.
 * Return: 0; -EFAULT: they cannot be read, or pages->is_short; then @dst may be partly overwritten.
 */
int sb_pages_read(void *arg, void *dst, size_t len, uint64_t addr);
/* For struct sb_memory.read_again: read @len bytes from the process pages->tgid, even if pages have
 * them. @arg is the struct sb_pages. Return: 0; -EFAULT: they cannot be read, and @dst may be
 * partly overwritten; also if pages->is_noting, and then nothing is read or noted. */
int sb_pages_read_again(void *arg, void *dst, size_t len, uint64_t addr);
/* For struct sb_memory.want: note the page of @addr, in the process pages->tgid, if it is not there
 * and pages->is_noting, and set is_short then. Where SB_READER_AHEAD_MAX are noted it is left out,
 * but is_short is set, so that the walk that is made anew asks for it again. @arg is the struct
 * sb_pages. */
void sb_pages_want(void *arg, uint64_t addr);
/* For struct sb_memory.want_target: note the pointer at @addr if its page is not there and
 * pages->is_noting. The next sb_pages_fetch() that reads pages reads the one that it points to by
 * the same request; if that is noted then, the fetch after it makes no request for it. @arg is the
 * struct sb_pages. */
void sb_pages_want_target(void *arg, uint64_t addr);
/* Read the pages that were noted, which are none then; one that cannot be read is kept as such. The
 * caller resets is_short before the next walk. Return: whether there were any, and room and memory
 * for all of them; if not, the walks that lacked pages are to be made without is_noting. */
bool sb_pages_fetch(struct sb_pages *pages);

#endif
