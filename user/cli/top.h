/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between the parts of `top`: cmd_top.c is the run, top_keys.c what keys do, top_draw.c the screen. */
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

/* The run, as the screen says it. */
struct sb_top_facts {
	const char *kind, *unit; /* borrowed */
	const char *targets;
	uint64_t divisor; /* of weights to units */
	double hz;	  /* of a timer; 0: there is none */
	uint32_t nr_cpus;
	uint64_t nr_samples, nr_lost, nr_cut, run_ns;
};

/* A node on the screen: columns from x to end. */
struct sb_top_box {
	size_t node;
	int level, x, end; /* level 0: the node that is zoomed into */
};

struct sb_top {
	struct sb_top_data data;
	struct sb_top_facts facts;
	struct sb_canvas canvas;
	enum sb_top_screen screen, before_help;
	enum sb_top_span span; /* what is sorted by, and what the tree is of */
	bool by_total, is_paused, is_typing, is_over;
	struct sb_str filter;
	size_t scroll;	       /* first function shown */
	size_t zoom, chosen;   /* nodes of data.tree */
	SB_VEC(uint64_t) path; /* the chosen one's, and the first so many of it the zoomed one's */
	size_t nr_zoom;
	SB_VEC(struct sb_top_box) boxes; /* as drawn */
	SB_VEC(size_t) order;		 /* functions as they are listed: numbers in data.funcs */
};

void sb_top_release(struct sb_top *top);

/* Make tree, functions and their order of what there is; find again what was chosen. Return: 0 or a negative
 * errno. */
int sb_top_update(struct sb_top *top);
/* Return: 0 or a negative errno; top->is_over: the user wants no more. */
int sb_top_press(struct sb_top *top, int key);

/* Draw the screen into top->canvas, which has its size. Return: 0 or a negative errno. */
int sb_top_draw(struct sb_top *top);
/* The table as lines, @nr_max functions at most. */
void sb_top_print(const struct sb_top *top, size_t nr_max, FILE *out);

/* Return: whether @name is what was searched for; nothing: all are. */
bool sb_top_is_found(const struct sb_top *top, const char *name);

#endif
