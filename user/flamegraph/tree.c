// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flamegraph/tree.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "flamegraph/text.h"

int sb_fg_tree_init(struct sb_fg_tree *tree)
{
	int err;

	*tree = (struct sb_fg_tree){};
	err = sb_strtab_init(&tree->names);
	if (!err)
		err = sb_vec_push(&tree->nodes, (struct sb_fg_node){});
	if (!err)
		err = sb_vec_push(&tree->kinds, SB_FG_PLAIN);
	if (err)
		sb_fg_tree_release(tree);
	return err;
}

void sb_fg_tree_release(struct sb_fg_tree *tree)
{
	sb_vec_release(&tree->nodes);
	sb_vec_release(&tree->kinds);
	sb_vec_release(&tree->pairs);
	sb_vec_release(&tree->pair_totals);
	sb_strtab_release(&tree->names);
	sb_index_release(&tree->children);
	free(sb_take(tree->selves));
}

struct sb_fg_tree_frame sb_fg_tree_deep_mark(void)
{
	static const char name[] = "[truncated: deeper than 16384 frames]";

	_Static_assert(SB_FG_DEPTH_MAX == 16384, "the name says the number");
	return (struct sb_fg_tree_frame){ .name = name, .len = sizeof(name) - 1, SB_FG_MARK };
}

static bool is_frame(const struct sb_fg_tree *tree, uint32_t node,
		     const struct sb_fg_tree_frame *frame)
{
	const struct sb_strtab_entry *name = &tree->names.strs.at[tree->nodes.at[node].name];

	return name->len == frame->len && tree->kinds.at[node] == frame->kind &&
	       !memcmp(name->s, frame->name, frame->len);
}

/* Until the seal, children are listed newest first. */
static int node_new(struct sb_fg_tree *tree, uint32_t parent, const struct sb_fg_tree_frame *frame,
		    uint32_t *ret_node)
{
	struct sb_fg_node node = { .parent = parent };
	int err;

	if (tree->nodes.nr >= SB_FG_NODES_MAX)
		return -E2BIG;
	err = sb_strtab_add(&tree->names, frame->name, frame->len, &node.name);
	if (err)
		return err;
	node.next_sibling = tree->nodes.at[parent].first_child;
	err = sb_vec_push(&tree->kinds, (uint8_t)frame->kind);
	if (err)
		return err;
	err = sb_vec_push(&tree->nodes, node);
	if (err) {
		tree->kinds.nr--;
		return err;
	}
	*ret_node = (uint32_t)tree->nodes.nr - 1;
	tree->nodes.at[parent].first_child = *ret_node;
	return 0;
}

/* Time of a node's own becomes a child, so that it keeps its place among the others. */
static int gap_add(struct sb_fg_tree *tree, uint32_t parent, double weight)
{
	static const struct sb_fg_tree_frame gap = { .name = "", .kind = SB_FG_GAP };
	uint32_t node = tree->nodes.at[parent].first_child;
	int err;

	if (node == SB_FG_NODE_NONE || tree->kinds.at[node] != SB_FG_GAP) {
		err = node_new(tree, parent, &gap, &node);
		if (err)
			return err;
	}
	tree->nodes.at[node].total += weight;
	return 0;
}

static int child_in_order(struct sb_fg_tree *tree, uint32_t parent,
			  const struct sb_fg_tree_frame *frame, uint32_t *ret_node)
{
	uint32_t newest = tree->nodes.at[parent].first_child;
	int err;

	if (newest != SB_FG_NODE_NONE && is_frame(tree, newest, frame)) {
		*ret_node = newest;
		return 0;
	}
	if (newest == SB_FG_NODE_NONE && tree->nodes.at[parent].total > 0) {
		err = gap_add(tree, parent, tree->nodes.at[parent].total);
		if (err)
			return err;
		tree->nodes.at[parent].total = 0;
	}
	return node_new(tree, parent, frame, ret_node);
}

static uint64_t child_hash(const struct sb_fg_tree *tree, uint32_t node)
{
	const struct sb_strtab_entry *name = &tree->names.strs.at[tree->nodes.at[node].name];

	return sb_hash(name->s, name->len,
		       (uint64_t)tree->nodes.at[node].parent << 8 | tree->kinds.at[node]);
}

static uint32_t find_child(const struct sb_fg_tree *tree, uint32_t parent,
			   const struct sb_fg_tree_frame *frame)
{
	uint64_t hash = sb_hash(frame->name, frame->len, (uint64_t)parent << 8 | frame->kind);
	struct sb_index_iter it;

	for (it = sb_index_first(&tree->children, hash); it.id != SB_INDEX_NONE;
	     it = sb_index_next(&tree->children, it))
		if (tree->nodes.at[it.id].parent == parent && is_frame(tree, it.id, frame))
			return it.id;
	return SB_FG_NODE_NONE;
}

/*
 * Most nodes are an only child, made right after its parent and so near to it in memory. These are
 * not in the index, which is small thereby; a second child brings the first one in.
 */
static int child_merged(struct sb_fg_tree *tree, uint32_t parent,
			const struct sb_fg_tree_frame *frame, uint32_t *ret_node)
{
	uint32_t newest = tree->nodes.at[parent].first_child, node;
	bool is_second;
	int err = 0;

	if (newest == SB_FG_NODE_NONE)
		return node_new(tree, parent, frame, ret_node);
	if (is_frame(tree, newest, frame)) {
		*ret_node = newest;
		return 0;
	}
	is_second = tree->nodes.at[newest].next_sibling == SB_FG_NODE_NONE;
	node = is_second ? SB_FG_NODE_NONE : find_child(tree, parent, frame);
	if (node == SB_FG_NODE_NONE) {
		if (is_second)
			err = sb_index_add(&tree->children, child_hash(tree, newest), newest);
		err = err ? err : node_new(tree, parent, frame, &node);
		if (err)
			return err;
		err = sb_index_add(&tree->children, child_hash(tree, node), node);
	}
	if (err) {
		/* Not in the index it would be made again and again. */
		tree->nodes.at[parent].first_child = newest;
		tree->nodes.nr--;
		tree->kinds.nr--;
		return err;
	}
	*ret_node = node;
	return 0;
}

/* Two long names that differ only behind the cut remain two functions. */
static size_t shorten(const struct sb_fg_tree_frame *frame, char *buf, size_t size)
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

static int child_long(struct sb_fg_tree *tree, uint32_t parent,
		      const struct sb_fg_tree_frame *frame, uint32_t *ret_node)
{
	char buf[SB_FG_NAME_MAX];
	struct sb_fg_tree_frame cut = { .name = buf, .kind = frame->kind };

	cut.len = shorten(frame, buf, sizeof(buf));
	tree->nr_long_names++;
	return sb_fg_tree_child(tree, parent, &cut, ret_node);
}

int sb_fg_tree_child(struct sb_fg_tree *tree, uint32_t parent, const struct sb_fg_tree_frame *frame,
		     uint32_t *ret_node)
{
	if (frame->len > SB_FG_NAME_MAX)
		return child_long(tree, parent, frame, ret_node);
	if (tree->in_order)
		return child_in_order(tree, parent, frame, ret_node);
	return child_merged(tree, parent, frame, ret_node);
}

static int add_pair(struct sb_fg_tree *tree, uint32_t node)
{
	struct sb_fg_pair *pair;
	int side, err = 0;

	while (!err && tree->pairs.nr <= node)
		err = sb_vec_push(&tree->pairs, (struct sb_fg_pair){});
	if (err)
		return err;
	pair = &tree->pairs.at[node];
	for (side = 0; side < 2; side++) {
		pair->weight[side] += tree->adding->weight[side];
		pair->squares[side] += tree->adding->squares[side];
	}
	return 0;
}

int sb_fg_tree_weigh(struct sb_fg_tree *tree, uint32_t node, uint32_t depth, double weight)
{
	int err = tree->adding ? add_pair(tree, node) : 0;

	if (err)
		return err;
	if (tree->in_order && tree->nodes.at[node].first_child != SB_FG_NODE_NONE) {
		err = gap_add(tree, node, weight);
		if (err)
			return err;
	} else {
		tree->nodes.at[node].total += weight;
	}
	if (weight != floor(weight))
		tree->has_fractions = true;
	if (depth > tree->depth_max)
		tree->depth_max = depth;
	tree->nr_stacks++;
	return 0;
}

int sb_fg_tree_add(struct sb_fg_tree *tree, const struct sb_fg_tree_frame *frames, size_t nr,
		   double weight)
{
	const struct sb_fg_tree_frame mark = sb_fg_tree_deep_mark();
	uint32_t node = 0;
	size_t i, nr_kept = nr > SB_FG_DEPTH_MAX ? SB_FG_DEPTH_MAX - 1 : nr;
	int err;

	/* A gap may be made on each level, too. */
	if (tree->nodes.nr + 2 * (nr_kept + 1) > SB_FG_NODES_MAX)
		return -E2BIG;
	for (i = 0; i < nr_kept; i++) {
		err = sb_fg_tree_child(tree, node, &frames[i], &node);
		if (err)
			return err;
	}
	if (nr_kept < nr) {
		err = sb_fg_tree_child(tree, node, &mark, &node);
		if (err)
			return err;
		nr_kept++;
		tree->nr_deep++;
	}
	return sb_fg_tree_weigh(tree, node, (uint32_t)nr_kept, weight);
}

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
static uint32_t *rank_names(const struct sb_fg_tree *tree)
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

static size_t name_kind(const struct sb_fg_tree *tree, const uint32_t *ranks, size_t node)
{
	return (size_t)ranks[tree->nodes.at[node].name] * SB_FG_KIND_MAX + tree->kinds.at[node];
}

/* Counting sort: all nodes by (name, kind). Return: 0 or -ENOMEM. */
static int order_by_name(const struct sb_fg_tree *tree, uint32_t *order)
{
	sb_cleanup(sb_freep) uint32_t *ranks = rank_names(tree);
	size_t nr_keys = tree->names.strs.nr * SB_FG_KIND_MAX, i;
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

	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return (a->place > b->place) - (a->place < b->place);
}

/* @order is by name already, which decides between equals. Return: 0 or -ENOMEM. */
static int order_by_weight(const struct sb_fg_tree *tree, uint32_t *order)
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

static int sum_up(struct sb_fg_tree *tree)
{
	size_t nr = tree->nodes.nr, i;
	int err = 0;

	while (tree->pairs.nr && tree->pairs.nr < nr && !err)
		err = sb_vec_push(&tree->pairs, (struct sb_fg_pair){});
	if (err)
		return err;
	if (tree->has_fractions) {
		tree->selves = malloc(nr * sizeof(*tree->selves));
		if (!tree->selves)
			return -ENOMEM;
		for (i = 0; i < nr; i++)
			tree->selves[i] = tree->nodes.at[i].total;
	}
	/* Numbers grow away from the root. */
	for (i = nr - 1; i > 0; i--)
		tree->nodes.at[tree->nodes.at[i].parent].total += tree->nodes.at[i].total;
	sb_index_release(&tree->children);
	tree->sealed = true;
	return 0;
}

int sb_fg_tree_seal(struct sb_fg_tree *tree, enum sb_fg_sort sort)
{
	size_t nr = tree->nodes.nr, i;
	sb_cleanup(sb_freep) uint32_t *order = calloc(nr, sizeof(*order));
	int err = 0;

	if (!order)
		return -ENOMEM;
	if (!tree->sealed)
		err = sum_up(tree);
	if (err)
		return err;
	if (tree->in_order || sort == SB_FG_SORT_NONE) {
		for (i = 0; i < nr; i++)
			order[i] = (uint32_t)i;
	} else {
		err = order_by_name(tree, order);
	}
	if (!err && sort == SB_FG_SORT_WEIGHT && !tree->in_order)
		err = order_by_weight(tree, order);
	if (err)
		return err;
	/* All nodes in order, put one after the other before their siblings: all siblings in order. */
	for (i = 0; i < nr; i++)
		tree->nodes.at[i].first_child = SB_FG_NODE_NONE;
	for (i = nr; i-- > 0;) {
		struct sb_fg_node *node = &tree->nodes.at[order[i]];

		if (order[i] == 0)
			continue;
		node->next_sibling = tree->nodes.at[node->parent].first_child;
		tree->nodes.at[node->parent].first_child = order[i];
	}
	return 0;
}

double sb_fg_tree_self(const struct sb_fg_tree *tree, uint32_t node)
{
	double self = tree->nodes.at[node].total;
	uint32_t child = tree->nodes.at[node].first_child;

	if (tree->selves)
		return tree->selves[node];
	for (; child != SB_FG_NODE_NONE; child = tree->nodes.at[child].next_sibling)
		self -= tree->nodes.at[child].total;
	return self;
}

const char *sb_fg_kind_suffix(enum sb_fg_kind kind)
{
	static const char *const suffixes[SB_FG_KIND_MAX] = {
		[SB_FG_KERNEL] = "_[k]", [SB_FG_INLINED] = "_[i]", [SB_FG_JIT] = "_[j]",
		[SB_FG_WAKER] = "_[w]",	 [SB_FG_FILE] = "_[f]",	   [SB_FG_IDLE] = "_[z]",
		[SB_FG_INTERP] = "_[p]",
	};

	return suffixes[kind] ? suffixes[kind] : "";
}

/* " 12.5\n": as short as gives the same weight again, never with an exponent. Return: its length. */
static int print_weight(char *buf, size_t size, double weight, bool has_fractions)
{
	int len, digits;
	double again;

	len = snprintf(buf, size, " %.0f", weight);
	for (digits = 15; has_fractions && digits <= 17; digits++) {
		len = snprintf(buf, size, " %.*g", digits, weight);
		if (sb_fg_parse_weight(buf + 1, (size_t)len - 1, &again) && again == weight)
			break;
	}
	if (strchr(buf, 'e')) {
		/* Tiny or huge. 15 decimals are what is read. */
		len = snprintf(buf, size, weight < 1 ? " %.15f" : " %.0f", weight);
		while (weight < 1 && buf[len - 1] == '0')
			len--;
	}
	buf[len++] = '\n';
	return len;
}

/* To 12 digits, three of them behind the point: what is read again is written again. */
static double rounded(double nr)
{
	double scale;

	nr = fmin(fmax(nr, 0.001), 1e18);
	scale = pow(10, 11 - floor(log10(nr)));
	return round(nr * scale) / scale;
}

/* "#n;12;3.5\n": of how many samples the weights are, where that is not what they count. */
static int print_samples(char *buf, size_t size, const struct sb_fg_pair *pair)
{
	double nr[2];
	int side;

	for (side = 0; side < 2; side++) {
		double weight = pair->weight[side], squares = pair->squares[side];

		if (isnan(squares))
			return 0;
		nr[side] = squares > 0 ? rounded(weight * weight / squares) : 0;
	}
	if (fabs(nr[0] - pair->weight[0]) <= nr[0] * 1e-9 &&
	    fabs(nr[1] - pair->weight[1]) <= nr[1] * 1e-9)
		return 0;
	return snprintf(buf, size, "#n;%.*f;%.*f\n", nr[0] == floor(nr[0]) ? 0 : 3, nr[0],
			nr[1] == floor(nr[1]) ? 0 : 3, nr[1]);
}

/* fold_line() of a comparison. */
static int fold_pair(const struct sb_fg_tree *tree, uint32_t node, const struct sb_str *line,
		     int (*put)(void *arg, const char *s, size_t len), void *arg)
{
	const struct sb_fg_pair *pair = &tree->pairs.at[node];
	char samples[96], a[64], b[64];
	int nr_samples, nr_a, nr_b, err = 0;

	if (!(pair->weight[0] > 0 || pair->weight[1] > 0) || !line->s || line->len < 2)
		return 0;
	nr_samples = print_samples(samples, sizeof(samples), pair);
	nr_a = print_weight(a, sizeof(a), pair->weight[0], tree->has_fractions);
	nr_b = print_weight(b, sizeof(b), pair->weight[1], tree->has_fractions);
	if (nr_samples)
		err = put(arg, samples, (size_t)nr_samples);
	if (!err && line->s[0] == '#')
		err = put(arg, " ", 1);
	err = err ?: put(arg, line->s, line->len - 1);
	/* Its line break is behind the second one. */
	err = err ?: put(arg, a, (size_t)nr_a - 1);
	return err ?: put(arg, b, (size_t)nr_b);
}

/* The line of the node whose stack is in @line, without its last ';'. */
static int fold_line(const struct sb_fg_tree *tree, uint32_t node, struct sb_str *line,
		     int (*put)(void *arg, const char *s, size_t len), void *arg)
{
	double self;
	char number[64];
	int n, err;

	if (tree->pairs.nr)
		return fold_pair(tree, node, line, put, arg);
	self = sb_fg_tree_self(tree, node);
	if (self <= 0 || !line->s || line->len < 2)
		return 0;
	n = print_weight(number, sizeof(number), self, tree->has_fractions);
	/* A line that begins with '#' would be a comment. */
	err = line->s[0] == '#' ? put(arg, " ", 1) : 0;
	if (!err)
		err = put(arg, line->s, line->len - 1);
	if (!err)
		err = put(arg, number, (size_t)n);
	return err;
}

/* "[idle: epoll]" says by itself what it is. */
static const char *suffix_of(const struct sb_fg_tree *tree, uint32_t node)
{
	enum sb_fg_kind kind = tree->kinds.at[node];
	size_t len;
	const char *name = sb_strtab_get(&tree->names, tree->nodes.at[node].name, &len);

	if (kind == SB_FG_IDLE && sb_fg_frame_parse(name, len).kind == kind)
		return "";
	return sb_fg_kind_suffix(kind);
}

/* Append "name_[k];" to @line; a gap is its parent's time and has no name. */
static int fold_name(const struct sb_fg_tree *tree, uint32_t node, struct sb_str *line)
{
	size_t len;
	const char *name = sb_strtab_get(&tree->names, tree->nodes.at[node].name, &len);
	int err;

	if (tree->kinds.at[node] == SB_FG_GAP)
		return 0;
	err = sb_str_addn(line, name, len);
	if (!err)
		err = sb_str_add(line, suffix_of(tree, node));
	if (!err)
		err = sb_str_addc(line, ';');
	return err;
}

/* Take off what fold_name() appended. */
static void unfold_name(const struct sb_fg_tree *tree, uint32_t node, struct sb_str *line)
{
	size_t len;

	if (tree->kinds.at[node] == SB_FG_GAP)
		return;
	sb_strtab_get(&tree->names, tree->nodes.at[node].name, &len);
	line->len -= len + strlen(suffix_of(tree, node)) + 1;
}

int sb_fg_tree_fold(const struct sb_fg_tree *tree, int (*put)(void *arg, const char *s, size_t len),
		    void *arg)
{
	struct sb_str line = {};
	uint32_t node = tree->nodes.at[0].first_child;
	int err = 0;

	while (node && !err) {
		err = fold_name(tree, node, &line);
		if (!err)
			err = fold_line(tree, node, &line, put, arg);
		if (tree->nodes.at[node].first_child) {
			node = tree->nodes.at[node].first_child;
			continue;
		}
		for (; node && !tree->nodes.at[node].next_sibling;
		     node = tree->nodes.at[node].parent)
			unfold_name(tree, node, &line);
		if (node) {
			unfold_name(tree, node, &line);
			node = tree->nodes.at[node].next_sibling;
		}
	}
	sb_str_release(&line);
	return err;
}
