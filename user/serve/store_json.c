// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "serve/store_json.h"

void sb_json_extents(struct sb_json *json, const char *key, const struct sb_store_extent *extents,
		     int nr)
{
	int i;

	sb_json_array(json, key);
	for (i = 0; i < nr; i++) {
		sb_json_object(json, NULL);
		sb_json_string(json, "kind", extents[i].kind.name);
		sb_json_string(json, "unit", extents[i].kind.unit);
		sb_json_u64(json, "hz", extents[i].hz);
		sb_json_i64(json, "from", extents[i].from_s);
		sb_json_i64(json, "to", extents[i].to_s);
		sb_json_close(json);
	}
	sb_json_close(json);
}

/* null where nothing was recorded, which is not the same as 0. */
static void put_steps(struct sb_json *json, const char *key, const struct sb_timeline *timeline,
		      const uint64_t *values)
{
	size_t i;

	sb_json_array(json, key);
	for (i = 0; i < timeline->nr_steps; i++) {
		if (timeline->sampled_ms[i])
			sb_json_u64(json, NULL, values[i]);
		else
			sb_json_string(json, NULL, NULL);
	}
	sb_json_close(json);
}

void sb_json_timeline(struct sb_json *json, const struct sb_ask *ask,
		      const struct sb_timeline *timeline)
{
	size_t i;

	sb_json_object(json, NULL);
	sb_json_string(json, "kind", sb_ask_kind(ask));
	sb_json_string(json, "unit", timeline->kind.unit);
	sb_json_i64(json, "from", timeline->from_s);
	sb_json_i64(json, "to", timeline->from_s + (int64_t)timeline->nr_steps * timeline->step_s);
	sb_json_u64(json, "step_s", timeline->step_s);
	sb_json_rows(json, "series");
	for (i = 0; i < timeline->series.nr; i++) {
		sb_json_object(json, NULL);
		sb_json_string(json, "value", timeline->series.at[i].value);
		put_steps(json, "weights", timeline, timeline->series.at[i].weights);
		sb_json_close(json);
	}
	sb_json_close(json);
	put_steps(json, "lost", timeline, timeline->lost);
	sb_json_array(json, "sampled_ms");
	for (i = 0; i < timeline->nr_steps; i++)
		sb_json_u64(json, NULL, timeline->sampled_ms[i]);
}
