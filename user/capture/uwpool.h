/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory of unwind tables, as sb_abi_unwind.h describes it: words, addressed by number, in
 * parts that are made when they are needed and lie in one range of our addresses. Given out first
 * fit. What is given back rests for SB_UWPOOL_REST_NS: a walk in the kernel, which takes
 * microseconds, may still read it. A sixteenth is kept for lists. Knows nothing of BPF; one thread.
 */
#ifndef SB_CAPTURE_UWPOOL_H
#define SB_CAPTURE_UWPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sb_abi_unwind.h"

#define SB_UWPOOL_PART_BYTES (SB_UW_PART_WORDS * sizeof(uint32_t))
#define SB_UWPOOL_REST_NS    2000000000ull

struct sb_uwpool;

struct sb_uwpool_opts {
	uint64_t bytes_max; /* in whole parts: at least one, at most SB_UW_PARTS_MAX */
	/* Put the memory of part @idx, zeroed, at @at (MAP_FIXED), and show it to the walker.
	 * Return: 0 or a negative errno: then the pool stays as big as it is. */
	int (*add_part)(void *arg, uint32_t idx, void *at);
	void *arg;
	uint64_t (*now_ns)(void); /* NULL: sb_now_ns() */
};

/* Return: how many parts @bytes_max are. */
uint32_t sb_uwpool_nr_parts(uint64_t bytes_max);

/* Return: 0 or -ENOMEM. */
int sb_uwpool_new(const struct sb_uwpool_opts *opts, struct sb_uwpool **ret_pool);
void sb_uwpool_free(struct sb_uwpool *pool);

/* Return: word number 0. What was not given out may not be touched. */
uint32_t *sb_uwpool_words(const struct sb_uwpool *pool);

/* What wants a place. */
struct sb_uwpool_want {
	/* A table: how many words it takes there. It begins at an even word. */
	size_t (*words_at)(const void *arg, uint32_t word);
	const void *arg;
	/* Or a list, when there is no @words_at: in one chunk, at a multiple of SB_UW_SEG_WORDS. */
	uint32_t nr_words;
};

struct sb_uwpool_place {
	uint32_t word, nr_words; /* 0 words: none */
};

/*
 * Return: 0; -ENOSPC: no place now; -EFBIG: it would take more than half of the pool, for which
 * everything else would be evicted again and again; -ENOMEM.
 */
int sb_uwpool_alloc(struct sb_uwpool *pool, const struct sb_uwpool_want *want,
		    struct sb_uwpool_place *ret_place);
/* Make a part before it is needed. Return: 0, -ENOSPC, -ENOMEM. */
int sb_uwpool_grow(struct sb_uwpool *pool);
/* Give it back; it can be given out again when it has rested. */
void sb_uwpool_release(struct sb_uwpool *pool, struct sb_uwpool_place place);
/* Return: whether there will be a place once what was given back has rested. */
bool sb_uwpool_will_fit(const struct sb_uwpool *pool, const struct sb_uwpool_want *want);

/* In bytes: given out now, at most until now, and what can be. */
struct sb_uwpool_stats {
	uint64_t nr_bytes, nr_bytes_peak, nr_bytes_max;
};
void sb_uwpool_stats(const struct sb_uwpool *pool, struct sb_uwpool_stats *ret_stats);

#endif
