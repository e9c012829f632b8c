// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "resolve/labels.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

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
	struct sb_index_iter it;

	for (it = sb_index_first(&cache->index, id); it.id != SB_INDEX_NONE;
	     it = sb_index_next(&cache->index, it)) {
		struct sb_known_labels *labels = &cache->at.at[it.id];

		if (labels->id == id) {
			labels->batch = cache->batch;
			return labels;
		}
	}
	return NULL;
}

/* Copy a text. If there is no room for it, *ret_text is NULL. Return: 0 or -ENOMEM. */
static int copy_text(struct sb_label_cache *cache, const struct sb_batch_labels *from,
		     char **ret_text)
{
	*ret_text = NULL;
	if (!from->nr_bytes || cache->nr_bytes + from->nr_bytes > BYTES_MAX)
		return 0;
	*ret_text = malloc(from->nr_bytes);
	if (!*ret_text)
		return -ENOMEM;
	memcpy(*ret_text, from->text, from->nr_bytes);
	cache->nr_bytes += from->nr_bytes;
	return 0;
}

/* A known set was shipped again: the BPF side had no room to remember it, or more of its keys are
 * known by now. */
static int replace_text(struct sb_label_cache *cache, struct sb_known_labels *labels,
			const struct sb_batch_labels *from)
{
	char *text;
	int err;

	if (labels->nr_bytes == from->nr_bytes && labels->text &&
	    !memcmp(labels->text, from->text, from->nr_bytes))
		return 0;
	err = copy_text(cache, from, &text);
	if (err)
		return err;
	cache->nr_bytes -= labels->text ? labels->nr_bytes : 0;
	free(labels->text);
	labels->text = text;
	labels->nr_bytes = from->nr_bytes;
	return 0;
}

int sb_label_cache_add(struct sb_label_cache *cache, const struct sb_batch_labels *from)
{
	struct sb_known_labels labels = { .id = from->id,
					  .batch = cache->batch,
					  .nr_bytes = from->nr_bytes };
	struct sb_known_labels *known = sb_label_cache_find(cache, from->id);
	int err;

	if (known)
		return replace_text(cache, known, from);
	err = sb_vec_reserve(&cache->at, cache->at.nr + 1);
	if (!err)
		err = copy_text(cache, from, &labels.text);
	if (err)
		return err;
	cache->at.at[cache->at.nr++] = labels;
	return sb_index_add(&cache->index, from->id, (uint32_t)cache->at.nr - 1);
}

const char *sb_known_labels_value(const struct sb_known_labels *labels, size_t i)
{
	const char *at = labels->text, *end = at + labels->nr_bytes;

	if (!labels->nr_bytes)
		return NULL;
	if (!at)
		return "(other)";
	for (; i && at < end; i--)
		at += strlen(at) + 1;
	return at < end && *at ? at : NULL;
}

void sb_label_cache_begin(struct sb_label_cache *cache)
{
	cache->batch++;
	cache->evicted.nr = 0;
}

int sb_label_cache_evict(struct sb_label_cache *cache)
{
	size_t i, nr = 0;
	int err = 0;

	if (cache->at.nr < SETS_MAX && cache->nr_bytes < BYTES_MAX / 2)
		return 0;
	for (i = 0; i < cache->at.nr; i++) {
		struct sb_known_labels *labels = &cache->at.at[i];

		if (err || labels->batch + 1 >= cache->batch) {
			cache->at.at[nr++] = *labels;
			continue;
		}
		err = sb_vec_push(&cache->evicted, labels->id);
		cache->nr_bytes -= labels->text ? labels->nr_bytes : 0;
		free(labels->text);
	}
	cache->at.nr = nr;
	sb_index_release(&cache->index);
	for (i = 0; i < nr && !err; i++)
		err = sb_index_add(&cache->index, cache->at.at[i].id, (uint32_t)i);
	return err;
}
