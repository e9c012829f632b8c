// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What keys do, and what the screen shows of the data. */
#include <string.h>

#include "base/index.h"
#include "cli/term.h"
#include "cli/top.h"

#define FILTER_LEN_MAX 100

void sb_top_release(struct sb_top *top)
{
	sb_top_data_reset(&top->data);
	sb_canvas_release(&top->canvas);
	sb_str_release(&top->filter);
	sb_vec_release(&top->path);
	sb_vec_release(&top->boxes);
	sb_vec_release(&top->order);
}

bool sb_top_is_found(const struct sb_top *top, const char *name)
{
	return !top->filter.len || strcasestr(name, top->filter.s);
}

const char *sb_top_name(const struct sb_top *top, const struct sb_top_func *func)
{
	return sb_strtab_get(&top->data.tree->names, func->name, NULL);
}

/* Nodes have other numbers in the next tree; names remain. */
static uint64_t step_of(const struct sb_tree *tree, size_t node)
{
	const char *name = sb_tree_name(tree, node);

	return sb_hash(name, strlen(name), tree->kinds.at[node]);
}

/* Note down where the chosen node is. */
static int keep_path(struct sb_top *top)
{
	const struct sb_tree *tree = top->data.tree;
	size_t at, depth;
	int err;

	top->path.nr = 0;
	if (!tree)
		return 0;
	depth = tree->nodes.at[top->chosen].depth;
	err = sb_vec_reserve(&top->path, depth);
	for (at = top->chosen; at && !err; at = tree->nodes.at[at].parent)
		top->path.at[tree->nodes.at[at].depth - 1] = step_of(tree, at);
	if (!err)
		top->path.nr = depth;
	top->nr_zoom = tree->nodes.at[top->zoom].depth;
	return err;
}

/* Return: the child of @parent that is that step; SIZE_MAX: there is none. */
static size_t find_child(const struct sb_tree *tree, size_t parent, uint64_t step)
{
	uint32_t i = sb_tree_first_child(tree, (uint32_t)parent);

	while (i != SB_TREE_NONE && step_of(tree, i) != step)
		i = sb_tree_next_sibling(tree, i);
	return i == SB_TREE_NONE ? SIZE_MAX : i;
}

static void find_path(struct sb_top *top)
{
	size_t i, next;

	top->zoom = top->chosen = 0;
	for (i = 0; i < top->path.nr; i++) {
		next = find_child(top->data.tree, top->chosen, top->path.at[i]);
		if (next == SIZE_MAX)
			return;
		top->chosen = next;
		if (i < top->nr_zoom)
			top->zoom = next;
	}
}

/* What is sorted by, and what decides between those that are equal in that. */
static void weights(const struct sb_top *top, const struct sb_top_func *func, uint64_t ret[4])
{
	const uint64_t *first = top->by_total ? func->total : func->self;
	const uint64_t *second = top->by_total ? func->self : func->total;
	int other = SB_TOP_SPAN_MAX - 1 - (int)top->span;

	ret[0] = first[top->span];
	ret[1] = second[top->span];
	ret[2] = first[other];
	ret[3] = second[other];
}

static int compare(const void *va, const void *vb, void *arg)
{
	const struct sb_top *top = arg;
	const struct sb_top_func *a = &top->data.funcs.at[*(const size_t *)va];
	const struct sb_top_func *b = &top->data.funcs.at[*(const size_t *)vb];
	uint64_t wa[4], wb[4];
	int i;

	weights(top, a, wa);
	weights(top, b, wb);
	for (i = 0; i < 4; i++)
		if (wa[i] != wb[i])
			return wa[i] > wb[i] ? -1 : 1;
	return a < b ? -1 : a > b;
}

static int sort(struct sb_top *top)
{
	size_t i;
	int err = 0;

	top->order.nr = 0;
	for (i = 0; i < top->data.funcs.nr && !err; i++)
		if (sb_top_is_found(top, sb_top_name(top, &top->data.funcs.at[i])))
			err = sb_vec_push(&top->order, i);
	if (!err && top->order.nr)
		qsort_r(top->order.at, top->order.nr, sizeof(top->order.at[0]), compare, top);
	return err;
}

int sb_top_update(struct sb_top *top)
{
	int err = keep_path(top);

	if (!err)
		err = sb_top_data_sum(&top->data);
	if (err)
		return err;
	find_path(top);
	return sort(top);
}

/* In the tree. */

static const struct sb_top_box *find_box(const struct sb_top *top, size_t node)
{
	size_t i;

	for (i = 0; i < top->boxes.nr; i++)
		if (top->boxes.at[i].node == node)
			return &top->boxes.at[i];
	return NULL;
}

/* The box before or behind the chosen one, on its level. Boxes come in the order of the tree. */
static void go_sideways(struct sb_top *top, bool to_right)
{
	const struct sb_top_box *from = find_box(top, top->chosen), *box, *best = NULL;

	for (box = top->boxes.at; from && box < top->boxes.at + top->boxes.nr; box++) {
		if (box->level != from->level || box == from || (box > from) != to_right)
			continue;
		if (!best || !to_right)
			best = box;
		if (to_right)
			break;
	}
	if (best)
		top->chosen = best->node;
}

/* Its widest child. */
static void go_down(struct sb_top *top)
{
	const struct sb_top_box *box, *best = NULL;

	for (box = top->boxes.at; box < top->boxes.at + top->boxes.nr; box++)
		if (top->data.tree->nodes.at[box->node].parent == top->chosen && box->node &&
		    (!best || box->end - box->x > best->end - best->x))
			best = box;
	if (best)
		top->chosen = best->node;
}

static void go_up(struct sb_top *top)
{
	if (top->chosen == top->zoom)
		top->zoom = top->data.tree->nodes.at[top->zoom].parent;
	top->chosen = top->data.tree->nodes.at[top->chosen].parent;
}

static void press_in_tree(struct sb_top *top, int key)
{
	switch (key) {
	case SB_KEY_LEFT:
	case SB_KEY_RIGHT:
		go_sideways(top, key == SB_KEY_RIGHT);
		break;
	case SB_KEY_DOWN:
		go_down(top);
		break;
	case SB_KEY_UP:
		go_up(top);
		break;
	case SB_KEY_ENTER:
		top->zoom = top->chosen;
		break;
	case SB_KEY_BACKSPACE:
		top->zoom = top->chosen = top->data.tree->nodes.at[top->zoom].parent;
		break;
	case SB_KEY_ESCAPE:
	case SB_KEY_HOME:
		top->zoom = top->chosen = 0;
		break;
	}
}

static void press_in_list(struct sb_top *top, int key)
{
	size_t page = top->canvas.nr_rows > 6 ? (size_t)top->canvas.nr_rows - 6 : 1;
	size_t last = top->order.nr ? top->order.nr - 1 : 0;

	switch (key) {
	case SB_KEY_UP:
		top->scroll -= top->scroll > 0;
		break;
	case SB_KEY_DOWN:
		top->scroll++;
		break;
	case SB_KEY_PAGE_UP:
		top->scroll -= top->scroll > page ? page : top->scroll;
		break;
	case SB_KEY_PAGE_DOWN:
		top->scroll += page;
		break;
	case SB_KEY_HOME:
		top->scroll = 0;
		break;
	case SB_KEY_END:
		top->scroll = last;
		break;
	}
	if (top->scroll > last)
		top->scroll = last;
}

static int type(struct sb_top *top, int key)
{
	struct sb_str *filter = &top->filter;
	int err = 0;

	if (key == SB_KEY_ENTER) {
		top->is_typing = false;
	} else if (key == SB_KEY_ESCAPE) {
		top->is_typing = false;
		sb_str_clear(filter);
	} else if (key == SB_KEY_BACKSPACE) {
		/* All bytes of a character of UTF-8. */
		while (filter->len && (filter->s[--filter->len] & 0xc0) == 0x80)
			;
		if (filter->s)
			filter->s[filter->len] = '\0';
	} else if (key >= ' ' && key < 256 && filter->len < FILTER_LEN_MAX) {
		err = sb_str_addc(filter, (char)key);
	}
	top->scroll = 0;
	return err ? err : sort(top);
}

static int reset(struct sb_top *top)
{
	sb_top_data_reset(&top->data);
	top->zoom = top->chosen = top->scroll = 0;
	return sb_top_update(top);
}

static void leave_help(struct sb_top *top)
{
	top->screen = top->before_help;
}

int sb_top_press(struct sb_top *top, int key)
{
	if (top->is_typing)
		return type(top, key);
	if (top->screen == SB_TOP_HELP && key != 'q') {
		leave_help(top);
		return 0;
	}
	switch (key) {
	case 'q':
		top->is_over = true;
		return 0;
	case 'p':
	case ' ':
		top->is_paused = !top->is_paused;
		return top->is_paused ? 0 : sb_top_update(top);
	case 's':
		top->by_total = !top->by_total;
		return sort(top);
	case 'w':
		top->span = SB_TOP_SPAN_MAX - 1 - top->span;
		return sort(top);
	case 'f':
		top->screen = top->screen == SB_TOP_TREE ? SB_TOP_LIST : SB_TOP_TREE;
		return 0;
	case '/':
		top->is_typing = true;
		return 0;
	case 'r':
		return reset(top);
	case '?':
	case 'h':
		top->before_help = top->screen;
		top->screen = SB_TOP_HELP;
		return 0;
	}
	if (top->screen == SB_TOP_TREE)
		press_in_tree(top, key);
	else
		press_in_list(top, key);
	return 0;
}
