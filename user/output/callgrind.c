// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The format of Valgrind's callgrind: valgrind.org/docs/manual/cl-format.html, for KCachegrind,
 * QCachegrind and callgrind_annotate.
 *
 * It has no stacks, but costs of lines and of calls. The cost of a call is that of all stacks in
 * which it is the call of this function nearest to the root: calls below it are recursion, and
 * counted already. So the costs of the calls to a function add up to its total. Root frames are
 * called by "all". Samples do not say how often functions were called. The number is 1, because
 * callgrind_annotate takes the cost of 0 calls for a cost of the function itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/search.h"
#include "base/version.h"
#include "flamegraph/text.h"
#include "output/functions.h"
#include "output/measure.h"
#include "output/numbers.h"
#include "output/outputs.h"

#define ALL_NAME "all"
#define ALL	 UINT32_MAX /* in place of a frame: the caller of root frames */

/* The own cost of a line, or the cost of calls from it. */
struct cost {
	uint32_t function, line; /* of the caller; ALL */
	uint32_t callee;	 /* SB_FUNCTION_NONE: own cost */
	uint64_t weight;
};

struct callgrind {
	const struct sb_profile *profile;
	struct sb_functions functions;
	SB_VEC(struct cost) costs;
	struct sb_index costs_index;
	uint32_t *seen; /* by function: the last stack that has it, counted from 1 */
	bool *is_named; /* by function and by file: its name was written, so its number is enough */
	struct sb_numbers files; /* names of files, or of modules instead */
	uint32_t *file_of;	 /* by function */
	bool *is_file_named;
	FILE *out;
	struct sb_str clean;
};

static int add_cost(struct callgrind *callgrind, const struct cost *cost)
{
	const uint32_t key[] = { cost->function, cost->line, cost->callee };
	uint64_t hash = sb_hash(key, sizeof(key), 0);

	sb_index_each(it, &callgrind->costs_index, hash) {
		struct cost *old = &callgrind->costs.at[it.id];

		if (old->function == cost->function && old->line == cost->line &&
		    old->callee == cost->callee) {
			old->weight += cost->weight;
			return 0;
		}
	}
	return sb_index_push(&callgrind->costs_index, hash, &callgrind->costs, *cost);
}

static int add_stack(struct callgrind *callgrind, size_t i)
{
	const struct sb_row row = sb_profile_row_at(callgrind->profile, i);
	struct cost cost = { .function = ALL, .callee = SB_FUNCTION_NONE, .weight = row.weight };
	size_t at;
	int err = 0;

	for (at = 0; at < row.nr && !err; at++) {
		uint32_t function = callgrind->functions.of_frame[row.frames[at]];

		if (callgrind->seen[function] != i + 1) {
			callgrind->seen[function] = (uint32_t)i + 1;
			cost.callee = function;
			err = add_cost(callgrind, &cost);
		}
		cost.function = function;
		cost.line = sb_profile_frame_at(callgrind->profile, row.frames[at])->line;
	}
	cost.callee = SB_FUNCTION_NONE;
	return err ?: add_cost(callgrind, &cost);
}

/* Sort by function, with own costs before calls. */
static int in_file_order(const void *left, const void *right)
{
	const struct cost *a = left, *b = right;

	/* SB_FUNCTION_NONE + 1 is 0. */
	return sb_compare(a->function, b->function) ?: sb_compare(a->callee + 1, b->callee + 1) ?:
	       sb_compare(a->line, b->line);
}

/* ---- names ---- */

/* Readers tell functions apart by file and name. If the file is not known, use the module. */
static const char *file_name(const struct sb_frame *frame)
{
	if (frame->file && *frame->file)
		return frame->file;
	if (frame->module && *frame->module)
		return frame->module;
	switch (frame->kind) {
	case SB_FRAME_ROOT:
		return "[process]";
	case SB_FRAME_KERNEL:
	case SB_FRAME_KERNEL_INLINED:
		return "[kernel]";
	case SB_FRAME_DELIMITER:
	case SB_FRAME_MARK:
		return "[mark]";
	case SB_FRAME_FILE:
		return "[file]";
	default:
		return "???";
	}
}

/* "fn=(3) name" the first time, "fn=(3)" from then on. Numbers begin at 1. */
static int put_name(struct callgrind *callgrind, const char *key, uint32_t id, bool *is_named,
		    const char *name)
{
	fprintf(callgrind->out, "%s=(%u)", key, id + 1);
	if (!*is_named) {
		if (sb_fg_text_set(&callgrind->clean, name))
			return -ENOMEM;
		fprintf(callgrind->out, " %s", callgrind->clean.len ? callgrind->clean.s : "???");
		*is_named = true;
	}
	putc('\n', callgrind->out);
	return 0;
}

static int put_function(struct callgrind *callgrind, const char *file_key, const char *key,
			uint32_t function)
{
	const struct sb_frame *frame = sb_functions_at(&callgrind->functions, function);
	uint32_t file = callgrind->file_of[function];
	int err = put_name(callgrind, file_key, file, &callgrind->is_file_named[file],
			   callgrind->files.at.at[file]);

	return err
		       ?: put_name(callgrind, key, function, &callgrind->is_named[function],
				   frame->name);
}

/* ---- the file ---- */

static int name_functions(struct callgrind *callgrind)
{
	size_t nr = callgrind->functions.frames.nr, i;
	int err = 0;

	callgrind->seen = calloc(nr + 1, sizeof(*callgrind->seen));
	callgrind->is_named = calloc(nr + 1, sizeof(*callgrind->is_named));
	callgrind->file_of = calloc(nr + 1, sizeof(*callgrind->file_of));
	if (!callgrind->seen || !callgrind->is_named || !callgrind->file_of)
		return -ENOMEM;
	for (i = 0; i < nr && !err; i++)
		err = sb_numbers_of(&callgrind->files,
				    file_name(sb_functions_at(&callgrind->functions, (uint32_t)i)),
				    &callgrind->file_of[i]);
	callgrind->is_file_named =
		calloc(callgrind->files.at.nr + 1, sizeof(*callgrind->is_file_named));
	return err ?: callgrind->is_file_named ? 0 : -ENOMEM;
}

/* Names of events may only have letters and digits. */
static void put_event(FILE *out, const char *unit)
{
	for (; *unit; unit++)
		putc((*unit >= 'a' && *unit <= 'z') || (*unit >= '0' && *unit <= '9') ? *unit : '_',
		     out);
}

static int put_head(struct callgrind *callgrind, const char *title, uint64_t total)
{
	struct sb_measure measure = sb_measure_of(callgrind->profile);
	struct sb_fold_meta meta = {};
	FILE *out = callgrind->out;
	int err = 0;

	fprintf(out, "# callgrind format\nversion: 1\ncreator: stackbpf %s\n", sb_version);
	while (!err && sb_fold_next_meta(callgrind->profile, &meta)) {
		err = sb_fg_text_set(&callgrind->clean, meta.value);
		fprintf(out, "desc: %s: %s\n", meta.key, err ? "" : callgrind->clean.s);
	}
	err = err ?: sb_fg_text_set(&callgrind->clean, title ? title : measure.kind);
	if (err)
		return err;
	fprintf(out, "cmd: %s\npositions: line\nevents: ", callgrind->clean.s);
	put_event(out, measure.unit);
	fprintf(out, "\nsummary: %llu\n", (unsigned long long)total);
	return 0;
}

static int put_cost(struct callgrind *callgrind, const struct cost *cost)
{
	int err = 0;

	if (cost->callee != SB_FUNCTION_NONE) {
		err = put_function(callgrind, "cfi", "cfn", cost->callee);
		fputs("calls=1 0\n", callgrind->out);
	}
	fprintf(callgrind->out, "%u %llu\n", cost->line, (unsigned long long)cost->weight);
	return err;
}

/* Write the function to which the following costs belong. */
static int put_owner(struct callgrind *callgrind, uint32_t function)
{
	const struct sb_frame *frame;
	const char *module;
	uint32_t id;
	int err;

	if (function == ALL) {
		fprintf(callgrind->out, "\nob=(0) stackbpf\nfl=(0) ???\nfn=(0) " ALL_NAME "\n");
		return 0;
	}
	frame = sb_functions_at(&callgrind->functions, function);
	module = frame->module && *frame->module ? frame->module : "???";
	/* Always with the name: objects have numbers of their own, and any number will do. */
	err = sb_numbers_of(&callgrind->files, module, &id);
	putc('\n', callgrind->out);
	err = err ?: put_name(callgrind, "ob", id, &(bool){ false }, module);
	return err ?: put_function(callgrind, "fl", "fn", function);
}

static int put_costs(struct callgrind *callgrind)
{
	size_t i;
	int err = 0;

	for (i = 0; i < callgrind->costs.nr && !err; i++) {
		const struct cost *cost = &callgrind->costs.at[i];

		if (!i || cost->function != cost[-1].function)
			err = put_owner(callgrind, cost->function);
		err = err ?: put_cost(callgrind, cost);
	}
	return err;
}

static int put_all(struct callgrind *callgrind, const struct sb_output_opts *opts)
{
	size_t i, nr_stacks = sb_output_nr_stacks(callgrind->profile, opts);
	int err = sb_functions_init(&callgrind->functions, callgrind->profile, nr_stacks);

	err = err ?: name_functions(callgrind);
	for (i = 0; i < nr_stacks && !err; i++)
		err = add_stack(callgrind, i);
	sb_vec_sort(&callgrind->costs, in_file_order);
	err = err
		      ?: put_head(callgrind, opts->title,
				  sb_profile_weight_of(callgrind->profile, nr_stacks));
	return err ?: put_costs(callgrind);
}

static int write_callgrind(const struct sb_profile *profile, const struct sb_output_opts *opts,
			   FILE *out)
{
	struct callgrind callgrind = { .profile = profile, .out = out };
	int err = put_all(&callgrind, opts);

	sb_functions_release(&callgrind.functions);
	sb_vec_release(&callgrind.costs);
	sb_index_release(&callgrind.costs_index);
	sb_numbers_release(&callgrind.files);
	sb_str_release(&callgrind.clean);
	free(callgrind.seen);
	free(callgrind.is_named);
	free(callgrind.file_of);
	free(callgrind.is_file_named);
	return err;
}

const struct sb_output sb_output_callgrind = {
	.name = "callgrind",
	.extension = ".callgrind",
	.summary = "for KCachegrind and callgrind_annotate",
	.has_places = true,
	.write = write_callgrind,
};
