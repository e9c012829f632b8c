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
	pages->nr_wants = 0;
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

static void note(struct sb_pages *pages, uint64_t addr)
{
	const struct sb_reader_want want = { .tgid = pages->tgid,
					     .len = SB_PAGE_BYTES,
					     .addr = addr };
	uint32_t i;

	pages->is_short = true;
	for (i = 0; i < pages->nr_wants; i++)
		if (pages->wants[i].tgid == want.tgid && pages->wants[i].addr == want.addr)
			return;
	if (pages->nr_wants < SB_READER_AHEAD_MAX)
		pages->wants[pages->nr_wants++] = want;
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

bool sb_pages_fetch(struct sb_pages *pages)
{
	size_t room = SB_PAGES_MAX - pages->at.nr, nr = pages->nr_wants, i;

	pages->nr_wants = 0;
	if (!nr || nr > room)
		return false;
	nr = sb_reader_ahead(pages->wants, nr);
	for (i = 0; i < nr; i++)
		if (keep(pages, &pages->wants[i]))
			return false;
	return true;
}
