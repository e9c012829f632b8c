// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Durations, or what events weigh, as histograms by powers of two: one of all stacks, then one of
 * each function if calls of several were measured, then one of each stack, below its folded line.
 * The lines look like those of bcc and of SystemTap's @hist_log().
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "kinds/view_kind.h"
#include "output/outputs.h"

#define BAR_LEN 40

static int add_duration(struct sb_str *text, unsigned int log2)
{
	char number[SB_FORMAT_NS_BYTES];
	const char *unit = sb_format_ns(log2 < 64 ? 1ull << log2 : UINT64_MAX, number);

	return sb_str_addf(text, "%6s %-2s", number, unit);
}

/* A power of two as expressions have it: 512, 1k. */
static int add_number(struct sb_str *text, unsigned int log2)
{
	static const char *const units[] = { "", "k", "M", "G", "T", "P", "E" };

	return sb_str_addf(text, "%6u %-2s", 1u << log2 % 10, units[log2 / 10]);
}

static int add_row(struct sb_str *text, unsigned int log2, uint64_t nr, uint64_t max,
		   bool is_duration)
{
	int (*const add)(struct sb_str * text, unsigned int log2) =
		is_duration ? add_duration : add_number;
	char bar[BAR_LEN + 1];
	/* In floating point, because the product of counts may overflow. */
	int len = max ? (int)((double)nr / (double)max * BAR_LEN) : 0, i;
	int err;

	for (i = 0; i < BAR_LEN; i++)
		bar[i] = i < len ? '*' : ' ';
	bar[BAR_LEN] = '\0';
	err = sb_str_add(text, "  ");
	if (!err && log2)
		err = add(text, log2);
	else if (!err)
		err = sb_str_addf(text, "%6s %-2s", "0", is_duration ? "ns" : "");
	if (!err)
		err = sb_str_add(text, " -> ");
	if (!err)
		err = add(text, log2 + 1);
	return err ? err : sb_str_addf(text, " : %-10" PRIu64 " |%s|\n", nr, bar);
}

/* From the first to the last bucket that is not empty. */
static int add_histogram(struct sb_str *text, const uint64_t nr[SB_PROFILE_NR_LOG2],
			 bool is_duration)
{
	unsigned int first = 0, end = SB_PROFILE_NR_LOG2, i;
	uint64_t max = 0;
	int err = 0;

	while (first < end && !nr[first])
		first++;
	while (end > first && !nr[end - 1])
		end--;
	for (i = first; i < end; i++)
		max = nr[i] > max ? nr[i] : max;
	if (first < end)
		err = sb_str_addf(text, "  %-9s    %-9s : %-10s distribution\n", "     from",
				  "     to", "count");
	for (i = first; i < end && !err; i++)
		err = add_row(text, i, nr[i], max, is_duration);
	return err;
}

static uint64_t sum(const uint64_t nr[SB_PROFILE_NR_LOG2])
{
	uint64_t all = 0;
	size_t i;

	for (i = 0; i < SB_PROFILE_NR_LOG2; i++)
		all += nr[i];
	return all;
}

/* "all stacks 1234567 us, 89 times" */
static int add_total(struct sb_str *text, const struct sb_profile *profile,
		     const struct sb_output_opts *opts)
{
	const uint64_t *nr = sb_profile_log2_total(profile);
	const char *unit = sb_profile_metadata(profile)->unit;
	int err = 0;

	if (opts->fold.header) {
		err = sb_fold_header(text, profile);
		if (!err)
			err = sb_str_addc(text, '\n');
	}
	if (!err)
		err = sb_str_addf(text, "all stacks %" PRIu64 "%s%s, %" PRIu64 " times\n",
				  sb_profile_weight(profile), unit ? " " : "", unit ? unit : "",
				  nr ? sum(nr) : 0);
	return err || !nr
		       ? err
		       : add_histogram(text, nr,
				       sb_view_kind_is_lasting(sb_profile_metadata(profile)->kind));
}

/* The calls of one function: of all stacks with this leaf frame. */
struct function {
	const char *name;
	uint64_t weight;
	uint64_t nr[SB_PROFILE_NR_LOG2];
};

typedef SB_VEC(struct function) vec_function;

static int by_name(const void *a, const void *b)
{
	const struct function *one = a, *two = b;

	return strcmp(one->name, two->name);
}

/* The heaviest first. */
static int by_weight(const void *a, const void *b)
{
	const struct function *one = a, *two = b;

	if (one->weight != two->weight)
		return one->weight < two->weight ? 1 : -1;
	return by_name(a, b);
}

static int collect_function(const struct sb_profile *profile, size_t i, vec_function *functions)
{
	const struct sb_row row = sb_profile_row_at(profile, i);
	const uint64_t *nr = sb_profile_log2_at(profile, i);
	struct function function = { .weight = row.weight };

	if (!row.nr)
		return 0;
	function.name = sb_profile_frame_at(profile, row.frames[row.nr - 1])->name;
	if (nr)
		memcpy(function.nr, nr, sizeof(function.nr));
	return sb_vec_push(functions, function);
}

/* Add up neighbours of the same name. */
static void merge_functions(vec_function *functions)
{
	size_t nr = 0, i, log2;

	sb_vec_sort(functions, by_name);
	for (i = 0; i < functions->nr; i++) {
		struct function *last = nr ? &functions->at[nr - 1] : NULL;

		if (!last || strcmp(last->name, functions->at[i].name)) {
			functions->at[nr++] = functions->at[i];
			continue;
		}
		last->weight += functions->at[i].weight;
		for (log2 = 0; log2 < SB_PROFILE_NR_LOG2; log2++)
			last->nr[log2] += functions->at[i].nr[log2];
	}
	functions->nr = nr;
	sb_vec_sort(functions, by_weight);
}

/* "function fsync 1234567 us, 89 times". A single one would say what all stacks say. */
static int add_functions(struct sb_str *text, const struct sb_profile *profile)
{
	const struct sb_view_kind *kind = sb_view_kind_find(sb_profile_metadata(profile)->kind);
	const char *unit = sb_profile_metadata(profile)->unit;
	vec_function functions = {};
	size_t nr = kind && kind->takes_calls ? sb_profile_nr_stacks(profile) : 0, i;
	int err = 0;

	for (i = 0; i < nr && !err; i++)
		err = collect_function(profile, i, &functions);
	merge_functions(&functions);
	for (i = 0; i < functions.nr && functions.nr > 1 && !err; i++) {
		const struct function *function = &functions.at[i];

		err = sb_str_addf(text, "\nfunction %s %" PRIu64 "%s%s, %" PRIu64 " times\n",
				  function->name, function->weight, unit ? " " : "",
				  unit ? unit : "", sum(function->nr));
		if (!err)
			err = add_histogram(text, function->nr, true);
	}
	sb_vec_release(&functions);
	return err;
}

static int add_stack(struct sb_str *text, const struct sb_profile *profile, size_t i,
		     const struct sb_output_opts *opts)
{
	const uint64_t *nr = sb_profile_log2_at(profile, i);
	int err = sb_str_addc(text, '\n');

	if (!err)
		err = sb_fold_stack(text, profile, i, &opts->fold);
	if (!err)
		err = sb_str_addc(text, '\n');
	/* Time without a duration: a wait that has not ended, a sample of a timer. */
	return err || !nr
		       ? err
		       : add_histogram(text, nr,
				       sb_view_kind_is_lasting(sb_profile_metadata(profile)->kind));
}

static int write_distr(const struct sb_profile *profile, const struct sb_output_opts *opts,
		       FILE *out)
{
	sb_cleanup(sb_str_release) struct sb_str text = {};
	size_t i, nr = sb_output_nr_stacks(profile, opts);
	int err;

	if (nr && !sb_profile_log2_total(profile))
		return -ENODATA;
	err = add_total(&text, profile, opts);
	if (!err)
		err = add_functions(&text, profile);
	for (i = 0; i < nr && !err; i++) {
		err = add_stack(&text, profile, i, opts);
		if (!err && fwrite(text.s, 1, text.len, out) != text.len)
			return -EIO;
		sb_str_clear(&text);
	}
	if (!err && text.len && fwrite(text.s, 1, text.len, out) != text.len)
		return -EIO;
	return err;
}

const struct sb_output sb_output_distr = {
	.name = "distr",
	.extension = ".distr",
	.summary =
		"histograms of durations, of all stacks, functions and each stack (with --distr)",
	.needs_durations = true,
	.write = write_distr,
};
