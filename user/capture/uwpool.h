/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The allocator for the memory of unwind tables and lists of mappings, as sb_abi_unwind.h describes
 * it: 32-bit words, addressed by number, in parts that are added when needed and lie in one range
 * of our addresses. First fit. Freed words are not reused for SB_UWPOOL_REST_NS, because a walk in
 * the kernel, which takes microseconds, may still read them. A sixteenth is reserved for lists.
 * Does not know BPF. One thread, but it may be another one after each call. No pointer may be NULL
 * unless a comment says so.
 *
 * Order: sb_uwpool_alloc(), fill the words, tell the walker of them; tell it that they are gone,
 * and only then sb_uwpool_release(). Places need not be released before sb_uwpool_free().
 */
#ifndef SB_CAPTURE_UWPOOL_H
#define SB_CAPTURE_UWPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/sb_abi_unwind.h"

#define SB_UWPOOL_PART_BYTES (SB_UW_PART_WORDS * sizeof(uint32_t))
#define SB_UWPOOL_REST_NS    2000000000ull

struct sb_uwpool;

struct sb_uwpool_opts {
	uint64_t bytes_max; /* rounded up to parts: at least one, at most SB_UW_PARTS_MAX */
	/* Map the zeroed memory of part @idx at address @at (MAP_FIXED), and publish it to the
	 * kernel's walker. The pool unmaps it in the end. It must not call functions of the pool.
	 * Return: 0; or a negative errno: the pool then keeps its size for good. */
	int (*add_part)(void *arg, uint32_t idx, void *at);
	void *arg;
	uint64_t (*now_ns)(void); /* NULL: sb_now_ns() */
};

/* Return: how many parts @bytes_max are, after rounding. */
uint32_t sb_uwpool_nr_parts(uint64_t bytes_max);

/* Make an empty pool; only addresses are reserved. @opts is copied. The caller ends *ret_pool with
 * sb_uwpool_free(). Return: 0; -ENOMEM: *ret_pool is untouched. */
int sb_uwpool_new(const struct sb_uwpool_opts *opts, struct sb_uwpool **ret_pool);
/* Unmap all parts from our memory, and free. A walker in the kernel may still run: what
 * opts.add_part() has published to it is not taken away. Accepts NULL. */
void sb_uwpool_free(struct sb_uwpool *pool);

/* Return: the address of word 0, which belongs to the pool and does not change while it grows. Only
 * allocated words may be accessed. */
uint32_t *sb_uwpool_words(const struct sb_uwpool *pool);

/* A request, only used during the call. */
struct sb_uwpool_want {
	/* For a table: how many words it takes if it begins at @word, which is even. It is asked
	 * several times, and must not call functions of the pool. */
	size_t (*words_at)(const void *arg, uint32_t word);
	const void *arg;
	/* For a list, with @words_at NULL: within one chunk, at a multiple of SB_UW_SEG_WORDS. */
	uint32_t nr_words;
};

struct sb_uwpool_place {
	uint32_t word, nr_words; /* nr_words 0: none */
};

/*
 * Allocate words; parts are added when needed. The words are not zeroed. The caller frees them by
 * sb_uwpool_release(). Return: 0; -ENOSPC when there is no room now, also because freed words
 * cannot be reused yet, or opts.add_part() failed; -EFBIG when a table would take more than half of
 * the pool, or a list more than a chunk; -ENOMEM. *@ret_place is untouched on error.
 */
int sb_uwpool_alloc(struct sb_uwpool *pool, const struct sb_uwpool_want *want,
		    struct sb_uwpool_place *ret_place);
/*
 * Add a part in advance, which only saves time: sb_uwpool_alloc() adds parts, too. Return: 0;
 * -ENOSPC when there can be no more, also because opts.add_part() failed (its error is only
 * logged); -ENOMEM. After an error words can be allocated as before.
 */
int sb_uwpool_grow(struct sb_uwpool *pool);
/* Free a place that sb_uwpool_alloc() returned, as a whole. Its words are reused after
 * SB_UWPOOL_REST_NS. Does not fail; does nothing if @place has no words. */
void sb_uwpool_release(struct sb_uwpool *pool, struct sb_uwpool_place place);
/* Return: whether there will be room for @want, one place as for sb_uwpool_alloc(), once all freed
 * words can be reused, without another part; false also without memory to find out. After -ENOSPC
 * the caller releases places until it is true, and allocates again when they have rested. */
bool sb_uwpool_will_fit(const struct sb_uwpool *pool, const struct sb_uwpool_want *want);

/* Bytes: allocated now, the most so far, the bound of the pool. */
struct sb_uwpool_stats {
	uint64_t nr_bytes, nr_bytes_peak, nr_bytes_max;
};
/* Get the figures. */
void sb_uwpool_stats(const struct sb_uwpool *pool, struct sb_uwpool_stats *ret_stats);

#endif
