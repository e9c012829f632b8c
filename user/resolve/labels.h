/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sets of labels that samples name (sb_sample_key.labels), as long as samples may name them. */
#ifndef SB_RESOLVE_LABELS_H
#define SB_RESOLVE_LABELS_H

#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/vec.h"
#include "capture/batch.h"

struct sb_known_labels {
	uint64_t id;
	uint64_t batch;	   /* that was last seen in */
	uint32_t nr_bytes; /* of text; 0: none */
	char *text;	   /* owned, as in struct sb_batch_labels; NULL: "(other)" for each */
};

struct sb_labels_table {
	SB_VEC(struct sb_known_labels) at;
	struct sb_index index;
	size_t nr_bytes;	       /* of all texts */
	SB_VEC(uint64_t) evicted;      /* by the last batch */
	uint64_t nr_evicted, nr_other; /* ever */
};
void sb_labels_table_release(struct sb_labels_table *table);

/* Keep a copy; of two of one name the last. @batch: the number of the batch. Return: 0 or -ENOMEM. */
int sb_labels_table_keep(struct sb_labels_table *table, const struct sb_batch_labels *labels,
			 uint64_t batch);
/* Return: the set, seen in @batch; or NULL: it never came. Valid until the next one is kept. */
const struct sb_known_labels *sb_labels_table_find(struct sb_labels_table *table, uint64_t id,
						   uint64_t batch);
/* Return: the value of the @i-th key that was asked for; NULL: there is none. */
const char *sb_known_labels_value(const struct sb_known_labels *labels, size_t i);
/* Forget those that were in neither of the last two batches, if there are many. Return: 0 or -ENOMEM. */
int sb_labels_table_shed(struct sb_labels_table *table, uint64_t batch);

#endif
