// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/process/pagemap.h"

#include <errno.h>
#include <unistd.h>

/* Words of the entry: Documentation/admin-guide/mm/pagemap.rst. */
#define WORD_FILE    (1ull << 61)
#define WORD_SWAPPED (1ull << 62)
#define WORD_PRESENT (1ull << 63)

/* Regions and words of one system call. */
#define REGIONS_MAX  1024u
#define WORDS_MAX    2048u

/* struct page_region of linux/fs.h. */
struct region {
	uint64_t start, end, kind;
};

static uint64_t page_bytes(void)
{
	static uint64_t nr_bytes;

	if (!nr_bytes)
		nr_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	return nr_bytes;
}

/* Append pages to the runs; those of one run that are more than it can say are another run. Return:
 * false: there was no room, and nothing was appended. */
static bool add(struct sb_page_run *runs, size_t nr_max, size_t *nr, const struct region *region)
{
	uint64_t nr_pages = (region->end - region->start) / page_bytes();
	struct sb_page_run *last = *nr ? &runs[*nr - 1] : NULL;
	const uint32_t kind = (uint32_t)region->kind;

	if (last && last->kind == kind && nr_pages <= UINT32_MAX - last->nr &&
	    last->start + last->nr * page_bytes() == region->start) {
		last->nr += (uint32_t)nr_pages;
		return true;
	}
	if (*nr == nr_max)
		return false;
	runs[(*nr)++] = (struct sb_page_run){ region->start, (uint32_t)nr_pages, kind };
	return true;
}

int sb_pagemap_scan(int fd, uint64_t end, struct sb_page_run *runs, size_t nr_max, uint64_t *at)
{
	struct region regions[REGIONS_MAX];
	struct sb_pagemap_scan scan = {
		.size = sizeof(scan),
		.start = *at,
		.end = end,
		.vec = (uint64_t)(uintptr_t)regions,
		.category_anyof_mask = SB_PAGE_PRESENT | SB_PAGE_SWAPPED,
		.return_mask = SB_PAGE_FILE | SB_PAGE_PRESENT | SB_PAGE_SWAPPED | SB_PAGE_ZERO |
			       SB_PAGE_HUGE,
	};
	size_t nr = 0;
	int got, i;

	while (scan.start < end && nr < nr_max) {
		scan.vec_len = nr_max - nr < REGIONS_MAX ? nr_max - nr : REGIONS_MAX;
		/* A run says how many pages it has in 32 bits. */
		scan.max_pages = UINT32_MAX;
		scan.walk_end = 0;
		got = ioctl(fd, SB_PAGEMAP_SCAN, &scan);
		if (got < 0)
			return -errno;
		if (got > (int)scan.vec_len)
			return -EPROTO;
		for (i = 0; i < got; i++)
			if (!add(runs, nr_max, &nr, &regions[i]))
				return -EPROTO;
		/* When it comes to the end, and there were more than 512 regions, walk_end is where
		 * it was after some of them (do_pagemap_scan() in fs/proc/task_mmu.c, Linux 6.18).
		 * That can be with exactly as many regions as there is room for, too. */
		scan.start = got < (int)scan.vec_len ? end : scan.walk_end;
		if (got && regions[got - 1].end > scan.start)
			scan.start = regions[got - 1].end;
	}
	*at = scan.start < end ? scan.start : end;
	return (int)nr;
}

static uint64_t kind_of(uint64_t word)
{
	uint64_t kind = word & WORD_PRESENT ? SB_PAGE_PRESENT : SB_PAGE_SWAPPED;

	return word & WORD_FILE ? kind | SB_PAGE_FILE : kind;
}

/* There are no words beyond the last address of a process, and none at all if it has no memory any
 * more. Return: 0: it has; or a negative errno. */
static int has_words(int fd)
{
	uint64_t word;
	ssize_t got = pread(fd, &word, sizeof(word), 0);

	if (got < 0)
		return -errno;
	return got ? 0 : -ESRCH;
}

int sb_pagemap_read(int fd, uint64_t end, struct sb_page_run *runs, size_t nr_max, uint64_t *at)
{
	const uint64_t nr_bytes = page_bytes();
	uint64_t words[WORDS_MAX], here = *at;
	size_t nr = 0, want;
	ssize_t got, i;
	int err;

	while (here < end) {
		want = (end - here) / nr_bytes < WORDS_MAX ? (end - here) / nr_bytes : WORDS_MAX;
		got = pread(fd, words, want * sizeof(words[0]),
			    (off_t)(here / nr_bytes * sizeof(words[0])));
		if (got < 0)
			return -errno;
		got /= (ssize_t)sizeof(words[0]);
		if (!got) {
			err = has_words(fd);
			if (err)
				return err;
			here = end;
		}
		for (i = 0; i < got; i++, here += nr_bytes) {
			if (!(words[i] & (WORD_PRESENT | WORD_SWAPPED)))
				continue;
			if (!add(runs, nr_max, &nr,
				 &(struct region){ here, here + nr_bytes, kind_of(words[i]) })) {
				*at = here;
				return (int)nr;
			}
		}
	}
	*at = end;
	return (int)nr;
}
