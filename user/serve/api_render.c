// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * /render and /render-diff, compatible with Pyroscope's server (0.x, and 1.x for its old clients).
 * A "flamebearer" has four numbers for each node of each level: its distance from the end of the
 * node before it, total, self, and the index of its name. A comparison has seven: three for each
 * profile, and the name. See pkg/structs/flamebearer and the documentation of its API; we also
 * looked at what its clients read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/measure.h"
#include "serve/api.h"

/* The limit of nodes that their clients assume. */
#define NODES 8192u

struct bearer {
	const struct sb_tree *tree;
	int nr_sides;
	struct sb_numbering names;
	uint64_t *begin[SB_TREE_NR]; /* by node: where it begins */
	uint32_t nr_levels;
	uint64_t max_self;
};

static void bearer_release(struct bearer *bearer)
{
	free(bearer->begin[SB_TREE_A]);
	free(bearer->begin[SB_TREE_B]);
	sb_numbering_release(&bearer->names);
}

/* Children are side by side from the begin of their parent; the rest of its width is its own. */
static int lay_out(struct bearer *bearer)
{
	const struct sb_tree *tree = bearer->tree;
	size_t nr = tree->nodes.nr, i;
	int side;

	for (side = 0; side < bearer->nr_sides; side++) {
		sb_cleanup(sb_freep) uint64_t *next = calloc(nr + 1, sizeof(*next));

		bearer->begin[side] = calloc(nr + 1, sizeof(uint64_t));
		if (!next || !bearer->begin[side])
			return -ENOMEM;
		for (i = 1; i < nr; i++) {
			uint32_t parent = tree->nodes.at[i].parent;

			bearer->begin[side][i] = next[i] = next[parent];
			next[parent] += sb_tree_whole(sb_tree_total(tree, i, side));
		}
	}
	for (i = 0; i < nr; i++) {
		if (tree->nodes.at[i].depth >= bearer->nr_levels)
			bearer->nr_levels = tree->nodes.at[i].depth + 1;
		for (side = 0; side < bearer->nr_sides; side++) {
			uint64_t self = sb_tree_whole(sb_tree_self(tree, i, side));

			if (self > bearer->max_self)
				bearer->max_self = self;
		}
	}
	return 0;
}

/*
 * Sort the nodes by level, otherwise in pre-order, so that those of a level come from left to
 * right. Return: 0, -ENOMEM.
 */
static int by_level(const struct bearer *bearer, uint32_t **ret_first, uint32_t **ret_order)
{
	const struct sb_tree *tree = bearer->tree;
	uint32_t *first = calloc((size_t)bearer->nr_levels + 2, sizeof(*first));
	uint32_t *order = calloc(tree->nodes.nr + 1, sizeof(*order));
	size_t i;

	*ret_first = first;
	*ret_order = order;
	if (!first || !order)
		return -ENOMEM;
	for (i = 0; i < tree->nodes.nr; i++)
		first[tree->nodes.at[i].depth + 2]++;
	for (i = 1; i < (size_t)bearer->nr_levels + 2; i++)
		first[i] += first[i - 1];
	/* Filling moves the begin of each level to that of the next one, where it belongs. */
	for (i = 0; i < tree->nodes.nr; i++)
		order[first[tree->nodes.at[i].depth + 1]++] = (uint32_t)i;
	return 0;
}

static void put_level(struct sb_json *json, struct bearer *bearer, const uint32_t *order, size_t nr)
{
	uint64_t end[SB_TREE_NR] = {};
	size_t i;
	int side;

	for (i = 0; i < nr; i++) {
		const struct sb_tree *tree = bearer->tree;

		for (side = 0; side < bearer->nr_sides; side++) {
			uint64_t begin = bearer->begin[side][order[i]];
			uint64_t total = sb_tree_whole(sb_tree_total(tree, order[i], side));

			sb_json_u64(json, NULL, begin - end[side]);
			sb_json_u64(json, NULL, total);
			sb_json_u64(json, NULL, sb_tree_whole(sb_tree_self(tree, order[i], side)));
			end[side] = begin + total;
		}
		/* Index 0 is the name of the root. */
		sb_json_u64(
			json, NULL,
			order[i]
				? sb_numbering_of(&bearer->names, tree->nodes.at[order[i]].name) + 1
				: 0);
	}
}

static int put_levels(struct sb_json *json, struct bearer *bearer)
{
	sb_cleanup(sb_freep) uint32_t *first = NULL;
	sb_cleanup(sb_freep) uint32_t *order = NULL;
	uint32_t level;
	int err = by_level(bearer, &first, &order);

	sb_json_rows(json, "levels");
	for (level = 0; level < bearer->nr_levels && !err; level++) {
		sb_json_array(json, NULL);
		put_level(json, bearer, order + first[level], first[level + 1] - first[level]);
		sb_json_close(json);
	}
	sb_json_close(json);
	return err;
}

/*
 * With "samples", their clients show number / sampleRate as seconds. So microseconds are samples
 * with a rate of a million.
 */
static void put_unit(struct sb_json *json, const struct sb_measure *measure, bool is_double)
{
	bool is_us = sb_streq(measure->unit, "us");

	sb_json_string(json, "format", is_double ? "double" : "single");
	sb_json_string(json, "spyName", "stackbpf");
	sb_json_u64(json, "sampleRate", is_us ? 1000000 : measure->hz ? measure->hz : 100);
	sb_json_string(json, "units",
		       is_us || sb_streq(measure->unit, "samples") ? "samples"
		       : sb_streq(measure->unit, "bytes")	   ? "bytes"
								   : "objects");
}

static int put_bearer(struct sb_json *json, const struct sb_tree *tree, bool is_double,
		      const struct sb_measure *measure)
{
	struct bearer bearer = { .tree = tree, .nr_sides = is_double ? SB_TREE_NR : 1 };
	const uint64_t totals[SB_TREE_NR] = { sb_tree_whole(sb_tree_total(tree, 0, SB_TREE_A)),
					      sb_tree_whole(sb_tree_total(tree, 0, SB_TREE_B)) };
	uint32_t i;
	int err = lay_out(&bearer);

	if (!err)
		err = sb_numbering_init(&bearer.names, tree);
	sb_json_object(json, NULL);
	sb_json_u64(json, "version", 1);
	sb_json_object(json, "flamebearer");
	if (!err)
		err = put_levels(json, &bearer);
	sb_json_array(json, "names");
	sb_json_string(json, NULL, "total");
	for (i = 0; i < bearer.names.nr; i++)
		sb_json_string(json, NULL,
			       sb_strtab_get(&tree->names, bearer.names.string[i], NULL));
	sb_json_close(json);
	sb_json_u64(json, "numTicks", totals[SB_TREE_A] + totals[SB_TREE_B]);
	sb_json_u64(json, "maxSelf", bearer.max_self);
	/* Clients of 2021 read it here, later ones in "metadata". */
	put_unit(json, measure, is_double);
	sb_json_close(json);
	sb_json_object(json, "metadata");
	put_unit(json, measure, is_double);
	sb_json_close(json);
	if (is_double) {
		sb_json_u64(json, "leftTicks", totals[SB_TREE_A]);
		sb_json_u64(json, "rightTicks", totals[SB_TREE_B]);
	}
	bearer_release(&bearer);
	return err;
}

/* Their format adds 1 to every weight, to tell 0 from nothing recorded; clients subtract it. */
static int put_timeline(struct sb_asked *asked, const struct sb_ask *ask)
{
	sb_cleanup(sb_timeline_freep) struct sb_timeline *timeline = NULL;
	struct sb_timeline_opts opts = { .nr_series_max = 1 };
	struct sb_ask sum = *ask;
	struct sb_json *json = &asked->json;
	uint64_t weight;
	size_t i, k;
	int err;

	sum.by = NULL;
	err = sb_store_timeline(asked->opts->store, &sum, &opts, &timeline);
	if (err)
		return err;
	sb_json_object(json, "timeline");
	sb_json_i64(json, "startTime", timeline->from_s);
	sb_json_array(json, "samples");
	for (i = 0; i < timeline->nr_steps; i++) {
		for (k = 0, weight = 0; k < timeline->series.nr; k++)
			weight += timeline->series.at[k].weights[i];
		sb_json_u64(json, NULL, timeline->sampled_ms[i] ? weight + 1 : 0);
	}
	sb_json_close(json);
	sb_json_u64(json, "durationDelta", timeline->step_s);
	sb_json_string(json, "watermarks", NULL);
	return 0;
}

/* name{k="v"}, as their clients send it. */
static int ask_query(struct sb_asked *asked, const char *query_name, const char *from_name,
		     const char *until_name, struct sb_ask *ask)
{
	const char *query = sb_params_get(&asked->params, query_name), *why = NULL;
	const char *from = sb_params_get(&asked->params, from_name);
	const char *until = sb_params_get(&asked->params, until_name);
	int err = sb_ask_range(ask, from ? from : sb_params_get(&asked->params, "from"),
			       until ? until : sb_params_get(&asked->params, "until"), asked->now_s,
			       &why);

	if (err == -EINVAL)
		return sb_asked_fail(asked, 400, "%s, %s: %s", from_name, until_name,
				     why ? why : "the time range is not valid");
	if (!err && query)
		err = sb_ask_rule(ask, query);
	if (err == -EINVAL)
		return sb_asked_fail(asked, 400,
				     "%s: '%s' is not a valid query: try oncpu{service=\"car\"}",
				     query_name, query);
	return err;
}

static int check_rest(struct sb_asked *asked)
{
	const char *format = sb_params_get(&asked->params, "format");

	if (format && !sb_streq(format, "json"))
		return sb_asked_fail(asked, 400,
				     "format=%s: only json is available here; /api/profile "
				     "has other formats",
				     format);
	/* Parameters of their clients that have no meaning here. */
	(void)sb_params_get(&asked->params, "name");
	(void)sb_params_get(&asked->params, "groupBy");
	return sb_asked_all(asked);
}

static int render_single(struct sb_asked *asked, struct sb_ask *ask, uint32_t nr_nodes)
{
	sb_cleanup(sb_profile_freep) struct sb_profile *profile = NULL;
	sb_cleanup(sb_tree_freep) struct sb_tree *tree = NULL;
	struct sb_store_answer answer;
	struct sb_measure measure;
	int err = sb_api_tree(asked, ask, nr_nodes, &profile, &tree, &answer);

	if (err)
		return err;
	measure = sb_measure_of(profile);
	err = put_bearer(&asked->json, tree, false, &measure);
	return err ? err : put_timeline(asked, ask);
}

int sb_api_render(struct sb_asked *asked)
{
	sb_cleanup(sb_ask_release) struct sb_ask ask = {};
	uint32_t nr_nodes;
	int err = ask_query(asked, "query", "from", "until", &ask);

	if (!err)
		err = sb_api_number(asked, "max-nodes", 2, SB_API_NODES_MAX, NODES, &nr_nodes);
	err = err ?: check_rest(asked);
	return err ?: render_single(asked, &ask, nr_nodes);
}

static int render_two(struct sb_asked *asked, struct sb_ask ask[SB_TREE_NR], uint32_t nr_nodes)
{
	sb_cleanup(sb_profile_freep) struct sb_profile *left = NULL;
	sb_cleanup(sb_profile_freep) struct sb_profile *right = NULL;
	sb_cleanup(sb_tree_freep) struct sb_tree *tree = NULL;
	struct sb_measure measure;
	int err = sb_ask_profile(asked->opts->store, &ask[SB_TREE_A], &left, NULL);

	if (!err)
		err = sb_ask_profile(asked->opts->store, &ask[SB_TREE_B], &right, NULL);
	if (!err)
		err = sb_calltree_new(left, right, &tree);
	if (!err)
		err = sb_tree_prune(tree, nr_nodes, SB_FRAME_MARK);
	if (err)
		return err;
	measure = sb_measure_of(sb_profile_weight(left) ? left : right);
	return put_bearer(&asked->json, tree, true, &measure);
}

int sb_api_render_diff(struct sb_asked *asked)
{
	struct sb_ask ask[SB_TREE_NR] = {};
	uint32_t nr_nodes;
	int err = ask_query(asked, "leftQuery", "leftFrom", "leftUntil", &ask[SB_TREE_A]);

	if (!err)
		err = ask_query(asked, "rightQuery", "rightFrom", "rightUntil", &ask[SB_TREE_B]);
	if (!err)
		err = sb_api_number(asked, "max-nodes", 2, SB_API_NODES_MAX, NODES, &nr_nodes);
	if (!err)
		err = check_rest(asked);
	if (!err && !sb_streq(sb_ask_kind(&ask[SB_TREE_A]), sb_ask_kind(&ask[SB_TREE_B])))
		err = sb_asked_fail(asked, 400,
				    "the two profiles are of different kinds; compare "
				    "two of one kind");
	if (!err)
		err = render_two(asked, ask, nr_nodes);
	sb_ask_release(&ask[SB_TREE_A]);
	sb_ask_release(&ask[SB_TREE_B]);
	return err;
}
