// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kinds/metadata.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/num.h"
#include "base/utf8.h"

/* How the values of two profiles become one. */
enum merging { KEEP_FIRST, ADD_UP, KEEP_LEAST };

/* A row is a string, or a fraction if it has digits, and else a number. */
struct row {
	const char *key;
	size_t offset;
	bool is_text;
	int digits; /* of a fraction, behind the point */
	size_t has; /* of the member that says whether 0 is known; 0: it never is */
	enum merging merging;
};

#define MEMBER(name)  .offset = offsetof(struct sb_metadata, name)
#define TEXT(name)    MEMBER(name), .is_text = true
#define OR_ZERO(name) MEMBER(name), .has = offsetof(struct sb_metadata, has_##name)

/* In the order of headers. */
static const struct row rows[] = {
	{ "v", MEMBER(version) },
	{ "kind", TEXT(kind) },
	{ "unit", TEXT(unit) },
	{ "dur_us", OR_ZERO(dur_us), .merging = ADD_UP },
	{ "start_us", MEMBER(start_us) },
	{ "hz", MEMBER(hz) },
	{ "cpus", MEMBER(cpus) },
	{ "by", TEXT(by) },
	{ "n", OR_ZERO(nr_samples), .merging = ADD_UP },
	{ "labels", TEXT(labels) },
	{ "lost", OR_ZERO(nr_lost), .merging = ADD_UP },
	{ "trunc", OR_ZERO(nr_truncated), .merging = ADD_UP },
	{ "nosym", OR_ZERO(nr_unnamed), .merging = ADD_UP },
	{ "idle", MEMBER(idle_weight), .merging = ADD_UP },
	{ "of", TEXT(of) },
	{ "accounted", OR_ZERO(accounted), .digits = 2, .merging = KEEP_LEAST },
	{ "governed_us", MEMBER(governed_us), .merging = ADD_UP },
	{ "every", TEXT(every) },
	{ "rate_hz", TEXT(rate_hz) },
	{ "attached", OR_ZERO(attached), .digits = 4 },
	{ "from", TEXT(from) },
	{ "to", TEXT(to) },
	{ "tags", TEXT(tags) },
	{ "lost_weight", MEMBER(lost_weight), .merging = ADD_UP },
	{ "damaged", MEMBER(nr_damaged), .merging = ADD_UP },
	{ "limited", MEMBER(limited_weight), .merging = ADD_UP },
	{ "norm", TEXT(norm) },
	{ "n_a", MEMBER(side[0].nr_samples) },
	{ "dur_us_a", MEMBER(side[0].dur_us) },
	{ "per_a", MEMBER(side[0].per), .digits = 6 },
	{ "n_b", MEMBER(side[1].nr_samples) },
	{ "dur_us_b", MEMBER(side[1].dur_us) },
	{ "per_b", MEMBER(side[1].per), .digits = 6 },
	{ "rate", TEXT(rate) },
};

/* The member of a row, as one of its three types. Write only to metadata that is not const. */
union member {
	const void *at;
	const char **text;
	uint64_t *number;
	double *fraction;
};

static union member member_of(const struct row *row, const struct sb_metadata *metadata)
{
	return (union member){ .at = (const char *)metadata + row->offset };
}

static bool is_known(const struct row *row, const struct sb_metadata *metadata)
{
	const union member member = member_of(row, metadata);

	if (row->is_text)
		return *member.text;
	if (row->has && *((const bool *)metadata + row->has))
		return true;
	return row->digits ? *member.fraction > 0 : *member.number;
}

bool sb_metadata_next(const struct sb_metadata *metadata, struct sb_metadatum *at)
{
	while (at->next < SB_ARRAY_SIZE(rows)) {
		const struct row *row = &rows[at->next++];
		const union member member = member_of(row, metadata);

		if (!is_known(row, metadata))
			continue;
		at->key = row->key;
		at->value = row->is_text ? *member.text : at->number;
		if (row->digits)
			snprintf(at->number, sizeof(at->number), "%.*f", row->digits,
				 *member.fraction);
		else if (!row->is_text)
			snprintf(at->number, sizeof(at->number), "%" PRIu64, *member.number);
		return true;
	}
	return false;
}

int sb_metadata_print_part(struct sb_str *str, const char *key, const char *value)
{
	const size_t len = strlen(value);
	int err = sb_str_addf(str, ";%s=", key) ?: sb_str_addn(str, value, len);
	char *s;

	if (err)
		return err;
	s = str->s + str->len - len;
	sb_replace_controls(s, len);
	for (; *s; s++)
		*s = *s == ' ' ? '_' : *s == ';' ? ':' : *s;
	return 0;
}

int sb_metadata_print(struct sb_str *str, const struct sb_metadata *metadata)
{
	struct sb_metadatum at = {};
	int err = sb_str_add(str, "#stackbpf");

	while (!err && sb_metadata_next(metadata, &at))
		err = sb_metadata_print_part(str, at.key, at.value);
	return err;
}

static void set_known(const struct row *row, struct sb_metadata *metadata)
{
	if (row->has)
		*((bool *)metadata + row->has) = true;
}

int sb_metadata_read(struct sb_metadata *metadata, const char *key, const char *value)
{
	for (size_t i = 0; i < SB_ARRAY_SIZE(rows); i++) {
		const union member member = member_of(&rows[i], metadata);

		if (!sb_streq(key, rows[i].key))
			continue;
		if (rows[i].is_text)
			*member.text = value;
		else if (rows[i].digits ? !sb_parse_decimal(value, strlen(value), member.fraction)
					: sb_parse_u64(value, INT64_MAX, member.number))
			return -EINVAL;
		set_known(&rows[i], metadata);
		return 0;
	}
	return -ENOENT;
}

static int take(const struct row *row, union member to, union member from, struct sb_arena *texts)
{
	const double scale = pow(10, row->digits);

	if (row->is_text) {
		*to.text = sb_arena_strndup(texts, *from.text, strlen(*from.text));
		return *to.text ? 0 : -ENOMEM;
	}
	if (row->digits)
		*to.fraction = round(*from.fraction * scale) / scale;
	else
		*to.number = *from.number;
	return 0;
}

static int add_up(uint64_t *to, uint64_t from)
{
	if (*to > INT64_MAX || from > INT64_MAX - *to)
		return -ERANGE;
	*to += from;
	return 0;
}

static int merge(const struct row *row, struct sb_metadata *to, const struct sb_metadata *from,
		 struct sb_arena *texts)
{
	const union member one = member_of(row, to), other = member_of(row, from);

	if (!is_known(row, from))
		return 0;
	if (!is_known(row, to) || (row->merging == KEEP_LEAST && *other.fraction < *one.fraction)) {
		set_known(row, to);
		return take(row, one, other, texts);
	}
	return row->merging == ADD_UP ? add_up(one.number, *other.number) : 0;
}

int sb_metadata_merge(struct sb_metadata *to, const struct sb_metadata *from,
		      struct sb_arena *texts)
{
	int err = 0, ret = 0;

	for (size_t i = 0; i < SB_ARRAY_SIZE(rows) && err != -ENOMEM; i++) {
		err = merge(&rows[i], to, from, texts);
		ret = err ? err : ret;
	}
	return ret;
}
