// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Splits a profile whose root frames are tags into its series. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/index.h"
#include "export/export.h"
#include "output/output.h"

#define NONE  "(none)"
#define OTHER "(other)"

/* A period with the memory that it points to. */
struct made {
	struct sb_export_period period; /* first */
	struct sb_export_series *series;
	struct sb_tag *tags;
	uint32_t *stacks;
};

struct split {
	const struct sb_profile *profile;
	const char *const *keys;
	size_t nr_keys;
	SB_VEC(uint32_t) values;  /* frames, nr_keys for each series; UINT32_MAX: "(other)" */
	SB_VEC(size_t) nr_stacks; /* of each series */
	struct sb_index index;
	uint32_t *of_stack; /* the series of each */
};

void sb_export_period_free(struct sb_export_period *period)
{
	struct made *made = (struct made *)period;

	if (!made)
		return;
	free(made->series);
	free(made->tags);
	free(made->stacks);
	free(made);
}

static void release(struct split *split)
{
	sb_vec_release(&split->values);
	sb_vec_release(&split->nr_stacks);
	sb_index_release(&split->index);
	free(split->of_stack);
}

/* Return: 0; -E2BIG if the series is new and exceeds @nr_max; -ENOMEM. */
static int find_series(struct split *split, const uint32_t *values, size_t nr_max, uint32_t *ret_id)
{
	size_t bytes = split->nr_keys * sizeof(*values), i;
	uint64_t hash = sb_hash(values, bytes, 0);
	int err = 0;

	sb_index_each(it, &split->index, hash) {
		if (!bytes || !memcmp(split->values.at + it.id * split->nr_keys, values, bytes)) {
			*ret_id = it.id;
			return 0;
		}
	}
	if (split->nr_stacks.nr >= nr_max)
		return -E2BIG;
	*ret_id = (uint32_t)split->nr_stacks.nr;
	for (i = 0; i < split->nr_keys && !err; i++)
		err = sb_vec_push(&split->values, values[i]);
	err = err ?: sb_vec_push(&split->nr_stacks, 0);
	return err ?: sb_index_add(&split->index, hash, *ret_id);
}

static int assign(struct split *split, size_t i, uint32_t *values)
{
	const struct sb_row row = sb_profile_row_at(split->profile, i);
	uint32_t id;
	size_t k;
	int err;

	if (row.nr < split->nr_keys)
		return -EBADMSG;
	for (k = 0; k < split->nr_keys; k++)
		values[k] = row.frames[k];
	err = find_series(split, values, SB_EXPORT_SERIES_MAX, &id);
	if (err == -E2BIG) {
		for (k = 0; k < split->nr_keys; k++)
			values[k] = UINT32_MAX;
		err = find_series(split, values, SB_EXPORT_SERIES_MAX + 1, &id);
	}
	if (err)
		return err;
	split->of_stack[i] = id;
	split->nr_stacks.at[id]++;
	return 0;
}

static const char *value_of(const struct split *split, size_t series, size_t key)
{
	uint32_t frame = split->values.at[series * split->nr_keys + key];

	return frame == UINT32_MAX ? OTHER : sb_profile_frame_at(split->profile, frame)->name;
}

static int by_tags(const void *a, const void *b)
{
	const struct sb_export_series *x = a, *y = b;
	int order = 0;
	size_t i;

	for (i = 0; i < x->nr_tags && i < y->nr_tags && !order; i++) {
		order = strcmp(x->tags[i].key, y->tags[i].key);
		order = order ?: strcmp(x->tags[i].value, y->tags[i].value);
	}
	return order ?: (x->nr_tags > y->nr_tags) - (x->nr_tags < y->nr_tags);
}

static void fill(const struct split *split, struct made *made)
{
	size_t i, k, nr_tags = 0, nr_stacks = 0, *at = split->nr_stacks.at;
	size_t nr_all = sb_profile_nr_stacks(split->profile), nr = split->nr_stacks.nr;

	for (i = 0; i < nr; i++) {
		struct sb_export_series *series = &made->series[i];

		*series = (struct sb_export_series){ .tags = made->tags + nr_tags,
						     .stacks = made->stacks + nr_stacks,
						     .nr_stacks = at[i] };
		for (k = 0; k < split->nr_keys; k++) {
			const char *value = value_of(split, i, k);

			if (sb_streq(value, NONE))
				continue;
			made->tags[nr_tags++] = (struct sb_tag){ split->keys[k], value, false };
			series->nr_tags++;
		}
		/* From here on `at` says where the next stack of the series goes. */
		at[i] = nr_stacks;
		nr_stacks += series->nr_stacks;
	}
	for (i = 0; i < nr_all; i++)
		made->stacks[at[split->of_stack[i]]++] = (uint32_t)i;
	if (nr)
		qsort(made->series, nr, sizeof(*made->series), by_tags);
	made->period.nr_series = nr;
}

static int split_all(struct split *split, struct made *made)
{
	size_t nr = sb_profile_nr_stacks(split->profile), i, nr_series;
	sb_cleanup(sb_freep) uint32_t *values = calloc(split->nr_keys + 1, sizeof(*values));
	int err = values ? 0 : -ENOMEM;

	split->of_stack = calloc(nr + 1, sizeof(*split->of_stack));
	if (!split->of_stack)
		return -ENOMEM;
	for (i = 0; i < nr && !err; i++)
		err = assign(split, i, values);
	if (err)
		return err;
	nr_series = split->nr_stacks.nr;
	made->series = calloc(nr_series + 1, sizeof(*made->series));
	made->tags = calloc(nr_series * split->nr_keys + 1, sizeof(*made->tags));
	made->stacks = calloc(nr + 1, sizeof(*made->stacks));
	if (!made->series || !made->tags || !made->stacks)
		return -ENOMEM;
	fill(split, made);
	return 0;
}

int sb_export_period_new(const struct sb_profile *profile, const char *const *keys, size_t nr_keys,
			 int64_t begin_s, int64_t end_s, struct sb_export_period **ret_period)
{
	struct split split = { .profile = profile, .keys = keys, .nr_keys = nr_keys };
	struct made *made = calloc(1, sizeof(*made));
	int err;

	if (!made)
		return -ENOMEM;
	err = split_all(&split, made);
	release(&split);
	if (err) {
		sb_export_period_free(&made->period);
		return err;
	}
	made->period.begin_s = begin_s;
	made->period.end_s = end_s;
	made->period.profile = profile;
	made->period.nr_skip = nr_keys;
	made->period.measure = sb_measure_of(profile);
	made->period.series = made->series;
	*ret_period = &made->period;
	return 0;
}

struct sb_row sb_export_row(const struct sb_export_period *period, uint32_t i)
{
	struct sb_row row = sb_profile_row_at(period->profile, i);

	row.nr -= period->nr_skip;
	row.frames += period->nr_skip;
	return row;
}

uint64_t sb_export_series_hash(const struct sb_export_series *series, uint64_t salt)
{
	uint64_t hash = salt;

	for (size_t i = 0; i < series->nr_tags; i++) {
		const struct sb_tag *tag = &series->tags[i];

		/* With the NULs, so that the hash depends on where texts end. */
		hash = sb_hash(tag->key, strlen(tag->key) + 1, hash);
		hash = sb_hash(tag->value, strlen(tag->value) + 1, hash);
	}
	return hash;
}

static int add_metadata(struct sb_profile *profile, const struct sb_export_period *period,
			const struct sb_export_series *series)
{
	struct sb_metadata metadata = *sb_profile_metadata(period->profile);
	const char *key, *value;
	size_t i;
	int err;

	/* The root frames that it names have been removed. */
	metadata.by = NULL;
	err = sb_profile_set_metadata(profile, &metadata);
	for (i = 0; !err && (key = sb_profile_meta_at(period->profile, i, &value)); i++)
		err = sb_profile_meta(profile, key, "%s", value);
	for (i = 0; i < series->nr_tags && !err; i++) {
		char tag[256];

		snprintf(tag, sizeof(tag), SB_OUTPUT_TAG "%s", series->tags[i].key);
		err = sb_profile_meta(profile, tag, "%s", series->tags[i].value);
	}
	return err;
}

int sb_export_series_profile(const struct sb_export_period *period,
			     const struct sb_export_series *series, struct sb_profile **ret_profile)
{
	sb_cleanup(sb_freep) uint32_t *known =
		calloc(sb_profile_nr_frames(period->profile) + 1, sizeof(*known));
	struct sb_profile *profile;
	int err = known ? sb_profile_new(&profile) : -ENOMEM;
	size_t i;

	if (err)
		return err;
	for (i = 0; i < series->nr_stacks && !err; i++) {
		const struct sb_row row = sb_export_row(period, series->stacks[i]);

		err = sb_profile_copy_row(profile, period->profile, &row, known);
	}
	err = err ?: add_metadata(profile, period, series) ?: sb_profile_seal(profile);
	if (err)
		sb_profile_free(profile);
	else
		*ret_profile = profile;
	return err;
}
