/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which pages of a process are in memory: /proc/PID/pagemap, by the ioctl PAGEMAP_SCAN (Linux 6.7
 * and newer, Documentation/admin-guide/mm/pagemap.rst), which passes over whatever is empty, or by
 * its words, one for each page. Called by the reader, the process that makes accesses which may
 * block. Order: set *@at to the first address and call the same function until *@at is @end. No
 * pointer is NULL. Thread: any, one at a time for each @fd.
 */
#ifndef SB_PAGEMAP_H
#define SB_PAGEMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

/* Bits of struct sb_page_run.kind, which are those of PAGEMAP_SCAN. */
enum {
	SB_PAGE_FILE = 1u << 2, /* of a file or of shared memory */
	SB_PAGE_PRESENT = 1u << 3,
	SB_PAGE_SWAPPED = 1u << 4,
	SB_PAGE_ZERO = 1u << 5, /* the page of zeros that all processes share, which is no memory */
	SB_PAGE_HUGE = 1u << 6, /* part of a huge page that is mapped as a whole */
};

/* Neighbouring pages of one kind. */
struct sb_page_run {
	uint64_t start; /* address */
	uint32_t nr;	/* pages, at least 1 */
	uint32_t kind;
};

/* As in linux/fs.h, which may be older than the running kernel. */
struct sb_pagemap_scan {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define SB_PAGEMAP_SCAN _IOWR('f', 16, struct sb_pagemap_scan)

/**
 * sb_pagemap_scan() - find the pages in memory or in swap from an address on
 * @fd: of /proc/PID/pagemap, borrowed
 * @end: exclusive; a multiple of the page size, as *@at
 * @runs: room for @nr_max runs, at least 1
 * @at: where to begin; set to where the next call goes on: @end when all was found; untouched on
 *	error
 *
 * Return: the number of runs; -ENOTTY: the kernel does not have it; -ESRCH: the process has ended;
 * -EPROTO: the kernel's answer makes no sense; others of ioctl(2). @runs is undefined on error.
 */
int sb_pagemap_scan(int fd, uint64_t end, struct sb_page_run *runs, size_t nr_max, uint64_t *at);

/*
 * Find the pages in memory or in swap as sb_pagemap_scan() does, with the same arguments, by the
 * words of the entry. This takes time for each page between *@at and @end, mapped or not; the page
 * of zeros and huge pages are not told apart. Return: the number of runs, 0 only when nothing is
 * there up to @end; -ESRCH: the process has ended; or another negative errno of pread(2). On error,
 * @runs is undefined and *@at is untouched.
 */
int sb_pagemap_read(int fd, uint64_t end, struct sb_page_run *runs, size_t nr_max, uint64_t *at);

#endif
