/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by the parts of `top`: cmd_top.c runs it, top_keys.c handles keys, top_draw.c draws the
 * screen. One thread. Pointers are not NULL. Zero a struct sb_top, set data.nr_slots and the
 * metadata, and for each period: sb_top_data_add(), sb_top_update() unless is_paused, then
 * sb_top_draw() and sb_term_show(), or sb_top_print(). For each key: sb_top_press(), which may
 * update, and after the last one sb_top_draw(). After -ENOMEM or -E2BIG only sb_top_release() may
 * follow.
 */
#ifndef SB_CLI_TOP_H
#define SB_CLI_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/str.h"
#include "base/vec.h"
#include "cli/canvas.h"
#include "cli/top_data.h"

enum sb_top_screen { SB_TOP_LIST, SB_TOP_TREE, SB_TOP_HELP, SB_TOP_SCREEN_MAX };

/* What the screen says about the run. */
struct sb_top_metadata {
	const char *kind, *unit, *targets; /* borrowed until the last draw */
	uint64_t divisor;		   /* weight / divisor = units */
	double hz;			   /* of the timer; 0: the view has none */
	uint32_t nr_cpus;
	uint64_t nr_samples, nr_lost, nr_cut, run_ns;
};

/* A node of the tree on the screen. */
struct sb_top_box {
	size_t node;
	int level, x, end; /* columns from x to end; level 0: the node that is zoomed into */
};

struct sb_top {
	struct sb_top_data data;
	struct sb_top_metadata metadata;
	struct sb_canvas canvas;
	enum sb_top_screen screen, before_help;
	enum sb_top_span span; /* the span that the list is sorted by and the tree shows */
	bool by_total, is_paused, is_typing, is_over;
	struct sb_str filter;
	size_t scroll;	     /* the first function that is shown */
	size_t zoom, chosen; /* nodes of data.tree */
	SB_VEC(uint64_t)
	path; /* hashes of names from the root to the chosen node; the zoomed node is on it */
	size_t nr_zoom;			 /* how many of them lead to the zoomed node */
	SB_VEC(struct sb_top_box) boxes; /* as drawn last */
	SB_VEC(size_t) order;		 /* indexes in data.funcs, in the order of the list */
};

/* Free all that @top owns, also of a zeroed one, and after an error. */
void sb_top_release(struct sb_top *top);

/* Make tree, functions and their order from top->data, and find the chosen node again by its path.
 * Of a path that is gone in part, the last node that is left is chosen. Indexes of nodes that were
 * kept elsewhere, and names of sb_top_name(), are no longer valid. Also before the first draw, when
 * there are no data. Return: 0; -ENOMEM; -E2BIG if the data do not fit into a tree. */
int sb_top_update(struct sb_top *top);
/* Handle a key of sb_term_key(). Return: 0, -ENOMEM or -E2BIG; top->is_over is set when the user
 * quits. */
int sb_top_press(struct sb_top *top, int key);

/* Draw into top->canvas, which is resized to the nr_cols and nr_rows that the caller has set in it,
 * and blanked before; sb_term_show() shows it. After sb_top_update(). Return: 0; -ENOMEM, and the
 * canvas is not to be shown. */
int sb_top_draw(struct sb_top *top);
/* Print the list as text, with at most @nr_max functions; 0: none. A line tells the weight of the
 * rest. After sb_top_update(). The caller checks @out for errors with ferror(). */
void sb_top_print(const struct sb_top *top, size_t nr_max, FILE *out);

/* Return: whether @name contains top->filter; true if that is empty. */
bool sb_top_is_found(const struct sb_top *top, const char *name);
/* Return: the name of one of top->data.funcs, valid until the next update. */
const char *sb_top_name(const struct sb_top *top, const struct sb_top_func *func);

#endif
