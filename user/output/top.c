// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The heaviest functions, one in each line. Waits are listed by the function that waits:
 * model/owner.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "base/str.h"
#include "base/utf8.h"
#include "model/owner.h"
#include "output/functions.h"
#include "output/measure.h"
#include "output/output.h"

#define LINES_DEFAULT 40

struct line {
	uint32_t function;
	uint64_t self, total;
	size_t last_stack; /* that was counted in total, + 1: recursion counts once */
};

struct top {
	const struct sb_profile *profile;
	struct sb_functions functions;
	struct sb_measure measure;
	struct line *lines;
	size_t nr;
	uint64_t weight;
};

struct stack {
	const struct sb_profile *profile;
	const uint32_t *ids;
};

static struct sb_owner_frame frame_at(const void *arg, size_t i)
{
	const struct stack *stack = arg;
	const struct sb_frame *frame = sb_profile_frame_at(stack->profile, stack->ids[i]);

	return (struct sb_owner_frame){ frame->name, frame->kind, frame->mark };
}

static void weigh(struct top *top)
{
	size_t i, k;

	for (i = 0; i < sb_profile_nr_stacks(top->profile); i++) {
		const struct sb_row row = sb_profile_row_at(top->profile, i);
		const uint32_t *ids = row.frames;
		const struct stack stack = { top->profile, ids };
		const struct sb_owner_path path = { frame_at, &stack, row.nr };

		top->weight += row.weight;
		for (k = 0; k < row.nr; k++) {
			struct line *line = &top->lines[top->functions.of_frame[ids[k]]];

			if (line->last_stack != i + 1)
				line->total += row.weight;
			line->last_stack = i + 1;
		}
		if (row.nr)
			top->lines[top->functions.of_frame[ids[sb_owner_find(&path)]]].self +=
				row.weight;
	}
}

/* Heaviest by self, then by total, then by name. */
static int by_self(const void *a, const void *b, void *arg)
{
	const struct line *x = a, *y = b;
	const struct top *top = arg;

	return sb_compare(y->self, x->self) ?: sb_compare(y->total, x->total) ?:
	       strcmp(sb_functions_at(&top->functions, x->function)->name,
		      sb_functions_at(&top->functions, y->function)->name);
}

static void print_scaled(double value, const char *const units[], double step, FILE *out)
{
	size_t i = 0;

	while (units[i + 1] && value >= step) {
		value /= step;
		i++;
	}
	fprintf(out, "%8.*f %-3s", value < 10 && i ? 2 : value < 100 && i ? 1 : 0, value, units[i]);
}

/* Return: whether weights are shown as the mean of the bytes that were held. */
static bool is_mean(const struct top *top)
{
	return sb_streq(top->measure.unit, "byte-seconds") && top->measure.dur_us;
}

static void print_weight(const struct top *top, uint64_t weight, FILE *out)
{
	static const char *const times[] = { "ns", "us", "ms", "s", NULL };
	static const char *const bytes[] = { "B", "KiB", "MiB", "GiB", "TiB", NULL };

	if (top->measure.dimension == SB_DIMENSION_TIME)
		print_scaled((double)sb_measure_scaled(&top->measure, weight), times, 1000, out);
	else if (top->measure.dimension == SB_DIMENSION_BYTES)
		print_scaled((double)weight, bytes, 1024, out);
	else if (is_mean(top))
		print_scaled((double)weight * 1e6 / (double)top->measure.dur_us, bytes, 1024, out);
	else
		fprintf(out, "%12" PRIu64, weight);
}

static double percent(const struct top *top, uint64_t weight)
{
	return top->weight ? 100.0 * (double)weight / (double)top->weight : 0;
}

static int print_line(const struct top *top, const struct line *line, FILE *out)
{
	const struct sb_frame *frame = sb_functions_at(&top->functions, line->function);
	const struct sb_fold_opts opts = { .modules = true };
	sb_cleanup(sb_str_release) struct sb_str name = {};
	int err = sb_fold_frame(&name, frame, &opts);

	if (err)
		return err;
	sb_replace_controls(name.s, name.len);
	fprintf(out, "%6.2f%% ", percent(top, line->self));
	print_weight(top, line->self, out);
	fprintf(out, "  %6.2f%% ", percent(top, line->total));
	print_weight(top, line->total, out);
	fprintf(out, "  %s\n", name.s);
	return 0;
}

static void print_head(const struct top *top, FILE *out)
{
	const struct sb_metadata *known = sb_profile_metadata(top->profile);

	fprintf(out, "%s: %" PRIu64 " %s", top->measure.kind, top->weight, top->measure.unit);
	if (is_mean(top))
		fputs(", below as the mean of the bytes held", out);
	if (top->measure.hz)
		fprintf(out, " at %" PRIu64 " Hz", top->measure.hz);
	if (known->from && known->to)
		fprintf(out, ", %s to %s", known->from, known->to);
	if (known->tags)
		fprintf(out, ", %s", known->tags);
	fprintf(out, "\n%-20s  %-21s FUNCTION\n", "   SELF", "  TOTAL");
}

static int print(const struct top *top, size_t nr_max, FILE *out)
{
	uint64_t rest = 0;
	size_t i;
	int err = 0;

	print_head(top, out);
	for (i = 0; i < top->nr && i < nr_max && !err; i++)
		err = print_line(top, &top->lines[i], out);
	for (; i < top->nr; i++)
		rest += top->lines[i].self;
	if (!err && top->nr > nr_max) {
		fprintf(out, "%6.2f%% ", percent(top, rest));
		print_weight(top, rest, out);
		fprintf(out, "%24s%zu more functions: --limit shows them\n", "", top->nr - nr_max);
	}
	return err ? err : ferror(out) ? -EIO : 0;
}

static int write_top(const struct sb_profile *profile, const struct sb_output_opts *opts, FILE *out)
{
	struct top top = { .profile = profile, .measure = sb_measure_of(profile) };
	size_t i;
	int err = sb_functions_init(&top.functions, profile, sb_profile_nr_stacks(profile));

	top.nr = top.functions.frames.nr;
	top.lines = calloc(top.nr + 1, sizeof(*top.lines));
	if (!err && !top.lines)
		err = -ENOMEM;
	if (!err) {
		for (i = 0; i < top.nr; i++)
			top.lines[i].function = (uint32_t)i;
		weigh(&top);
		qsort_r(top.lines, top.nr, sizeof(*top.lines), by_self, &top);
		err = print(&top, opts->fold.limit ? opts->fold.limit : LINES_DEFAULT, out);
	}
	free(top.lines);
	sb_functions_release(&top.functions);
	return err;
}

const struct sb_output sb_output_top = {
	.name = "top",
	.extension = ".top",
	.summary = "the heaviest functions, a line each",
	.write = write_top,
};
