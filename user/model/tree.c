// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/tree.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/num.h"
#include "base/str.h"
#include "model/spread.h"

#define NONE 0 /* node 0 is the root, which is nobody's child or sibling */

/* What two frames have in common that are one node under one caller. */
struct function {
	uint32_t name;
	enum sb_frame_kind kind;
	uint32_t rank; /* in the order of names */
};

/* A node as it grows: siblings newest first, until ordered. */
struct growing {
	struct sb_tree_node node;
	uint32_t function, first_child, next_sibling;
};

struct builder {
	struct sb_tree *tree;
	SB_VEC(struct function) functions;
	struct sb_index functions_index;
	SB_VEC(struct growing) nodes;
	struct sb_index children; /* nodes that have siblings, by parent and function */
	/* Of the profile that is being added, by its frames' numbers. */
	uint32_t *function_of, *module_of;
};

static void builder_release(struct builder *builder)
{
	sb_vec_release(&builder->functions);
	sb_index_release(&builder->functions_index);
	sb_vec_release(&builder->nodes);
	sb_index_release(&builder->children);
	free(builder->function_of);
	free(builder->module_of);
}

/* ---- frames ---- */

static int find_function(struct builder *builder, const struct sb_frame *frame, uint32_t *ret)
{
	struct function key = { .kind = sb_function_kind(frame->kind) };
	struct sb_index_iter it;
	uint64_t hash;
	int err =
		sb_strtab_add(&builder->tree->strings, frame->name, strlen(frame->name), &key.name);

	if (err)
		return err;
	hash = sb_hash(&key.name, sizeof(key.name), key.kind);
	for (it = sb_index_first(&builder->functions_index, hash); it.id != SB_INDEX_NONE;
	     it = sb_index_next(&builder->functions_index, it)) {
		const struct function *have = &builder->functions.at[it.id];

		if (have->name == key.name && have->kind == key.kind) {
			*ret = it.id;
			return 0;
		}
	}
	*ret = (uint32_t)builder->functions.nr;
	err = sb_vec_push(&builder->functions, key);
	return err ?: sb_index_add(&builder->functions_index, hash, *ret);
}

static int number_frames(struct builder *builder, const struct sb_profile *profile)
{
	size_t nr = sb_profile_nr_frames(profile), i;
	int err = 0;

	free(builder->function_of);
	free(builder->module_of);
	builder->function_of = calloc(nr + 1, sizeof(*builder->function_of));
	builder->module_of = calloc(nr + 1, sizeof(*builder->module_of));
	if (!builder->function_of || !builder->module_of)
		return -ENOMEM;
	for (i = 0; i < nr && !err; i++) {
		const struct sb_frame *frame = sb_profile_frame_at(profile, (uint32_t)i);
		const char *module = frame->module ? frame->module : "";

		err = find_function(builder, frame, &builder->function_of[i]);
		err = err
			      ?: sb_strtab_add(&builder->tree->strings, module, strlen(module),
					       &builder->module_of[i]);
	}
	return err;
}

/* ---- nodes ---- */

static int node_new(struct builder *builder, uint32_t parent, uint32_t function,
		    const struct sb_frame *frame, uint32_t module)
{
	const struct growing *above = &builder->nodes.at[parent];
	struct growing node = {
		.node = { .name = builder->functions.at[function].name,
			  .module = module,
			  .parent = parent,
			  .depth = above->node.depth + 1,
			  .kind = frame->kind },
		.function = function,
		.next_sibling = above->first_child,
	};
	int err;

	if (builder->nodes.nr >= SB_TREE_NODES_MAX)
		return -E2BIG;
	err = sb_vec_push(&builder->nodes, node);
	if (!err)
		builder->nodes.at[parent].first_child = (uint32_t)builder->nodes.nr - 1;
	return err;
}

static uint64_t child_hash(uint32_t parent, uint32_t function)
{
	uint64_t key = (uint64_t)parent << 32 | function;

	return sb_hash(&key, sizeof(key), 0);
}

static uint32_t find_sibling(const struct builder *builder, uint32_t parent, uint32_t function)
{
	uint64_t hash = child_hash(parent, function);
	struct sb_index_iter it;

	for (it = sb_index_first(&builder->children, hash); it.id != SB_INDEX_NONE;
	     it = sb_index_next(&builder->children, it))
		if (builder->nodes.at[it.id].node.parent == parent &&
		    builder->nodes.at[it.id].function == function)
			return it.id;
	return NONE;
}

/* Most nodes are an only child, and these are not in the index; a second one brings the first in. */
static int child(struct builder *builder, const struct sb_profile *profile, uint32_t parent,
		 uint32_t frame_id, uint32_t *ret_node)
{
	uint32_t function = builder->function_of[frame_id];
	uint32_t newest = builder->nodes.at[parent].first_child, found;
	bool is_second;
	int err = 0;

	if (newest != NONE && builder->nodes.at[newest].function == function) {
		*ret_node = newest;
		return 0;
	}
	is_second = newest != NONE && builder->nodes.at[newest].next_sibling == NONE;
	found = newest == NONE || is_second ? NONE : find_sibling(builder, parent, function);
	if (found != NONE) {
		*ret_node = found;
		return 0;
	}
	*ret_node = (uint32_t)builder->nodes.nr;
	err = node_new(builder, parent, function, sb_profile_frame_at(profile, frame_id),
		       builder->module_of[frame_id]);
	if (!err && is_second)
		err = sb_index_add(&builder->children,
				   child_hash(parent, builder->nodes.at[newest].function), newest);
	if (!err && newest != NONE)
		err = sb_index_add(&builder->children, child_hash(parent, function), *ret_node);
	return err;
}

/* ---- weights ---- */

/* Of stacks that do not say of how many samples they are: the weight of one of these, 0: not known. */
struct mean {
	double weight;
	bool is_even; /* all samples have it; else they are as uneven as waits are */
};

static struct mean mean_of_rest(const struct sb_profile *profile, uint64_t *ret_nr_samples)
{
	const char *value = sb_profile_meta_get(profile, "n");
	struct mean mean = { .is_even = sb_spread_is_even(sb_profile_meta_get(profile, "unit")) };
	uint64_t weight, rest = 0, nr_said = 0, nr = 0;
	size_t i, nr_frames;

	for (i = 0; i < sb_profile_nr_stacks(profile); i++) {
		sb_profile_stack_at(profile, i, &nr_frames, &weight);
		nr += sb_profile_nr_samples_at(profile, i);
		if (!sb_profile_nr_samples_at(profile, i))
			rest += weight;
	}
	if (value && sb_parse_u64(value, UINT64_MAX, &nr_said))
		nr_said = 0;
	*ret_nr_samples = nr;
	if (!rest)
		return mean;
	*ret_nr_samples = nr_said > nr ? nr_said : 0;
	if (nr_said > nr)
		mean.weight = (double)rest / (double)(nr_said - nr);
	else if (mean.is_even)
		mean.weight = 1;
	/* A part of a profile has the facts of all of it: samples of counts weigh 1 at least. */
	if (mean.is_even && mean.weight < 1)
		mean.weight = 1;
	if (mean.is_even && mean.weight == 1)
		*ret_nr_samples = nr + rest;
	return mean;
}

/* Of durations: the sum of their squares as a part of the square of their sum. */
static double squares_by_log2(const uint64_t nr[SB_PROFILE_NR_LOG2])
{
	double sum = 0, squares = 0;
	size_t i;

	/* In a bucket they are even from 2^i to 2^(i+1): 3/2 in the mean, 7/3 in that of squares. */
	for (i = 0; i < SB_PROFILE_NR_LOG2; i++) {
		sum += 1.5 * (double)nr[i] * ldexp(1, (int)i);
		squares += 7.0 / 3 * (double)nr[i] * ldexp(1, 2 * (int)i);
	}
	return sum > 0 ? fmin(squares / sum / sum, 1) : 1;
}

/* The sum of squares of the weights of the samples of stack @i. */
static double squares_of(const struct sb_profile *profile, size_t i, uint64_t weight,
			 const struct mean *mean)
{
	const uint64_t *log2 = sb_profile_log2_at(profile, i);
	double nr = (double)sb_profile_nr_samples_at(profile, i), all = (double)weight;
	double known = sb_profile_squares_at(profile, i);

	if (known > 0)
		return known;
	if (log2)
		return all * all * squares_by_log2(log2);
	if (!nr && !mean->weight)
		return NAN;
	if (!nr)
		nr = all / mean->weight;
	/*
	 * n times the same weight are 1/n of the square of their sum. Of n durations between events that
	 * come at random, which are exponential, it is 2/(n+1) (moments of the flat Dirichlet distribution).
	 */
	if (mean->is_even)
		return all * fmax(all / nr, 1);
	return all * all * fmin(2 / (nr + 1), 1);
}

static int add_profile(struct builder *builder, const struct sb_profile *profile, int side)
{
	struct mean mean = mean_of_rest(profile, &builder->tree->nr_samples[side]);
	size_t i, at, nr;
	uint64_t weight;
	int err = number_frames(builder, profile);

	for (i = 0; i < sb_profile_nr_stacks(profile) && !err; i++) {
		const uint32_t *ids = sb_profile_stack_at(profile, i, &nr, &weight);
		uint32_t node = 0;

		for (at = 0; at < nr && !err; at++)
			err = child(builder, profile, node, ids[at], &node);
		if (err)
			break;
		builder->nodes.at[node].node.self[side] += weight;
		if (weight)
			builder->nodes.at[node].node.self_squares[side] +=
				squares_of(profile, i, weight, &mean);
	}
	return err;
}

/* ---- from the heap of nodes to pre-order ---- */

struct by_name {
	const struct sb_strtab *strings;
	const struct function *functions;
};

static int compare_names(const void *va, const void *vb, void *arg)
{
	const struct by_name *by = arg;
	const struct function *a = &by->functions[*(const uint32_t *)va];
	const struct function *b = &by->functions[*(const uint32_t *)vb];
	int order = strcmp(sb_strtab_get(by->strings, a->name, NULL),
			   sb_strtab_get(by->strings, b->name, NULL));

	return order ? order : (a->kind > b->kind) - (a->kind < b->kind);
}

static int rank_functions(struct builder *builder)
{
	struct by_name by = { &builder->tree->strings, builder->functions.at };
	size_t nr = builder->functions.nr, i;
	sb_cleanup(sb_freep) uint32_t *order = calloc(nr + 1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, nr, sizeof(*order), compare_names, &by);
	for (i = 0; i < nr; i++)
		builder->functions.at[order[i]].rank = (uint32_t)i;
	return 0;
}

/* All nodes in the order of names, put one after the other before their siblings: all siblings in order. */
static int order_siblings(struct builder *builder)
{
	size_t nr = builder->nodes.nr, nr_ranks = builder->functions.nr, i;
	sb_cleanup(sb_freep) uint32_t *starts = calloc(nr_ranks + 2, sizeof(*starts));
	sb_cleanup(sb_freep) uint32_t *order = calloc(nr + 1, sizeof(*order));
	const struct function *functions = builder->functions.at;

	if (!starts || !order)
		return -ENOMEM;
	for (i = 1; i < nr; i++)
		starts[functions[builder->nodes.at[i].function].rank + 1]++;
	for (i = 0; i < nr_ranks; i++)
		starts[i + 1] += starts[i];
	for (i = 1; i < nr; i++)
		order[starts[functions[builder->nodes.at[i].function].rank]++] = (uint32_t)i;
	for (i = 0; i < nr; i++)
		builder->nodes.at[i].first_child = NONE;
	for (i = nr - 1; i-- > 0;) {
		struct growing *node = &builder->nodes.at[order[i]];

		node->next_sibling = builder->nodes.at[node->node.parent].first_child;
		builder->nodes.at[node->node.parent].first_child = order[i];
	}
	return 0;
}

static void sum_up(struct sb_tree *tree)
{
	size_t i;
	int side;

	for (i = 0; i < tree->nodes.nr; i++) {
		struct sb_tree_node *node = &tree->nodes.at[i];

		for (side = 0; side < SB_TREE_NR; side++) {
			node->total[side] = node->self[side];
			node->total_squares[side] = node->self_squares[side];
		}
	}
	for (i = tree->nodes.nr - 1; i > 0; i--) {
		const struct sb_tree_node *node = &tree->nodes.at[i];
		struct sb_tree_node *parent = &tree->nodes.at[node->parent];

		for (side = 0; side < SB_TREE_NR; side++) {
			parent->total[side] += node->total[side];
			parent->total_squares[side] += node->total_squares[side];
		}
	}
}

static int emit(struct builder *builder)
{
	struct sb_tree *tree = builder->tree;
	const struct growing *nodes = builder->nodes.at;
	sb_cleanup(sb_freep) uint32_t *numbers = calloc(builder->nodes.nr, sizeof(*numbers));
	uint32_t at = 0;
	int err = sb_vec_reserve(&tree->nodes, builder->nodes.nr);

	if (err || !numbers)
		return -ENOMEM;
	do {
		numbers[at] = (uint32_t)tree->nodes.nr;
		tree->nodes.at[tree->nodes.nr] = nodes[at].node;
		tree->nodes.at[tree->nodes.nr++].parent = numbers[nodes[at].node.parent];
		if (nodes[at].first_child != NONE) {
			at = nodes[at].first_child;
			continue;
		}
		while (at && nodes[at].next_sibling == NONE)
			at = nodes[at].node.parent;
		at = nodes[at].next_sibling;
	} while (at);
	sum_up(tree);
	return 0;
}

static int build(struct builder *builder, const struct sb_profile *a, const struct sb_profile *b)
{
	struct growing root = { .node = { .kind = SB_FRAME_ROOT } };
	int err = sb_strtab_add(&builder->tree->strings, "all", 3, &root.node.name);

	err = err ?: sb_vec_push(&builder->nodes, root);
	err = err ?: add_profile(builder, a, SB_TREE_A);
	if (!err && b)
		err = add_profile(builder, b, SB_TREE_B);
	err = err ?: rank_functions(builder);
	err = err ?: order_siblings(builder);
	return err ?: emit(builder);
}

int sb_tree_new(const struct sb_profile *a, const struct sb_profile *b, struct sb_tree **ret_tree)
{
	struct builder builder = { .tree = calloc(1, sizeof(*builder.tree)) };
	int err;

	if (!builder.tree)
		return -ENOMEM;
	err = sb_strtab_init(&builder.tree->strings);
	err = err ?: build(&builder, a, b);
	builder_release(&builder);
	if (err)
		sb_tree_free(builder.tree);
	else
		*ret_tree = builder.tree;
	return err;
}

void sb_tree_free(struct sb_tree *tree)
{
	if (!tree)
		return;
	sb_vec_release(&tree->nodes);
	sb_strtab_release(&tree->strings);
	free(tree);
}

const char *sb_tree_name(const struct sb_tree *tree, size_t node)
{
	return sb_strtab_get(&tree->strings, tree->nodes.at[node].name, NULL);
}

const char *sb_tree_module(const struct sb_tree *tree, size_t node)
{
	uint32_t module = tree->nodes.at[node].module;

	return module ? sb_strtab_get(&tree->strings, module, NULL) : NULL;
}

/* ---- pruning ---- */

struct weighed {
	double share;
	uint32_t node;
};

static int heaviest_first(const void *va, const void *vb)
{
	const struct weighed *a = va, *b = vb;

	if (a->share != b->share)
		return a->share > b->share ? -1 : 1;
	return (a->node > b->node) - (a->node < b->node);
}

/* No node has a larger share than its parent, or a smaller number: parents come first. */
static struct weighed *weigh(const struct sb_tree *tree)
{
	const struct sb_tree_node *root = &tree->nodes.at[0];
	struct weighed *weighed = calloc(tree->nodes.nr, sizeof(*weighed));
	size_t i;
	int side;

	for (i = 0; weighed && i < tree->nodes.nr; i++) {
		weighed[i].node = (uint32_t)i;
		for (side = 0; side < SB_TREE_NR; side++)
			if (root->total[side])
				weighed[i].share = fmax(weighed[i].share,
							(double)tree->nodes.at[i].total[side] /
								(double)root->total[side]);
	}
	if (weighed)
		qsort(weighed, tree->nodes.nr, sizeof(*weighed), heaviest_first);
	return weighed;
}

/* Choose what remains. Return: 0 or -ENOMEM. */
static int choose(const struct sb_tree *tree, size_t nr_max, bool *is_kept)
{
	size_t nr = tree->nodes.nr, nr_used = 0, i;
	sb_cleanup(sb_freep) struct weighed *weighed = weigh(tree);
	/* By node: children that are not kept. As long as there are any, SB_TREE_OTHER is needed. */
	sb_cleanup(sb_freep) uint32_t *nr_out = calloc(nr, sizeof(*nr_out));

	if (!weighed || !nr_out)
		return -ENOMEM;
	for (i = 1; i < nr; i++)
		nr_out[tree->nodes.at[i].parent]++;
	for (i = 0; i < nr; i++) {
		uint32_t at = weighed[i].node;
		const struct sb_tree_node *node = &tree->nodes.at[at];
		size_t nr_then = nr_used + 1 + (nr_out[at] > 0);

		/* One that stands for others becomes part of the next one that does. */
		if (at && (node->is_other || !is_kept[node->parent]))
			continue;
		if (at && nr_out[node->parent] == 1)
			nr_then--;
		if (nr_then > nr_max)
			continue;
		if (at)
			nr_out[node->parent]--;
		nr_used = nr_then;
		is_kept[at] = true;
	}
	return 0;
}

static void add_cut(struct sb_tree_node *other, const struct sb_tree_node *cut)
{
	int side;

	other->is_other = true;
	for (side = 0; side < SB_TREE_NR; side++) {
		other->total[side] += cut->total[side];
		other->total_squares[side] += cut->total_squares[side];
	}
}

/* Node @at and those above it are complete down to @depth: what stands for their children comes now. */
static uint32_t close_nodes(struct sb_tree *tree, const struct sb_tree_node *others, uint32_t at,
			    uint32_t depth, size_t *nr_done)
{
	int side;

	for (; tree->nodes.at[at].depth >= depth; at = tree->nodes.at[at].parent) {
		struct sb_tree_node other = others[at];

		if (other.is_other) {
			for (side = 0; side < SB_TREE_NR; side++) {
				other.self[side] = other.total[side];
				other.self_squares[side] = other.total_squares[side];
			}
			other.parent = at;
			other.depth = tree->nodes.at[at].depth + 1;
			tree->nodes.at[(*nr_done)++] = other;
		}
		if (!at)
			break;
	}
	return at;
}

/* In place: nothing is written that was not read, since each (other) stands for a node at least. */
static void compact(struct sb_tree *tree, const bool *is_kept, struct sb_tree_node *others)
{
	size_t nr_done = 0, nr = tree->nodes.nr, i;
	uint32_t open = 0; /* the last kept node; those above it are open, too */

	for (i = 0; i < nr; i++) {
		struct sb_tree_node node = tree->nodes.at[i];

		if (i)
			open = close_nodes(tree, others, open, node.depth, &nr_done);
		if (is_kept[i]) {
			node.parent = open;
			open = (uint32_t)nr_done;
			tree->nodes.at[nr_done++] = node;
			continue;
		}
		add_cut(&others[open], &node);
		tree->nr_cut += !node.is_other;
		while (i + 1 < nr && tree->nodes.at[i + 1].depth > node.depth)
			tree->nr_cut += !tree->nodes.at[++i].is_other;
	}
	close_nodes(tree, others, open, 0, &nr_done);
	tree->nodes.nr = nr_done;
}

int sb_tree_prune(struct sb_tree *tree, size_t nr_max)
{
	size_t nr = tree->nodes.nr, i;
	sb_cleanup(sb_freep) bool *is_kept = calloc(nr, sizeof(*is_kept));
	sb_cleanup(sb_freep) struct sb_tree_node *others = NULL;
	uint32_t name;
	int err;

	if (nr_max < 2)
		return -EINVAL;
	if (nr <= nr_max)
		return 0;
	others = calloc(nr_max, sizeof(*others));
	if (!others || !is_kept)
		return -ENOMEM;
	err = sb_strtab_add(&tree->strings, SB_TREE_OTHER, strlen(SB_TREE_OTHER), &name);
	err = err ?: choose(tree, nr_max, is_kept);
	if (err)
		return err;
	for (i = 0; i < nr_max; i++)
		others[i] = (struct sb_tree_node){ .name = name, .kind = SB_FRAME_MARK };
	compact(tree, is_kept, others);
	return 0;
}
