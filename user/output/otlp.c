// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * OpenTelemetry profiles: opentelemetry-proto, profiles/v1development/profiles.proto from 1.10 on.
 * Each of five releases before had changed the numbers of the fields.
 *
 * Everything that repeats is in tables of the request, whose first entry is the empty message.
 * Entries with the same bytes are stored once, so each table is a table of strings.
 *
 * Four things follow the decoders that were tried rather than the specification:
 * - Keys of a resource's attributes are written twice, as text and as the index of a string. The
 *   collector up to 0.159 erases the text if there is no index; Pyroscope and Parca read only the
 *   text.
 * - The empty entry of the table of links is an empty message. Parca refuses one with a zero ID of
 *   16 bytes.
 * - Attributes of samples, such as the thread, are frames, because readers leave others out. Only
 *   the labels trace_id and span_id of OpenTelemetry are not frames but the link of the sample.
 * - A sample has one value and no times. Samples of a timer are counts, and the period says how
 *   much time one of them is.
 *
 * There are no addresses and no build IDs, because names were found while the processes were alive.
 * Mappings are names of files, and locations have functions. An inlined function is a location of
 * its own, because some readers show only one function of each location.
 */
#include "output/otlp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/index.h"
#include "base/version.h"
#include "flamegraph/text.h"
#include "kinds/view_kind.h"
#include "output/measure.h"
#include "output/outputs.h"
#include "output/protobuf.h"

enum { REQUEST_RESOURCE_PROFILES = 1, REQUEST_DICTIONARY };
enum { RESOURCE_PROFILES_RESOURCE = 1, RESOURCE_PROFILES_SCOPE_PROFILES };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { SCOPE_PROFILES_SCOPE = 1, SCOPE_PROFILES_PROFILES };
enum { SCOPE_NAME = 1, SCOPE_VERSION };
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLES,
	PROFILE_TIME_UNIX_NANO,
	PROFILE_DURATION_NANO,
	PROFILE_PERIOD_TYPE,
	PROFILE_PERIOD,
	PROFILE_ID,
	PROFILE_ATTRIBUTES = 11,
};
enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT };
enum { SAMPLE_STACK = 1, SAMPLE_LINK = 3, SAMPLE_VALUES = 4 };
enum { LINK_TRACE_ID = 1, LINK_SPAN_ID };
enum { STACK_LOCATIONS = 1 };
enum { LOCATION_MAPPING = 1, LOCATION_LINES = 3, LOCATION_ATTRIBUTES };
enum { LINE_FUNCTION = 1, LINE_LINE };
enum { FUNCTION_NAME = 1, FUNCTION_FILENAME = 3 };
enum { MAPPING_FILENAME = 4 };
enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE, KEY_VALUE_KEY_STRINDEX };
enum { ANY_STRING = 1 };
enum { ATTRIBUTE_KEY_STRINDEX = 1, ATTRIBUTE_VALUE };

/* In the order of their fields in ProfilesDictionary, from 1 on. */
enum table {
	TABLE_MAPPING,
	TABLE_LOCATION,
	TABLE_FUNCTION,
	TABLE_LINK,
	TABLE_STRING,
	TABLE_ATTRIBUTE,
	TABLE_STACK,
	TABLE_MAX,
};

/* The labels trace_id and span_id of a sample, in binary. */
struct link {
	uint8_t trace_id[16], span_id[8];
	bool has_trace, has_span;
};

struct sb_otlp {
	enum sb_otlp_attrs attrs;
	struct sb_strtab tables[TABLE_MAX];
	size_t nr_table_bytes;
	struct sb_str done;		 /* the finished profiles of the request */
	struct sb_str profile, resource; /* the current one */
	const struct sb_profile *of;
	struct sb_measure measure;	     /* of the current profile */
	uint32_t *location_of;		     /* by frame ID; UINT32_MAX: not yet */
	struct sb_str message, inner, clean; /* scratch */
};

/* ---- tables ---- */

static int intern(struct sb_otlp *otlp, enum table table, const struct sb_str *message,
		  uint32_t *ret_id)
{
	struct sb_strtab *tab = &otlp->tables[table];
	size_t before = tab->strs.nr;
	int err = sb_strtab_add(tab, message->len ? message->s : "", message->len, ret_id);

	if (tab->strs.nr > before)
		otlp->nr_table_bytes += message->len + 4;
	return err;
}

/* Strings are UTF-8. */
static int string_id(struct sb_otlp *otlp, const char *s, uint32_t *ret_id)
{
	return sb_fg_text_set(&otlp->clean, s) ?: intern(otlp, TABLE_STRING, &otlp->clean, ret_id);
}

static int init_tables(struct sb_otlp *otlp)
{
	int err = 0;

	for (size_t i = 0; i < TABLE_MAX && !err; i++)
		err = sb_strtab_init(&otlp->tables[i]);
	otlp->nr_table_bytes = 0;
	return err;
}

static void release_tables(struct sb_otlp *otlp)
{
	for (size_t i = 0; i < TABLE_MAX; i++)
		sb_strtab_release(&otlp->tables[i]);
}

int sb_otlp_new(enum sb_otlp_attrs attrs, struct sb_otlp **ret_otlp)
{
	struct sb_otlp *otlp = calloc(1, sizeof(*otlp));
	int err = otlp ? init_tables(otlp) : -ENOMEM;

	if (err) {
		sb_otlp_free(otlp);
		return err;
	}
	otlp->attrs = attrs;
	*ret_otlp = otlp;
	return 0;
}

void sb_otlp_free(struct sb_otlp *otlp)
{
	if (!otlp)
		return;
	release_tables(otlp);
	free(otlp->location_of);
	sb_str_release(&otlp->done);
	sb_str_release(&otlp->profile);
	sb_str_release(&otlp->resource);
	sb_str_release(&otlp->message);
	sb_str_release(&otlp->inner);
	sb_str_release(&otlp->clean);
	free(otlp);
}

/* ---- attributes ---- */

/* The names of tags in OpenTelemetry's semantic conventions; others keep their names. */
static const char *attribute_of(const char *key)
{
	static const struct {
		const char *tag, *attribute;
	} names[] = { { "service", "service.name" },
		      { "host", "host.name" },
		      { "container", "container.id" },
		      { "comm", "process.executable.name" },
		      { "pid", "process.pid" },
		      { "tid", "thread.id" },
		      { "runtime", "process.runtime.name" },
		      { "cgroup", "process.linux.cgroup" } };

	for (size_t i = 0; i < SB_ARRAY_SIZE(names); i++)
		if (sb_streq(names[i].tag, key))
			return names[i].attribute;
	return key;
}

/* AnyValue */
static int add_value(struct sb_otlp *otlp, struct sb_str *message, uint32_t field,
		     const char *value)
{
	int err = sb_fg_text_set(&otlp->clean, value);

	sb_str_clear(&otlp->inner);
	err = err ?: sb_pb_message(&otlp->inner, ANY_STRING, &otlp->clean);
	return err ?: sb_pb_message(message, field, &otlp->inner);
}

/* KeyValue */
int sb_otlp_tag(struct sb_otlp *otlp, const char *tag, const char *value)
{
	const char *key = attribute_of(tag);
	struct sb_str *message = &otlp->message;
	uint32_t id = 0;
	int err = sb_fg_text_set(&otlp->clean, key);

	sb_str_clear(message);
	if (!err && otlp->attrs != SB_OTLP_REF)
		err = sb_pb_message(message, KEY_VALUE_KEY, &otlp->clean);
	err = err ?: add_value(otlp, message, KEY_VALUE_VALUE, value);
	if (!err && otlp->attrs != SB_OTLP_INLINE)
		err = string_id(otlp, key, &id);
	err = err ?: sb_pb_u64(message, KEY_VALUE_KEY_STRINDEX, id);
	return err ?: sb_pb_message(&otlp->resource, RESOURCE_ATTRIBUTES, message);
}

/* Find or add an attribute in the table: KeyValueAndUnit. */
static int attribute_id(struct sb_otlp *otlp, const char *key, const char *value, uint32_t *ret_id)
{
	struct sb_str *message = &otlp->message;
	uint32_t key_id;
	int err = string_id(otlp, key, &key_id);

	sb_str_clear(message);
	err = err ?: sb_pb_u64(message, ATTRIBUTE_KEY_STRINDEX, key_id);
	err = err ?: add_value(otlp, message, ATTRIBUTE_VALUE, value);
	return err ?: intern(otlp, TABLE_ATTRIBUTE, message, ret_id);
}

/* Find or add the attribute profile.frame.type of a location; 0 in *ret_id for none. */
static int frame_type(struct sb_otlp *otlp, const struct sb_frame *frame, uint32_t *ret_id)
{
	const char *type = NULL;

	if (frame->kind == SB_FRAME_KERNEL || frame->kind == SB_FRAME_KERNEL_INLINED)
		type = "kernel";
	else if (frame->kind == SB_FRAME_USER || frame->kind == SB_FRAME_INLINED)
		type = "native";
	*ret_id = 0;
	return type ? attribute_id(otlp, "profile.frame.type", type, ret_id) : 0;
}

/* ---- stacks ---- */

static int function_id(struct sb_otlp *otlp, const struct sb_frame *frame, uint32_t *ret_id)
{
	uint32_t name, file = 0;
	int err = string_id(otlp, frame->name, &name);

	if (!err && frame->file)
		err = string_id(otlp, frame->file, &file);
	sb_str_clear(&otlp->message);
	err = err ?: sb_pb_u64(&otlp->message, FUNCTION_NAME, name);
	err = err ?: sb_pb_u64(&otlp->message, FUNCTION_FILENAME, file);
	return err ?: intern(otlp, TABLE_FUNCTION, &otlp->message, ret_id);
}

static int mapping_id(struct sb_otlp *otlp, const struct sb_frame *frame, uint32_t *ret_id)
{
	uint32_t name = 0;
	int err = frame->module ? string_id(otlp, frame->module, &name) : 0;

	sb_str_clear(&otlp->message);
	err = err ?: sb_pb_u64(&otlp->message, MAPPING_FILENAME, name);
	return err ?: intern(otlp, TABLE_MAPPING, &otlp->message, ret_id);
}

static int make_location(struct sb_otlp *otlp, const struct sb_frame *frame, uint32_t *ret_id)
{
	struct sb_str *message = &otlp->message;
	uint32_t function, mapping, type;
	int err = function_id(otlp, frame, &function);

	err = err ?: mapping_id(otlp, frame, &mapping) ?: frame_type(otlp, frame, &type);
	sb_str_clear(message);
	err = err ?: sb_pb_u64(message, LOCATION_MAPPING, mapping);
	sb_str_clear(&otlp->inner);
	err = err ?: sb_pb_u64(&otlp->inner, LINE_FUNCTION, function);
	err = err ?: sb_pb_u64(&otlp->inner, LINE_LINE, frame->line);
	err = err ?: sb_pb_message(message, LOCATION_LINES, &otlp->inner);
	if (!err && type) {
		sb_str_clear(&otlp->inner);
		err = sb_pb_varint(&otlp->inner, type);
		err = err ?: sb_pb_message(message, LOCATION_ATTRIBUTES, &otlp->inner);
	}
	return err ?: intern(otlp, TABLE_LOCATION, message, ret_id);
}

static int location_id(struct sb_otlp *otlp, uint32_t frame, uint32_t *ret_id)
{
	int err = 0;

	if (otlp->location_of[frame] == UINT32_MAX)
		err = make_location(otlp, sb_profile_frame_at(otlp->of, frame),
				    &otlp->location_of[frame]);
	*ret_id = otlp->location_of[frame];
	return err;
}

/* Read @nr bytes in lower-case hexadecimal, which have to be all of @hex. Return: whether they
 * are. */
static bool read_id(const char *hex, uint8_t *ret, size_t nr)
{
	static const char digits[] = "0123456789abcdef";
	const char *high, *low;
	size_t i;

	if (strlen(hex) != 2 * nr)
		return false;
	for (i = 0; i < nr; i++) {
		high = strchr(digits, hex[2 * i]);
		low = strchr(digits, hex[2 * i + 1]);
		if (!high || !low)
			return false;
		ret[i] = (uint8_t)((high - digits) << 4 | (low - digits));
	}
	return true;
}

/* Return: whether a frame shows a label that is told by the link of the sample, and was added to
 * it. */
static bool add_to_link(const struct sb_otlp *otlp, uint32_t frame, struct link *link)
{
	const struct sb_attr *attr = sb_profile_attr_at(otlp->of, frame);

	if (attr->kind != SB_ATTR_LABEL)
		return false;
	if (!link->has_trace && sb_streq(attr->key, "trace_id")) {
		link->has_trace = read_id(attr->text, link->trace_id, sizeof(link->trace_id));
		return link->has_trace;
	}
	if (link->has_span || !sb_streq(attr->key, "span_id"))
		return false;
	link->has_span = read_id(attr->text, link->span_id, sizeof(link->span_id));
	return link->has_span;
}

/* Find or add a link; 0 in *ret_id if there is nothing in it. */
static int link_id(struct sb_otlp *otlp, const struct link *link, uint32_t *ret_id)
{
	struct sb_str *message = &otlp->message;
	int err = 0;

	*ret_id = 0;
	if (!link->has_trace && !link->has_span)
		return 0;
	sb_str_clear(message);
	/* Readers take a short ID for an error, but not one of zeros. */
	err = sb_pb_bytes(message, LINK_TRACE_ID, link->trace_id, sizeof(link->trace_id));
	err = err ?: sb_pb_bytes(message, LINK_SPAN_ID, link->span_id, sizeof(link->span_id));
	return err ?: intern(otlp, TABLE_LINK, message, ret_id);
}

/* @ret_link: what the frames say of the sample's link, and which are left out of the stack. */
static int stack_id(struct sb_otlp *otlp, const uint32_t *ids, size_t nr, uint32_t *ret_id,
		    struct link *ret_link)
{
	sb_cleanup(sb_str_release) struct sb_str list = {};
	uint32_t location;
	int err = 0;

	*ret_link = (struct link){};
	/* Leaf first. */
	while (nr-- && !err) {
		if (add_to_link(otlp, ids[nr], ret_link))
			continue;
		err = location_id(otlp, ids[nr], &location);
		err = err ?: sb_pb_varint(&list, location);
	}
	sb_str_clear(&otlp->message);
	if (!err && list.len)
		err = sb_pb_message(&otlp->message, STACK_LOCATIONS, &list);
	return err ?: intern(otlp, TABLE_STACK, &otlp->message, ret_id);
}

/* ---- profiles ---- */

int sb_otlp_add_stack(struct sb_otlp *otlp, const uint32_t *ids, size_t nr, uint64_t weight)
{
	const struct sb_measure *measure = &otlp->measure;
	struct sb_str *message = &otlp->message;
	uint32_t stack, number;
	struct link link;
	int err = stack_id(otlp, ids, nr, &stack, &link);

	err = err ?: link_id(otlp, &link, &number);

	if (!measure->is_of_timer)
		weight = sb_measure_scaled(measure, weight);
	if (weight > INT64_MAX)
		weight = INT64_MAX;
	sb_str_clear(message);
	err = err ?: sb_pb_u64(message, SAMPLE_STACK, stack);
	err = err ?: sb_pb_u64(message, SAMPLE_LINK, number);
	sb_str_clear(&otlp->inner);
	err = err ?: sb_pb_varint(&otlp->inner, weight);
	err = err ?: sb_pb_message(message, SAMPLE_VALUES, &otlp->inner);
	return err ?: sb_pb_message(&otlp->profile, PROFILE_SAMPLES, message);
}

static int add_value_type(struct sb_otlp *otlp, uint32_t field, const char *type, const char *unit)
{
	uint32_t type_id, unit_id;
	int err = string_id(otlp, type, &type_id) ?: string_id(otlp, unit, &unit_id);

	sb_str_clear(&otlp->inner);
	err = err ?: sb_pb_u64(&otlp->inner, VALUE_TYPE_TYPE, type_id);
	err = err ?: sb_pb_u64(&otlp->inner, VALUE_TYPE_UNIT, unit_id);
	return err ?: sb_pb_message(&otlp->profile, field, &otlp->inner);
}

/*
 * If Pyroscope does not know the type of the sample, it uses that of the period as the profile's
 * name.
 */
static int add_types(struct sb_otlp *otlp)
{
	const struct sb_measure *measure = &otlp->measure;
	static const char *const units[] = { [SB_DIMENSION_COUNT] = "count",
					     [SB_DIMENSION_TIME] = "nanoseconds",
					     [SB_DIMENSION_BYTES] = "bytes" };
	/* In other programs, a timer samples what runs on the CPUs. */
	bool is_foreign = measure->is_of_timer && !sb_view_kind_find(measure->kind);
	const char *type = sb_view_kind_objects(measure->kind, measure->unit)
				   ?: sb_view_kind_otlp(is_foreign ? sb_view_kind_default()->name
								   : measure->kind);
	const char *unit = units[measure->dimension];
	int err;

	if (measure->is_of_timer) {
		err = add_value_type(otlp, PROFILE_SAMPLE_TYPE, "samples", "count");
		err = err ?: add_value_type(otlp, PROFILE_PERIOD_TYPE, type, "nanoseconds");
		return err
			       ?: sb_pb_u64(&otlp->profile, PROFILE_PERIOD,
					    sb_measure_scaled(measure, 1));
	}
	/* The specification's own names are known. */
	err = add_value_type(otlp, PROFILE_SAMPLE_TYPE, type, unit);
	if (!sb_streq(type, measure->kind))
		return err;
	err = err ?: add_value_type(otlp, PROFILE_PERIOD_TYPE, type, unit);
	return err ?: sb_pb_u64(&otlp->profile, PROFILE_PERIOD, 1);
}

int sb_otlp_begin(struct sb_otlp *otlp, const struct sb_profile *profile, uint64_t start_ns,
		  uint64_t dur_ns, const uint8_t *id)
{
	size_t bytes = (sb_profile_nr_frames(profile) + 1) * sizeof(*otlp->location_of);
	int err;

	if (!otlp->location_of) {
		otlp->location_of = malloc(bytes);
		if (!otlp->location_of)
			return -ENOMEM;
		memset(otlp->location_of, 0xff, bytes);
	}
	otlp->of = profile;
	otlp->measure = sb_measure_of(profile);
	sb_str_clear(&otlp->profile);
	sb_str_clear(&otlp->resource);
	err = add_types(otlp);
	err = err ?: sb_pb_fixed64(&otlp->profile, PROFILE_TIME_UNIX_NANO, start_ns);
	err = err ?: sb_pb_u64(&otlp->profile, PROFILE_DURATION_NANO, dur_ns);
	if (!err && id)
		err = sb_pb_bytes(&otlp->profile, PROFILE_ID, id, SB_OTLP_ID_BYTES);
	return err;
}

static int add_scope_profiles(struct sb_otlp *otlp, struct sb_str *out)
{
	sb_cleanup(sb_str_release) struct sb_str scope = {}, scope_profiles = {};
	int err = sb_pb_bytes(&scope, SCOPE_NAME, "stackbpf", strlen("stackbpf"));

	err = err ?: sb_pb_bytes(&scope, SCOPE_VERSION, sb_version, strlen(sb_version));
	err = err ?: sb_pb_message(&scope_profiles, SCOPE_PROFILES_SCOPE, &scope);
	err = err ?: sb_pb_message(&scope_profiles, SCOPE_PROFILES_PROFILES, &otlp->profile);
	return err ?: sb_pb_message(out, RESOURCE_PROFILES_SCOPE_PROFILES, &scope_profiles);
}

int sb_otlp_end(struct sb_otlp *otlp)
{
	sb_cleanup(sb_str_release) struct sb_str resource_profiles = {};
	int err = sb_pb_message(&resource_profiles, RESOURCE_PROFILES_RESOURCE, &otlp->resource);

	err = err ?: add_scope_profiles(otlp, &resource_profiles);
	err = err ?: sb_pb_message(&otlp->done, REQUEST_RESOURCE_PROFILES, &resource_profiles);
	sb_str_clear(&otlp->profile);
	return err;
}

size_t sb_otlp_nr_bytes(const struct sb_otlp *otlp)
{
	return otlp->done.len + otlp->profile.len + otlp->nr_table_bytes;
}

static int add_dictionary(struct sb_otlp *otlp, struct sb_str *out)
{
	sb_cleanup(sb_str_release) struct sb_str dictionary = {};
	size_t table, i, len;
	int err = 0;

	for (table = 0; table < TABLE_MAX; table++) {
		const struct sb_strtab *tab = &otlp->tables[table];

		for (i = 0; i < tab->strs.nr && !err; i++) {
			const char *s = sb_strtab_get(tab, (uint32_t)i, &len);

			err = sb_pb_bytes(&dictionary, (uint32_t)table + 1, s, len);
		}
	}
	return err ?: sb_pb_message(out, REQUEST_DICTIONARY, &dictionary);
}

int sb_otlp_take(struct sb_otlp *otlp, struct sb_str *out)
{
	int err;

	sb_str_clear(out);
	err = sb_str_addn(out, otlp->done.s ? otlp->done.s : "", otlp->done.len);
	err = err ?: add_dictionary(otlp, out);
	sb_str_clear(&otlp->done);
	free(otlp->location_of);
	otlp->location_of = NULL;
	release_tables(otlp);
	return init_tables(otlp) ?: err;
}

/* ---- a file ---- */

SB_DEFINE_CLEANUP(struct sb_otlp, sb_otlp_free)

/* Series tags become OTLP resource attributes; other metadata become attributes of the profile. */
static int add_metadata(struct sb_otlp *otlp)
{
	sb_cleanup(sb_str_release) struct sb_str name = {}, ids = {};
	struct sb_fold_meta meta = {};
	uint32_t id;
	int err = 0;

	while (!err && sb_fold_next_meta(otlp->of, &meta)) {
		if (!strncmp(meta.key, SB_OUTPUT_TAG, strlen(SB_OUTPUT_TAG))) {
			err = sb_otlp_tag(otlp, meta.key + strlen(SB_OUTPUT_TAG), meta.value);
			continue;
		}
		sb_str_clear(&name);
		err = sb_str_addf(&name, "stackbpf.%s", meta.key);
		err = err ?: attribute_id(otlp, name.s, meta.value, &id);
		err = err ?: sb_pb_varint(&ids, id);
	}
	if (!err && ids.len)
		err = sb_pb_message(&otlp->profile, PROFILE_ATTRIBUTES, &ids);
	return err;
}

static int write_otlp(const struct sb_profile *profile, const struct sb_output_opts *opts,
		      FILE *out)
{
	sb_cleanup(sb_otlp_freep) struct sb_otlp *otlp = NULL;
	sb_cleanup(sb_str_release) struct sb_str body = {};
	size_t nr_stacks = sb_output_nr_stacks(profile, opts), i;
	struct sb_measure measure = sb_measure_of(profile);
	int err = sb_otlp_new(SB_OTLP_BOTH, &otlp);

	err = err
		      ?: sb_otlp_begin(otlp, profile, measure.start_us * 1000,
				       measure.dur_us * 1000, NULL);
	for (i = 0; i < nr_stacks && !err; i++) {
		const struct sb_row row = sb_profile_row_at(profile, i);

		err = sb_otlp_add_stack(otlp, row.frames, row.nr, row.weight);
	}
	err = err ?: add_metadata(otlp) ?: sb_otlp_end(otlp) ?: sb_otlp_take(otlp, &body);
	if (!err && fwrite(body.s, 1, body.len, out) != body.len)
		err = -EIO;
	return err;
}

const struct sb_output sb_output_otlp = {
	.name = "otlp",
	.extension = ".otlp",
	.summary = "OpenTelemetry profiles, protocol 1.10 or newer",
	.has_places = true,
	.write = write_otlp,
};
