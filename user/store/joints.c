// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/joints.h"

#include "base/cleanup.h"

/* Of a node, scratch. */
struct place {
	uint32_t nr_children; /* 2: more, or a row */
	uint32_t joint;	      /* its number, or that of the next one above */
	uint32_t nr_nodes;    /* from there down to it; of a joint: 0 */
};

static void count_children(const struct sb_dict *dict, struct place *places)
{
	size_t i;

	for (i = 1; i < dict->nodes.nr; i++)
		places[dict->nodes.at[i].parent].nr_children++;
	for (i = 0; i < dict->rows.nr; i++)
		places[dict->rows.at[i].node].nr_children = 2;
}

static void add_joint(struct sb_joints *joints, uint32_t node, struct place *place)
{
	joints->parent.at[joints->parent.nr++] = place->joint;
	joints->node.at[joints->node.nr++] = node;
	joints->nr_nodes.at[joints->nr_nodes.nr++] = place->nr_nodes;
	place->joint = (uint32_t)joints->node.nr - 1;
	place->nr_nodes = 0;
}

static int reserve(struct sb_joints *joints, const struct sb_dict *dict)
{
	int err = sb_vec_reserve(&joints->parent, dict->nodes.nr);

	if (!err)
		err = sb_vec_reserve(&joints->node, dict->nodes.nr);
	if (!err)
		err = sb_vec_reserve(&joints->nr_nodes, dict->nodes.nr);
	return err ? err : sb_vec_reserve(&joints->of_row, dict->rows.nr);
}

int sb_joints_fit(struct sb_joints *joints, const struct sb_dict *dict)
{
	sb_cleanup(sb_freep) struct place *places = NULL;
	size_t i;
	int err;

	/* A new row may make a joint of an old node: all of them again. */
	if (joints->nr_dict_nodes == dict->nodes.nr && joints->of_row.nr == dict->rows.nr)
		return 0;
	places = calloc(dict->nodes.nr, sizeof(*places));
	err = places ? reserve(joints, dict) : -ENOMEM;
	if (err)
		return err;
	joints->parent.nr = joints->node.nr = joints->nr_nodes.nr = 0;
	count_children(dict, places);
	add_joint(joints, 0, &places[0]);
	for (i = 1; i < dict->nodes.nr; i++) {
		const struct place *above = &places[dict->nodes.at[i].parent];

		places[i].joint = above->joint;
		places[i].nr_nodes = above->nr_nodes + 1;
		if (places[i].nr_children != 1)
			add_joint(joints, (uint32_t)i, &places[i]);
	}
	for (i = 0; i < dict->rows.nr; i++)
		joints->of_row.at[i] = places[dict->rows.at[i].node].joint;
	joints->of_row.nr = dict->rows.nr;
	joints->nr_dict_nodes = dict->nodes.nr;
	return 0;
}

size_t sb_joints_bytes(const struct sb_joints *joints)
{
	return (3 * joints->node.nr + joints->of_row.nr) * sizeof(uint32_t);
}

void sb_joints_release(struct sb_joints *joints)
{
	sb_vec_release(&joints->parent);
	sb_vec_release(&joints->node);
	sb_vec_release(&joints->nr_nodes);
	sb_vec_release(&joints->of_row);
	joints->nr_dict_nodes = 0;
}
