/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Adds up the pages of one address space: those that are in memory now were there before, were
 * brought by a fault that was seen, or came without one. See page_account.c for the pages that come
 * together with that of a fault: they are told by their place, not by their mapping, so pages that
 * came without a fault, or with one of another mapping, can be added to a fault beside them.
 *
 * Order: the caller sets the members of struct sb_page_account down to `arg`, zeroes the rest,
 * calls sb_page_account_run() for each run of pages, then sb_page_account_finish(), and reads
 * `sums`. After -ENOMEM the sums are incomplete, and stay so; `pages` and `before` can be used on.
 * Callbacks run during the calls, and must not change `pages` and `before`.
 *
 * Internal to capture. Thread: any, one at a time for each object. Only members that a comment says
 * so of may be NULL.
 */
#ifndef SB_CAPTURE_PAGE_ACCOUNT_H
#define SB_CAPTURE_PAGE_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/pageset.h"
#include "capture/pagetab.h"
#include "symbolizer/process/pagemap.h"

/* Pages of a huge page of x86-64, and arm64 with pages of 4 KiB; a power of two. With larger pages
 * a huge page has more of them, and counts as several. */
#define SB_PAGE_ACCOUNT_PAGES 512u
/* A bit of sb_page_run.kind beside SB_PAGE_*: the pages are marked as seen, but not added up. */
#define SB_PAGE_ACCOUNT_PASS  (1u << 7)

/* Numbers of pages. Those of faults are estimates when not all windows of pages are followed. */
struct sb_sums {
	uint64_t resident; /* in memory now */
	uint64_t before;   /* of these, those that were there before, without a fault since */
	uint64_t before_followed;  /* of `before`, those in windows that were followed */
	uint64_t before_rewritten; /* those that a fault in such a window has brought again */
	uint64_t held;		   /* of these, those that a fault of the run has brought */
	uint64_t along;		   /* of `held`, those that came with the fault of another page */
	uint64_t unaccounted;	   /* of these, the others */
	uint64_t swapped;	   /* brought by a fault, and in swap now */
};

struct sb_page_account {
	struct sb_pagetab *pages;  /* pages that are found are marked as seen */
	struct sb_pageset *before; /* pages that are gone are removed */
	uint32_t space;		   /* struct sb_page */
	uint32_t page_shift;	   /* log2 of the page size */
	uint32_t shift;		   /* one window in 2^shift was followed, at the worst */
	/* Return: whether the page with this number (address / page size) was followed at the
	 * worst, too. Called only if shift is not 0, else it may be NULL. */
	bool (*is_followed)(void *arg, uint64_t number);
	/* Called for each page that a fault has brought: @fault is the one whose fault it was. */
	void (*take)(void *arg, const struct sb_page *fault, bool is_swapped);
	/* Called for each page that is put into `pages`, for a fault whose own page is gone. */
	void (*gain)(void *arg, const struct sb_page *page);
	void *arg;
	struct sb_sums sums; /* out: begin with zeros */
	/* Of the pages from @first on, SB_PAGE_* or 0. Begin with zeros. */
	uint64_t first;
	bool has_any;
	uint8_t kind[SB_PAGE_ACCOUNT_PAGES];
};

/* Add the pages of @run (start: an address in bytes; nr: pages; kind: SB_PAGE_*), which is not
 * kept, lowest address first, without overlaps; SB_PAGE_ACCOUNT_PASS may be set in its kind.
 * Return: 0 or
 * -ENOMEM. */
int sb_page_account_run(struct sb_page_account *account, const struct sb_page_run *run);
/* The last run was added: bring the sums up to date. Nothing is to be released; zero the struct to
 * add up again. Return: 0 or -ENOMEM. */
int sb_page_account_finish(struct sb_page_account *account);

/* Return: how many pages were there before, and were not brought again since, as by a copy on
 * write. In windows that were not followed, this is estimated from those that were. */
uint64_t sb_page_account_before(const struct sb_sums *sums);

#endif
