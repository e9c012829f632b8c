/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arrays of addresses of one module, packed, in which the last one up to an address is found. For
 * tables of symbols and of functions. Order: sb_addrs_init(), sb_addrs_set() for each index,
 * sb_addrs_index() once, then the others, and sb_addrs_release(). No pointer is NULL. Thread: any
 * for reading, one for making.
 */
#ifndef SB_ADDRS_H
#define SB_ADDRS_H

#include <stddef.h>
#include <stdint.h>

/* All zeroes is an empty array. */
struct sb_addrs {
	uint64_t base;
	/* 32 bits are enough if they span less than 4 GiB: all but vmlinux and the like. */
	uint32_t *near; /* relative to base */
	uint64_t *far;	/* relative to base; NULL: these are near */
	size_t nr;
	/* The range is cut into granules of 2^shift bytes; by granule, how many addresses are below
	 * it. NULL: nothing can be found. */
	uint32_t *nr_below;
	uint64_t nr_granules;
	unsigned int shift;
};

/* Overwrite @addrs with room for @nr addresses, less than 2^32, from @base to @last inclusive, not
 * filled in. Return: 0; -ENOMEM: it is not an empty array, and only sb_addrs_release() may follow.
 * The caller ends it with that in both cases. */
int sb_addrs_init(struct sb_addrs *addrs, uint64_t base, uint64_t last, size_t nr);
/* Free the memory; the array is empty then. */
void sb_addrs_release(struct sb_addrs *addrs);

/* Set the address with index @i, which is below nr. */
void sb_addrs_set(struct sb_addrs *addrs, size_t i, uint64_t addr);
/* Return: the address with index @i, which is below nr. */
static inline uint64_t sb_addrs_get(const struct sb_addrs *addrs, size_t i)
{
	return addrs->base + (addrs->far ? addrs->far[i] : addrs->near[i]);
}

/*
 * Prepare sb_addrs_find(), after all addresses were set, in ascending order and the first one to
 * base. Return: 0; -ENOMEM: sb_addrs_find() finds nothing. The caller ends it with
 * sb_addrs_release() in both cases.
 */
int sb_addrs_index(struct sb_addrs *addrs);
/* Return: the index of the last address that is <= @addr; SIZE_MAX: there is none. */
size_t sb_addrs_find(const struct sb_addrs *addrs, uint64_t addr);

/* Return: the bytes of memory in use. */
size_t sb_addrs_bytes(const struct sb_addrs *addrs);

#endif
