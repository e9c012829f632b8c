/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A screen as cells, and cells as what a terminal understands: the few sequences of ECMA-48 that all of
 * them do. Not curses: its two libraries would be loaded by every run of stackbpf, or be needed for the
 * static build, with a data base of terminals at run time; and it cannot be left from a signal handler.
 *
 * Text is other people's bytes (names of processes and functions): what is not printable in the locale
 * (setlocale(LC_CTYPE)) is shown as '?', so that nothing in it drives the terminal.
 */
#ifndef SB_CLI_CANVAS_H
#define SB_CLI_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* A terminal of more is drawn on in part. */
#define SB_CANVAS_MAX 1000

enum sb_ink {
	SB_INK_PLAIN,
	SB_INK_BOLD,
	SB_INK_DIM,
	SB_INK_BAR,    /* headings */
	SB_INK_CHOSEN, /* where the cursor is */
	SB_INK_FOUND,  /* what was searched for */
	/* Backgrounds of frames, two of each so that neighbours are told apart. */
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
	char text
		[8]; /* one character, in the locale's encoding; "": covered by the wide one before it */
	uint8_t ink;
};

/* Zero-initialize, then sb_canvas_resize(). */
struct sb_canvas {
	struct sb_cell *cells;
	int nr_cols, nr_rows;
};

/* Blank, of that size. Return: 0 or -ENOMEM, with nothing changed. */
int sb_canvas_resize(struct sb_canvas *canvas, int nr_cols, int nr_rows);
void sb_canvas_release(struct sb_canvas *canvas);

/* Where text goes: it is cut at @nr_cols, and at the edge. */
struct sb_place {
	int row, col, nr_cols;
};

/* Return: how many columns @text took. */
int sb_canvas_text(struct sb_canvas *canvas, struct sb_place at, enum sb_ink ink, const char *text);
int sb_canvas_textf(struct sb_canvas *canvas, struct sb_place at, enum sb_ink ink, const char *fmt,
		    ...) __attribute__((format(printf, 4, 5)));
/* Blanks of that ink. */
void sb_canvas_fill(struct sb_canvas *canvas, struct sb_place at, enum sb_ink ink);

/*
 * Append what makes a terminal show @canvas. @before: what it shows, of the same size; rows that are the
 * same are left out; NULL: anything. Return: 0 or -ENOMEM.
 */
int sb_canvas_render(const struct sb_canvas *canvas, const struct sb_canvas *before,
		     bool has_colour, struct sb_str *out);

#endif
