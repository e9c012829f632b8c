// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * speedscope: https://www.speedscope.app/file-format-schema.json, a profile of type "sampled".
 * Stacks come in the order of their frames, so that the view "Time Order" is a flame graph.
 */
#include "base/cleanup.h"
#include "output/functions.h"
#include "output/jsontext.h"
#include "output/measure.h"
#include "output/order.h"
#include "output/outputs.h"

struct speedscope {
	const struct sb_profile *profile;
	struct sb_measure measure;
	struct sb_functions functions;
	uint32_t *order;
	size_t nr_stacks;
	struct sb_json json;
};

static const char *unit_of(const struct sb_measure *measure)
{
	static const struct {
		const char *unit, *name;
	} units[] = { { "ns", "nanoseconds" },
		      { "us", "microseconds" },
		      { "ms", "milliseconds" },
		      { "s", "seconds" },
		      { "bytes", "bytes" } };

	for (size_t i = 0; i < SB_ARRAY_SIZE(units); i++)
		if (sb_streq(measure->unit, units[i].unit))
			return units[i].name;
	return "none";
}

static void put_frames(struct speedscope *scope)
{
	struct sb_json *json = &scope->json;
	size_t i;

	sb_json_object(json, "shared");
	sb_json_rows(json, "frames");
	for (i = 0; i < scope->functions.frames.nr; i++) {
		const struct sb_frame *frame = sb_functions_at(&scope->functions, (uint32_t)i);

		sb_json_object(json, NULL);
		sb_json_string(json, "name", frame->name);
		/* It chooses colours by this. */
		sb_json_string_if(json, "file", frame->file ? frame->file : frame->module);
		sb_json_close(json);
	}
	sb_json_close(json);
	sb_json_close(json);
}

static void put_sample(struct speedscope *scope, uint32_t stack)
{
	const struct sb_row row = sb_profile_row_at(scope->profile, stack);
	struct sb_json *json = &scope->json;
	size_t at;

	sb_json_array(json, NULL);
	for (at = 0; at < row.nr; at++)
		sb_json_u64(json, NULL, scope->functions.of_frame[row.frames[at]]);
	sb_json_close(json);
}

static void put_profile(struct speedscope *scope, const char *name)
{
	struct sb_json *json = &scope->json;
	size_t i;

	sb_json_object(json, NULL);
	sb_json_string(json, "type", "sampled");
	sb_json_string(json, "name", name);
	sb_json_string(json, "unit", unit_of(&scope->measure));
	sb_json_u64(json, "startValue", 0);
	sb_json_u64(json, "endValue", sb_profile_weight_of(scope->profile, scope->nr_stacks));
	sb_json_rows(json, "samples");
	for (i = 0; i < scope->nr_stacks; i++)
		put_sample(scope, scope->order[i]);
	sb_json_close(json);
	sb_json_array(json, "weights");
	for (i = 0; i < scope->nr_stacks; i++)
		sb_json_u64(json, NULL, sb_profile_row_at(scope->profile, scope->order[i]).weight);
}

static void put_file(struct speedscope *scope, const char *title)
{
	struct sb_json *json = &scope->json;

	sb_json_object(json, NULL);
	sb_json_string(json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	sb_json_generator(json, "exporter");
	sb_json_string(json, "name", title);
	sb_json_u64(json, "activeProfileIndex", 0);
	put_frames(scope);
	sb_json_array(json, "profiles");
	put_profile(scope, title);
}

static int write_speedscope(const struct sb_profile *profile, const struct sb_output_opts *opts,
			    FILE *out)
{
	struct speedscope scope = {
		.profile = profile,
		.measure = sb_measure_of(profile),
		.nr_stacks = sb_output_nr_stacks(profile, opts),
		.json = { .put = sb_json_put_file, .arg = out },
	};
	int err = sb_functions_init(&scope.functions, profile, scope.nr_stacks), err_json;

	err = err ?: sb_order_new(profile, scope.nr_stacks, &scope.order);
	if (!err)
		put_file(&scope, opts->title ? opts->title : scope.measure.kind);
	err_json = sb_json_end(&scope.json);
	sb_functions_release(&scope.functions);
	free(scope.order);
	return err ?: err_json;
}

const struct sb_output sb_output_speedscope = {
	.name = "speedscope",
	.extension = ".speedscope.json",
	.summary = "for speedscope.app",
	.has_places = true,
	.write = write_speedscope,
};
