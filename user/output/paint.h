/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Chooses the colours of a call tree for programs that draw it themselves, such as the page of
 * `serve`: those of the flame graph (flamegraph/palette.h, flamegraph/diff.h). Each node gets the
 * number of a colour; the colours are written as JSON. Order: sb_paint_init(), the others in any
 * order, sb_paint_release(). After an error it can be used further. Pointers are not NULL unless it
 * says so. Not thread-safe.
 */
#ifndef SB_OUTPUT_PAINT_H
#define SB_OUTPUT_PAINT_H

#include <stdint.h>

#include "base/str.h"
#include "flamegraph/palette.h"
#include "model/profile.h"
#include "output/jsontext.h"
#include "tree/diff.h"

struct sb_paint {
	struct sb_fg_palette palette;
	struct sb_str name; /* scratch: the current frame's */
};

/**
 * sb_paint_init() - choose the colours of a profile's frames
 * @paint: overwritten, also on error
 * @kind: name of the view that recorded the profile, "oncpu"; not kept; others and NULL get the
 *	usual colours
 *
 * Return: 0; -ENOMEM, and then there is nothing to release.
 */
int sb_paint_init(struct sb_paint *paint, const char *kind);
/* Free what sb_paint_init() made; a zeroed one is allowed. */
void sb_paint_release(struct sb_paint *paint);

/**
 * sb_paint_function() - the colour of a function's row in a table
 * @frame: one of the function's frames; only name, kind, mark and is_unnamed count
 * @ret_color: the index of the colour in what sb_paint_put() writes with @paint, below 256
 *
 * Return: 0; -ENOMEM, and *ret_color is untouched.
 */
int sb_paint_function(struct sb_paint *paint, const struct sb_frame *frame, uint32_t *ret_color);

/**
 * sb_paint_tree() - the colours of all nodes of a tree
 * @tree: made by sb_calltree_new(), pruned or not
 * @ret_colors: for each node of the tree the index of its colour, as of sb_paint_function(), 0 for
 *	the root; freed by the caller with free()
 *
 * Return: 0; -ENOMEM, and *ret_colors is untouched.
 */
int sb_paint_tree(struct sb_paint *paint, const struct sb_tree *tree, uint8_t **ret_colors);

/*
 * Return: the colour of a node of a comparison, by its total: 1 to 4 for more, 5 to 8 for less, 0
 * if the change can be chance. These are numbers of colours of sb_paint_put() without @paint. No
 * struct sb_paint is needed.
 */
uint32_t sb_paint_change(const struct sb_diff *diff, const struct sb_tree_pair *total);

/*
 * Write an object {"light":[["#fill","#text"],...],"dark":[...]} with the key @key (NULL: none, in
 * an array), indexed by the numbers of colours. If @paint is NULL, write the colours of
 * sb_paint_change(). An error is kept in @json, and sb_json_end() returns it.
 */
void sb_paint_put(struct sb_json *json, const char *key, const struct sb_paint *paint);

#endif
