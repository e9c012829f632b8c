/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cache of label sets that samples reference by ID (sb_sample_key.labels): what a program said
 * of its thread, as one value for each key that the run asks for. The BPF side ships each set once,
 * so it is kept for as long as a sample may reference it. A batch is what one drain of the BPF side
 * gives: in each one, sb_label_cache_add() for the sets in it, then sb_label_cache_find() for its
 * samples, and sb_label_cache_evict() at its end. Internal to resolve; not thread-safe. No pointer
 * is NULL unless it says so.
 */
#ifndef SB_RESOLVE_LABELS_H
#define SB_RESOLVE_LABELS_H

#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/vec.h"
#include "capture/batch.h"

struct sb_known_labels {
	uint64_t id;
	uint64_t batch;	   /* the last batch in which a sample referenced it */
	uint32_t nr_bytes; /* of the text; 0: the thread has no labels */
	char *text; /* owned, as in struct sb_batch_labels; NULL: no room, all are "(other)" */
};

/* Initialise the first member, and the rest with zero. */
struct sb_label_cache {
	const uint64_t *batch; /* borrowed: the number of the current batch */
	SB_VEC(struct sb_known_labels) at;
	struct sb_index index;
	size_t nr_bytes;	  /* of all texts */
	SB_VEC(uint64_t) evicted; /* IDs that the BPF side must forget after this batch */
};
/* Free all sets and buffers. It cannot be used again, unless it is initialised anew. */
void sb_label_cache_release(struct sb_label_cache *cache);

/* Add a copy of a set (its text may be NULL if nr_bytes is 0); its text replaces that of a set with
 * the same ID. If the texts of all sets need too much memory, the set is kept without its text.
 * Return: 0; -ENOMEM: the set is missing, or has no text; the cache can be used further. */
int sb_label_cache_add(struct sb_label_cache *cache, const struct sb_batch_labels *from);
/* Find a set, and note that the current batch references it. Return: the set, valid until the next
 * one is added or sets are evicted; NULL: it was never shipped, or is evicted. */
struct sb_known_labels *sb_label_cache_find(struct sb_label_cache *cache, uint64_t id);
/* Return: the value of the @i-th key of the run (opts.labels of resolve.h), from 0, which points
 * into the set and lives as long; "(other)" if the set was kept without its text; NULL: the thread
 * does not have the key, or @i is past the end. */
const char *sb_known_labels_value(const struct sb_known_labels *labels, size_t i);
/* At the end of each batch: empty cache->evicted; if there are many sets or much text, evict those
 * that neither this batch nor the one before referenced, and list them there. The list is the
 * cache's. Return: 0; -ENOMEM, and then the cache can only be released. */
int sb_label_cache_evict(struct sb_label_cache *cache);

#endif
