// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "interp/core/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

void sb_pages_clear(struct sb_pages *pages)
{
	size_t i;

	for (i = 0; i < pages->at.nr; i++)
		free(pages->at.at[i].bytes);
	sb_vec_clear(&pages->at);
	sb_index_release(&pages->index);
	if (pages->nr_targets)
		sb_reader_ahead(NULL, 0); /* nobody may take them later, when they have changed */
	pages->nr_wants = pages->nr_pointers = pages->nr_targets = 0;
	pages->ended_tgid = 0;
	pages->is_short = false;
}

void sb_pages_release(struct sb_pages *pages)
{
	sb_pages_clear(pages);
	sb_vec_release(&pages->at);
}

static uint64_t hash_of(uint32_t tgid, uint64_t addr)
{
	return sb_hash(&addr, sizeof(addr), tgid);
}

static const struct sb_page *find_page(const struct sb_pages *pages, uint64_t addr)
{
	uint64_t hash = hash_of(pages->tgid, addr);
	const struct sb_page *page;

	sb_index_each(it, &pages->index, hash) {
		page = &pages->at.at[it.id];
		if (page->tgid == pages->tgid && page->addr == addr)
			return page;
	}
	return NULL;
}

/* Append a page of @addr, or a pointer, to @wants, which has room for SB_READER_AHEAD_MAX. */
static void add_want(const struct sb_pages *pages, uint64_t addr, bool is_pointer,
		     struct sb_reader_want *wants, uint32_t *nr)
{
	uint32_t i;

	for (i = 0; i < *nr; i++)
		if (wants[i].tgid == pages->tgid && wants[i].addr == addr)
			return;
	if (*nr < SB_READER_AHEAD_MAX)
		wants[(*nr)++] = (struct sb_reader_want){ .tgid = pages->tgid,
							  .len = SB_PAGE_BYTES,
							  .addr = addr,
							  .is_pointer = is_pointer };
}

static void note(struct sb_pages *pages, uint64_t addr)
{
	pages->is_short = true;
	add_want(pages, addr, false, pages->wants, &pages->nr_wants);
}

/* Each read of a process that has ended would ask its reader again. */
static bool read_now(struct sb_pages *pages, uint32_t tgid, void *dst, size_t len, uint64_t addr)
{
	ssize_t nr_bytes;

	if (tgid == pages->ended_tgid)
		return false;
	nr_bytes = sb_reader_memory(tgid, addr, dst, len);
	if (nr_bytes == -ESRCH)
		pages->ended_tgid = tgid;
	return nr_bytes >= 0 && (size_t)nr_bytes == len;
}

int sb_pages_read(void *arg, void *dst, size_t len, uint64_t addr)
{
	struct sb_pages *pages = arg;
	const struct sb_page *page;
	uint64_t from;
	size_t nr;

	for (; len; len -= nr, addr += nr, dst = (uint8_t *)dst + nr) {
		from = addr % SB_PAGE_BYTES;
		nr = SB_PAGE_BYTES - from < len ? SB_PAGE_BYTES - from : len;
		page = find_page(pages, addr - from);
		if (page && !page->bytes)
			return -EFAULT;
		if (page) {
			memcpy(dst, page->bytes + from, nr);
			continue;
		}
		if (!pages->is_noting)
			return read_now(pages, pages->tgid, dst, len, addr) ? 0 : -EFAULT;
		if (!pages->is_short)
			note(pages, addr - from);
		return -EFAULT;
	}
	return 0;
}

int sb_pages_read_again(void *arg, void *dst, size_t len, uint64_t addr)
{
	struct sb_pages *pages = arg;

	return !pages->is_noting && read_now(pages, pages->tgid, dst, len, addr) ? 0 : -EFAULT;
}

void sb_pages_want(void *arg, uint64_t addr)
{
	struct sb_pages *pages = arg;
	const uint64_t page = addr - addr % SB_PAGE_BYTES;

	if (pages->is_noting && !find_page(pages, page))
		note(pages, page);
}

void sb_pages_want_target(void *arg, uint64_t addr)
{
	struct sb_pages *pages = arg;

	if (pages->is_noting && !find_page(pages, addr - addr % SB_PAGE_BYTES))
		add_want(pages, addr, true, pages->pointers, &pages->nr_pointers);
}

/* Return: 0; -ENOMEM. */
static int add_page(struct sb_pages *pages, const struct sb_page *page)
{
	int err = sb_vec_push(&pages->at, *page);

	if (err)
		return err;
	err = sb_index_add(&pages->index, hash_of(page->tgid, page->addr),
			   (uint32_t)pages->at.nr - 1);
	if (err)
		pages->at.nr--;
	return err;
}

/* Read the page @want and keep it. Return: 0; -ENOMEM. */
static int keep(struct sb_pages *pages, const struct sb_reader_want *want)
{
	sb_cleanup(sb_freep) uint8_t *bytes = malloc(SB_PAGE_BYTES);
	struct sb_page page = { .tgid = want->tgid, .addr = want->addr };
	int err;

	if (!bytes)
		return -ENOMEM;
	if (read_now(pages, want->tgid, bytes, SB_PAGE_BYTES, want->addr))
		page.bytes = bytes;
	err = add_page(pages, &page);
	if (!err && page.bytes)
		(void)sb_take(bytes);
	return err;
}

/* Keep those of the wanted pages that pointers have led to already. *@nr: how many are wanted; set
 * to how many still are. Return: 0; -ENOMEM. */
static int keep_targets(struct sb_pages *pages, size_t *nr)
{
	size_t i, nr_left = 0;
	int err = 0;

	for (i = 0; i < *nr && !err; i++) {
		const struct sb_reader_want want = pages->wants[i];

		if (sb_reader_has_read(want.tgid, want.addr, want.len))
			err = keep(pages, &want);
		else
			pages->wants[nr_left++] = want;
	}
	*nr = nr_left;
	return err;
}

bool sb_pages_fetch(struct sb_pages *pages)
{
	size_t room = SB_PAGES_MAX - pages->at.nr, nr = pages->nr_wants, i;
	size_t nr_pointers = pages->nr_pointers, nr_read;

	pages->nr_wants = 0;
	if (!nr || nr > room || (pages->nr_targets && keep_targets(pages, &nr)))
		return false;
	if (!nr)
		return true;
	if (nr_pointers > SB_READER_AHEAD_MAX - nr)
		nr_pointers = SB_READER_AHEAD_MAX - nr;
	memcpy(&pages->wants[nr], pages->pointers, nr_pointers * sizeof(pages->pointers[0]));
	pages->nr_targets = (uint32_t)nr_pointers;
	pages->nr_pointers = 0;
	nr_read = sb_reader_ahead(pages->wants, nr + nr_pointers);
	for (i = 0; i < nr && i < nr_read; i++)
		if (keep(pages, &pages->wants[i]))
			return false;
	return true;
}
