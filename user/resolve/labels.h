/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The label sets that samples reference (sb_sample_key.labels). Each is shipped once and kept while
 * samples may reference it. Internal to resolve. */
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

struct sb_labels_table {
	SB_VEC(struct sb_known_labels) at;
	struct sb_index index;
	size_t nr_bytes;	       /* of all texts */
	SB_VEC(uint64_t) evicted;      /* IDs evicted by the last sb_labels_table_shed() */
	uint64_t nr_evicted, nr_other; /* totals */
};
void sb_labels_table_release(struct sb_labels_table *table);

/* Keep a copy of a set; it replaces a set with the same ID. @batch: the number of the batch.
 * Return: 0 or -ENOMEM. */
int sb_labels_table_keep(struct sb_labels_table *table, const struct sb_batch_labels *labels,
			 uint64_t batch);
/* Find a set, and note that it was referenced in @batch. Return: the set, valid until the next one
 * is kept; NULL: it was never shipped. */
const struct sb_known_labels *sb_labels_table_find(struct sb_labels_table *table, uint64_t id,
						   uint64_t batch);
/* Return: the value of the @i-th key of the run, as long-lived as the set; NULL: the thread does
 * not have it. */
const char *sb_known_labels_value(const struct sb_known_labels *labels, size_t i);
/* When the table is large, evict the sets that the last two batches did not reference. Return: 0 or
 * -ENOMEM. */
int sb_labels_table_shed(struct sb_labels_table *table, uint64_t batch);

#endif
