// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Looks at the pages of processes, through a reader: which are in memory. With PAGEMAP_SCAN, the
 * kernel passes over whatever has no pages, so that a process may have mapped any amount of
 * addresses. On older kernels the word of each page is read, mapping by mapping. In mappings that
 * are too large for that, and at addresses beyond the mappings that could be read, only the
 * surroundings of known pages are read.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/time.h"
#include "capture/resident_priv.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/process/reader.h"
#include "symbolizer/sb_sym.h"

#define ROLLUP_BYTES	4096u
/* A mapping with more pages is not read as a whole, by words. */
#define WHOLE_PAGES_MAX (1u << 20)

/* What came from a reader is checked: in order, within bounds. */
static bool is_sound(const struct sb_resident *resident, const struct sb_page_run *runs, int nr,
		     uint64_t from, uint64_t end)
{
	const uint64_t page_bytes = 1ull << resident->page_shift;
	int i;

	for (i = 0; i < nr; i++) {
		if (runs[i].start < from || runs[i].start % page_bytes || runs[i].start >= end ||
		    !runs[i].nr || runs[i].nr > (end - runs[i].start) / page_bytes)
			return false;
		from = runs[i].start + runs[i].nr * page_bytes;
	}
	return true;
}

/* Read the pages from @from to @end. *@is_first: whether the entry has to be opened. Return: 0 or a
 * negative errno. */
static int read_range(struct sb_resident *resident, struct space *space, uint64_t from,
		      uint64_t end, bool *is_first)
{
	uint64_t at = from, before;
	int nr, i, err = 0;

	while (at < end && !err) {
		before = at;
		nr = sb_reader_pages(space->key.tgid, *is_first, resident->is_by_word, end, &at,
				     resident->buf);
		*is_first = false;
		if (nr < 0)
			return nr;
		if (!is_sound(resident, resident->buf, nr, before, end))
			return -EPROTO;
		if (resident->nr_runs + (size_t)nr > SB_RESIDENT_RUNS_MAX)
			return -E2BIG;
		for (i = 0; i < nr && !err; i++)
			err = sb_vec_push(&space->runs, resident->buf[i]);
		resident->nr_runs += (size_t)nr;
	}
	return err;
}

/* By words. */

struct mapping {
	uint64_t start, end;
};

struct mappings {
	SB_VEC(struct mapping) at;
	uint64_t whole_bytes_max;
};

/* Mappings without a gap between them are read as one: each read has to wait for a reader. */
static int add_mapping(void *arg, const struct sb_maps_line *line)
{
	struct mappings *mappings = arg;
	struct mapping *last = mappings->at.nr ? &mappings->at.at[mappings->at.nr - 1] : NULL;

	/* Its pages are the kernel's, and belong to nobody. */
	if ((int64_t)line->start < 0 || (line->path_len >= 5 && !memcmp(line->path, "[vvar", 5)))
		return 0;
	if (last && last->end == line->start && line->end > line->start &&
	    line->end - last->start <= mappings->whole_bytes_max) {
		last->end = line->end;
		return 0;
	}
	return sb_vec_push(&mappings->at, ((struct mapping){ line->start, line->end }));
}

/* What lies above the mappings that were read is like one large mapping. */
static int add_rest(struct mappings *mappings)
{
	const uint64_t start = mappings->at.nr ? mappings->at.at[mappings->at.nr - 1].end : 0;

	return sb_vec_push(&mappings->at, ((struct mapping){ start, sb_sym_user_end() }));
}

struct known {
	uint32_t space;
	SB_VEC(uint64_t) blocks;
	int err;
};

static bool note_block(void *arg, struct sb_page *page)
{
	struct known *known = arg;

	if (page->space == known->space && !known->err)
		known->err = sb_vec_push(&known->blocks, page->number / SB_PAGE_ACCOUNT_PAGES);
	return true;
}

static int compare_u64(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The blocks in which pages are known. */
static int find_known(struct sb_resident *resident, uint32_t i, struct known *known)
{
	const struct sb_pageset *before = &resident->spaces.at[i].before;
	size_t at;

	sb_pagetab_sweep(&resident->pages, note_block, known);
	for (at = 0; at < before->blocks.nr && !known->err; at++)
		if (before->blocks.at[at].bits)
			known->err = sb_vec_push(&known->blocks, before->blocks.at[at].first /
									 SB_PAGE_ACCOUNT_PAGES);
	if (known->blocks.nr)
		qsort(known->blocks.at, known->blocks.nr, sizeof(*known->blocks.at), compare_u64);
	return known->err;
}

/* Read of a mapping only the blocks that are known. */
static int read_blocks(struct sb_resident *resident, struct space *space,
		       const struct mapping *mapping, const struct known *known, bool *is_first)
{
	uint64_t start, end, last = UINT64_MAX;
	size_t i;
	int err = 0;

	for (i = 0; i < known->blocks.nr && !err; i++) {
		if (known->blocks.at[i] == last)
			continue;
		last = known->blocks.at[i];
		start = last * SB_PAGE_ACCOUNT_PAGES << resident->page_shift;
		end = start + ((uint64_t)SB_PAGE_ACCOUNT_PAGES << resident->page_shift);
		start = start > mapping->start ? start : mapping->start;
		end = end < mapping->end ? end : mapping->end;
		if (start < end)
			err = read_range(resident, space, start, end, is_first);
	}
	return err;
}

static int read_by_word(struct sb_resident *resident, uint32_t number)
{
	struct space *space = &resident->spaces.at[number];
	struct known known = { .space = number };
	struct mappings mappings = {
		.whole_bytes_max = (uint64_t)WHOLE_PAGES_MAX << resident->page_shift,
	};
	bool is_first = true;
	size_t i;
	int err = sb_procfs_maps(space->key.tgid, add_mapping, &mappings);

	if (err == -EFBIG)
		err = add_rest(&mappings);
	if (!err || err == -EBADMSG)
		err = find_known(resident, number, &known);
	for (i = 0; i < mappings.at.nr && !err; i++) {
		const struct mapping *at = &mappings.at.at[i];

		err = at->end - at->start > mappings.whole_bytes_max
			      ? read_blocks(resident, space, at, &known, &is_first)
			      : read_range(resident, space, at->start, at->end, &is_first);
	}
	sb_vec_release(&mappings.at);
	sb_vec_release(&known.blocks);
	return err;
}

/* Return: 0, and the space has its runs; or a negative errno. */
static int read_pages(struct sb_resident *resident, uint32_t number)
{
	struct space *space = &resident->spaces.at[number];
	const uint64_t page_bytes = 1ull << resident->page_shift;
	bool is_first = true;
	int err = -ENOTTY;

	space->runs.nr = 0;
	if (!resident->is_by_word)
		err = read_range(resident, space, 0, sb_sym_user_end() - page_bytes, &is_first);
	if (err == -ENOTTY) {
		resident->is_by_word = true;
		err = read_by_word(resident, number);
	}
	return err;
}

/* Whether it has ended, or another process has its ID. If its main thread has ended, and others
 * run, it has not. */
static bool has_ended(const struct space *space)
{
	struct sb_procfs_stat stat;

	return sb_procfs_stat_of(space->key.tgid, space->start_ticks, &stat) == -ESRCH;
}

void sb_resident_find_ended(struct sb_resident *resident)
{
	size_t i;

	for (i = 1; i < resident->spaces.nr; i++) {
		struct space *space = &resident->spaces.at[i];

		if (space->is_used && !space->is_ended && has_ended(space))
			sb_resident_end_space(resident, (uint32_t)i);
	}
}

/* Pages of a space that have a fault already were not there before it. */
static int keep_before(struct sb_resident *resident, uint32_t number)
{
	struct space *space = &resident->spaces.at[number];
	struct sb_page page;
	uint64_t first;
	size_t i;
	uint32_t at;
	int err = 0;

	for (i = 0; i < space->runs.nr && !err; i++) {
		const struct sb_page_run *run = &space->runs.at[i];

		first = run->start >> resident->page_shift;
		if (run->kind & SB_PAGE_ZERO)
			continue;
		for (at = 0; at < run->nr && !err; at++)
			if (!sb_pagetab_find(&resident->pages, number, first + at, false, &page))
				err = sb_pageset_append(&space->before, first + at);
	}
	return err;
}

void sb_resident_drop_runs(struct sb_resident *resident, struct space *space)
{
	resident->nr_runs -= space->runs.nr;
	sb_vec_release(&space->runs);
	sb_vec_release(&space->gone);
	space->is_read = false;
}

int sb_resident_meet(struct sb_resident *resident, uint32_t number)
{
	struct space *space = &resident->spaces.at[number];
	int err = read_pages(resident, number);

	space->is_known = true;
	if (!err)
		err = keep_before(resident, number);
	else if (err == -ESRCH && has_ended(space))
		sb_resident_end_space(resident, number);
	sb_resident_drop_runs(resident, space);
	return err == -ENOMEM ? err : 0;
}

/* Return: bytes; 0: not known. */
static uint64_t read_rss(uint32_t tgid)
{
	char text[ROLLUP_BYTES + 1];
	const char *at;
	uint64_t kib = 0;
	ssize_t nr = sb_reader_entry(tgid, SB_READER_ROLLUP, 0, text, ROLLUP_BYTES);

	if (nr <= 0)
		return 0;
	text[nr] = '\0';
	at = strstr(text, "\nRss:");
	return at && sscanf(at, "\nRss: %" SCNu64, &kib) == 1 ? kib * 1024 : 0;
}

static void leave_out(struct sb_resident *resident, const struct space *space, int err)
{
	resident->stats.nr_left_out++;
	sb_debug("the pages of process %u cannot be read: error %d", space->key.tgid, -err);
}

int sb_resident_look(struct sb_resident *resident)
{
	size_t i;
	int err;

	sb_resident_find_ended(resident);
	resident->is_looking = true;
	resident->last_looked_ns = resident->looked_ns;
	resident->looked_ns = sb_now_ns();
	resident->stats.nr_left_out = resident->stats.unsorted = 0;
	for (i = 1; i < resident->spaces.nr; i++) {
		struct space *space = &resident->spaces.at[i];

		if (!space->is_used || space->is_ended)
			continue;
		space->look_ns = sb_now_ns();
		err = read_pages(resident, (uint32_t)i);
		if (!err && resident->opts.kinds)
			err = sb_resident_mark_kinds(resident, (uint32_t)i);
		space->is_read = !err;
		if (err == -ENOMEM)
			return err;
		if (err == -ESRCH && has_ended(space))
			sb_resident_end_space(resident, (uint32_t)i);
		else if (err)
			leave_out(resident, space, err);
		if (!space->is_read)
			sb_resident_drop_runs(resident, space);
		else if (!resident->opts.kinds)
			space->rss_bytes = read_rss(space->key.tgid);
	}
	return 0;
}
