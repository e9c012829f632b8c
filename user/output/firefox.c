// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The "processed profile format" of Firefox's profiler (profiler.firefox.com), version 48, which
 * newer readers upgrade; github.com/firefox-devtools/profiler, docs-developer and
 * src/types/profile.js.
 *
 * One thread has all stacks; their root frames (processes, threads) are frames. A profile has no
 * order in time, so the stacks come in the order of their frames, one after the other.
 *
 * The table of stacks is a tree, in columns. Because the stacks are sorted, the tree can be walked
 * once for each column, and is never held in memory.
 */

#include "base/cleanup.h"
#include "output/functions.h"
#include "output/gzip.h"
#include "output/jsontext.h"
#include "output/measure.h"
#include "output/numbers.h"
#include "output/order.h"
#include "output/outputs.h"

#define FORMAT_VERSION 48

struct firefox {
	const struct sb_profile *profile;
	struct sb_measure measure;
	struct sb_functions functions;
	uint32_t *numbers; /* by frame ID */
	uint32_t *order;
	size_t nr_stacks;
	SB_VEC(uint32_t) path; /* nodes from the root to the current one */
	struct sb_numbers strings;
	struct sb_json json;
};

/* Categories, with colours whose names the reader knows. */
static const struct {
	const char *name, *color;
} categories[SB_FRAME_KIND_MAX] = {
	[SB_FRAME_ROOT] = { "Process", "grey" },
	[SB_FRAME_USER] = { "User", "yellow" },
	[SB_FRAME_INLINED] = { "User, inlined", "yellow" },
	[SB_FRAME_JIT] = { "JIT", "lightblue" },
	[SB_FRAME_KERNEL] = { "Kernel", "orange" },
	[SB_FRAME_KERNEL_INLINED] = { "Kernel, inlined", "orange" },
	[SB_FRAME_DELIMITER] = { "Delimiter", "grey" },
	[SB_FRAME_MARK] = { "Mark", "darkgrey" },
	[SB_FRAME_FILE] = { "File", "green" },
	[SB_FRAME_INTERP] = { "Interpreter", "blue" },
	[SB_FRAME_WAKER] = { "Waker", "purple" },
};

/* ---- columns ---- */

/* What the format needs and we do not have, or what is the same in all files. */
struct constant {
	const char *key, *value; /* @value is JSON */
};

/* @constants ends with {}. */
static void put_constants(struct sb_json *json, const struct constant *constants)
{
	for (; constants->key; constants++)
		sb_json_literal(json, constants->key, constants->value);
}

/* Write columns of @nr equal elements each. */
static void put_constant_columns(struct sb_json *json, size_t nr, const struct constant *columns)
{
	size_t i;

	for (; columns->key; columns++) {
		sb_json_array(json, columns->key);
		for (i = 0; i < nr; i++)
			sb_json_literal(json, NULL, columns->value);
		sb_json_close(json);
	}
}

static void begin_table(struct sb_json *json, const char *name, size_t nr)
{
	sb_json_object(json, name);
	sb_json_u64(json, "length", nr);
}

/* An element of a column; UINT32_MAX: null. */
static void put_id(struct firefox *firefox, uint32_t id)
{
	if (id == UINT32_MAX)
		sb_json_string(&firefox->json, NULL, NULL);
	else
		sb_json_u64(&firefox->json, NULL, id);
}

/* ---- strings: one for each name that is interned in the profile ---- */

static uint32_t string_id(struct firefox *firefox, const char *s)
{
	uint32_t id = 0;
	int err = sb_numbers_of(&firefox->strings, s, &id);

	if (err && !firefox->json.err)
		firefox->json.err = err;
	return id;
}

static void put_strings(struct firefox *firefox)
{
	size_t i;

	sb_json_rows(&firefox->json, "stringArray");
	for (i = 0; i < firefox->strings.at.nr; i++)
		sb_json_string(&firefox->json, NULL, firefox->strings.at.at[i]);
}

/* ---- functions and frames ---- */

static void put_functions(struct firefox *firefox)
{
	static const struct constant constants[] = {
		{ "isJS", "false" },	  { "relevantForJS", "false" }, { "resource", "-1" },
		{ "lineNumber", "null" }, { "columnNumber", "null" },	{}
	};
	struct sb_json *json = &firefox->json;
	size_t nr = firefox->functions.frames.nr, i;

	begin_table(json, "funcTable", nr);
	sb_json_array(json, "name");
	for (i = 0; i < nr; i++)
		put_id(firefox,
		       string_id(firefox, sb_functions_at(&firefox->functions, (uint32_t)i)->name));
	sb_json_close(json);
	sb_json_array(json, "fileName");
	for (i = 0; i < nr; i++) {
		const struct sb_frame *frame = sb_functions_at(&firefox->functions, (uint32_t)i);
		const char *place = frame->file ? frame->file : frame->module;

		put_id(firefox, place && *place ? string_id(firefox, place) : UINT32_MAX);
	}
	sb_json_close(json);
	put_constant_columns(json, nr, constants);
	sb_json_close(json);
}

static uint32_t category_of(const struct firefox *firefox, uint32_t frame)
{
	return sb_profile_frame_at(firefox->profile, frame)->kind;
}

/* Write a column of the table of frames: @value of each frame @i that the stacks have. */
#define PUT_FRAMES(name, value)                              \
	do {                                                 \
		sb_json_array(json, name);                   \
		for (uint32_t i = 0; i < nr_frames; i++)     \
			if (of_frame[i] != SB_FUNCTION_NONE) \
				put_id(firefox, value);      \
		sb_json_close(json);                         \
	} while (0)

static void put_frames(struct firefox *firefox)
{
	static const struct constant constants[] = {
		{ "subcategory", "0" },	  { "address", "-1" },
		{ "inlineDepth", "0" },	  { "nativeSymbol", "null" },
		{ "innerWindowID", "0" }, { "implementation", "null" },
		{ "column", "null" },	  {}
	};
	const uint32_t nr_frames = (uint32_t)sb_profile_nr_frames(firefox->profile);
	const uint32_t *of_frame = firefox->functions.of_frame;
	struct sb_json *json = &firefox->json;
	size_t nr = 0;

	for (uint32_t i = 0; i < nr_frames; i++)
		nr += of_frame[i] != SB_FUNCTION_NONE;
	begin_table(json, "frameTable", nr);
	PUT_FRAMES("func", of_frame[i]);
	PUT_FRAMES("line", sb_profile_frame_at(firefox->profile, i)->line ?: UINT32_MAX);
	PUT_FRAMES("category", category_of(firefox, i));
	put_constant_columns(json, nr, constants);
	sb_json_close(json);
}

/* ---- the tree of stacks ---- */

/* Called at each node, and at the end of each stack; either may be NULL. */
struct visitor {
	/* @parent: its index; UINT32_MAX: none */
	void (*node)(struct firefox *firefox, uint32_t parent, uint32_t frame);
	/* @node: where the stack ends; UINT32_MAX: it has no frames */
	void (*stack)(struct firefox *firefox, uint32_t node);
};

/* Walk the tree in preorder. Return: the number of nodes. */
static uint32_t walk(struct firefox *firefox, const struct visitor *visitor)
{
	uint32_t nr_nodes = 0, parent;
	size_t i, depth;

	for (i = 0; i < firefox->nr_stacks && !firefox->json.err; i++) {
		const struct sb_row row = sb_profile_row_at(firefox->profile, firefox->order[i]);
		const size_t nr = row.nr;

		depth = i ? sb_order_common(firefox->profile, firefox->order[i - 1],
					    firefox->order[i])
			  : 0;
		firefox->json.err = sb_vec_reserve(&firefox->path, nr);
		for (; depth < nr && !firefox->json.err; depth++) {
			parent = depth ? firefox->path.at[depth - 1] : UINT32_MAX;
			firefox->path.at[depth] = nr_nodes;
			if (visitor->node)
				visitor->node(firefox, parent, row.frames[depth]);
			nr_nodes++;
		}
		if (visitor->stack && !firefox->json.err)
			visitor->stack(firefox, nr ? firefox->path.at[nr - 1] : UINT32_MAX);
	}
	return nr_nodes;
}

static void put_prefix(struct firefox *firefox, uint32_t parent, uint32_t frame)
{
	put_id(firefox, parent);
}

static void put_node_frame(struct firefox *firefox, uint32_t parent, uint32_t frame)
{
	put_id(firefox, firefox->numbers[frame]);
}

static void put_node_category(struct firefox *firefox, uint32_t parent, uint32_t frame)
{
	put_id(firefox, category_of(firefox, frame));
}

static void put_column(struct firefox *firefox, const char *name, const struct visitor *visitor)
{
	sb_json_array(&firefox->json, name);
	walk(firefox, visitor);
	sb_json_close(&firefox->json);
}

static void put_stacks(struct firefox *firefox)
{
	uint32_t nr = walk(firefox, &(struct visitor){});

	begin_table(&firefox->json, "stackTable", nr);
	put_column(firefox, "prefix", &(struct visitor){ .node = put_prefix });
	put_column(firefox, "frame", &(struct visitor){ .node = put_node_frame });
	put_column(firefox, "category", &(struct visitor){ .node = put_node_category });
	put_constant_columns(&firefox->json, nr, (struct constant[]){ { "subcategory", "0" }, {} });
	sb_json_close(&firefox->json);
}

/* ---- samples ---- */

/* Write nanoseconds as milliseconds. */
static void put_ms(struct sb_json *json, const char *key, uint64_t ns)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu.%06llu", (unsigned long long)(ns / 1000000),
		 (unsigned long long)(ns % 1000000));
	sb_json_literal(json, key, text);
}

/* Times are shown as times, samples as samples. */
static bool is_time(const struct sb_measure *measure)
{
	return measure->dimension == SB_DIMENSION_TIME && !measure->is_of_timer;
}

static uint64_t weight_of(const struct firefox *firefox, size_t i)
{
	return sb_profile_row_at(firefox->profile, firefox->order[i]).weight;
}

static void put_weights(struct firefox *firefox)
{
	const struct sb_measure *measure = &firefox->measure;
	struct sb_json *json = &firefox->json;
	size_t i;

	sb_json_array(json, "weight");
	for (i = 0; i < firefox->nr_stacks; i++) {
		if (is_time(measure))
			put_ms(json, NULL, sb_measure_scaled(measure, weight_of(firefox, i)));
		else
			sb_json_u64(json, NULL, weight_of(firefox, i));
	}
	sb_json_close(json);
	sb_json_string(json, "weightType",
		       is_time(measure)				  ? "tracing-ms"
		       : measure->dimension == SB_DIMENSION_BYTES ? "bytes"
								  : "samples");
}

/* One after the other: each as long as its time, or one millisecond. */
static void put_times(struct firefox *firefox)
{
	const struct sb_measure *measure = &firefox->measure;
	bool is_known = measure->dimension == SB_DIMENSION_TIME;
	uint64_t at_ns = 0, ns;
	size_t i;

	sb_json_array(&firefox->json, "time");
	for (i = 0; i < firefox->nr_stacks; i++) {
		put_ms(&firefox->json, NULL, at_ns);
		ns = is_known ? sb_measure_scaled(measure, weight_of(firefox, i)) : 1000000;
		at_ns = at_ns > INT64_MAX - ns ? INT64_MAX : at_ns + ns;
	}
	sb_json_close(&firefox->json);
}

static void put_samples(struct firefox *firefox)
{
	begin_table(&firefox->json, "samples", firefox->nr_stacks);
	put_column(firefox, "stack", &(struct visitor){ .stack = put_id });
	put_times(firefox);
	put_weights(firefox);
	sb_json_close(&firefox->json);
}

/* ---- the file ---- */

static void put_categories(struct sb_json *json)
{
	size_t i;

	sb_json_array(json, "categories");
	for (i = 0; i < SB_ARRAY_SIZE(categories); i++) {
		sb_json_object(json, NULL);
		sb_json_string(json, "name", categories[i].name);
		sb_json_string(json, "color", categories[i].color);
		sb_json_literal(json, "subcategories", "[\"Other\"]");
		sb_json_close(json);
	}
	sb_json_close(json);
}

/* Shown under "About this profile". */
static void put_metadata(struct firefox *firefox)
{
	struct sb_json *json = &firefox->json;
	struct sb_fold_meta meta = {};

	sb_json_array(json, "extra");
	sb_json_object(json, NULL);
	sb_json_string(json, "label", "stackbpf");
	sb_json_array(json, "entries");
	while (sb_fold_next_meta(firefox->profile, &meta)) {
		sb_json_object(json, NULL);
		sb_json_string(json, "label", meta.key);
		sb_json_string(json, "format", "string");
		sb_json_string(json, "value", meta.value);
		sb_json_close(json);
	}
	sb_json_close(json);
	sb_json_close(json);
	sb_json_close(json);
}

static void put_meta(struct firefox *firefox, const char *title)
{
	static const struct constant constants[] = {
		{ "stackwalk", "1" },
		{ "debug", "false" },
		{ "symbolicated", "true" },
		{ "markerSchema", "[]" },
		{ "usesOnlyOneStackType", "true" },
		{ "doesNotUseFrameImplementation", "true" },
		{ "sourceCodeIsNotOnSearchfox", "true" },
		{ "extensions", "{\"length\":0,\"id\":[],\"name\":[],\"baseURL\":[]}" },
		{}
	};
	const struct sb_measure *measure = &firefox->measure;
	struct sb_json *json = &firefox->json;

	sb_json_object(json, "meta");
	sb_json_u64(json, "preprocessedProfileVersion", FORMAT_VERSION);
	sb_json_u64(json, "version", 27);
	sb_json_u64(json, "processType", 0);
	sb_json_string(json, "product", title);
	sb_json_generator(json, "importedFrom");
	put_ms(json, "interval", measure->hz ? 1000000000ull / measure->hz : 1000000);
	put_ms(json, "startTime",
	       measure->start_us > UINT64_MAX / 1000 ? 0 : measure->start_us * 1000);
	put_constants(json, constants);
	put_categories(json);
	put_metadata(firefox);
	sb_json_close(json);
}

static void put_thread(struct firefox *firefox, const char *title)
{
	static const struct constant constants[] = { { "processType", "\"default\"" },
						     { "processStartupTime", "0" },
						     { "processShutdownTime", "null" },
						     { "registerTime", "0" },
						     { "unregisterTime", "null" },
						     { "pausedRanges", "[]" },
						     { "isMainThread", "true" },
						     { "pid", "\"0\"" },
						     { "tid", "0" },
						     {} };
	static const struct constant empty_tables[] = {
		{ "markers", "{\"length\":0,\"category\":[],\"data\":[],\"endTime\":[],"
			     "\"name\":[],\"phase\":[],\"startTime\":[]}" },
		{ "resourceTable",
		  "{\"length\":0,\"lib\":[],\"name\":[],\"host\":[],\"type\":[]}" },
		{ "nativeSymbols", "{\"length\":0,\"address\":[],\"functionSize\":[],"
				   "\"libIndex\":[],\"name\":[]}" },
		{}
	};
	struct sb_json *json = &firefox->json;

	sb_json_array(json, "threads");
	sb_json_object(json, NULL);
	put_constants(json, constants);
	sb_json_string(json, "name", title);
	sb_json_string(json, "processName", title);
	put_functions(firefox);
	put_frames(firefox);
	put_stacks(firefox);
	put_samples(firefox);
	put_constants(json, empty_tables);
	put_strings(firefox);
}

static void put_file(struct firefox *firefox, const char *title)
{
	static const struct constant constants[] = { { "libs", "[]" },
						     { "pages", "[]" },
						     { "counters", "[]" },
						     { "profilerOverhead", "[]" },
						     {} };
	struct sb_json *json = &firefox->json;

	sb_json_object(json, NULL);
	put_meta(firefox, title);
	put_constants(json, constants);
	put_thread(firefox, title);
}

static int write_firefox(const struct sb_profile *profile, const struct sb_output_opts *opts,
			 FILE *out)
{
	sb_cleanup(sb_gzip_freep) struct sb_gzip *gzip = NULL;
	struct firefox firefox = {
		.profile = profile,
		.measure = sb_measure_of(profile),
		.nr_stacks = sb_output_nr_stacks(profile, opts),
	};
	int err = sb_gzip_new(out, &gzip), err_json;

	firefox.json.put = sb_gzip_put;
	firefox.json.arg = gzip;
	err = err ?: sb_functions_init(&firefox.functions, profile, firefox.nr_stacks);
	err = err ?: sb_functions_number_frames(&firefox.functions, &firefox.numbers);
	err = err ?: sb_order_new(profile, firefox.nr_stacks, &firefox.order);
	if (!err)
		put_file(&firefox, opts->title ? opts->title : firefox.measure.kind);
	err_json = sb_json_end(&firefox.json);
	err = err ?: err_json ?: sb_gzip_finish(gzip);
	sb_functions_release(&firefox.functions);
	sb_vec_release(&firefox.path);
	sb_numbers_release(&firefox.strings);
	free(firefox.numbers);
	free(firefox.order);
	return err;
}

const struct sb_output sb_output_firefox = {
	.name = "firefox",
	.extension = ".firefox.json.gz",
	.summary = "for profiler.firefox.com",
	.has_places = true,
	.write = write_firefox,
};
