// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Metadata of a profile: "#stackbpf;v=1;kind=io;unit=bytes;lost=12". */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/num.h"
#include "base/utf8.h"
#include "flamegraph/fg.h"
#include "flamegraph/reader.h"
#include "flamegraph/text.h"
#include "kinds/view_kind.h"

/* Our headers have ten entries of ten bytes; the bounds are for hostile ones. */
#define NR_FACTS_MAX   64
#define FACT_BYTES_MAX 256

static struct sb_fg_fact *find(const struct sb_fg_facts *facts, const char *key, size_t len)
{
	size_t i;

	for (i = 0; i < facts->facts.nr; i++) {
		struct sb_fg_fact *fact = &facts->facts.at[i];

		if (sb_text_is(key, len, fact->key))
			return fact;
	}
	return NULL;
}

const char *sb_fg_fact(const struct sb_fg_facts *facts, const char *key)
{
	const struct sb_fg_fact *fact = find(facts, key, strlen(key));

	return fact ? fact->value : NULL;
}

void sb_fg_facts_release(struct sb_fg_facts *facts)
{
	size_t i;

	for (i = 0; i < facts->facts.nr; i++) {
		free(facts->facts.at[i].key);
		free(facts->facts.at[i].value);
	}
	sb_vec_release(&facts->facts);
}

/* Entries that are counts: those of several inputs are added up. */
static bool is_sum(const char *key)
{
	static const char *const keys[] = { "n",       "lost", "trunc",	 "nosym",
					    "limited", "idle", "dur_us", "governed_us" };
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(keys); i++)
		if (sb_streq(key, keys[i]))
			return true;
	return false;
}

static int fact_new(struct sb_fg_facts *facts, const char *key, size_t key_len, const char *value)
{
	sb_cleanup(sb_freep) char *key_copy = strndup(key, key_len);
	sb_cleanup(sb_freep) char *value_copy = strdup(value);
	int err;

	if (!key_copy || !value_copy)
		return -ENOMEM;
	err = sb_vec_push(&facts->facts,
			  (struct sb_fg_fact){ .key = key_copy, .value = value_copy });
	if (err)
		return err;
	(void)sb_take(key_copy);
	(void)sb_take(value_copy);
	return 0;
}

/* A percentage: the lowest one holds for all inputs. */
static int keep_least(struct sb_fg *fg, struct sb_fg_fact *fact, const char *value)
{
	double old, new;
	char *copy;

	if (!sb_fg_parse_weight(fact->value, strlen(fact->value), &old) ||
	    !sb_fg_parse_weight(value, strlen(value), &new)) {
		sb_fg_complain(fg, SB_FG_BAD_HEADER);
		return 0;
	}
	if (new >= old)
		return 0;
	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	free(fact->value);
	fact->value = copy;
	return 0;
}

/* Merge a value with the one that is there already. */
static int fact_merge(struct sb_fg *fg, struct sb_fg_fact *fact, const char *value)
{
	uint64_t a, b;
	char *sum;

	if (sb_streq(fact->key, "accounted"))
		return keep_least(fg, fact, value);
	if (!is_sum(fact->key)) {
		if (!sb_streq(fact->value, value) && sb_streq(fact->key, "unit"))
			sb_fg_complain(fg, SB_FG_UNITS_DIFFER);
		return 0;
	}
	if (sb_parse_u64(fact->value, UINT64_MAX, &a) || sb_parse_u64(value, UINT64_MAX - a, &b)) {
		sb_fg_complain(fg, SB_FG_BAD_HEADER);
		return 0;
	}
	if (asprintf(&sum, "%" PRIu64, a + b) < 0)
		return -ENOMEM;
	free(fact->value);
	fact->value = sum;
	return 0;
}

static bool is_key(const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (!islower((unsigned char)s[i]) && !isdigit((unsigned char)s[i]) && s[i] != '_')
			return false;
	return len > 0;
}

static bool has_files(const char *kind)
{
	const struct sb_view_kind *view = sb_view_kind_find(kind);

	return view && view->has_files;
}

static int add_part(struct sb_fg *fg, const char *part, size_t len)
{
	const char *equals = memchr(part, '=', len);
	size_t key_len = equals ? (size_t)(equals - part) : 0;
	char value[FACT_BYTES_MAX];
	struct sb_fg_fact *fact;

	if (!is_key(part, key_len) || len >= FACT_BYTES_MAX) {
		sb_fg_complain(fg, SB_FG_BAD_HEADER);
		return 0;
	}
	snprintf(value, sizeof(value), "%.*s", (int)(len - key_len - 1), equals + 1);
	if (sb_text_is(part, key_len, "kind"))
		fg->has_files = has_files(value);
	fact = find(&fg->facts, part, key_len);
	if (fact)
		return fact_merge(fg, fact, value);
	if (fg->facts.facts.nr == NR_FACTS_MAX) {
		sb_fg_complain(fg, SB_FG_BAD_HEADER);
		return 0;
	}
	return fact_new(&fg->facts, part, key_len, value);
}

int sb_fg_add_fact(struct sb_fg *fg, const char *key, const char *value)
{
	char part[FACT_BYTES_MAX];
	int len = snprintf(part, sizeof(part), "%s=%s", key, value), i;

	if (len >= FACT_BYTES_MAX) {
		sb_fg_complain(fg, SB_FG_BAD_HEADER);
		return 0;
	}
	sb_replace_controls(part, (size_t)len);
	/* The picture contains the metadata as one header line of folded text. */
	for (i = 0; i < len; i++)
		part[i] = part[i] == ' ' ? '_' : part[i] == ';' ? ':' : part[i];
	return add_part(fg, part, (size_t)len);
}

int sb_fg_facts_add(struct sb_fg *fg, const char *line, size_t len)
{
	static const char magic[] = "#stackbpf;";
	size_t at, end;
	const char *semicolon;
	int err = 0;

	if (!sb_text_begins(line, len, magic))
		return 0; /* a comment */
	for (at = sizeof(magic) - 1; at < len && !err; at = end + 1) {
		semicolon = memchr(line + at, ';', len - at);
		end = semicolon ? (size_t)(semicolon - line) : len;
		if (end > at)
			err = add_part(fg, line + at, end - at);
	}
	return err;
}
