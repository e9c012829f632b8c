// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "serve/api.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/version.h"
#include "kinds/view_kind.h"
#include "output/output.h"
#include "serve/store_json.h"

#define VALUES_MAX 100u
#define POINTS	   300u
#define POINTS_MAX 2000u
#define SERIES_MAX 10u
#define NAME_MAX_  32u

/* Parameters. */

int sb_api_number(struct sb_asked *asked, const char *name, uint32_t min, uint32_t max,
		  uint32_t otherwise, uint32_t *ret)
{
	const char *text = sb_params_get(&asked->params, name);
	uint64_t val = otherwise;

	if (text && (sb_parse_u64(text, max, &val) || val < min))
		return sb_asked_fail(asked, 400, "'%s' is not a number from %u to %u", name, min,
				     max);
	*ret = (uint32_t)val;
	return 0;
}

static int ask_tags(struct sb_asked *asked, const char *name, struct sb_ask *ask)
{
	const char *text;
	size_t at = 0;
	int err;

	while ((text = sb_params_next(&asked->params, name, &at))) {
		err = sb_ask_rule(ask, text);
		if (err == -EINVAL)
			return sb_asked_fail(asked, 400,
					     "%s: '%s' is not a valid tag rule: " SB_ASK_RULE_HELP,
					     name, text);
		if (err)
			return err;
	}
	return 0;
}

static int check_by(struct sb_asked *asked, const struct sb_ask *ask)
{
	sb_cleanup(sb_str_release) struct sb_str why = {};
	int err = sb_ask_check_by(asked->opts->store, ask, &why);

	return err == -ENOENT ? sb_asked_fail(asked, 400, "by=%s: %s", ask->by, why.s) : err;
}

int sb_api_ask(struct sb_asked *asked, const char *prefix, struct sb_ask *ret_ask)
{
	char from[NAME_MAX_], to[NAME_MAX_], tag[NAME_MAX_];
	const char *kind = sb_params_get(&asked->params, "kind"), *why = NULL;
	int err;

	snprintf(from, sizeof(from), "%sfrom", prefix);
	snprintf(to, sizeof(to), "%sto", prefix);
	snprintf(tag, sizeof(tag), "%stag", prefix);
	err = sb_ask_range(ret_ask, sb_params_get(&asked->params, from),
			   sb_params_get(&asked->params, to), asked->now_s, &why);
	if (err == -EINVAL)
		return sb_asked_fail(asked, 400, "%s, %s: %s", from, to,
				     why ? why : "the time range is not valid");
	err = err ?: ask_tags(asked, tag, ret_ask);
	if (!err && kind)
		err = sb_ask_set_kind(ret_ask, kind);
	ret_ask->by = sb_params_get(&asked->params, "by");
	return err ? err : check_by(asked, ret_ask);
}

/* /api/info */

/* The formats in which /api/profile can return a profile. */
static void put_formats(struct sb_json *json)
{
	const struct sb_output *output;
	size_t i;

	sb_json_array(json, "formats");
	for (i = 0; (output = sb_output_at(i)); i++) {
		if (output->needs_durations)
			continue;
		sb_json_object(json, NULL);
		sb_json_string(json, "format", output->name);
		sb_json_string(json, "summary", output->summary);
		sb_json_close(json);
	}
	sb_json_close(json);
}

/* The hosts in the last hour of a kind. There are several if stores were merged. */
static int put_hosts(struct sb_asked *asked, const struct sb_store_extent *extent)
{
	sb_cleanup(sb_tags_freep) struct sb_tags *tags = NULL;
	struct sb_ask ask = { .from_s = extent->to_s - 3600, .to_s = extent->to_s };
	size_t i, k;
	int err = sb_ask_set_kind(&ask, extent->kind.name);

	if (!err)
		err = sb_store_tags(asked->opts->store, &ask, VALUES_MAX, &tags);
	for (i = 0; !err && i < tags->keys.nr; i++) {
		const struct sb_tag_counts *counts = &tags->keys.at[i];

		for (k = 0; sb_streq(counts->key, "host") && k < counts->values.nr; k++)
			sb_json_string(&asked->json, NULL, counts->values.at[k].value);
	}
	sb_ask_release(&ask);
	return err;
}

int sb_api_info(struct sb_asked *asked)
{
	struct sb_store_extent extents[SB_STORE_KINDS_MAX];
	struct sb_json *json = &asked->json;
	int64_t from_s = 0, to_s = 0;
	int nr, i, last = 0, err = sb_asked_all(asked);

	if (err)
		return err;
	nr = sb_store_extents(asked->opts->store, extents);
	if (nr < 0)
		return nr;
	for (i = 0; i < nr; i++) {
		from_s = i && from_s < extents[i].from_s ? from_s : extents[i].from_s;
		to_s = to_s > extents[i].to_s ? to_s : extents[i].to_s;
		last = extents[i].to_s > extents[last].to_s ? i : last;
	}
	sb_json_object(json, NULL);
	sb_json_string(json, "version", sb_version);
	sb_json_string(json, "store", asked->opts->store_path);
	sb_json_array(json, "host");
	if (nr)
		err = put_hosts(asked, &extents[last]);
	sb_json_close(json);
	sb_json_i64(json, "from", from_s);
	sb_json_i64(json, "to", to_s);
	sb_json_i64(json, "now", asked->now_s);
	sb_json_u64(json, "block_s", SB_STORE_BLOCK_S);
	sb_json_string(json, "default_kind", sb_view_kind_default()->name);
	sb_json_extents(json, "kinds", extents, nr);
	put_formats(json);
	return err;
}

/* /api/tags */

static void put_tag(struct sb_json *json, const struct sb_tag_counts *counts)
{
	size_t i;

	sb_json_object(json, NULL);
	sb_json_string(json, "key", counts->key);
	sb_json_bool(json, "wide", counts->is_wide);
	sb_json_array(json, "values");
	for (i = 0; i < counts->values.nr; i++) {
		sb_json_object(json, NULL);
		sb_json_string(json, "value", counts->values.at[i].value);
		sb_json_u64(json, "weight", counts->values.at[i].weight);
		sb_json_close(json);
	}
	sb_json_close(json);
	sb_json_u64(json, "nr_more", counts->nr_more);
	sb_json_u64(json, "weight_more", counts->weight_more);
	sb_json_bool(json, "has_more", counts->has_more);
	sb_json_close(json);
}

int sb_api_tags(struct sb_asked *asked)
{
	sb_cleanup(sb_tags_freep) struct sb_tags *tags = NULL;
	struct sb_json *json = &asked->json;
	sb_cleanup(sb_ask_release) struct sb_ask ask = {};
	size_t i;
	int err = sb_api_ask(asked, "", &ask);

	if (!err)
		err = sb_asked_all(asked);
	if (!err)
		err = sb_store_tags(asked->opts->store, &ask, VALUES_MAX, &tags);
	sb_json_object(json, NULL);
	if (!err)
		sb_json_bool(json, "more_tags", tags->has_more);
	sb_json_rows(json, "tags");
	for (i = 0; !err && i < tags->keys.nr; i++)
		put_tag(json, &tags->keys.at[i]);
	return err;
}

/* /api/timeline */

int sb_api_timeline(struct sb_asked *asked)
{
	sb_cleanup(sb_timeline_freep) struct sb_timeline *timeline = NULL;
	struct sb_timeline_opts opts = { .nr_series_max = SERIES_MAX };
	sb_cleanup(sb_ask_release) struct sb_ask ask = {};
	int err = sb_api_ask(asked, "", &ask);

	if (!err)
		err = sb_api_number(asked, "points", 1, POINTS_MAX, POINTS, &opts.nr_steps_max);
	if (!err)
		err = sb_asked_all(asked);
	if (!err)
		err = sb_store_timeline(asked->opts->store, &ask, &opts, &timeline);
	if (!err)
		sb_json_timeline(&asked->json, &ask, timeline);
	return err;
}
