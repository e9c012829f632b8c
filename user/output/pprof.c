// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * pprof: github.com/google/pprof, proto/profile.proto. Fields are written in the order of their
 * numbers, one at a time; only the tables of strings, functions and locations are held in memory.
 *
 * A location is a place in the code with everything that was inlined there, innermost function
 * first. There are no addresses, because names were found while the processes were alive. Mappings
 * stand for modules, and claim that everything is known, so that no reader looks for symbols.
 *
 * Processes, threads and so on are frames, as in all other formats, so that the same picture comes
 * out. They are labels, too, by which pprof filters and groups (-tagfocus, -tagroot).
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/index.h"
#include "flamegraph/text.h"
#include "kinds/view_kind.h"
#include "output/functions.h"
#include "output/gzip.h"
#include "output/measure.h"
#include "output/numbers.h"
#include "output/outputs.h"
#include "output/protobuf.h"

/* profile.proto */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING_TABLE,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS,
	PROFILE_PERIOD_TYPE,
	PROFILE_PERIOD,
	PROFILE_COMMENT,
	PROFILE_DEFAULT_SAMPLE_TYPE,
};
enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT };
enum { SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_STR };
enum {
	MAPPING_ID = 1,
	MAPPING_FILENAME = 5,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILENAMES,
	MAPPING_HAS_LINE_NUMBERS,
	MAPPING_HAS_INLINE_FRAMES,
};
enum { LOCATION_ID = 1, LOCATION_MAPPING_ID, LOCATION_LINE = 4 };
enum { LINE_FUNCTION_ID = 1, LINE_LINE };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_FILENAME = 4 };

struct location {
	uint32_t first, nr; /* in location_frames */
};

struct pprof {
	const struct sb_profile *profile;
	struct sb_measure measure;
	bool has_samples; /* write the number of samples beside the weight */
	struct sb_functions functions;
	struct sb_strtab strings;
	SB_VEC(struct location) locations;
	SB_VEC(uint32_t) location_frames; /* innermost first */
	struct sb_index locations_index;
	struct sb_numbers modules; /* by mapping */
	SB_VEC(uint32_t) comments;
	struct sb_gzip *gzip;
	struct sb_str message, inner, inmost, clean;
	/* In the current sample: which of label_keys were written. */
	uint32_t labels_done;
};

static int add_string(struct pprof *pprof, const char *s, uint32_t *ret_id)
{
	return sb_fg_text_set(&pprof->clean, s)
		       ?: sb_strtab_add(&pprof->strings, pprof->clean.s, pprof->clean.len, ret_id);
}

/* A field that is the index of a string; nothing for NULL. */
static int add_string_field(struct pprof *pprof, struct sb_str *message, uint32_t field,
			    const char *s)
{
	uint32_t id;
	int err = s ? add_string(pprof, s, &id) : 0;

	return err || !s ? err : sb_pb_u64(message, field, id);
}

/* Write `message` as a field of the profile. */
static int put_message(struct pprof *pprof, uint32_t field)
{
	struct sb_str *head = &pprof->inmost;
	int err;

	sb_str_clear(head);
	err = sb_pb_message(head, field, &pprof->message);
	sb_str_clear(&pprof->message);
	return err ?: sb_gzip_put(pprof->gzip, head->s, head->len);
}

/* ---- types of values ---- */

static int put_value_type(struct pprof *pprof, uint32_t field, const char *type, const char *unit)
{
	int err = add_string_field(pprof, &pprof->message, VALUE_TYPE_TYPE, type);

	return err ?: add_string_field(pprof, &pprof->message, VALUE_TYPE_UNIT, unit) ?:
		      put_message(pprof, field);
}

/* Return: whether numbers of samples are known, and differ from the weights. */
static bool has_samples(const struct pprof *pprof, size_t nr_stacks)
{
	size_t i;

	if (pprof->measure.dimension == SB_DIMENSION_COUNT || pprof->measure.is_of_timer)
		return pprof->measure.dimension == SB_DIMENSION_TIME;
	for (i = 0; i < nr_stacks; i++)
		if (sb_profile_row_at(pprof->profile, i).nr_samples)
			return true;
	return false;
}

static uint64_t nr_samples_of(const struct pprof *pprof, const struct sb_row *row)
{
	/* When the sampling rate was lowered, a sample stands for several ticks. */
	uint64_t nr = pprof->measure.is_of_timer ? row->weight : row->nr_samples;

	return nr < INT64_MAX ? nr : INT64_MAX;
}

static int put_value_types(struct pprof *pprof)
{
	const struct sb_measure *measure = &pprof->measure;
	int err = 0;

	if (pprof->has_samples)
		err = put_value_type(pprof, PROFILE_SAMPLE_TYPE, "samples", "count");
	if (err)
		return err;
	switch (measure->dimension) {
	case SB_DIMENSION_TIME:
		return put_value_type(pprof, PROFILE_SAMPLE_TYPE, sb_view_kind_pprof(measure->kind),
				      "nanoseconds");
	case SB_DIMENSION_BYTES:
		return put_value_type(pprof, PROFILE_SAMPLE_TYPE, sb_view_kind_pprof(measure->kind),
				      "bytes");
	default:
		return put_value_type(pprof, PROFILE_SAMPLE_TYPE,
				      sb_view_kind_objects(measure->kind, measure->unit)
					      ?: measure->unit,
				      "count");
	}
}

/* ---- locations ---- */

static bool is_inlined(const struct sb_frame *frame)
{
	return frame->kind == SB_FRAME_INLINED || frame->kind == SB_FRAME_KERNEL_INLINED;
}

/* Return: how many of the @nr frames, up to the last one, are one place in the code. */
static uint32_t nr_of_place(const struct sb_profile *profile, const uint32_t *ids, size_t nr)
{
	const struct sb_frame *leaf = sb_profile_frame_at(profile, ids[nr - 1]), *frame;
	uint32_t nr_same = 1;

	if (!is_inlined(leaf))
		return 1;
	for (; nr_same < nr; nr_same++) {
		frame = sb_profile_frame_at(profile, ids[nr - 1 - nr_same]);
		if (frame->kind != leaf->kind)
			return nr_same + (frame->kind == sb_function_kind(leaf->kind));
	}
	return nr_same;
}

/* @ids: root first, as in stacks. */
static bool is_location(const struct pprof *pprof, uint32_t i, const uint32_t *ids, uint32_t nr)
{
	const struct location *location = &pprof->locations.at[i];
	uint32_t at;

	if (location->nr != nr)
		return false;
	for (at = 0; at < nr; at++)
		if (pprof->location_frames.at[location->first + at] != ids[nr - 1 - at])
			return false;
	return true;
}

static int find_location(struct pprof *pprof, const uint32_t *ids, uint32_t nr, uint64_t *ret_id)
{
	uint64_t hash = sb_hash(ids, nr * sizeof(*ids), 0);
	struct location location = { .first = (uint32_t)pprof->location_frames.nr, .nr = nr };
	int err = 0;

	sb_index_each(it, &pprof->locations_index, hash) {
		if (is_location(pprof, it.id, ids, nr)) {
			*ret_id = it.id + 1ull;
			return 0;
		}
	}
	while (nr-- && !err)
		err = sb_vec_push(&pprof->location_frames, ids[nr]);
	*ret_id = pprof->locations.nr + 1;
	return err ?: sb_index_push(&pprof->locations_index, hash, &pprof->locations, location);
}

/* ---- samples ---- */

static bool is_tag(const char *key)
{
	return !strncmp(key, SB_OUTPUT_TAG, strlen(SB_OUTPUT_TAG));
}

static const char *const label_keys[] = { "comm", "pid", "tid", "cpu", "cgroup", "container" };
enum label { LABEL_COMM, LABEL_PID, LABEL_TID, LABEL_CPU, LABEL_CGROUP, LABEL_CONTAINER };

static int add_own_label(struct pprof *pprof, const char *key, const char *value)
{
	int err;

	sb_str_clear(&pprof->inner);
	err = add_string_field(pprof, &pprof->inner, LABEL_KEY, key);
	err = err ?: add_string_field(pprof, &pprof->inner, LABEL_STR, value);
	return err ?: sb_pb_message(&pprof->message, SAMPLE_LABEL, &pprof->inner);
}

/* Write a label once for each sample: a thread repeats what its process says. */
static int add_label(struct pprof *pprof, enum label label, const char *text)
{
	if (pprof->labels_done & 1u << label)
		return 0;
	pprof->labels_done |= 1u << label;
	return add_own_label(pprof, label_keys[label], text);
}

static int add_number(struct pprof *pprof, enum label label, uint32_t number)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", number);
	return add_label(pprof, label, text);
}

/* Write a store's tag as a label, if label_keys has its key. */
static int add_tag(struct pprof *pprof, const struct sb_attr *attr)
{
	for (size_t i = 0; i < SB_ARRAY_SIZE(label_keys); i++)
		if (sb_streq(label_keys[i], attr->key))
			return add_label(pprof, (enum label)i, attr->text);
	return 0;
}

static int add_attr(struct pprof *pprof, const struct sb_attr *attr)
{
	int err = 0;

	switch (attr->kind) {
	case SB_ATTR_THREAD:
		err = add_number(pprof, LABEL_TID, attr->tid);
		/* fallthrough */
	case SB_ATTR_PROCESS:
		err = err ?: add_number(pprof, LABEL_PID, attr->pid);
		/* fallthrough */
	case SB_ATTR_COMM:
		return err ?: add_label(pprof, LABEL_COMM, attr->text);
	case SB_ATTR_CPU:
		return add_number(pprof, LABEL_CPU, attr->cpu);
	case SB_ATTR_CGROUP:
		return add_label(pprof, LABEL_CGROUP, attr->text);
	case SB_ATTR_CONTAINER:
		return add_label(pprof, LABEL_CONTAINER, attr->text);
	case SB_ATTR_LABEL:
		return add_own_label(pprof, attr->key, attr->text);
	case SB_ATTR_TAG:
		return add_tag(pprof, attr);
	default:
		return 0;
	}
}

/* Attributes are root frames; marks such as "[runqueue]" may be between them. */
static int add_labels(struct pprof *pprof, const struct sb_row *row)
{
	const struct sb_attr *attr;
	size_t i;
	int err = 0;

	pprof->labels_done = 0;
	for (i = 0; i < row->nr && !err; i++) {
		attr = sb_profile_attr_at(pprof->profile, row->frames[i]);
		if (!attr->kind)
			break;
		err = add_attr(pprof, attr);
	}
	return err;
}

/* Labels of all samples: metadata "tag:region", which the profile of one series has. */
static int add_tags(struct pprof *pprof)
{
	const char *key, *value;
	size_t i;
	int err = 0;

	for (i = 0; !err && (key = sb_profile_meta_at(pprof->profile, i, &value)); i++)
		if (is_tag(key))
			err = add_own_label(pprof, key + strlen(SB_OUTPUT_TAG), value);
	return err;
}

static int put_sample(struct pprof *pprof, size_t i)
{
	const struct sb_row row = sb_profile_row_at(pprof->profile, i);
	size_t nr = row.nr;
	uint64_t location;
	int err = 0;

	sb_str_clear(&pprof->inner);
	while (nr && !err) {
		uint32_t nr_here = nr_of_place(pprof->profile, row.frames, nr);

		nr -= nr_here;
		err = find_location(pprof, row.frames + nr, nr_here, &location);
		err = err ?: sb_pb_varint(&pprof->inner, location);
	}
	if (!err && pprof->inner.len)
		err = sb_pb_message(&pprof->message, SAMPLE_LOCATION_ID, &pprof->inner);
	sb_str_clear(&pprof->inner);
	if (!err && pprof->has_samples)
		err = sb_pb_varint(&pprof->inner, nr_samples_of(pprof, &row));
	err = err ?: sb_pb_varint(&pprof->inner, sb_measure_scaled(&pprof->measure, row.weight));
	err = err ?: sb_pb_message(&pprof->message, SAMPLE_VALUE, &pprof->inner);
	err = err ?: add_labels(pprof, &row) ?: add_tags(pprof);
	return err ?: put_message(pprof, PROFILE_SAMPLE);
}

/* ---- tables ---- */

/* Find or add the mapping of a module; 0 in *ret_id if there is no module. */
static int find_mapping(struct pprof *pprof, const char *module, uint64_t *ret_id)
{
	uint32_t number;
	int err;

	*ret_id = 0;
	if (!module || !*module)
		return 0;
	err = sb_numbers_of(&pprof->modules, module, &number);
	*ret_id = number + 1ull;
	return err;
}

static int find_mappings(struct pprof *pprof)
{
	uint64_t id;
	size_t i;
	int err = 0;

	for (i = 0; i < pprof->functions.frames.nr && !err; i++)
		err = find_mapping(pprof, sb_functions_at(&pprof->functions, (uint32_t)i)->module,
				   &id);
	return err;
}

static int put_mapping(struct pprof *pprof, size_t i)
{
	struct sb_str *message = &pprof->message;
	int err = sb_pb_u64(message, MAPPING_ID, i + 1);

	err = err ?: add_string_field(pprof, message, MAPPING_FILENAME, pprof->modules.at.at[i]);
	err = err ?: sb_pb_u64(message, MAPPING_HAS_FUNCTIONS, 1);
	err = err ?: sb_pb_u64(message, MAPPING_HAS_FILENAMES, 1);
	err = err ?: sb_pb_u64(message, MAPPING_HAS_LINE_NUMBERS, 1);
	err = err ?: sb_pb_u64(message, MAPPING_HAS_INLINE_FRAMES, 1);
	return err ?: put_message(pprof, PROFILE_MAPPING);
}

static int put_location(struct pprof *pprof, size_t i)
{
	const struct location *location = &pprof->locations.at[i];
	const uint32_t *ids = pprof->location_frames.at + location->first;
	const struct sb_frame *frame = sb_profile_frame_at(pprof->profile, ids[location->nr - 1]);
	uint64_t mapping;
	uint32_t at;
	int err = find_mapping(pprof, frame->module, &mapping);

	err = err ?: sb_pb_u64(&pprof->message, LOCATION_ID, i + 1);
	err = err ?: sb_pb_u64(&pprof->message, LOCATION_MAPPING_ID, mapping);
	for (at = 0; at < location->nr && !err; at++) {
		frame = sb_profile_frame_at(pprof->profile, ids[at]);
		sb_str_clear(&pprof->inner);
		err = sb_pb_u64(&pprof->inner, LINE_FUNCTION_ID,
				pprof->functions.of_frame[ids[at]] + 1ull);
		err = err ?: sb_pb_u64(&pprof->inner, LINE_LINE, frame->line);
		err = err ?: sb_pb_message(&pprof->message, LOCATION_LINE, &pprof->inner);
	}
	return err ?: put_message(pprof, PROFILE_LOCATION);
}

/*
 * Without system_name: if it equals the name, pprof takes the name for a mangled one, and shows
 * nothing for "<module>".
 */
static int put_function(struct pprof *pprof, size_t i)
{
	const struct sb_frame *frame = sb_functions_at(&pprof->functions, (uint32_t)i);
	struct sb_str *message = &pprof->message;
	int err = sb_pb_u64(message, FUNCTION_ID, i + 1);

	err = err ?: add_string_field(pprof, message, FUNCTION_NAME, frame->name);
	err = err ?: add_string_field(pprof, message, FUNCTION_FILENAME, frame->file);
	return err ?: put_message(pprof, PROFILE_FUNCTION);
}

static int put_string(struct pprof *pprof, size_t i)
{
	size_t len;
	const char *s = sb_strtab_get(&pprof->strings, (uint32_t)i, &len);
	int err = sb_pb_bytes(&pprof->message, PROFILE_STRING_TABLE, s, len);

	err = err ?: sb_gzip_put(pprof->gzip, pprof->message.s, pprof->message.len);
	sb_str_clear(&pprof->message);
	return err;
}

static int put_all(struct pprof *pprof, size_t nr, int (*put)(struct pprof *pprof, size_t i))
{
	size_t i;
	int err = 0;

	for (i = 0; i < nr && !err; i++)
		err = put(pprof, i);
	return err;
}

/* ---- metadata ---- */

/* Write metadata that are not labels as comments "key=value". */
static int add_comments(struct pprof *pprof)
{
	struct sb_fold_meta meta = {};
	uint32_t id;
	int err = 0;

	while (!err && sb_fold_next_meta(pprof->profile, &meta)) {
		if (is_tag(meta.key))
			continue;
		sb_str_clear(&pprof->inner);
		err = sb_str_addf(&pprof->inner, "%s=%s", meta.key, meta.value);
		err = err ?: add_string(pprof, pprof->inner.s, &id);
		err = err ?: sb_vec_push(&pprof->comments, id);
	}
	return err;
}

/* The table of strings has been written: everything that is named here is in it. */
static int put_metadata(struct pprof *pprof)
{
	const struct sb_measure *measure = &pprof->measure;
	struct sb_str *message = &pprof->message;
	size_t i;
	int err = sb_pb_u64(message, PROFILE_TIME_NANOS, measure->start_us * 1000);

	err = err ?: sb_pb_u64(message, PROFILE_DURATION_NANOS, measure->dur_us * 1000);
	if (!err && measure->is_of_timer) {
		sb_str_clear(&pprof->inner);
		err = add_string_field(pprof, &pprof->inner, VALUE_TYPE_TYPE,
				       sb_view_kind_pprof(measure->kind));
		err = err ?: add_string_field(pprof, &pprof->inner, VALUE_TYPE_UNIT, "nanoseconds");
		err = err ?: sb_pb_message(message, PROFILE_PERIOD_TYPE, &pprof->inner);
		err = err ?: sb_pb_u64(message, PROFILE_PERIOD, sb_measure_scaled(measure, 1));
	}
	sb_str_clear(&pprof->inner);
	for (i = 0; i < pprof->comments.nr && !err; i++)
		err = sb_pb_varint(&pprof->inner, pprof->comments.at[i]);
	if (!err && pprof->comments.nr)
		err = sb_pb_message(message, PROFILE_COMMENT, &pprof->inner);
	if (!err && measure->dimension != SB_DIMENSION_COUNT)
		err = add_string_field(pprof, message, PROFILE_DEFAULT_SAMPLE_TYPE,
				       sb_view_kind_pprof(measure->kind));
	if (!err && message->len)
		err = sb_gzip_put(pprof->gzip, message->s, message->len);
	return err;
}

static int put_profile(struct pprof *pprof, size_t nr_stacks)
{
	int err = add_comments(pprof) ?: put_value_types(pprof);

	err = err ?: put_all(pprof, nr_stacks, put_sample);
	err = err ?: find_mappings(pprof);
	err = err ?: put_all(pprof, pprof->modules.at.nr, put_mapping);
	err = err ?: put_all(pprof, pprof->locations.nr, put_location);
	err = err ?: put_all(pprof, pprof->functions.frames.nr, put_function);
	err = err ?: put_all(pprof, pprof->strings.strs.nr, put_string);
	return err ?: put_metadata(pprof) ?: sb_gzip_finish(pprof->gzip);
}

static void release(struct pprof *pprof)
{
	sb_functions_release(&pprof->functions);
	sb_strtab_release(&pprof->strings);
	sb_vec_release(&pprof->locations);
	sb_vec_release(&pprof->location_frames);
	sb_index_release(&pprof->locations_index);
	sb_numbers_release(&pprof->modules);
	sb_vec_release(&pprof->comments);
	sb_str_release(&pprof->message);
	sb_str_release(&pprof->inner);
	sb_str_release(&pprof->inmost);
	sb_str_release(&pprof->clean);
}

static int write_pprof(const struct sb_profile *profile, const struct sb_output_opts *opts,
		       FILE *out)
{
	sb_cleanup(sb_gzip_freep) struct sb_gzip *gzip = NULL;
	size_t nr_stacks = sb_output_nr_stacks(profile, opts);
	struct pprof pprof = { .profile = profile, .measure = sb_measure_of(profile) };
	int err = sb_gzip_new(out, &gzip);

	pprof.gzip = gzip;
	pprof.has_samples = has_samples(&pprof, nr_stacks);
	err = err ?: sb_strtab_init(&pprof.strings);
	err = err ?: sb_functions_init(&pprof.functions, profile, nr_stacks);
	err = err ?: put_profile(&pprof, nr_stacks);
	release(&pprof);
	return err;
}

const struct sb_output sb_output_pprof = {
	.name = "pprof",
	.extension = ".pb.gz",
	.summary = "for go tool pprof, Pyroscope, Parca, speedscope",
	.has_places = true,
	.write = write_pprof,
};
