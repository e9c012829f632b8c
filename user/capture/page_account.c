// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One fault can bring several pages. In a mapped file, those that are in the page cache already
 * come along within an aligned window of 64 KiB (fault_around_bytes; do_fault_around() in
 * mm/memory.c). In anonymous memory one fault can bring a huge page, or a smaller folio of several
 * pages; and the kernel thread khugepaged may replace small pages by a huge one later. So the
 * question is whose a page is that is present now, was not present when the run began, and had no
 * fault of its own. It is added to the nearest fault in its window of 64 KiB. If there is none, and
 * the page is anonymous or part of a huge page, it is added to the nearest fault in its aligned 2
 * MiB. A page of a file is added to the nearest fault there that has no gap between, because a
 * large folio of the page cache is mapped as a whole (finish_fault() in mm/memory.c, Linux 6.18).
 * Otherwise it is unaccounted.
 *
 * So it goes by where pages are. Those of MAP_POPULATE and mlock(2) are unaccounted only where no
 * fault is as near as that: one later fault in a file that was populated gets up to 2 MiB of it.
 * Nor are borders of mappings known here: where pages of two files follow each other without a gap,
 * those of one may be added to a fault in the other.
 *
 * The fault's own page may be gone when its neighbours are not. Then a neighbour takes its place in
 * the table.
 *
 * When one window in 2^n is followed, a fault stands for 2^n, and so does each page that came with
 * it. What happened in the other windows is not known, so their pages count only as part of a huge
 * page. For the same reason a huge page without a fault is not unaccounted then, nor is a page of a
 * file whose neighbours reach into such a window.
 */
#include "capture/page_account.h"

#include <errno.h>
#include <string.h>

#include "bpf/abi/sb_abi_memory.h"

struct block {
	struct sb_page fault[SB_PAGE_ACCOUNT_PAGES];
	bool has_fault[SB_PAGE_ACCOUNT_PAGES];
	bool is_todo[SB_PAGE_ACCOUNT_PAGES];
};

/* Return: the pages of a window; a page may be larger. */
static uint32_t window_pages(const struct sb_page_account *account)
{
	return account->page_shift < SB_WINDOW_SHIFT ? 1u << (SB_WINDOW_SHIFT - account->page_shift)
						     : 1;
}

static bool is_before(const uint64_t *before, uint32_t i)
{
	return before[i / 64] >> (i % 64) & 1;
}

static bool is_window_followed(const struct sb_page_account *account, uint32_t i)
{
	return !account->shift || account->is_followed(account->arg, account->first + i);
}

/* Take those that were before, and those with a fault of their own. Return: whether any are
 * left. */
static bool take_known(struct sb_page_account *account, const uint64_t *before, struct block *block)
{
	bool has_todo = false;
	uint32_t i;

	for (i = 0; i < SB_PAGE_ACCOUNT_PAGES; i++) {
		const uint8_t kind = account->kind[i];
		const bool is_present = kind & SB_PAGE_PRESENT;

		if (!kind || kind & SB_PAGE_ZERO)
			continue;
		if (kind & SB_PAGE_ACCOUNT_PASS) {
			block->has_fault[i] =
				sb_pagetab_find(account->pages, account->space, account->first + i,
						true, &block->fault[i]);
			continue;
		}
		account->sums.resident += is_present;
		/* If all windows are followed, pages with a fault are none of those before. */
		if ((account->shift || !is_before(before, i)) &&
		    sb_pagetab_find(account->pages, account->space, account->first + i, true,
				    &block->fault[i])) {
			block->has_fault[i] = true;
			if (is_before(before, i) && is_window_followed(account, i))
				account->sums.before_rewritten += is_present;
			*(is_present ? &account->sums.held : &account->sums.swapped) +=
				1ull << block->fault[i].shift;
			account->take(account->arg, &block->fault[i], !is_present);
		} else if (is_before(before, i)) {
			account->sums.before += is_present;
			if (is_window_followed(account, i))
				account->sums.before_followed += is_present;
		} else if (is_present) {
			block->is_todo[i] = has_todo = true;
		}
	}
	return has_todo;
}

/* Return: the nearest page with a fault among the @nr pages, aligned, around page @i;
 * SB_PAGE_ACCOUNT_PAGES: there is none. */
static uint32_t nearest(const struct block *block, uint32_t i, uint32_t nr)
{
	const uint32_t first = i & ~(nr - 1);
	uint32_t far;

	for (far = 1; far < nr; far++) {
		if (i >= first + far && block->has_fault[i - far])
			return i - far;
		if (i + far < first + nr && block->has_fault[i + far])
			return i + far;
	}
	return SB_PAGE_ACCOUNT_PAGES;
}

/* Look for a fault in one direction from page @i of a file, as far as pages of files follow each
 * other. Return: its page; SB_PAGE_ACCOUNT_PAGES: there is none, or, if *@may_be, it can be in a
 * window that is not followed. */
static uint32_t look_along(const struct sb_page_account *account, const struct block *block,
			   uint32_t i, int step, bool *may_be)
{
	const uint8_t file = SB_PAGE_FILE | SB_PAGE_PRESENT;
	const uint32_t nr_pages = window_pages(account);
	uint32_t at = i;

	while ((at += (uint32_t)step) < SB_PAGE_ACCOUNT_PAGES &&
	       (account->kind[at] & (file | SB_PAGE_ACCOUNT_PASS)) == file) {
		if (block->has_fault[at])
			return at;
		/* The first page of its window, as seen from @i. */
		if (at % nr_pages == (step < 0 ? nr_pages - 1 : 0) &&
		    !is_window_followed(account, at)) {
			*may_be = true;
			return SB_PAGE_ACCOUNT_PAGES;
		}
	}
	return SB_PAGE_ACCOUNT_PAGES;
}

/* As nearest(), for a page of a file: without a gap between. */
static uint32_t nearest_along(const struct sb_page_account *account, const struct block *block,
			      uint32_t i, bool *may_be)
{
	const uint32_t before = look_along(account, block, i, -1, may_be);
	const uint32_t behind = look_along(account, block, i, 1, may_be);

	if (before == SB_PAGE_ACCOUNT_PAGES || behind == SB_PAGE_ACCOUNT_PAGES)
		return before < behind ? before : behind;
	return i - before <= behind - i ? before : behind;
}

/* Return: the page whose fault has brought page @i; SB_PAGE_ACCOUNT_PAGES: it is not known.
 * *@may_be: set if it can have been one that was not followed. */
static uint32_t find_fault(const struct sb_page_account *account, const struct block *block,
			   uint32_t i, bool *may_be)
{
	const uint8_t kind = account->kind[i];
	uint32_t at = nearest(block, i, window_pages(account));

	if (at != SB_PAGE_ACCOUNT_PAGES)
		return at;
	*may_be = !is_window_followed(account, i) || (account->shift && kind & SB_PAGE_HUGE);
	if (kind & SB_PAGE_HUGE || !(*may_be || kind & SB_PAGE_FILE))
		return nearest(block, i, SB_PAGE_ACCOUNT_PAGES);
	return *may_be ? at : nearest_along(account, block, i, may_be);
}

static int take_neighbour(struct sb_page_account *account, const struct block *block, uint32_t i)
{
	bool may_be = false;
	const uint32_t at = find_fault(account, block, i, &may_be);
	struct sb_page page, old;
	uint64_t nr;
	int err;

	if (at == SB_PAGE_ACCOUNT_PAGES) {
		account->sums.unaccounted += may_be ? 0 : 1ull << account->shift;
		return 0;
	}
	nr = 1ull << block->fault[at].shift;
	account->sums.held += nr;
	account->sums.along += nr;
	account->take(account->arg, &block->fault[at], false);
	if (account->kind[at])
		return 0;
	page = block->fault[at];
	page.number = account->first + i;
	page.is_seen = true;
	err = sb_pagetab_put(account->pages, &page, &old);
	if (!err)
		account->gain(account->arg, &page);
	return err == -ENOMEM ? err : 0;
}

static int take_neighbours(struct sb_page_account *account, struct block *block)
{
	uint32_t i;
	int err = 0;

	/* Faults whose page is gone, too. */
	for (i = 0; i < SB_PAGE_ACCOUNT_PAGES; i++)
		if (!account->kind[i])
			block->has_fault[i] =
				sb_pagetab_find(account->pages, account->space, account->first + i,
						false, &block->fault[i]);
	for (i = 0; i < SB_PAGE_ACCOUNT_PAGES && !err; i++)
		if (block->is_todo[i])
			err = take_neighbour(account, block, i);
	return err;
}

static int finish_block(struct sb_page_account *account)
{
	uint64_t before[SB_PAGE_ACCOUNT_PAGES / 64], present;
	struct block block;
	uint32_t i, bit;
	int err = 0;

	if (!account->has_any)
		return 0;
	memset(block.has_fault, 0, sizeof(block.has_fault));
	memset(block.is_todo, 0, sizeof(block.is_todo));
	for (i = 0; i < SB_PAGE_ACCOUNT_PAGES / 64; i++) {
		before[i] = sb_pageset_bits(account->before, account->first + i * 64);
		if (!before[i])
			continue;
		present = 0;
		for (bit = 0; bit < 64; bit++)
			present |= (uint64_t)(account->kind[i * 64 + bit] != 0) << bit;
		sb_pageset_keep(account->before, account->first + i * 64, present);
	}
	if (take_known(account, before, &block))
		err = take_neighbours(account, &block);
	memset(account->kind, 0, sizeof(account->kind));
	account->has_any = false;
	return err;
}

int sb_page_account_run(struct sb_page_account *account, const struct sb_page_run *run)
{
	uint64_t number = run->start >> account->page_shift, end = number + run->nr, first, nr;
	int err = 0;

	while (number < end && !err) {
		first = number & ~(uint64_t)(SB_PAGE_ACCOUNT_PAGES - 1);
		if (account->has_any && account->first != first)
			err = finish_block(account);
		nr = first + SB_PAGE_ACCOUNT_PAGES - number;
		nr = nr < end - number ? nr : end - number;
		account->first = first;
		account->has_any = true;
		memset(account->kind + (number - first), (int)(run->kind & 0xff), nr);
		number += nr;
	}
	return err;
}

int sb_page_account_finish(struct sb_page_account *account)
{
	return finish_block(account);
}

uint64_t sb_page_account_before(const struct sb_sums *sums)
{
	const uint64_t followed = sums->before_followed, rewritten = sums->before_rewritten;
	const uint64_t others = sums->before - followed;

	if (!rewritten)
		return sums->before;
	return followed +
	       (uint64_t)((double)others * (double)followed / (double)(followed + rewritten) + 0.5);
}
