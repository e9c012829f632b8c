// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Everything that is known, as JSON for other programs. docs/formats.md describes it. While
 * "version" is 1, keys may be added, but existing ones do not change.
 */
#include "kinds/view_kind.h"
#include "output/functions.h"
#include "output/jsontext.h"
#include "output/measure.h"
#include "output/outputs.h"

struct writer {
	const struct sb_profile *profile;
	struct sb_functions functions;
	uint32_t *numbers; /* by frame ID */
	size_t nr_stacks;
	struct sb_json json;
};

static void put_functions(struct writer *writer)
{
	struct sb_json *json = &writer->json;
	size_t i;

	sb_json_rows(json, "functions");
	for (i = 0; i < writer->functions.frames.nr; i++) {
		const struct sb_frame *frame = sb_functions_at(&writer->functions, (uint32_t)i);

		sb_json_object(json, NULL);
		sb_json_string(json, "name", frame->name);
		sb_json_string(json, "kind", sb_function_kind_name(frame->kind));
		sb_json_string_if(json, "module", frame->module);
		sb_json_string_if(json, "file", frame->file);
		sb_json_close(json);
	}
	sb_json_close(json);
}

static void put_frames(struct writer *writer)
{
	struct sb_json *json = &writer->json;
	size_t i;

	sb_json_rows(json, "frames");
	for (i = 0; i < sb_profile_nr_frames(writer->profile); i++) {
		const struct sb_frame *frame = sb_profile_frame_at(writer->profile, (uint32_t)i);

		if (writer->functions.of_frame[i] == SB_FUNCTION_NONE)
			continue;
		sb_json_object(json, NULL);
		sb_json_u64(json, "function", writer->functions.of_frame[i]);
		if (frame->line)
			sb_json_u64(json, "line", frame->line);
		if (frame->kind != sb_function_kind(frame->kind))
			sb_json_bool(json, "inlined", true);
		sb_json_close(json);
	}
	sb_json_close(json);
}

/* [[10,3],...]: three durations of 2^10 ns or more, below 2^11 ns, or events that weigh so much */
static void put_histogram(const struct sb_profile *profile, struct sb_json *json,
			  const uint64_t nr[SB_PROFILE_NR_LOG2])
{
	bool is_duration = sb_view_kind_is_lasting(sb_profile_metadata(profile)->kind);
	size_t i;

	sb_json_array(json, is_duration ? "log2_ns" : "log2");
	for (i = 0; i < SB_PROFILE_NR_LOG2; i++)
		if (nr[i])
			sb_json_two(json, NULL, i, nr[i]);
	sb_json_close(json);
}

static void put_stack(struct writer *writer, size_t i)
{
	struct sb_json *json = &writer->json;
	const uint64_t *log2 = sb_profile_log2_at(writer->profile, i);
	const struct sb_row row = sb_profile_row_at(writer->profile, i);
	size_t at;

	sb_json_object(json, NULL);
	sb_json_u64(json, "weight", row.weight);
	if (row.nr_samples)
		sb_json_u64(json, "samples", row.nr_samples);
	sb_json_array(json, "frames");
	for (at = 0; at < row.nr; at++)
		sb_json_u64(json, NULL, writer->numbers[row.frames[at]]);
	sb_json_close(json);
	if (log2)
		put_histogram(writer->profile, json, log2);
	sb_json_close(json);
}

static void put_file(struct writer *writer, const char *title)
{
	struct sb_measure measure = sb_measure_of(writer->profile);
	struct sb_json *json = &writer->json;
	size_t i;

	sb_json_object(json, NULL);
	sb_json_string(json, "format", "stackbpf");
	sb_json_u64(json, "version", 1);
	sb_json_generator(json, "generator");
	sb_json_string(json, "kind", measure.kind);
	sb_json_string(json, "unit", measure.unit);
	sb_json_string_if(json, "title", title);
	sb_json_u64(json, "total", sb_profile_weight(writer->profile));
	sb_json_meta(json, "facts", writer->profile);
	put_functions(writer);
	put_frames(writer);
	sb_json_rows(json, "stacks");
	for (i = 0; i < writer->nr_stacks; i++)
		put_stack(writer, i);
}

static int write_json(const struct sb_profile *profile, const struct sb_output_opts *opts,
		      FILE *out)
{
	struct writer writer = {
		.profile = profile,
		.nr_stacks = sb_output_nr_stacks(profile, opts),
		.json = { .put = sb_json_put_file, .arg = out },
	};
	int err = sb_functions_init(&writer.functions, profile, writer.nr_stacks), err_json;

	err = err ?: sb_functions_number_frames(&writer.functions, &writer.numbers);
	if (!err)
		put_file(&writer, opts->title);
	err_json = sb_json_end(&writer.json);
	sb_functions_release(&writer.functions);
	free(writer.numbers);
	return err ?: err_json;
}

const struct sb_output sb_output_json = {
	.name = "json",
	.extension = ".json",
	.summary = "all that is known, for programs of your own",
	.has_places = true,
	.write = write_json,
};
