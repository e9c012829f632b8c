// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * OTLP/HTTP, signal "profiles": opentelemetry-proto, profiles/v1development/profiles.proto from 1.10 on. Until
 * then each of five releases had changed the numbers of the fields.
 *
 * All that repeats is in tables of the request, whose first entry is the empty message; what has the same bytes is
 * there once, so each table is a table of strings.
 *
 * Three things are as decoders that were tried want them, and not as one would read the specification:
 * - Keys of a resource's attributes are written twice, as text and as the number of a string. The collector up
 *   to 0.159 erases text where there is no number; Pyroscope and Parca read only text.
 * - The empty entry of the table of links is an empty message. Parca refuses one with a zero id of 16 bytes.
 * - A sample has one value and no times. Samples of a timer are counts, whose period says the time of one.
 *
 * The store has no addresses and no build IDs, so mappings are names of files; locations have functions.
 */
#include "export/otlp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/index.h"
#include "base/version.h"
#include "export/kinds.h"
#include "flamegraph/text.h"
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
};
enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT };
enum { SAMPLE_STACK = 1, SAMPLE_VALUES = 4 };
enum { STACK_LOCATIONS = 1 };
enum { LOCATION_MAPPING = 1, LOCATION_LINES = 3, LOCATION_ATTRIBUTES };
enum { LINE_FUNCTION = 1 };
enum { FUNCTION_NAME = 1 };
enum { MAPPING_FILENAME = 4 };
enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE, KEY_VALUE_KEY_STRINDEX };
enum { ANY_STRING = 1 };
enum { ATTRIBUTE_KEY_STRINDEX = 1, ATTRIBUTE_VALUE };
enum { RESPONSE_PARTIAL_SUCCESS = 1 };
enum { PARTIAL_REJECTED = 1, PARTIAL_MESSAGE };

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

struct sb_otlp {
	enum sb_otlp_attrs attrs;
	uint64_t salt;
	struct sb_strtab tables[TABLE_MAX];
	size_t nr_table_bytes;
	struct sb_str resources; /* of the request: the profiles that are done */
	struct sb_str profile;	 /* the one at hand */
	const struct sb_export_period *period;
	const struct sb_export_series *series;
	uint32_t *location_of;		     /* by frame of the period; UINT32_MAX: not yet */
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
static int clean(struct sb_otlp *otlp, const char *s)
{
	long nr_bad;

	sb_str_clear(&otlp->clean);
	nr_bad = sb_fg_text_clean(&otlp->clean, s, strlen(s));
	return nr_bad < 0 ? (int)nr_bad : 0;
}

static int string_id(struct sb_otlp *otlp, const char *s, uint32_t *ret_id)
{
	return clean(otlp, s) ?: intern(otlp, TABLE_STRING, &otlp->clean, ret_id);
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

int sb_otlp_new(const struct sb_export_opts *opts, struct sb_otlp **ret_otlp)
{
	struct sb_otlp *otlp = calloc(1, sizeof(*otlp));
	int err = otlp ? init_tables(otlp) : -ENOMEM;

	if (err) {
		sb_otlp_free(otlp);
		return err;
	}
	otlp->attrs = opts->attrs;
	otlp->salt = opts->salt;
	*ret_otlp = otlp;
	return 0;
}

void sb_otlp_free(struct sb_otlp *otlp)
{
	if (!otlp)
		return;
	release_tables(otlp);
	free(otlp->location_of);
	sb_str_release(&otlp->resources);
	sb_str_release(&otlp->profile);
	sb_str_release(&otlp->message);
	sb_str_release(&otlp->inner);
	sb_str_release(&otlp->clean);
	free(otlp);
}

/* ---- attributes ---- */

/* Tags as the semantic conventions of OpenTelemetry call them; others keep their names. */
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
	int err = clean(otlp, value);

	sb_str_clear(&otlp->inner);
	err = err ?: sb_pb_message(&otlp->inner, ANY_STRING, &otlp->clean);
	return err ?: sb_pb_message(message, field, &otlp->inner);
}

/* KeyValue, of a resource. */
static int add_attribute(struct sb_otlp *otlp, struct sb_str *resource, const char *key,
			 const char *value)
{
	struct sb_str *message = &otlp->message;
	uint32_t id = 0;
	int err = clean(otlp, key);

	sb_str_clear(message);
	if (!err && otlp->attrs != SB_OTLP_REF)
		err = sb_pb_message(message, KEY_VALUE_KEY, &otlp->clean);
	err = err ?: add_value(otlp, message, KEY_VALUE_VALUE, value);
	if (!err && otlp->attrs != SB_OTLP_INLINE)
		err = string_id(otlp, key, &id);
	err = err ?: sb_pb_u64(message, KEY_VALUE_KEY_STRINDEX, id);
	return err ?: sb_pb_message(resource, RESOURCE_ATTRIBUTES, message);
}

/* Of a location: profile.frame.type. Return: 0 in *ret_id for none. */
static int frame_type(struct sb_otlp *otlp, const struct sb_frame *frame, uint32_t *ret_id)
{
	struct sb_str *message = &otlp->message;
	const char *type = NULL;
	uint32_t key;
	int err;

	if (frame->kind == SB_FRAME_KERNEL || frame->kind == SB_FRAME_KERNEL_INLINED)
		type = "kernel";
	else if (frame->kind == SB_FRAME_USER || frame->kind == SB_FRAME_INLINED)
		type = "native";
	*ret_id = 0;
	if (!type)
		return 0;
	err = string_id(otlp, "profile.frame.type", &key);
	sb_str_clear(message);
	err = err ?: sb_pb_u64(message, ATTRIBUTE_KEY_STRINDEX, key);
	err = err ?: add_value(otlp, message, ATTRIBUTE_VALUE, type);
	return err ?: intern(otlp, TABLE_ATTRIBUTE, message, ret_id);
}

/* ---- stacks ---- */

static int function_id(struct sb_otlp *otlp, const struct sb_frame *frame, uint32_t *ret_id)
{
	uint32_t name;
	int err = string_id(otlp, frame->name, &name);

	sb_str_clear(&otlp->message);
	err = err ?: sb_pb_u64(&otlp->message, FUNCTION_NAME, name);
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

/* Frames of the store are functions: a location has one line. */
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
		err = make_location(otlp, sb_profile_frame_at(otlp->period->profile, frame),
				    &otlp->location_of[frame]);
	*ret_id = otlp->location_of[frame];
	return err;
}

static int stack_id(struct sb_otlp *otlp, const uint32_t *ids, size_t nr, uint32_t *ret_id)
{
	struct sb_str list = {};
	uint32_t location;
	int err = 0;

	/* Leaf first. */
	while (nr-- && !err) {
		err = location_id(otlp, ids[nr], &location);
		err = err ?: sb_pb_varint(&list, location);
	}
	sb_str_clear(&otlp->message);
	if (!err && list.len)
		err = sb_pb_message(&otlp->message, STACK_LOCATIONS, &list);
	err = err ?: intern(otlp, TABLE_STACK, &otlp->message, ret_id);
	sb_str_release(&list);
	return err;
}

/* ---- profiles ---- */

static bool is_timer(const struct sb_measure *measure)
{
	return measure->dimension == SB_DIMENSION_TIME && sb_streq(measure->unit, "samples");
}

int sb_otlp_add_stack(struct sb_otlp *otlp, uint32_t i)
{
	const struct sb_measure *measure = &otlp->period->measure;
	struct sb_str *message = &otlp->message;
	uint64_t weight;
	size_t nr;
	const uint32_t *ids = sb_export_stack(otlp->period, i, &nr, &weight);
	uint32_t stack;
	int err = stack_id(otlp, ids, nr, &stack);

	if (!is_timer(measure))
		weight = sb_measure_scaled(measure, weight);
	if (weight > INT64_MAX)
		weight = INT64_MAX;
	sb_str_clear(message);
	err = err ?: sb_pb_u64(message, SAMPLE_STACK, stack);
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

/* Pyroscope takes the name of a profile from its period's type where it does not know the sample's. */
static int add_types(struct sb_otlp *otlp)
{
	const struct sb_measure *measure = &otlp->period->measure;
	static const char *const units[] = { [SB_DIMENSION_COUNT] = "count",
					     [SB_DIMENSION_TIME] = "nanoseconds",
					     [SB_DIMENSION_BYTES] = "bytes" };
	const char *unit = units[measure->dimension];
	int err;

	if (is_timer(measure)) {
		err = add_value_type(otlp, PROFILE_SAMPLE_TYPE, "samples", "count");
		err = err ?: add_value_type(otlp, PROFILE_PERIOD_TYPE, "cpu", "nanoseconds");
		return err
			       ?: sb_pb_u64(&otlp->profile, PROFILE_PERIOD,
					    sb_measure_scaled(measure, 1));
	}
	/* The specification's own name. */
	if (sb_streq(measure->kind, "offcpu"))
		return add_value_type(otlp, PROFILE_SAMPLE_TYPE, "off_cpu", unit);
	err = add_value_type(otlp, PROFILE_SAMPLE_TYPE, measure->kind, unit);
	err = err ?: add_value_type(otlp, PROFILE_PERIOD_TYPE, measure->kind, unit);
	return err ?: sb_pb_u64(&otlp->profile, PROFILE_PERIOD, 1);
}

/* The same period, kind and tags, and the same first stack, have the same one: a receiver can tell repetitions. */
static int add_id(struct sb_otlp *otlp, uint32_t first_stack)
{
	const struct sb_export_period *period = otlp->period;
	uint64_t place[4] = { (uint64_t)period->begin_s, (uint64_t)period->end_s, first_stack,
			      sb_export_series_hash(otlp->series, otlp->salt) };
	const char *kind = period->measure.kind;
	uint64_t id[2];

	for (size_t i = 0; i < 2; i++)
		id[i] = sb_hash(place, sizeof(place), sb_hash(kind, strlen(kind), i + 1));
	return sb_pb_bytes(&otlp->profile, PROFILE_ID, id, sizeof(id));
}

int sb_otlp_begin(struct sb_otlp *otlp, const struct sb_export_period *period,
		  const struct sb_export_series *series, size_t first)
{
	size_t nr_frames = sb_profile_nr_frames(period->profile);
	int err;

	if (!otlp->location_of) {
		otlp->location_of = malloc((nr_frames + 1) * sizeof(*otlp->location_of));
		if (!otlp->location_of)
			return -ENOMEM;
		memset(otlp->location_of, 0xff, (nr_frames + 1) * sizeof(*otlp->location_of));
	}
	otlp->period = period;
	otlp->series = series;
	sb_str_clear(&otlp->profile);
	err = add_types(otlp);
	err = err
		      ?: sb_pb_fixed64(&otlp->profile, PROFILE_TIME_UNIX_NANO,
				       (uint64_t)period->begin_s * 1000000000u);
	err = err
		      ?: sb_pb_u64(&otlp->profile, PROFILE_DURATION_NANO,
				   (uint64_t)(period->end_s - period->begin_s) * 1000000000u);
	return err ?: add_id(otlp, (uint32_t)first);
}

static int add_resource(struct sb_otlp *otlp, struct sb_str *out)
{
	struct sb_str resource = {};
	int err = 0;

	for (size_t i = 0; i < otlp->series->nr_tags && !err; i++)
		err = add_attribute(otlp, &resource, attribute_of(otlp->series->tags[i].key),
				    otlp->series->tags[i].value);
	err = err ?: sb_pb_message(out, RESOURCE_PROFILES_RESOURCE, &resource);
	sb_str_release(&resource);
	return err;
}

static int add_scope_profiles(struct sb_otlp *otlp, struct sb_str *out)
{
	struct sb_str scope = {}, scope_profiles = {};
	int err = sb_pb_bytes(&scope, SCOPE_NAME, "stackbpf", strlen("stackbpf"));

	err = err ?: sb_pb_bytes(&scope, SCOPE_VERSION, sb_version, strlen(sb_version));
	err = err ?: sb_pb_message(&scope_profiles, SCOPE_PROFILES_SCOPE, &scope);
	err = err ?: sb_pb_message(&scope_profiles, SCOPE_PROFILES_PROFILES, &otlp->profile);
	err = err ?: sb_pb_message(out, RESOURCE_PROFILES_SCOPE_PROFILES, &scope_profiles);
	sb_str_release(&scope);
	sb_str_release(&scope_profiles);
	return err;
}

int sb_otlp_end(struct sb_otlp *otlp)
{
	struct sb_str resource_profiles = {};
	int err = add_resource(otlp, &resource_profiles);

	err = err ?: add_scope_profiles(otlp, &resource_profiles);
	err = err ?: sb_pb_message(&otlp->resources, REQUEST_RESOURCE_PROFILES, &resource_profiles);
	sb_str_release(&resource_profiles);
	sb_str_clear(&otlp->profile);
	return err;
}

size_t sb_otlp_nr_bytes(const struct sb_otlp *otlp)
{
	return otlp->resources.len + otlp->profile.len + otlp->nr_table_bytes;
}

static int add_dictionary(struct sb_otlp *otlp, struct sb_str *out)
{
	struct sb_str dictionary = {};
	size_t table, i, len;
	int err = 0;

	for (table = 0; table < TABLE_MAX; table++) {
		const struct sb_strtab *tab = &otlp->tables[table];

		for (i = 0; i < tab->strs.nr && !err; i++) {
			const char *s = sb_strtab_get(tab, (uint32_t)i, &len);

			err = sb_pb_bytes(&dictionary, (uint32_t)table + 1, s, len);
		}
	}
	err = err ?: sb_pb_message(out, REQUEST_DICTIONARY, &dictionary);
	sb_str_release(&dictionary);
	return err;
}

int sb_otlp_take(struct sb_otlp *otlp, struct sb_str *out)
{
	int err;

	sb_str_clear(out);
	err = sb_str_addn(out, otlp->resources.s ? otlp->resources.s : "", otlp->resources.len);
	err = err ?: add_dictionary(otlp, out);
	sb_str_clear(&otlp->resources);
	free(otlp->location_of);
	otlp->location_of = NULL;
	release_tables(otlp);
	return init_tables(otlp) ?: err;
}

/* ---- what comes back ---- */

struct reader {
	const uint8_t *at, *end;
};

static bool read_varint(struct reader *reader, uint64_t *ret)
{
	unsigned int shift = 0;

	for (*ret = 0; reader->at < reader->end && shift < 64; shift += 7) {
		uint8_t byte = *reader->at++;

		*ret |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* The next field: its bytes in *ret_bytes, or its number in *ret. Return: false at the end or in what is none. */
static bool read_field(struct reader *reader, uint32_t *ret_field, uint64_t *ret,
		       struct reader *ret_bytes)
{
	uint64_t tag;

	*ret = 0;
	*ret_bytes = (struct reader){};
	if (reader->at >= reader->end || !read_varint(reader, &tag) || tag >> 3 > UINT32_MAX)
		return false;
	*ret_field = (uint32_t)(tag >> 3);
	if ((tag & 7) == 0)
		return read_varint(reader, ret);
	if ((tag & 7) != 2 || !read_varint(reader, ret) ||
	    *ret > (uint64_t)(reader->end - reader->at))
		return false;
	*ret_bytes = (struct reader){ reader->at, reader->at + *ret };
	reader->at += *ret;
	return true;
}

static void read_partial(struct reader reader, uint64_t *nr_rejected, struct sb_str *message,
			 int *err)
{
	struct reader bytes;
	uint32_t field;
	uint64_t val;

	while (read_field(&reader, &field, &val, &bytes)) {
		if (field == PARTIAL_REJECTED && !bytes.at)
			*nr_rejected = val;
		if (field != PARTIAL_MESSAGE || !bytes.at || *err)
			continue;
		sb_str_clear(message);
		*err = sb_str_addn(message, (const char *)bytes.at, (size_t)(bytes.end - bytes.at));
		if (!*err)
			sb_replace_controls(message->s, message->len);
	}
}

int sb_otlp_rejected(const struct sb_str *reply, uint64_t *ret_nr, struct sb_str *message)
{
	struct reader reader = { (const uint8_t *)reply->s,
				 (const uint8_t *)reply->s + reply->len },
		      bytes;
	uint32_t field;
	uint64_t val;
	int err = 0;

	*ret_nr = 0;
	if (!reply->len)
		return 0;
	while (!err && read_field(&reader, &field, &val, &bytes))
		if (field == RESPONSE_PARTIAL_SUCCESS && bytes.at)
			read_partial(bytes, ret_nr, message, &err);
	return err;
}

/* ---- the destination ---- */

struct dest {
	char *url;
	struct sb_otlp *otlp;
	struct sb_str body, packed, message;
	struct sb_export_opts opts; /* its address is not ours */
};

static void close_otlp(void *arg)
{
	struct dest *dest = arg;

	if (!dest)
		return;
	free(dest->url);
	sb_otlp_free(dest->otlp);
	sb_str_release(&dest->body);
	sb_str_release(&dest->packed);
	sb_str_release(&dest->message);
	free(dest);
}

static int open_otlp(const struct sb_export_opts *opts, void **ret_dest, const char **ret_why)
{
	struct dest *dest = calloc(1, sizeof(*dest));
	struct sb_str url = {};
	int err = dest ? sb_export_add_base(&url, opts->address) : -ENOMEM;

	/* Whoever names the whole path means it. */
	if (!err && !strstr(url.s, "/v1"))
		err = sb_str_add(&url, "/v1development/profiles");
	if (dest) {
		dest->url = url.s;
		dest->opts = *opts;
	}
	if (err) {
		close_otlp(dest);
		return err;
	}
	*ret_dest = dest;
	return 0;
}

static int note_rejected(struct dest *dest, struct sb_export_link *link)
{
	uint64_t nr;
	int err;

	sb_str_clear(&dest->message);
	err = sb_otlp_rejected(&link->reply.body, &nr, &dest->message);
	if (err || !nr)
		return err;
	link->state->nr_refused += nr;
	sb_str_clear(&link->notes);
	return sb_str_addf(&link->notes, "'%s' left out %llu profiles%s%.200s", dest->url,
			   (unsigned long long)nr, dest->message.len ? ": " : "",
			   dest->message.len ? dest->message.s : "");
}

static int post(struct dest *dest, struct sb_export_link *link)
{
	struct sb_http_request request = { .url = dest->url,
					   .type = "application/x-protobuf",
					   .encoding = "gzip" };
	int err = sb_otlp_take(dest->otlp, &dest->body);

	if (err || sb_export_is_sent(link))
		return err;
	err = sb_export_pack(&dest->body, &dest->packed);
	request.body = dest->packed.s;
	request.len = dest->packed.len;
	err = err ?: sb_export_post(link, &request);
	return err ?: note_rejected(dest, link);
}

static int send_series(struct dest *dest, struct sb_export_link *link,
		       const struct sb_export_period *period, const struct sb_export_series *series)
{
	struct sb_otlp *otlp = dest->otlp;
	size_t i;
	int err = sb_otlp_begin(otlp, period, series, 0);

	for (i = 0; i < series->nr_stacks && !err; i++) {
		err = sb_otlp_add_stack(otlp, series->stacks[i]);
		if (err || sb_otlp_nr_bytes(otlp) < SB_EXPORT_PIECE_BYTES ||
		    i + 1 == series->nr_stacks)
			continue;
		err = sb_otlp_end(otlp) ?: post(dest, link);
		err = err ?: sb_otlp_begin(otlp, period, series, i + 1);
	}
	return err ?: sb_otlp_end(otlp);
}

static int send_otlp(void *arg, struct sb_export_link *link, const struct sb_export_period *period)
{
	struct dest *dest = arg;
	size_t i;
	int err = 0;

	/* What was begun before a failure is begun again. */
	sb_otlp_free(dest->otlp);
	dest->otlp = NULL;
	err = sb_otlp_new(&dest->opts, &dest->otlp);
	for (i = 0; i < period->nr_series && !err; i++) {
		err = send_series(dest, link, period, &period->series[i]);
		if (!err && (sb_otlp_nr_bytes(dest->otlp) >= SB_EXPORT_PIECE_BYTES ||
			     i + 1 == period->nr_series))
			err = post(dest, link);
	}
	return err;
}

const struct sb_export_kind sb_export_otlp = {
	.scheme = "otlp",
	.example = "otlp:http://HOST:4318",
	.summary = "OpenTelemetry profiles, protocol 1.10 or newer: collector, Pyroscope, Parca",
	.without = "cgroup,comm",
	.is_http = true,
	.open = open_otlp,
	.send = send_otlp,
	.close = close_otlp,
};
