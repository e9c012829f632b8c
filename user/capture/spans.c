// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/spans.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "base/time.h"
#include "views/skel.h"

/* Entries of spans_slow from which on old ones are deleted. To look at them takes a millisecond. */
#define SLOW_KEPT 4096u

typedef SB_VEC(struct sb_batch_count) vec_counts;

struct open_span {
	uint32_t number;
	bool is_slow;
};

struct sb_spans {
	struct sampler_bpf *skel; /* borrowed */
	uint64_t slower_than_ns;
	bool is_over;
	uint64_t judged_ns;	     /* when the last counts were judged */
	vec_counts unsure;	     /* held, and those that are being judged */
	vec_counts held, passed;     /* from the last call */
	SB_VEC(struct open_span) at; /* open spans, by number */
	struct sb_spans_stats stats;
};

int sb_spans_new(struct sampler_bpf *skel, uint64_t slower_than_ns, struct sb_spans **ret_spans)
{
	struct sb_spans *spans = calloc(1, sizeof(*spans));

	if (!spans)
		return -ENOMEM;
	spans->skel = skel;
	spans->slower_than_ns = slower_than_ns;
	*ret_spans = spans;
	return 0;
}

void sb_spans_free(struct sb_spans *spans)
{
	if (!spans)
		return;
	sb_vec_release(&spans->unsure);
	sb_vec_release(&spans->held);
	sb_vec_release(&spans->passed);
	sb_vec_release(&spans->at);
	free(spans);
}

/* Read a whole hash map. *@ret_keys and *@ret_values: owned by the caller. Return: 0 or a negative
 * errno. */
static int read_map(const struct bpf_map *map, char **ret_keys, char **ret_values, uint32_t *ret_nr)
{
	uint32_t next, nr = bpf_map__max_entries(map);
	sb_cleanup(sb_freep) char *keys = calloc(nr, bpf_map__key_size(map));
	sb_cleanup(sb_freep) char *values = calloc(nr, bpf_map__value_size(map));
	int err = -ENOMEM;

	if (keys && values)
		err = bpf_map_lookup_batch(bpf_map__fd(map), NULL, &next, keys, values, &nr, NULL);
	/* ENOENT says that the end of the map was reached. */
	if (err && err != -ENOENT)
		return err;
	*ret_keys = sb_take(keys);
	*ret_values = sb_take(values);
	*ret_nr = nr;
	return 0;
}

static int compare_open(const void *left, const void *right)
{
	const struct open_span *a = left, *b = right;

	return a->number < b->number ? -1 : a->number > b->number;
}

static int read_open(struct sb_spans *spans)
{
	sb_cleanup(sb_freep) char *keys = NULL, *values = NULL;
	const struct sb_open_span *span;
	uint32_t i, nr;
	int err = read_map(spans->skel->maps.spans_open, &keys, &values, &nr);

	spans->at.nr = 0;
	for (i = 0; i < nr && !err; i++) {
		span = (const struct sb_open_span *)values + i;
		if (span->number)
			err = sb_vec_push(
				&spans->at,
				(struct open_span){ span->number, span->seen_ns - span->begin_ns >=
									  spans->slower_than_ns });
	}
	if (!err && spans->at.nr)
		qsort(spans->at.at, spans->at.nr, sizeof(*spans->at.at), compare_open);
	return err;
}

enum verdict {
	SLOW,
	FAST,
	NOT_YET,
};

static enum verdict verdict_of(const struct sb_spans *spans, uint32_t number)
{
	const struct open_span key = { .number = number }, *open;
	uint64_t ended_ns;

	open = spans->at.nr ? bsearch(&key, spans->at.at, spans->at.nr, sizeof(key), compare_open)
			    : NULL;
	if (open)
		return open->is_slow ? SLOW : NOT_YET;
	return bpf_map_lookup_elem(bpf_map__fd(spans->skel->maps.spans_slow), &number, &ended_ns)
		       ? FAST
		       : SLOW;
}

static int hold(struct sb_spans *spans, const struct sb_batch_count *count)
{
	uint64_t nr = count->count.nr_samples;

	if (spans->is_over) {
		spans->stats.nr_samples_open += nr;
		return 0;
	}
	if (spans->held.nr < SB_SPANS_HELD_MAX)
		return sb_vec_push(&spans->held, *count);
	spans->stats.nr_samples_full += nr;
	return 0;
}

static int put(struct sb_spans *spans, struct sb_batch_count *count, enum verdict verdict)
{
	switch (verdict) {
	case SLOW:
		count->key.span = 0;
		return sb_vec_push(&spans->passed, *count);
	case NOT_YET:
		return hold(spans, count);
	default:
		spans->stats.nr_samples_fast += count->count.nr_samples;
		return 0;
	}
}

static int compare_spans(const void *left, const void *right)
{
	const struct sb_batch_count *a = left, *b = right;

	return a->key.span < b->key.span ? -1 : a->key.span > b->key.span;
}

/* Sort what is unsure into what counts, what is held, and what is dropped. */
static int sort_out(struct sb_spans *spans)
{
	enum verdict verdict = FAST;
	uint32_t number = 0;
	size_t i;
	int err = read_open(spans);

	qsort(spans->unsure.at, spans->unsure.nr, sizeof(*spans->unsure.at), compare_spans);
	for (i = 0; i < spans->unsure.nr && !err; i++) {
		struct sb_batch_count *count = &spans->unsure.at[i];

		if (count->key.span != number) {
			number = count->key.span;
			verdict = verdict_of(spans, number);
		}
		err = put(spans, count, verdict);
	}
	return err;
}

/* Delete slow spans of which no more counts can come: those that ended before the last drain. */
static int tidy(struct sb_spans *spans)
{
	sb_cleanup(sb_freep) char *keys = NULL, *values = NULL;
	const struct bpf_map *map = spans->skel->maps.spans_slow;
	uint32_t i, nr, nr_deleted = 0;
	int err;

	if (__atomic_load_n(&spans->skel->bss->span_nr_slow, __ATOMIC_RELAXED) < SLOW_KEPT)
		return 0;
	err = read_map(map, &keys, &values, &nr);
	for (i = 0; i < nr && !err; i++)
		if (((const uint64_t *)values)[i] < spans->judged_ns)
			nr_deleted +=
				!bpf_map_delete_elem(bpf_map__fd(map), (const uint32_t *)keys + i);
	__atomic_fetch_sub(&spans->skel->bss->span_nr_slow, nr_deleted, __ATOMIC_RELAXED);
	return err;
}

int sb_spans_judge(struct sb_spans *spans, struct sb_batch *batch)
{
	uint64_t now_ns = sb_now_ns();
	vec_counts held = spans->held;
	size_t i;
	int err = 0;

	if (!spans->slower_than_ns)
		return 0;
	/* The held ones are unsure again. */
	spans->held = spans->unsure;
	spans->unsure = held;
	spans->held.nr = 0;
	sb_vec_clear(&spans->passed);
	for (i = 0; i < batch->nr_counts && !err; i++)
		err = batch->counts[i].key.span ? sb_vec_push(&spans->unsure, batch->counts[i])
						: sb_vec_push(&spans->passed, batch->counts[i]);
	if (!err && spans->unsure.nr)
		err = sort_out(spans);
	sb_vec_clear(&spans->unsure);
	if (!err)
		err = tidy(spans);
	spans->judged_ns = now_ns;
	batch->counts = spans->passed.at;
	batch->nr_counts = spans->passed.nr;
	return err;
}

int sb_spans_end(struct sb_spans *spans)
{
	sb_cleanup(sb_str_release) struct sb_str nothing = {};
	size_t i;
	int err = sb_iter_run(spans->skel->progs.span_settle, &nothing);

	if (!err)
		err = read_open(spans);
	if (err)
		return err;
	spans->is_over = true;
	spans->stats.nr_open = spans->at.nr;
	for (i = 0; i < spans->at.nr; i++)
		spans->stats.nr_open_slow += spans->at.at[i].is_slow;
	return 0;
}

int sb_spans_pending(const struct sb_spans *spans, sb_vec_stack_id *ids)
{
	const struct sb_sample_key *key;
	size_t i;
	int err = 0;

	for (i = 0; i < spans->held.nr && !err; i++) {
		key = &spans->held.at[i].key;
		err = sb_vec_push(ids, key->kstack);
		if (!err)
			err = sb_vec_push(ids, key->ustack);
		if (!err)
			err = sb_vec_push(ids, key->istack);
	}
	return err;
}

uint64_t sb_spans_oldest_ns(const struct sb_spans *spans)
{
	uint64_t oldest_ns = UINT64_MAX;
	size_t i;

	for (i = 0; i < spans->held.nr; i++)
		if (spans->held.at[i].count.first_ns < oldest_ns)
			oldest_ns = spans->held.at[i].count.first_ns;
	return oldest_ns;
}

void sb_spans_stats(const struct sb_spans *spans, struct sb_spans_stats *ret_stats)
{
	int nr_cpus = libbpf_num_possible_cpus(), cpu;
	sb_cleanup(sb_freep) struct sb_span_bucket *per_cpu =
		calloc(nr_cpus > 0 ? (size_t)nr_cpus : 1, sizeof(*per_cpu));
	int fd = bpf_map__fd(spans->skel->maps.span_durations);
	uint32_t i;

	*ret_stats = spans->stats;
	for (i = 0; per_cpu && i < SB_SPAN_BUCKETS; i++) {
		if (bpf_map_lookup_elem(fd, &i, per_cpu))
			continue;
		for (cpu = 0; cpu < nr_cpus; cpu++) {
			ret_stats->nr[i] += per_cpu[cpu].nr;
			ret_stats->nr_ended += per_cpu[cpu].nr;
			ret_stats->sum_ns += per_cpu[cpu].sum_ns;
		}
	}
}

uint64_t sb_span_bucket_ns(uint32_t bucket)
{
	uint32_t log2 = bucket >> SB_SPAN_STEP_BITS, step = bucket & (SB_SPAN_STEPS - 1);

	if (log2 < SB_SPAN_STEP_BITS)
		return bucket;
	return (uint64_t)(SB_SPAN_STEPS + step) << (log2 - SB_SPAN_STEP_BITS);
}

uint64_t sb_spans_percentile_ns(const struct sb_spans_stats *stats, double part)
{
	double nr = 0;
	uint32_t i;

	for (i = 0; i < SB_SPAN_BUCKETS; i++) {
		nr += (double)stats->nr[i];
		if (stats->nr[i] && nr >= part * (double)stats->nr_ended)
			return sb_span_bucket_ns(i + 1);
	}
	return 0;
}
