/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A table of the pages whose fault was seen: for each page of each address space, who brought it
 * last. It is a hash table with open addressing, because there can be a million of them: 12 bytes
 * each, at most 7/8 full. It has parts that grow one after the other, so that never more than one
 * of them is there twice. When it has no room, or when fewer faults are followed to save time, only
 * one window of pages in 2^n remains, chosen by a hash (bpf/abi/sb_abi_memory.h); each page then
 * stands for as many as that. The caller of the table does that, by sb_pagetab_sweep(). The places
 * of pages depend on a seed, so that no program can touch those which make searches long.
 *
 * Internal to capture. Thread: the session's. No pointer may be NULL, and none is kept: pages are
 * copied. The ranges of struct sb_page are not checked. Callbacks get a copy of the page, valid
 * during the call, and must not call functions of the same table. It begins zeroed but for nr_max
 * and seed, and is ended by sb_pagetab_release().
 */
#ifndef SB_CAPTURE_PAGETAB_H
#define SB_CAPTURE_PAGETAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bits of a page number: 57 bits of address, and of an address space. */
#define SB_PAGE_NUMBER_BITS   45
#define SB_PAGETAB_SPACES_MAX (1u << 18)
/* Owners: 20 bits. */
#define SB_PAGETAB_OWNERS_MAX (1u << 20)
/* When pages came: 6 bits. */
#define SB_PAGETAB_TIMES      64u

#define SB_PAGETAB_PART_BITS  4
#define SB_PAGETAB_PARTS      (1u << SB_PAGETAB_PART_BITS)

/* All memory of a table comes from mmap(): the unit test counts these bytes, and holds them to the
 * promise of at most 18 for each page (docs/bounds.md). */
struct sb_pagetab {
	struct sb_pagetab_part {
		uint64_t *keys; /* of struct sb_page; 0: free. Behind them, in the same memory: */
		uint32_t *values;
		size_t nr, nr_slots;
	} parts[SB_PAGETAB_PARTS];
	size_t nr, nr_slots; /* of all parts */
	size_t nr_max;	     /* pages */
	uint64_t seed;	     /* any number that programs cannot know; stays */
};

/* A page of the table. */
struct sb_page {
	uint32_t space;	 /* 1 to SB_PAGETAB_SPACES_MAX - 1 */
	uint32_t owner;	 /* less than SB_PAGETAB_OWNERS_MAX */
	uint32_t shift;	 /* it stands for 2^shift pages; at most 31 */
	uint32_t time;	 /* when it came, in a unit of the caller; less than SB_PAGETAB_TIMES */
	bool is_seen;	 /* since the last sb_pagetab_sweep(): is present, or came after the look */
	uint64_t number; /* address / page size */
};

/* Free the memory. The table is empty then and can be used again, with the same nr_max and
 * seed. */
void sb_pagetab_release(struct sb_pagetab *pages);

/**
 * sb_pagetab_put() - note who brought a page
 * @ret_before: what the table said of the page before; untouched unless 1 is returned
 *
 * Return: 1: the page was in the table, and is replaced; 0: it is new; -ENOSPC: nr_max are there;
 * -ENOMEM. On error nothing has changed.
 */
int sb_pagetab_put(struct sb_pagetab *pages, const struct sb_page *page,
		   struct sb_page *ret_before);

/* Find page @number (address / page size) of address space @space; if @is_seen, also mark it as
 * seen, which *@ret_page then shows. The page counts as 2^ret_page->shift pages, because that part
 * of all pages is followed. Return: whether the table has it; else, also after sb_pagetab_sweep()
 * removed it, *@ret_page is untouched. */
bool sb_pagetab_find(struct sb_pagetab *pages, uint32_t space, uint64_t number, bool is_seen,
		     struct sb_page *ret_page);

/* Call @keeps with each page, once, and remove those for which it returns false. What it changes of
 * shift, time and is_seen is stored, if it returns true; it must not change the rest. */
void sb_pagetab_sweep(struct sb_pagetab *pages, bool (*keeps)(void *arg, struct sb_page *page),
		      void *arg);

/* Remove @nr pages of a space from @number on, and call @fn with each that was there, in no
 * order. */
void sb_pagetab_remove(struct sb_pagetab *pages, uint32_t space, uint64_t number, uint64_t nr,
		       void (*fn)(void *arg, const struct sb_page *page), void *arg);

#endif
