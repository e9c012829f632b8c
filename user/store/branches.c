// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/branches.h"

#include "base/cleanup.h"

/* Scratch of a node. */
struct place {
	uint32_t nr_children; /* 2: two or more, or a row ends here */
	uint32_t branch;      /* its number, or that of the nearest branch point above */
	uint32_t nr_nodes;    /* from that one down to it; 0 at a branch point */
};

static void count_children(const struct sb_dict *dict, struct place *places)
{
	size_t i;

	for (i = 1; i < dict->nodes.nr; i++)
		places[dict->nodes.at[i].parent].nr_children++;
	for (i = 0; i < dict->rows.nr; i++)
		places[dict->rows.at[i].node].nr_children = 2;
}

static void add_branch(struct sb_branches *branches, uint32_t node, struct place *place)
{
	branches->parent.at[branches->parent.nr++] = place->branch;
	branches->node.at[branches->node.nr++] = node;
	branches->nr_nodes.at[branches->nr_nodes.nr++] = place->nr_nodes;
	place->branch = (uint32_t)branches->node.nr - 1;
	place->nr_nodes = 0;
}

static int reserve(struct sb_branches *branches, const struct sb_dict *dict)
{
	int err = sb_vec_reserve(&branches->parent, dict->nodes.nr);

	if (!err)
		err = sb_vec_reserve(&branches->node, dict->nodes.nr);
	if (!err)
		err = sb_vec_reserve(&branches->nr_nodes, dict->nodes.nr);
	return err ? err : sb_vec_reserve(&branches->of_row, dict->rows.nr);
}

int sb_branches_fit(struct sb_branches *branches, const struct sb_dict *dict)
{
	sb_cleanup(sb_freep) struct place *places = NULL;
	size_t i;
	int err;

	/* A new row can make an old node a branch point, so all of them are computed again. */
	if (branches->nr_dict_nodes == dict->nodes.nr && branches->of_row.nr == dict->rows.nr)
		return 0;
	places = calloc(dict->nodes.nr, sizeof(*places));
	err = places ? reserve(branches, dict) : -ENOMEM;
	if (err)
		return err;
	branches->parent.nr = branches->node.nr = branches->nr_nodes.nr = 0;
	count_children(dict, places);
	add_branch(branches, 0, &places[0]);
	for (i = 1; i < dict->nodes.nr; i++) {
		const struct place *above = &places[dict->nodes.at[i].parent];

		places[i].branch = above->branch;
		places[i].nr_nodes = above->nr_nodes + 1;
		if (places[i].nr_children != 1)
			add_branch(branches, (uint32_t)i, &places[i]);
	}
	for (i = 0; i < dict->rows.nr; i++)
		branches->of_row.at[i] = places[dict->rows.at[i].node].branch;
	branches->of_row.nr = dict->rows.nr;
	branches->nr_dict_nodes = dict->nodes.nr;
	return 0;
}

size_t sb_branches_bytes(const struct sb_branches *branches)
{
	return (3 * branches->node.nr + branches->of_row.nr) * sizeof(uint32_t);
}

void sb_branches_release(struct sb_branches *branches)
{
	sb_vec_release(&branches->parent);
	sb_vec_release(&branches->node);
	sb_vec_release(&branches->nr_nodes);
	sb_vec_release(&branches->of_row);
	branches->nr_dict_nodes = 0;
}
