// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "tree/tree.h"

struct pruning {
	struct sb_tree *tree;
	uint32_t other_name;
	uint8_t other_kind;
	bool *is_kept;	  /* by node */
	uint32_t *others; /* by node: its child that stands for those that are cut */
};

static bool is_other(const struct pruning *pruning, size_t node)
{
	return pruning->tree->nodes.at[node].name == pruning->other_name &&
	       pruning->tree->kinds.at[node] == pruning->other_kind;
}

/* ---- what is kept ---- */

struct weighed {
	double share;
	uint32_t node;
};

static int heaviest_first(const void *va, const void *vb)
{
	const struct weighed *a = va, *b = vb;

	return sb_compare(b->share, a->share) ?: sb_compare(a->node, b->node);
}

/* No node has a larger share than its parent, or a smaller number: parents come first. */
static struct weighed *weigh(const struct sb_tree *tree)
{
	struct weighed *weighed = calloc(tree->nodes.nr, sizeof(*weighed));
	double all;
	size_t i;
	int side;

	for (i = 0; weighed && i < tree->nodes.nr; i++) {
		weighed[i].node = (uint32_t)i;
		for (side = 0; side < SB_TREE_NR; side++) {
			all = sb_tree_total(tree, 0, side);
			if (all > 0)
				weighed[i].share =
					fmax(weighed[i].share, sb_tree_total(tree, i, side) / all);
		}
	}
	if (weighed)
		qsort(weighed, tree->nodes.nr, sizeof(*weighed), heaviest_first);
	return weighed;
}

/* Return: 0 or -ENOMEM. */
static int choose(const struct pruning *pruning, size_t nr_max)
{
	const struct sb_tree_node *nodes = pruning->tree->nodes.at;
	size_t nr = pruning->tree->nodes.nr, nr_used = 0, i;
	sb_cleanup(sb_freep) struct weighed *weighed = weigh(pruning->tree);
	/* By node: children that are not kept. As long as there are any, SB_TREE_OTHER is
	 * needed. */
	sb_cleanup(sb_freep) uint32_t *nr_out = calloc(nr, sizeof(*nr_out));

	if (!weighed || !nr_out)
		return -ENOMEM;
	for (i = 1; i < nr; i++)
		nr_out[nodes[i].parent]++;
	for (i = 0; i < nr; i++) {
		uint32_t at = weighed[i].node, parent = nodes[at].parent;
		size_t nr_then = nr_used + 1 + (nr_out[at] > 0);

		/* One that stands for others becomes part of the next one that does. */
		if (at && (is_other(pruning, at) || !pruning->is_kept[parent]))
			continue;
		if (at && nr_out[parent] == 1)
			nr_then--;
		if (nr_then > nr_max)
			continue;
		if (at)
			nr_out[parent]--;
		nr_used = nr_then;
		pruning->is_kept[at] = true;
	}
	return 0;
}

/* ---- the cut ---- */

/* The first child of a node that is cut stands for all of them, and what is below. */
static void cut(struct pruning *pruning, uint32_t node)
{
	struct sb_tree *tree = pruning->tree;
	uint32_t *other = &pruning->others[tree->nodes.at[node].parent], i;

	for (i = node; i < tree->nodes.at[node].end; i++)
		tree->nr_cut += !is_other(pruning, i);
	if (!*other) {
		*other = node;
		tree->nodes.at[node].name = pruning->other_name;
		tree->kinds.at[node] = pruning->other_kind;
		if (tree->modules.nr)
			tree->modules.at[node] = 0;
		if (tree->marks.nr)
			tree->marks.at[node] = 0;
	} else {
		tree->nodes.at[*other].total += tree->nodes.at[node].total;
		if (tree->pairs.nr)
			sb_tree_pair_add(&tree->pair_totals.at[*other],
					 &tree->pair_totals.at[node]);
	}
	if (tree->selves)
		tree->selves[*other] = tree->nodes.at[*other].total;
	if (tree->pairs.nr)
		tree->pairs.at[*other] = tree->pair_totals.at[*other];
}

static void cut_all(struct pruning *pruning)
{
	const struct sb_tree_node *nodes = pruning->tree->nodes.at;
	uint32_t i, next;

	for (i = 1; i < pruning->tree->nodes.nr; i = next) {
		next = pruning->is_kept[i] ? i + 1 : nodes[i].end;
		if (!pruning->is_kept[i])
			cut(pruning, i);
	}
}

/* What remains, in order, those that stand for others last; the caller has room for all. Return:
 * how many. */
static size_t list_remaining(const struct pruning *pruning, uint32_t *order)
{
	size_t nr = 0, i;

	for (i = 0; i < pruning->tree->nodes.nr; i++)
		if (pruning->is_kept[i])
			order[nr++] = (uint32_t)i;
	for (i = 0; i < pruning->tree->nodes.nr; i++)
		if (pruning->others[i])
			order[nr++] = pruning->others[i];
	return nr;
}

int sb_tree_prune(struct sb_tree *tree, size_t nr_max, uint8_t other_kind)
{
	size_t nr = tree->nodes.nr;
	sb_cleanup(sb_freep) bool *is_kept = calloc(nr, sizeof(*is_kept));
	sb_cleanup(sb_freep) uint32_t *others = calloc(nr, sizeof(*others));
	sb_cleanup(sb_freep) uint32_t *order = calloc(nr, sizeof(*order));
	struct pruning pruning = { tree, 0, other_kind, is_kept, others };
	int err;

	if (nr_max < 2)
		return -EINVAL;
	if (nr <= nr_max)
		return 0;
	if (!is_kept || !others || !order)
		return -ENOMEM;
	err = sb_strtab_add(&tree->names, SB_TREE_OTHER, strlen(SB_TREE_OTHER),
			    &pruning.other_name);
	err = err ?: choose(&pruning, nr_max);
	if (err)
		return err;
	cut_all(&pruning);
	sb_tree_rearrange(tree, order, list_remaining(&pruning, order));
	return 0;
}
