// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "resolve/labels.h"

#include <errno.h>
#include <string.h>

#include "resolve/cache.h"

/* A program may make a new set for each request. */
#define SETS_MAX  32768u
/* Of what they say; beyond it, "(other)", which is counted. */
#define BYTES_MAX (16u << 20)

void sb_label_cache_release(struct sb_label_cache *cache)
{
	size_t i;

	for (i = 0; i < cache->at.nr; i++)
		free(cache->at.at[i].text);
	sb_vec_release(&cache->at);
	sb_vec_release(&cache->evicted);
	sb_index_release(&cache->index);
}

struct sb_known_labels *sb_label_cache_find(struct sb_label_cache *cache, uint64_t id)
{
	sb_index_each(it, &cache->index, id) {
		struct sb_known_labels *labels = &cache->at.at[it.id];

		if (labels->id == id) {
			labels->batch = *cache->batch;
			return labels;
		}
	}
	return NULL;
}

/* Replace the text of a set. If there is no room for the new one, the set has none. */
static int set_text(struct sb_label_cache *cache, struct sb_known_labels *labels,
		    const struct sb_batch_labels *from)
{
	char *text = NULL;

	if (from->nr_bytes && cache->nr_bytes + from->nr_bytes <= BYTES_MAX) {
		text = sb_cache_copy(from->text, from->nr_bytes);
		if (!text)
			return -ENOMEM;
		cache->nr_bytes += from->nr_bytes;
	}
	cache->nr_bytes -= labels->text ? labels->nr_bytes : 0;
	free(labels->text);
	labels->text = text;
	labels->nr_bytes = from->nr_bytes;
	return 0;
}

int sb_label_cache_add(struct sb_label_cache *cache, const struct sb_batch_labels *from)
{
	const struct sb_known_labels empty = { .id = from->id, .batch = *cache->batch };
	struct sb_known_labels *labels = sb_label_cache_find(cache, from->id);
	int err;

	/* A set is shipped again when the BPF side had no room to remember it, or when more of its
	 * keys are known by now. */
	if (labels && labels->nr_bytes == from->nr_bytes && labels->text &&
	    !memcmp(labels->text, from->text, from->nr_bytes))
		return 0;
	if (!labels) {
		err = sb_index_push(&cache->index, from->id, &cache->at, empty);
		if (err)
			return err;
		labels = &cache->at.at[cache->at.nr - 1];
	}
	return set_text(cache, labels, from);
}

const char *sb_known_labels_value(const struct sb_known_labels *labels, size_t i)
{
	const char *at = labels->text, *end;

	if (!labels->nr_bytes)
		return NULL;
	if (!at)
		return "(other)";
	end = at + labels->nr_bytes;
	for (; i && at < end; i--)
		at += strlen(at) + 1;
	return at < end && *at ? at : NULL;
}

int sb_label_cache_evict(struct sb_label_cache *cache)
{
	size_t i, nr = 0;
	int err = 0;

	cache->evicted.nr = 0;
	if (cache->at.nr < SETS_MAX && cache->nr_bytes < BYTES_MAX / 2)
		return 0;
	sb_index_release(&cache->index);
	for (i = 0; i < cache->at.nr; i++) {
		struct sb_known_labels *labels = &cache->at.at[i];

		if (!err && labels->batch + 1 < *cache->batch) {
			err = sb_vec_push(&cache->evicted, labels->id);
			cache->nr_bytes -= labels->text ? labels->nr_bytes : 0;
			free(labels->text);
			continue;
		}
		if (!err)
			err = sb_index_add(&cache->index, labels->id, (uint32_t)nr);
		cache->at.at[nr++] = *labels;
	}
	cache->at.nr = nr;
	return err;
}
