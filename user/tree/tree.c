// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tree/tree.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"

int sb_tree_init(struct sb_tree *tree)
{
	uint8_t kind;
	int err;

	*tree = (struct sb_tree){};
	for (kind = 0; kind < SB_TREE_KIND_MAX; kind++)
		tree->same_kind[kind] = kind;
	err = sb_strtab_init(&tree->names);
	if (!err)
		err = sb_vec_push(&tree->nodes, (struct sb_tree_node){});
	if (!err)
		err = sb_vec_push(&tree->kinds, 0);
	if (err)
		sb_tree_release(tree);
	return err;
}

void sb_tree_release(struct sb_tree *tree)
{
	sb_vec_release(&tree->nodes);
	sb_vec_release(&tree->kinds);
	sb_vec_release(&tree->modules);
	sb_vec_release(&tree->marks);
	sb_vec_release(&tree->pairs);
	sb_vec_release(&tree->pair_totals);
	sb_strtab_release(&tree->names);
	sb_index_release(&tree->children);
	free(sb_take(tree->selves));
}

void sb_tree_free(struct sb_tree *tree)
{
	if (tree)
		sb_tree_release(tree);
	free(tree);
}

/* ---- growing ---- */

static uint8_t same_kind(const struct sb_tree *tree, uint8_t kind)
{
	return tree->same_kind[kind];
}

static bool is_text(const struct sb_tree *tree, uint32_t node, const struct sb_tree_frame *frame)
{
	const struct sb_strtab_entry *name = &tree->names.strs.at[tree->nodes.at[node].name];

	return name->len == frame->len &&
	       same_kind(tree, tree->kinds.at[node]) == same_kind(tree, frame->kind) &&
	       !memcmp(name->s, frame->name, frame->len);
}

static bool is_id(const struct sb_tree *tree, uint32_t node, uint32_t name, uint8_t kind)
{
	return tree->nodes.at[node].name == name &&
	       same_kind(tree, tree->kinds.at[node]) == same_kind(tree, kind);
}

static int node_new(struct sb_tree *tree, uint32_t parent, uint32_t name, uint8_t kind,
		    uint32_t *ret_node)
{
	struct sb_tree_node node = { .name = name, .parent = parent };
	int err;

	if (tree->nodes.nr >= SB_TREE_NODES_MAX)
		return -E2BIG;
	node.older_sibling = tree->nodes.at[parent].newest_child;
	err = sb_vec_push(&tree->kinds, kind);
	if (err)
		return err;
	err = sb_vec_push(&tree->nodes, node);
	if (err) {
		tree->kinds.nr--;
		return err;
	}
	*ret_node = (uint32_t)tree->nodes.nr - 1;
	tree->nodes.at[parent].newest_child = *ret_node;
	return 0;
}

/* Time of a node's own becomes a child, so that it keeps its place among the others. */
static int gap_add(struct sb_tree *tree, uint32_t parent, double weight)
{
	uint32_t node = tree->nodes.at[parent].newest_child;
	int err;

	if (node == SB_TREE_NONE || tree->kinds.at[node] != SB_TREE_GAP) {
		err = node_new(tree, parent, 0, SB_TREE_GAP, &node);
		if (err)
			return err;
	}
	tree->nodes.at[node].total += weight;
	return 0;
}

static int child_in_order(struct sb_tree *tree, uint32_t parent, uint32_t name, uint8_t kind,
			  uint32_t *ret_node)
{
	struct sb_tree_node *above = &tree->nodes.at[parent];
	int err;

	if (above->newest_child == SB_TREE_NONE && above->total > 0) {
		err = gap_add(tree, parent, above->total);
		if (err)
			return err;
		tree->nodes.at[parent].total = 0;
	}
	return node_new(tree, parent, name, kind, ret_node);
}

/*
 * By the ID of the name if the user of the tree knows IDs; else by text, so that few names are
 * looked up.
 */
static uint64_t child_hash(const struct sb_tree *tree, uint32_t parent, uint32_t name, uint8_t kind)
{
	const struct sb_strtab_entry *text = &tree->names.strs.at[name];
	uint64_t key = (uint64_t)parent << 32 | name;

	kind = same_kind(tree, kind);
	return tree->is_by_id ? sb_hash(&key, sizeof(key), kind)
			      : sb_hash(text->s, text->len, (uint64_t)parent << 8 | kind);
}

static int index_child(struct sb_tree *tree, uint32_t node)
{
	const struct sb_tree_node *at = &tree->nodes.at[node];

	return sb_index_add(&tree->children,
			    child_hash(tree, at->parent, at->name, tree->kinds.at[node]), node);
}

static bool has_siblings(const struct sb_tree *tree, uint32_t node)
{
	return node != SB_TREE_NONE && tree->nodes.at[node].older_sibling != SB_TREE_NONE;
}

static uint32_t find_id(const struct sb_tree *tree, uint32_t parent, uint32_t name, uint8_t kind)
{
	uint64_t hash = child_hash(tree, parent, name, kind);

	sb_index_each(it, &tree->children, hash)
		if (tree->nodes.at[it.id].parent == parent && is_id(tree, it.id, name, kind))
			return it.id;
	return SB_TREE_NONE;
}

static uint32_t find_text(const struct sb_tree *tree, uint32_t parent,
			  const struct sb_tree_frame *frame)
{
	uint64_t hash = sb_hash(frame->name, frame->len,
				(uint64_t)parent << 8 | same_kind(tree, frame->kind));

	sb_index_each(it, &tree->children, hash)
		if (tree->nodes.at[it.id].parent == parent && is_text(tree, it.id, frame))
			return it.id;
	return SB_TREE_NONE;
}

/*
 * Most nodes are an only child, made right after its parent and so near to it in memory. These are
 * not in the index, which is small thereby; a second child brings the first one in.
 */
static int child_add(struct sb_tree *tree, uint32_t parent, uint32_t name, uint8_t kind,
		     uint32_t *ret_node)
{
	uint32_t newest = tree->nodes.at[parent].newest_child, node;
	int err = 0;

	if (tree->in_order)
		return child_in_order(tree, parent, name, kind, ret_node);
	if (newest == SB_TREE_NONE)
		return node_new(tree, parent, name, kind, ret_node);
	if (!has_siblings(tree, newest))
		err = index_child(tree, newest);
	err = err ?: node_new(tree, parent, name, kind, &node);
	if (err)
		return err;
	err = index_child(tree, node);
	if (err) {
		/* Not in the index it would be made again and again. */
		tree->nodes.at[parent].newest_child = newest;
		tree->nodes.nr--;
		tree->kinds.nr--;
		return err;
	}
	*ret_node = node;
	return 0;
}

int sb_tree_child_by_id(struct sb_tree *tree, uint32_t parent, uint32_t name, uint8_t kind,
			uint32_t *ret_node)
{
	uint32_t node = tree->nodes.at[parent].newest_child;

	if (node != SB_TREE_NONE && !is_id(tree, node, name, kind))
		node = has_siblings(tree, node) && !tree->in_order
			       ? find_id(tree, parent, name, kind)
			       : SB_TREE_NONE;
	if (node == SB_TREE_NONE)
		return child_add(tree, parent, name, kind, ret_node);
	*ret_node = node;
	return 0;
}

/* Two long names that differ only behind the cut remain two functions. */
static size_t shorten(const struct sb_tree_frame *frame, char *buf, size_t size)
{
	char end[64];
	size_t end_len, keep;

	end_len = (size_t)snprintf(end, sizeof(end), "...[%zu bytes, #%08" PRIx32 "]", frame->len,
				   (uint32_t)sb_hash(frame->name, frame->len, 0));
	keep = size - end_len;
	while (keep && ((unsigned char)frame->name[keep] & 0xc0) == 0x80)
		keep--;
	memcpy(buf, frame->name, keep);
	memcpy(buf + keep, end, end_len);
	return keep + end_len;
}

static int child_long(struct sb_tree *tree, uint32_t parent, const struct sb_tree_frame *frame,
		      uint32_t *ret_node)
{
	char buf[SB_TREE_NAME_MAX];
	struct sb_tree_frame cut = { .name = buf, .kind = frame->kind };

	cut.len = shorten(frame, buf, sizeof(buf));
	tree->nr_long_names++;
	return sb_tree_child(tree, parent, &cut, ret_node);
}

int sb_tree_child(struct sb_tree *tree, uint32_t parent, const struct sb_tree_frame *frame,
		  uint32_t *ret_node)
{
	uint32_t node = tree->nodes.at[parent].newest_child, name;
	int err;

	if (frame->len > SB_TREE_NAME_MAX)
		return child_long(tree, parent, frame, ret_node);
	if (node != SB_TREE_NONE && !is_text(tree, node, frame))
		node = has_siblings(tree, node) && !tree->in_order ? find_text(tree, parent, frame)
								   : SB_TREE_NONE;
	if (node != SB_TREE_NONE) {
		uint32_t next = tree->nodes.at[node].newest_child;

		/* Most of the walk waits for memory: fetch the name that the next frame is compared
		 * with. */
		__builtin_prefetch(tree->names.strs.at[tree->nodes.at[next].name].s);
		*ret_node = node;
		return 0;
	}
	/* Names without nodes would have no bound. */
	if (tree->nodes.nr >= SB_TREE_NODES_MAX)
		return -E2BIG;
	err = sb_strtab_add(&tree->names, frame->name, frame->len, &name);
	return err ?: child_add(tree, parent, name, frame->kind, ret_node);
}

int sb_tree_weigh(struct sb_tree *tree, uint32_t node, uint32_t depth, double weight,
		  const struct sb_tree_pair *pair)
{
	int err = pair ? sb_vec_fit(&tree->pairs, (size_t)node + 1, 0) : 0;

	if (err)
		return err;
	if (tree->in_order && tree->nodes.at[node].newest_child != SB_TREE_NONE) {
		err = gap_add(tree, node, weight);
		if (err)
			return err;
	} else {
		tree->nodes.at[node].total += weight;
	}
	if (pair)
		sb_tree_pair_add(&tree->pairs.at[node], pair);
	if (weight != floor(weight))
		tree->has_fractions = true;
	if (depth > tree->depth_max)
		tree->depth_max = depth;
	tree->nr_stacks++;
	return 0;
}

/* ---- the order of siblings ---- */

/* Sort keys: of names the first bytes, so that few comparisons read the name itself. */
struct name_key {
	uint64_t head;
	uint32_t id;
};

static uint64_t name_head(const struct sb_strtab_entry *name)
{
	uint64_t head = 0;

	memcpy(&head, name->s, name->len < 8 ? name->len : 8);
	return __builtin_bswap64(head);
}

static int name_cmp(const void *va, const void *vb, void *arg)
{
	const struct name_key *a = va, *b = vb;
	const struct sb_strtab *names = arg;
	const struct sb_strtab_entry *sa = &names->strs.at[a->id], *sb = &names->strs.at[b->id];
	int cmp;

	if (a->head != b->head)
		return a->head < b->head ? -1 : 1;
	cmp = memcmp(sa->s, sb->s, sa->len < sb->len ? sa->len : sb->len);
	if (cmp)
		return cmp;
	return (sa->len > sb->len) - (sa->len < sb->len);
}

/* Return: the place of each name in the alphabet of bytes, freed by the caller; NULL: no memory. */
static uint32_t *rank_names(const struct sb_tree *tree)
{
	size_t nr = tree->names.strs.nr, i;
	sb_cleanup(sb_freep) struct name_key *keys = calloc(nr, sizeof(*keys));
	uint32_t *ranks = calloc(nr, sizeof(*ranks));

	if (!keys || !ranks) {
		free(ranks);
		return NULL;
	}
	for (i = 0; i < nr; i++)
		keys[i] = (struct name_key){ name_head(&tree->names.strs.at[i]), (uint32_t)i };
	qsort_r(keys, nr, sizeof(*keys), name_cmp, (void *)&tree->names);
	for (i = 0; i < nr; i++)
		ranks[keys[i].id] = (uint32_t)i;
	return ranks;
}

static size_t name_kind(const struct sb_tree *tree, const uint32_t *ranks, size_t node)
{
	return (size_t)ranks[tree->nodes.at[node].name] * SB_TREE_KIND_MAX +
	       same_kind(tree, tree->kinds.at[node]);
}

/* Counting sort: all nodes by (name, kind). Return: 0 or -ENOMEM. */
static int order_by_name(const struct sb_tree *tree, uint32_t *order)
{
	sb_cleanup(sb_freep) uint32_t *ranks = rank_names(tree);
	size_t nr_keys = tree->names.strs.nr * SB_TREE_KIND_MAX, i;
	sb_cleanup(sb_freep) uint32_t *starts = calloc(nr_keys + 1, sizeof(*starts));

	if (!ranks || !starts)
		return -ENOMEM;
	for (i = 0; i < tree->nodes.nr; i++)
		starts[name_kind(tree, ranks, i) + 1]++;
	for (i = 0; i < nr_keys; i++)
		starts[i + 1] += starts[i];
	for (i = 0; i < tree->nodes.nr; i++)
		order[starts[name_kind(tree, ranks, i)]++] = (uint32_t)i;
	return 0;
}

struct weight_key {
	double total;
	uint32_t place, node;
};

static int weight_cmp(const void *va, const void *vb)
{
	const struct weight_key *a = va, *b = vb;

	return sb_compare(b->total, a->total) ?: sb_compare(a->place, b->place);
}

/* @order is by name already, which decides between equals. Return: 0 or -ENOMEM. */
static int order_by_weight(const struct sb_tree *tree, uint32_t *order)
{
	size_t nr = tree->nodes.nr, i;
	sb_cleanup(sb_freep) struct weight_key *keys = calloc(nr, sizeof(*keys));

	if (!keys)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		keys[i] = (struct weight_key){ tree->nodes.at[order[i]].total, (uint32_t)i,
					       order[i] };
	qsort(keys, nr, sizeof(*keys), weight_cmp);
	for (i = 0; i < nr; i++)
		order[i] = keys[i].node;
	return 0;
}

static int order_nodes(const struct sb_tree *tree, enum sb_tree_sort sort, uint32_t *order)
{
	size_t i;
	int err;

	if (tree->in_order || sort == SB_TREE_SORT_NONE) {
		for (i = 0; i < tree->nodes.nr; i++)
			order[i] = (uint32_t)i;
		return 0;
	}
	err = order_by_name(tree, order);
	return !err && sort == SB_TREE_SORT_WEIGHT ? order_by_weight(tree, order) : err;
}

/* ---- the seal ---- */

int sb_tree_sum_pairs(struct sb_tree *tree)
{
	size_t nr = tree->nodes.nr, i;
	int err = sb_vec_fit(&tree->pairs, nr, 0) ?: sb_vec_reserve(&tree->pair_totals, nr);

	if (err)
		return err;
	free(sb_take(tree->selves));
	tree->sealed = false;
	memcpy(tree->pair_totals.at, tree->pairs.at, nr * sizeof(*tree->pairs.at));
	tree->pair_totals.nr = nr;
	/* Numbers grow away from the root. */
	for (i = nr - 1; i > 0; i--)
		sb_tree_pair_add(&tree->pair_totals.at[tree->nodes.at[i].parent],
				 &tree->pair_totals.at[i]);
	return 0;
}

static int sum_up(struct sb_tree *tree)
{
	size_t nr = tree->nodes.nr, i;
	int err = 0;

	if (tree->pairs.nr && !tree->pair_totals.nr)
		err = sb_tree_sum_pairs(tree);
	if (!err && tree->modules.nr)
		err = sb_vec_fit(&tree->modules, nr, 0);
	if (!err && tree->marks.nr)
		err = sb_vec_fit(&tree->marks, nr, 0);
	if (err)
		return err;
	if (tree->has_fractions) {
		tree->selves = malloc(nr * sizeof(*tree->selves));
		if (!tree->selves)
			return -ENOMEM;
		for (i = 0; i < nr; i++)
			tree->selves[i] = tree->nodes.at[i].total;
	}
	for (i = nr - 1; i > 0; i--)
		tree->nodes.at[tree->nodes.at[i].parent].total += tree->nodes.at[i].total;
	sb_index_release(&tree->children);
	tree->sealed = true;
	return 0;
}

/*
 * Set `size` of each node: how many nodes it has with all below it. A node that is not in @order
 * has none, as its descendants, which are not in it either.
 */
static void size_nodes(struct sb_tree *tree, const uint32_t *order, size_t nr)
{
	struct sb_tree_node *nodes = tree->nodes.at;
	size_t i;

	for (i = 0; i < tree->nodes.nr; i++) {
		nodes[i].size = nr == tree->nodes.nr;
		nodes[i].room = 1;
	}
	for (i = 0; nr < tree->nodes.nr && i < nr; i++)
		nodes[order[i]].size = 1;
	for (i = tree->nodes.nr - 1; i > 0; i--)
		nodes[nodes[i].parent].size += nodes[i].size;
}

/*
 * Replace @order by the place of each node in pre-order; those that are not in it come last. The
 * place of a node is that of its parent and its distance from it, which is 1 and the sizes of the
 * siblings before it. Two passes suffice, because parents have smaller numbers than their children;
 * following links through the tree would wait for memory at each node.
 */
static void number_nodes(struct sb_tree *tree, uint32_t *order, size_t nr)
{
	struct sb_tree_node *nodes = tree->nodes.at;
	uint32_t *numbers = order;
	size_t nr_placed = nr, i;

	size_nodes(tree, order, nr);
	for (i = 0; i < nr; i++) {
		struct sb_tree_node *node = &nodes[order[i]], *parent = &nodes[node->parent];
		uint32_t size = node->size;

		if (order[i] == 0)
			continue;
		node->distance = parent->room;
		parent->room += size;
	}
	numbers[0] = 0;
	for (i = 1; i < tree->nodes.nr; i++)
		numbers[i] = nodes[i].distance ? numbers[nodes[i].parent] + nodes[i].distance
					       : (uint32_t)nr_placed++;
}

#define SWAP(a, b)                         \
	do {                               \
		__auto_type swapped = (a); \
		(a) = (b);                 \
		(b) = swapped;             \
	} while (0)

static void swap_nodes(struct sb_tree *tree, size_t i, size_t j)
{
	SWAP(tree->nodes.at[i], tree->nodes.at[j]);
	SWAP(tree->kinds.at[i], tree->kinds.at[j]);
	if (tree->modules.nr)
		SWAP(tree->modules.at[i], tree->modules.at[j]);
	if (tree->marks.nr)
		SWAP(tree->marks.at[i], tree->marks.at[j]);
	if (tree->selves)
		SWAP(tree->selves[i], tree->selves[j]);
	if (tree->pairs.nr) {
		SWAP(tree->pairs.at[i], tree->pairs.at[j]);
		SWAP(tree->pair_totals.at[i], tree->pair_totals.at[j]);
	}
}

/* In place: a second array of nodes would be the peak of memory. Each swap puts a node where it
 * stays. */
static void move_nodes(struct sb_tree *tree, uint32_t *numbers)
{
	size_t i;

	for (i = 0; i < tree->nodes.nr; i++)
		tree->nodes.at[i].parent = numbers[tree->nodes.at[i].parent];
	for (i = 0; i < tree->nodes.nr; i++) {
		while (numbers[i] != i) {
			uint32_t to = numbers[i];

			swap_nodes(tree, i, to);
			SWAP(numbers[i], numbers[to]);
		}
	}
}

static void measure_nodes(struct sb_tree *tree)
{
	struct sb_tree_node *nodes = tree->nodes.at;
	size_t nr = tree->nodes.nr, i;

	for (i = 0; i < nr; i++) {
		nodes[i].end = (uint32_t)i + 1;
		nodes[i].depth = i ? nodes[nodes[i].parent].depth + 1 : 0;
	}
	for (i = nr - 1; i > 0; i--)
		if (nodes[nodes[i].parent].end < nodes[i].end)
			nodes[nodes[i].parent].end = nodes[i].end;
}

void sb_tree_rearrange(struct sb_tree *tree, uint32_t *order, size_t nr)
{
	number_nodes(tree, order, nr);
	move_nodes(tree, order);
	tree->nodes.nr = tree->kinds.nr = nr;
	if (tree->modules.nr)
		tree->modules.nr = nr;
	if (tree->marks.nr)
		tree->marks.nr = nr;
	if (tree->pairs.nr)
		tree->pairs.nr = tree->pair_totals.nr = nr;
	measure_nodes(tree);
}

int sb_tree_seal(struct sb_tree *tree, enum sb_tree_sort sort)
{
	sb_cleanup(sb_freep) uint32_t *order = calloc(tree->nodes.nr, sizeof(*order));
	int err = 0;

	if (!order)
		return -ENOMEM;
	if (!tree->sealed)
		err = sum_up(tree);
	err = err ?: order_nodes(tree, sort, order);
	if (err)
		return err;
	sb_tree_rearrange(tree, order, tree->nodes.nr);
	return 0;
}

/* ---- reading ---- */

double sb_tree_self(const struct sb_tree *tree, size_t node, int side)
{
	double self;
	uint32_t child;

	if (tree->pairs.nr)
		return tree->pairs.at[node].weight[side];
	if (side != SB_TREE_A)
		return 0;
	if (tree->selves)
		return tree->selves[node];
	self = tree->nodes.at[node].total;
	for (child = sb_tree_first_child(tree, (uint32_t)node); child != SB_TREE_NONE;
	     child = sb_tree_next_sibling(tree, child))
		self -= tree->nodes.at[child].total;
	return self;
}

uint64_t sb_tree_whole(double weight)
{
	if (!(weight > 0))
		return 0;
	return weight < 0x1p64 ? (uint64_t)(weight + 0.5 < 0x1p52 ? weight + 0.5 : weight)
			       : UINT64_MAX;
}

const char *sb_tree_name(const struct sb_tree *tree, size_t node)
{
	return sb_strtab_get(&tree->names, tree->nodes.at[node].name, NULL);
}
