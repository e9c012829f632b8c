// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which tags there are in a range of time, and which values they have, with their weights. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/index.h"
#include "base/search.h"
#include "store/ask.h"
#include "store/search.h"

/* A store that we wrote has as many keys as there are labels, about a dozen. */
#define KEYS_MAX	   256u
/* Pairs of key and value. */
#define PAIRS_MAX	   200000u
#define TAG_VALUES_DEFAULT 100u

struct counting {
	const struct sb_ask *ask;
	struct sb_strtab keys;	/* with their NUL, so that none is ""; in the order of tags->keys */
	struct sb_strtab pairs; /* the index of the key, as bytes of a uint32_t, and the value */
	SB_VEC(uint64_t) weights;
	struct sb_tags *tags;
};

/* Find or add a key. Return: 0; -E2BIG if there are too many others; -ENOMEM. */
static int key_of(struct counting *counting, const struct sb_tag *tag, uint32_t *ret_key)
{
	struct sb_tag_counts counts = { .is_wide = tag->is_wide };
	size_t len = strlen(tag->key) + 1;
	uint32_t id;
	int err;

	if (counting->keys.strs.nr <= KEYS_MAX)
		err = sb_strtab_add(&counting->keys, tag->key, len, &id);
	else
		err = sb_strtab_find(&counting->keys, tag->key, len, &id) ? 0 : -E2BIG;
	if (!err && id > counting->tags->keys.nr) {
		counts.key = strdup(tag->key);
		err = counts.key ? sb_vec_push(&counting->tags->keys, counts) : -ENOMEM;
		if (err)
			free(counts.key);
	}
	if (!err)
		*ret_key = id - 1;
	return err;
}

static int count_tag(struct counting *counting, const struct sb_tag *tag, uint64_t weight)
{
	sb_cleanup(sb_str_release) struct sb_str pair = {};
	struct sb_strtab *pairs = &counting->pairs;
	uint32_t key, id;
	int err = key_of(counting, tag, &key);

	if (err) {
		counting->tags->has_more |= err == -E2BIG;
		return err == -E2BIG ? 0 : err;
	}
	err = sb_str_addn(&pair, (const char *)&key, sizeof(key));
	if (!err)
		err = sb_str_add(&pair, tag->value);
	if (err)
		return err;
	if (pairs->strs.nr > PAIRS_MAX && !sb_strtab_find(pairs, pair.s, pair.len, &id)) {
		counting->tags->keys.at[key].has_more = true;
		counting->tags->keys.at[key].weight_more += weight;
		return 0;
	}
	err = sb_strtab_add(pairs, pair.s, pair.len, &id);
	if (!err)
		err = sb_vec_fit(&counting->weights, id, 0);
	if (!err)
		counting->weights.at[id - 1] += weight;
	return err;
}

static int count_kept_file(struct counting *counting, const struct sb_kept_file *kept)
{
	const struct sb_dict *dict = &kept->segment.dict;
	const struct sb_segment_sums *sums = kept->resum.result;
	sb_cleanup(sb_freep) uint64_t *weight = calloc(dict->tags.nr + 1, sizeof(*weight));
	struct sb_tag tags[SB_DICT_TAGS_MAX];
	struct sb_wanted wanted;
	size_t i, k, nr;
	int err = weight ? sb_wanted_init(&wanted, dict, &counting->ask->rules) : -ENOMEM;

	if (err)
		return err;
	for (i = 0; i < dict->rows.nr; i++)
		if (sums->weight[i])
			weight[dict->rows.at[i].tags] += sums->weight[i];
	for (i = 0; i < dict->tags.nr && !err; i++) {
		if (!weight[i] || !sb_wanted_is(&wanted, (uint32_t)i))
			continue;
		nr = sb_dict_tags_at(dict, (uint32_t)i, tags);
		for (k = 0; k < nr && !err; k++)
			err = count_tag(counting, &tags[k], weight[i]);
	}
	sb_wanted_release(&wanted);
	return err;
}

static int by_weight(const void *a, const void *b)
{
	const struct sb_tag_count *x = a, *y = b;

	return sb_compare(y->weight, x->weight) ?: strcmp(x->value, y->value);
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct sb_tag_counts *)a)->key,
		      ((const struct sb_tag_counts *)b)->key);
}

static int list_values(struct counting *counting)
{
	size_t i;
	int err = 0;

	for (i = 1; i < counting->pairs.strs.nr && !err; i++) {
		const char *pair = counting->pairs.strs.at[i].s;
		struct sb_tag_count count = { .weight = counting->weights.at[i - 1] };
		uint32_t key;

		memcpy(&key, pair, sizeof(key));
		count.value = strdup(pair + sizeof(key));
		err = count.value ? sb_vec_push(&counting->tags->keys.at[key].values, count)
				  : -ENOMEM;
		if (err)
			free(count.value);
	}
	return err;
}

static void cut_values(struct sb_tags *tags, size_t nr_max)
{
	size_t i, k;

	for (i = 0; i < tags->keys.nr; i++) {
		struct sb_tag_counts *counts = &tags->keys.at[i];

		sb_vec_sort(&counts->values, by_weight);
		for (k = nr_max; k < counts->values.nr; k++) {
			counts->nr_more++;
			counts->weight_more += counts->values.at[k].weight;
			free(counts->values.at[k].value);
		}
		if (counts->values.nr > nr_max)
			counts->values.nr = nr_max;
	}
	sb_vec_sort(&tags->keys, by_key);
}

void sb_tags_free(struct sb_tags *tags)
{
	size_t i, k;

	if (!tags)
		return;
	for (i = 0; i < tags->keys.nr; i++) {
		for (k = 0; k < tags->keys.at[i].values.nr; k++)
			free(tags->keys.at[i].values.at[k].value);
		sb_vec_release(&tags->keys.at[i].values);
		free(tags->keys.at[i].key);
	}
	sb_vec_release(&tags->keys);
	free(tags);
}

int sb_store_tags(struct sb_store *store, const struct sb_ask *ask, size_t nr_values_max,
		  struct sb_tags **ret_tags)
{
	sb_cleanup(sb_tags_freep) struct sb_tags *tags = calloc(1, sizeof(*tags));
	struct counting counting = { .ask = ask, .tags = tags };
	struct sb_store_answer answer;
	struct sb_search search = {
		.store = store,
		.kind = sb_ask_kind(ask),
		.answer = &answer,
	};
	size_t i;
	int err = tags ? sb_strtab_init(&counting.pairs) : -ENOMEM;

	if (!err)
		err = sb_strtab_init(&counting.keys);
	sb_search_begin(&search);
	if (!err)
		err = sb_search_tags(&search, &ask->rules, ask->by, ask->from_s, ask->to_s);
	if (!err)
		err = sb_search_sums(&search, ask->from_s, ask->to_s);
	for (i = 0; i < search.kept_files.nr && !err; i++)
		if (search.kept_files.at[i]->is_there && search.kept_files.at[i]->resum.result)
			err = count_kept_file(&counting, search.kept_files.at[i]);
	sb_search_end(&search);
	if (!err)
		err = list_values(&counting);
	if (!err)
		cut_values(tags, nr_values_max ? nr_values_max : TAG_VALUES_DEFAULT);
	sb_vec_release(&counting.weights);
	sb_strtab_release(&counting.pairs);
	sb_strtab_release(&counting.keys);
	if (!err)
		*ret_tags = sb_take(tags);
	return err;
}
