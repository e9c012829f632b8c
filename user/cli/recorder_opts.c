// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/recorder_opts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "base/utf8.h"
#include "events/definition.h"

#define VALUE_BYTES_MAX 200u
#define DAY_S		86400u

/* Keys that we fill in; --tag may say these otherwise. */
static bool is_fixed(const char *key)
{
	return sb_streq(key, "kind") || sb_streq(key, "pid") || sb_streq(key, "tid");
}

/* Return: NULL, and the kind; or why it cannot be recorded, the end of a sentence. */
static const char *find_kind(const char *name, size_t len, struct sb_recorder_kind *ret_kind)
{
	static char why[512];
	const struct sb_view_kind *view;

	*ret_kind = (struct sb_recorder_kind){};
	snprintf(ret_kind->name, sizeof(ret_kind->name), "%.*s", (int)len, name);
	view = sb_view_kind_find(ret_kind->name);
	if (view && view->takes_events && sb_streq(view->name, ret_kind->name)) {
		snprintf(
			why, sizeof(why),
			"does not say which events: put a line such as 'fsync: c:fsync' into " SB_DEFINITIONS_PATH
			" or the file of --definitions, and use %s" SB_VIEW_KIND_OF "fsync",
			view->name);
		return why;
	}
	if (len >= sizeof(ret_kind->name) || !view) {
		snprintf(why, sizeof(why), "is not a list of %s", sb_view_kind_names());
		return why;
	}
	ret_kind->view = sb_view_find(view->name);
	return NULL;
}

int sb_recorder_parse_kinds(void *field, const char *value, const char **ret_why)
{
	struct sb_recorder_config *opts = field;
	struct sb_recorder_kind kind;
	size_t len, i;

	_Static_assert(SB_RECORDER_KINDS_MAX == 8, "the message below says how many");
	for (;; value += len + 1) {
		len = strcspn(value, ",");
		*ret_why = find_kind(value, len, &kind);
		if (!*ret_why && opts->nr_kinds == SB_RECORDER_KINDS_MAX)
			*ret_why =
				"has more than 8 kinds; record the others with a second command, to another --store";
		for (i = 0; i < opts->nr_kinds && !*ret_why; i++)
			if (sb_streq(opts->kinds[i].name, kind.name))
				*ret_why = "names a kind twice";
		if (*ret_why)
			return -EINVAL;
		opts->kinds[opts->nr_kinds++] = kind;
		if (!value[len])
			return 0;
	}
}

int sb_recorder_parse_tag(void *field, const char *value, const char **ret_why)
{
	struct sb_recorder_config *opts = field;
	struct sb_recorder_tag tag = {};
	size_t len = strcspn(value, "="), i;

	if (!value[len] || !value[len + 1] || !sb_run_is_key(value, len))
		*ret_why = "is not KEY=VALUE with a key of letters, digits, '_', '.', '-', '/'";
	else if (strlen(value + len + 1) > VALUE_BYTES_MAX)
		*ret_why = "has a value of more than 200 bytes; choose a shorter one";
	else if (opts->nr_tags == SB_RECORDER_TAGS_MAX)
		*ret_why = "is one tag too many: the limit is 16";
	if (*ret_why)
		return -EINVAL;
	tag.key = strndup(value, len);
	tag.value = strdup(value + len + 1);
	if (!tag.key || !tag.value) {
		free(tag.key);
		free(tag.value);
		return -ENOMEM;
	}
	sb_replace_controls(tag.value, strlen(tag.value));
	if (is_fixed(tag.key))
		*ret_why = "has a key that stackbpf sets itself; choose another key";
	for (i = 0; i < opts->nr_tags && !*ret_why; i++)
		if (sb_streq(opts->tags[i].key, tag.key))
			*ret_why = "has a key that was given before; give each key once";
	/* Also those that are wrong: they are freed in one place. */
	opts->tags[opts->nr_tags++] = tag;
	return *ret_why ? -EINVAL : 0;
}

int sb_recorder_parse_label(void *field, const char *value, const char **ret_why)
{
	struct sb_run_config *opts = field;
	size_t i;

	if (!sb_run_is_key(value, strlen(value)))
		*ret_why = "is not a key of letters, digits, '_', '.', '-', '/'";
	else if (opts->nr_labels == SB_LABELS_MAX)
		*ret_why = "is one label too many: the limit is 8";
	for (i = 0; i < opts->nr_labels && !*ret_why; i++)
		if (sb_streq(opts->labels[i], value))
			*ret_why = "was given twice";
	if (*ret_why)
		return -EINVAL;
	opts->labels[opts->nr_labels++] = value;
	return 0;
}

/* "7d", "12h", "1y"; "0": for ever. */
static bool parse_keep(const char *s, size_t len, uint64_t *ret_s)
{
	static const struct {
		const char *name;
		uint64_t seconds;
	} units[] = {
		{ "s", 1 },	{ "min", 60 },	    { "m", 60 },	  { "h", 3600 },
		{ "d", DAY_S }, { "w", 7 * DAY_S }, { "y", 366 * DAY_S }, { NULL, 0 },
	};
	const char *at = s, *end = s + len;
	uint64_t number;
	size_t i;

	if (!sb_scan_u64(&at, end, &number) || number > 100000)
		return false;
	*ret_s = 0;
	if (at == end)
		return !number;
	for (i = 0; units[i].name; i++)
		if (strlen(units[i].name) == (size_t)(end - at) &&
		    !memcmp(at, units[i].name, (size_t)(end - at)))
			*ret_s = number * units[i].seconds;
	return *ret_s;
}

static bool parse_level(struct sb_recorder_config *opts, const char *s, size_t len)
{
	size_t name_len = strcspn(s, "="), i;

	for (i = 0; i < SB_STORE_LEVELS && name_len < len; i++) {
		if (strlen(sb_levels[i].name) != name_len || memcmp(sb_levels[i].name, s, name_len))
			continue;
		opts->has_keep[i] = true;
		return parse_keep(s + name_len + 1, len - name_len - 1, &opts->keep_s[i]);
	}
	return false;
}

int sb_recorder_parse_retain(void *field, const char *value, const char **ret_why)
{
	size_t len;

	for (;; value += len + 1) {
		len = strcspn(value, ",");
		if (!parse_level(field, value, len)) {
			*ret_why = "is not a list such as 10s=7d,10min=30d,1h=1y,1d=0 (0: "
				   "forever)";
			return -EINVAL;
		}
		if (!value[len])
			return 0;
	}
}

void sb_recorder_opts_release(struct sb_recorder_config *opts)
{
	size_t i;

	for (i = 0; i < opts->nr_tags; i++) {
		free(opts->tags[i].key);
		free(opts->tags[i].value);
	}
	opts->nr_tags = 0;
}
