/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A screen as an array of cells, and the escape sequences that draw it: the few of ECMA-48 that all
 * terminals have. Used by `top`. It does not use curses, because every run of stackbpf would load
 * its two libraries, the static build would need them and a terminal database at run time, and
 * curses cannot be left from a signal handler.
 *
 * Text is untrusted (names of processes and functions): bytes that are not printable in the locale
 * (setlocale(LC_CTYPE)) are shown as '?', so that they cannot control the terminal. One thread.
 * Pointers are not NULL unless it says so, and texts are copied. For each picture:
 * sb_canvas_resize(), sb_canvas_text() and sb_canvas_fill(), then sb_term_show() (term.h), or
 * sb_canvas_render() for the bytes; at the end sb_canvas_release().
 */
#ifndef SB_CLI_CANVAS_H
#define SB_CLI_CANVAS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* Columns and rows of a canvas at most. */
#define SB_CANVAS_MAX 1000

/* How a cell looks. */
enum sb_ink {
	SB_INK_PLAIN,
	SB_INK_BOLD,
	SB_INK_DIM,
	SB_INK_BAR,    /* headings */
	SB_INK_CHOSEN, /* what the cursor is on */
	SB_INK_FOUND,  /* matches of the search */
	/* Backgrounds of frames, two of each kind so that neighbours differ. */
	SB_INK_USER,
	SB_INK_USER_2,
	SB_INK_KERNEL,
	SB_INK_KERNEL_2,
	SB_INK_INTERP,
	SB_INK_INTERP_2,
	SB_INK_OTHER,
	SB_INK_OTHER_2,
	SB_INK_MAX,
};

struct sb_cell {
	/* One character in the locale's encoding; "": covered by the wide character before it. */
	char text[8];
	uint8_t ink;
};

/* Zero-initialize. */
struct sb_canvas {
	struct sb_cell *cells;
	int nr_cols, nr_rows;
};

/* Set the size, limited to 1 to SB_CANVAS_MAX each, and blank all cells. Return: 0; -ENOMEM, and
 * nothing has changed. */
int sb_canvas_resize(struct sb_canvas *canvas, int nr_cols, int nr_rows);
/* Free the cells, and zero @canvas, which can be resized, or released, again. */
void sb_canvas_release(struct sb_canvas *canvas);

/* Where to draw: a part of one row. It is clipped to the canvas. */
struct sb_place {
	int row, col, nr_cols;
};

/* Draw text, clipped to @at, in the look @ink; cells behind its end stay as they are. Return: how
 * many columns it took; 0 if @at is not on the canvas, or without memory for the formatted text. */
int sb_canvas_text(struct sb_canvas *canvas, struct sb_place at, enum sb_ink ink, const char *text);
int sb_canvas_textf(struct sb_canvas *canvas, struct sb_place at, enum sb_ink ink, const char *fmt,
		    ...) __attribute__((format(printf, 4, 5)));
/* Fill @at with blanks in the look @ink. */
void sb_canvas_fill(struct sb_canvas *canvas, struct sb_place at, enum sb_ink ink);

/*
 * Append the escape sequences that draw @canvas to @out. @before: what the terminal shows, a canvas
 * of the same size, of which equal rows are not drawn again; NULL: draw all. @has_colour: false:
 * only bold, underlined, reverse and the like. Return: 0; -ENOMEM, and a part may have been
 * appended: discard it.
 */
int sb_canvas_render(const struct sb_canvas *canvas, const struct sb_canvas *before,
		     bool has_colour, struct sb_str *out);

#endif
