// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Timelines: the weight of a kind over time, by the values of tags. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/index.h"
#include "base/search.h"
#include "store/ask.h"
#include "store/search.h"

#define STEPS_DEFAULT  300u
#define STEPS_MAX      20000u
#define STEP_MAX_S     (100u * 366 * 86400 / 2)
#define SERIES_DEFAULT 10u
#define SERIES_MAX     1000u
/* Cells of memory until it is known which values are the heaviest. */
#define CELLS_MAX      (4u << 20)
#define VALUES_MAX     4096u

#define NOT_WANTED     UINT32_MAX
#define NOT_KNOWN      (UINT32_MAX - 1)
#define OTHER	       0u /* the number of "(other)" */

/* Which value the rows of a file belong to. */
struct value_map {
	const struct sb_kept_file *kept;
	struct sb_wanted wanted;
	uint32_t *value; /* by set of tags */
	size_t nr;
};

/* Time of a block, in ms after timeline->from_s. */
struct span {
	int64_t begin_ms, end_ms;
};

struct drawing {
	const struct sb_ask *ask;
	struct sb_timeline *timeline;
	struct sb_strtab values; /* 0: (other) */
	uint32_t nr_values_max;
	SB_VEC(uint64_t) cells; /* weights by value, then by step */
	SB_VEC(uint64_t) whole; /* weights by value of one block */
	SB_VEC(struct value_map) maps;
	uint32_t need_s; /* a step must be this long at least */
};

static int value_of(struct drawing *drawing, const struct sb_tag *tags, size_t nr,
		    uint32_t *ret_value)
{
	sb_cleanup(sb_str_release) struct sb_str text = {};
	const char *by = drawing->ask->by, *value;
	char key[SB_TAG_KEY_BYTES];
	size_t before = drawing->values.strs.nr;
	int err = 0;

	while (by && !err) {
		by = sb_tag_list_next(by, key);
		value = sb_tag_value(tags, nr, key);
		err = sb_str_addf(&text, "%s%s", text.len ? "," : "", value[0] ? value : "(none)");
	}
	/* So that it is never "", whose number is that of "(other)". */
	if (!err)
		err = sb_str_addc(&text, '.');
	if (!err)
		err = sb_strtab_add(&drawing->values, text.s, text.len, ret_value);
	if (err || drawing->values.strs.nr == before)
		return err;
	if (drawing->values.strs.nr > drawing->nr_values_max) {
		/* The string stays in the table, and counts as "(other)". */
		*ret_value = OTHER;
		return 0;
	}
	err = sb_vec_reserve(&drawing->cells,
			     drawing->values.strs.nr * drawing->timeline->nr_steps);
	if (!err)
		memset(drawing->cells.at + before * drawing->timeline->nr_steps, 0,
		       drawing->timeline->nr_steps * sizeof(drawing->cells.at[0]));
	return err;
}

static int map_of(struct drawing *drawing, const struct sb_kept_file *kept,
		  struct value_map **ret_map)
{
	const struct sb_dict *dict = &kept->segment.dict;
	struct value_map map = { .kept = kept, .nr = dict->tags.nr };
	size_t i;
	int err;

	for (i = drawing->maps.nr; i-- > 0;)
		if (drawing->maps.at[i].kept == kept) {
			*ret_map = &drawing->maps.at[i];
			return 0;
		}
	map.value = malloc((map.nr + 1) * sizeof(*map.value));
	err = map.value ? sb_wanted_init(&map.wanted, dict, &drawing->ask->rules) : -ENOMEM;
	for (i = 0; i < map.nr && !err; i++)
		map.value[i] = NOT_KNOWN;
	if (!err)
		err = sb_vec_push(&drawing->maps, map);
	if (err) {
		sb_wanted_release(&map.wanted);
		free(map.value);
		return err;
	}
	*ret_map = &drawing->maps.at[drawing->maps.nr - 1];
	return 0;
}

static int value_of_row(struct drawing *drawing, struct value_map *map, uint32_t tags_id,
			uint32_t *ret_value)
{
	struct sb_tag tags[SB_DICT_TAGS_MAX];
	uint32_t *value = &map->value[tags_id];
	size_t nr;
	int err = 0;

	if (*value == NOT_KNOWN) {
		nr = sb_dict_tags_at(&map->kept->segment.dict, tags_id, tags);
		if (sb_wanted_is(&map->wanted, tags_id))
			err = value_of(drawing, tags, nr, value);
		else
			*value = NOT_WANTED;
	}
	*ret_value = *value;
	return err;
}

/*
 * From when to when a block lasts, in ms of the timeline; it can exceed it at both ends. Return: 0;
 * -EBADMSG; -EAGAIN if it is an aggregate of more than a step, which cannot be divided.
 */
static int span_of(struct drawing *drawing, const struct sb_record *block, struct span *ret_span)
{
	const struct sb_timeline *timeline = drawing->timeline;
	int64_t at_s = block->begin_s - timeline->from_s, begin_ms, end_ms;

	if (!sb_record_is_of_level(block) || at_s >= (int64_t)timeline->nr_steps * timeline->step_s)
		return -EBADMSG;
	if (block->seconds > SB_STORE_BLOCK_S &&
	    (at_s < 0 || at_s % timeline->step_s + block->seconds > timeline->step_s)) {
		drawing->need_s = block->seconds;
		return -EAGAIN;
	}
	sb_record_time(block, &begin_ms, &end_ms);
	ret_span->begin_ms = begin_ms - timeline->from_s * 1000;
	ret_span->end_ms = end_ms - timeline->from_s * 1000;
	return 0;
}

/* The part of @whole that falls into the span up to @at_ms. */
static uint64_t part_of(const struct span *span, int64_t at_ms, uint64_t whole)
{
	if (at_ms <= span->begin_ms)
		return 0;
	if (at_ms >= span->end_ms)
		return whole;
	return (uint64_t)((double)whole * (double)(at_ms - span->begin_ms) /
			  (double)(span->end_ms - span->begin_ms));
}

/*
 * Distribute @whole to the steps that overlap the span, in proportion. Return: what the timeline
 * got.
 */
static uint64_t share_out(const struct sb_timeline *timeline, const struct span *span,
			  uint64_t whole, uint64_t *steps)
{
	const int64_t step_ms = timeline->step_s * 1000ll;
	int64_t at_ms = span->begin_ms > 0 ? span->begin_ms - span->begin_ms % step_ms : 0;
	uint64_t all = 0, before, kept;

	before = part_of(span, at_ms, whole);
	for (; at_ms < span->end_ms && at_ms / step_ms < (int64_t)timeline->nr_steps;
	     at_ms += step_ms) {
		kept = part_of(span, at_ms + step_ms, whole) - before;
		before += kept;
		steps[at_ms / step_ms] += kept;
		all += kept;
	}
	return all;
}

/* Sum a block by value in drawing->whole. Single rows would be too small to distribute. */
static int weigh_block(struct drawing *drawing, struct sb_kept_file *kept,
		       const struct sb_block_rows *rows, struct sb_store_answer *answer)
{
	const struct sb_dict *dict = &kept->segment.dict;
	struct value_map *map;
	uint32_t value;
	size_t i;
	int err = map_of(drawing, kept, &map);

	drawing->whole.nr = 0;
	for (i = 0; i < rows->nr && !err; i++) {
		answer->all_weight += rows->weight[i];
		if (rows->row[i] >= dict->rows.nr ||
		    dict->rows.at[rows->row[i]].tags == SB_DICT_NONE) {
			answer->lost_weight += rows->weight[i];
			continue;
		}
		err = value_of_row(drawing, map, dict->rows.at[rows->row[i]].tags, &value);
		if (err || value == NOT_WANTED)
			continue;
		err = sb_vec_fit(&drawing->whole, drawing->values.strs.nr, 0);
		if (!err)
			drawing->whole.at[value] += rows->weight[i];
	}
	return err;
}

static int visit(struct sb_search *search, struct sb_kept_file *kept, const struct sb_record *block)
{
	struct drawing *drawing = search->arg;
	struct sb_timeline *timeline = drawing->timeline;
	uint64_t figure[SB_BLOCK_FIGURE_MAX] = {}, sampled_ms;
	struct sb_block_rows rows;
	struct span span;
	size_t i;
	int err = span_of(drawing, block, &span);

	if (!err)
		err = sb_segment_rows(&kept->segment, block, &rows, figure);
	if (!err)
		err = weigh_block(drawing, kept, &rows, search->answer);
	for (i = 0; i < drawing->whole.nr && !err; i++)
		if (drawing->whole.at[i])
			search->answer->weight +=
				share_out(timeline, &span, drawing->whole.at[i],
					  drawing->cells.at + i * timeline->nr_steps);
	if (err)
		return err;
	sampled_ms = figure[SB_BLOCK_SAMPLED_MS];
	share_out(timeline, &span, sampled_ms ? sampled_ms : 1, timeline->sampled_ms);
	share_out(timeline, &span, figure[SB_BLOCK_LOST], timeline->lost);
	for (i = 0; i < SB_BLOCK_FIGURE_MAX; i++)
		search->answer->figure[i] += figure[i];
	return 0;
}

/*
 * Blocks that begin before the timeline and end in it. They are in the file of its begin, or in the
 * one before. Their share is drawn, but the figures of the answer do not contain them.
 */
static int visit_before(struct sb_search *search, int64_t from_s, int64_t file_s)
{
	struct sb_store_answer before = *search->answer, now;
	struct sb_kept_file *kept;
	int64_t begin_ms, end_ms;
	size_t i;
	int err = file_s < 0 ? 0 : sb_search_kept_file(search, 0, file_s, &kept);

	if (err || file_s < 0 || !kept->is_there)
		return err;
	for (i = 0; i < kept->segment.blocks.nr && !err; i++) {
		const struct sb_record *block = &kept->segment.blocks.at[i];

		if (block->begin_s >= from_s)
			break;
		sb_record_time(block, &begin_ms, &end_ms);
		if (end_ms <= from_s * 1000 || !sb_streq(block->kind.name, search->kind))
			continue;
		if (!search->answer->kind.name[0])
			search->answer->kind = block->kind;
		if (!sb_streq(search->answer->kind.unit, block->kind.unit))
			continue;
		err = visit(search, kept, block);
		search->answer->nr_blocks += !err;
		search->answer->nr_damaged += err == -EBADMSG;
		err = err == -EBADMSG ? 0 : err;
	}
	now = *search->answer;
	*search->answer = before;
	search->answer->weight = now.weight;
	search->answer->nr_damaged = now.nr_damaged;
	search->answer->nr_skipped_bytes = now.nr_skipped_bytes;
	search->answer->nr_blocks = now.nr_blocks;
	search->answer->kind = now.kind;
	if (now.nr_blocks > before.nr_blocks) {
		search->answer->from_s = from_s;
		if (!before.to_s)
			search->answer->to_s = from_s + SB_STORE_BLOCK_S;
	}
	return err;
}

/* How long a step is. */

static uint32_t nice_step(int64_t at_least_s)
{
	static const uint32_t steps[] = { 10,	 20,	 30,	 60,	  120,	   300,	  600,
					  1200,	 1800,	 3600,	 7200,	  10800,   21600, 43200,
					  86400, 172800, 604800, 2592000, 31536000 };
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(steps); i++)
		if (steps[i] >= at_least_s)
			return steps[i];
	return (uint32_t)((at_least_s + 86399) / 86400 * 86400);
}

static int choose_step(const struct sb_ask *ask, const struct sb_timeline_opts *opts,
		       uint32_t need_s, int64_t from_s, int64_t to_s, uint32_t *ret_s)
{
	uint32_t nr = opts->nr_steps_max ? opts->nr_steps_max : STEPS_DEFAULT;
	uint32_t step = opts->step_s;

	if (step > STEP_MAX_S)
		return -EINVAL;
	/* The second that sb_ask_range() adds to a range until now must not make steps longer. */
	if (!step)
		step = nice_step((to_s - from_s - 1 + nr - 1) / nr);
	if (step < need_s || (need_s && step % need_s))
		step = (step + need_s - 1) / need_s * need_s;
	*ret_s = step;
	return (to_s - from_s) / step + 2 > STEPS_MAX ? -E2BIG : 0;
}

static int64_t floor_to(int64_t time_s, uint32_t step_s)
{
	return time_s - time_s % step_s;
}

/* Series. */

static int heaviest_first(const void *a, const void *b)
{
	const struct sb_timeline_series *x = a, *y = b;

	return sb_compare(y->weight, x->weight) ?: strcmp(x->value, y->value);
}

static int add_series(struct drawing *drawing, const char *value, size_t len, size_t at)
{
	struct sb_timeline *timeline = drawing->timeline;
	size_t i, nr = timeline->nr_steps;
	struct sb_timeline_series series = {
		.value = strndup(value, len),
		.weights = malloc((nr + 1) * sizeof(*series.weights)),
	};
	int err = series.value && series.weights ? 0 : -ENOMEM;

	if (!err) {
		memcpy(series.weights, drawing->cells.at + at * nr, nr * sizeof(*series.weights));
		for (i = 0; i < nr; i++)
			series.weight += series.weights[i];
		err = sb_vec_push(&timeline->series, series);
	}
	if (err) {
		free(series.value);
		free(series.weights);
	}
	return err;
}

/* All but the heaviest values become "(other)". */
static int make_series(struct drawing *drawing, uint32_t nr_max)
{
	struct sb_timeline *timeline = drawing->timeline;
	size_t i, k, nr = drawing->values.strs.nr;
	int err = 0;

	if (nr > drawing->nr_values_max)
		nr = drawing->nr_values_max;
	for (i = 1; i < nr && !err; i++)
		err = add_series(drawing, drawing->values.strs.at[i].s,
				 drawing->values.strs.at[i].len - 1, i);
	if (err)
		return err;
	sb_vec_sort(&timeline->series, heaviest_first);
	for (i = nr_max; i < timeline->series.nr; i++) {
		for (k = 0; k < timeline->nr_steps; k++)
			drawing->cells.at[k] += timeline->series.at[i].weights[k];
		free(timeline->series.at[i].value);
		free(timeline->series.at[i].weights);
	}
	if (timeline->series.nr > nr_max)
		timeline->series.nr = nr_max;
	for (k = 0; k < timeline->nr_steps; k++)
		if (drawing->cells.at[k])
			return add_series(drawing, "(other)", strlen("(other)"), OTHER);
	return 0;
}

static void release_drawing(struct drawing *drawing)
{
	size_t i;

	for (i = 0; i < drawing->maps.nr; i++) {
		sb_wanted_release(&drawing->maps.at[i].wanted);
		free(drawing->maps.at[i].value);
	}
	sb_vec_release(&drawing->maps);
	sb_vec_release(&drawing->cells);
	sb_vec_release(&drawing->whole);
	sb_strtab_release(&drawing->values);
}

void sb_timeline_free(struct sb_timeline *timeline)
{
	size_t i;

	if (!timeline)
		return;
	for (i = 0; i < timeline->series.nr; i++) {
		free(timeline->series.at[i].value);
		free(timeline->series.at[i].weights);
	}
	sb_vec_release(&timeline->series);
	free(timeline->sampled_ms);
	free(timeline->lost);
	free(timeline);
}

static int prepare(struct drawing *drawing, size_t nr_steps)
{
	struct sb_timeline *timeline = drawing->timeline;
	int err;

	timeline->nr_steps = nr_steps;
	timeline->sampled_ms = calloc(nr_steps + 1, sizeof(*timeline->sampled_ms));
	timeline->lost = calloc(nr_steps + 1, sizeof(*timeline->lost));
	if (!timeline->sampled_ms || !timeline->lost)
		return -ENOMEM;
	drawing->nr_values_max = CELLS_MAX / (uint32_t)(nr_steps + 1);
	if (drawing->nr_values_max > VALUES_MAX)
		drawing->nr_values_max = VALUES_MAX;
	err = sb_strtab_init(&drawing->values);
	if (!err)
		err = sb_vec_reserve(&drawing->cells, nr_steps + 1);
	if (!err)
		memset(drawing->cells.at, 0, nr_steps * sizeof(drawing->cells.at[0]));
	return err;
}

/* Each step is covered for itself: an aggregate of several steps could not be divided. */
static int draw(struct sb_store *store, struct drawing *drawing, int64_t from_s, int64_t to_s)
{
	struct sb_timeline *timeline = drawing->timeline;
	struct sb_search search = {
		.store = store,
		.kind = sb_ask_kind(drawing->ask),
		.answer = &timeline->answer,
		.visit = visit,
		.arg = drawing,
	};
	int64_t at_s, file_s, step_s = timeline->step_s;
	size_t nr_steps;
	int err;

	timeline->from_s = floor_to(from_s, timeline->step_s);
	nr_steps = from_s < to_s ? (size_t)((to_s - timeline->from_s + step_s - 1) / step_s) : 0;
	err = prepare(drawing, nr_steps);
	sb_search_begin(&search);
	if (!err)
		err = sb_search_tags(&search, &drawing->ask->rules, drawing->ask->by, from_s, to_s);
	for (at_s = timeline->from_s; at_s < to_s && !err; at_s += step_s)
		err = sb_search_cover(&search, at_s, at_s + step_s);
	/* Read them last: by now blocks of the steps have determined the unit. */
	file_s = sb_level_file_begin(0, timeline->from_s);
	if (!err && nr_steps)
		err = visit_before(&search, timeline->from_s, file_s);
	if (!err && nr_steps)
		err = visit_before(&search, timeline->from_s, file_s - 1);
	sb_search_end(&search);
	timeline->kind = timeline->answer.kind;
	return err;
}

static int try_timeline(struct sb_store *store, const struct sb_ask *ask,
			const struct sb_timeline_opts *opts, uint32_t *need_s,
			struct sb_timeline **ret_timeline)
{
	sb_cleanup(sb_timeline_freep) struct sb_timeline *timeline = calloc(1, sizeof(*timeline));
	struct drawing drawing = { .ask = ask, .timeline = timeline };
	uint32_t nr_max = opts->nr_series_max ? opts->nr_series_max : SERIES_DEFAULT;
	int64_t from_s = ask->from_s, to_s = ask->to_s;
	int err;

	if (!timeline)
		return -ENOMEM;
	err = sb_search_narrow(store, &from_s, &to_s);
	if (!err && from_s >= to_s)
		to_s = from_s = ask->from_s < 0 ? 0 : ask->from_s;
	if (!err)
		err = choose_step(ask, opts, *need_s, from_s, to_s, &timeline->step_s);
	if (!err)
		err = draw(store, &drawing, from_s, to_s);
	if (!err)
		err = make_series(&drawing, nr_max < SERIES_MAX ? nr_max : SERIES_MAX);
	*need_s = drawing.need_s;
	release_drawing(&drawing);
	if (!err)
		*ret_timeline = sb_take(timeline);
	return err;
}

int sb_store_timeline(struct sb_store *store, const struct sb_ask *ask,
		      const struct sb_timeline_opts *opts, struct sb_timeline **ret_timeline)
{
	uint32_t need_s = 0;
	size_t i;
	int err = -EAGAIN;

	if (ask->from_s >= ask->to_s || opts->step_s % SB_STORE_BLOCK_S)
		return -EINVAL;
	/* Each attempt uses steps of a coarser level. */
	for (i = 0; i <= SB_STORE_LEVELS && err == -EAGAIN; i++)
		err = try_timeline(store, ask, opts, &need_s, ret_timeline);
	return err;
}
