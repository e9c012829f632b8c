// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/canvas.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/cleanup.h"

/* Parameters of SGR ("select graphic rendition"): with colours and without. */
static const struct {
	const char *colour, *plain;
} inks[] = {
	[SB_INK_PLAIN] = { "", "" },
	[SB_INK_BOLD] = { ";1", ";1" },
	[SB_INK_DIM] = { ";2", "" },
	[SB_INK_BAR] = { ";7", ";7" },
	[SB_INK_CHOSEN] = { ";1;37;44", ";1;7" },
	[SB_INK_FOUND] = { ";1;37;45", ";1;4" },
	[SB_INK_USER] = { ";30;43", "" },
	[SB_INK_USER_2] = { ";30;103", "" },
	[SB_INK_KERNEL] = { ";30;46", "" },
	[SB_INK_KERNEL_2] = { ";30;106", "" },
	[SB_INK_INTERP] = { ";30;42", "" },
	[SB_INK_INTERP_2] = { ";30;102", "" },
	[SB_INK_OTHER] = { ";30;47", "" },
	[SB_INK_OTHER_2] = { ";30;107", "" },
};
_Static_assert(SB_ARRAY_SIZE(inks) == SB_INK_MAX, "a row for each ink");

static void blank(struct sb_cell *cell, enum sb_ink ink)
{
	memset(cell, 0, sizeof(*cell));
	cell->text[0] = ' ';
	cell->ink = (uint8_t)ink;
}

int sb_canvas_resize(struct sb_canvas *canvas, int nr_cols, int nr_rows)
{
	struct sb_cell *cells;
	int i;

	nr_cols = nr_cols < 1 ? 1 : nr_cols > SB_CANVAS_MAX ? SB_CANVAS_MAX : nr_cols;
	nr_rows = nr_rows < 1 ? 1 : nr_rows > SB_CANVAS_MAX ? SB_CANVAS_MAX : nr_rows;
	cells = realloc(canvas->cells, (size_t)nr_cols * (size_t)nr_rows * sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	*canvas = (struct sb_canvas){ .cells = cells, .nr_cols = nr_cols, .nr_rows = nr_rows };
	for (i = 0; i < nr_cols * nr_rows; i++)
		blank(&cells[i], SB_INK_PLAIN);
	return 0;
}

void sb_canvas_release(struct sb_canvas *canvas)
{
	free(canvas->cells);
	*canvas = (struct sb_canvas){};
}

/* The part of @at that is on the canvas; *ret_cells: its first cell. Return: its columns. */
static int clip(struct sb_canvas *canvas, const struct sb_place *at, struct sb_cell **ret_cells)
{
	int room = canvas->nr_cols - at->col;

	if (at->row < 0 || at->row >= canvas->nr_rows || at->col < 0 || room <= 0)
		return 0;
	*ret_cells = canvas->cells + (size_t)at->row * (size_t)canvas->nr_cols + at->col;
	return at->nr_cols < room ? at->nr_cols : room;
}

/*
 * One character at @text into @cell. Return: its columns, 0: it is none of its own. *ret_len: its
 * bytes.
 */
static int put(struct sb_cell *cell, const char *text, size_t *ret_len)
{
	mbstate_t state = {};
	wchar_t wide;
	size_t len = mbrtowc(&wide, text, strlen(text), &state);
	int nr_cols;

	*ret_len = len;
	if (len >= sizeof(cell->text)) { /* (size_t)-1, -2: no character of the locale */
		*ret_len = 1;
		nr_cols = -1;
	} else {
		nr_cols = wcwidth(wide);
	}
	if (!nr_cols)
		return 0;
	memset(cell->text, 0, sizeof(cell->text));
	if (nr_cols < 0)
		cell->text[0] = '?';
	else
		memcpy(cell->text, text, len);
	return nr_cols < 0 ? 1 : nr_cols;
}

int sb_canvas_text(struct sb_canvas *canvas, struct sb_place at, enum sb_ink ink, const char *text)
{
	struct sb_cell *cells, cell;
	int room = clip(canvas, &at, &cells), col = 0, nr_cols;
	size_t len;

	for (; *text && col < room; text += len) {
		nr_cols = put(&cell, text, &len);
		if (!nr_cols)
			continue;
		if (col + nr_cols > room)
			break;
		cell.ink = (uint8_t)ink;
		cells[col++] = cell;
		for (; nr_cols > 1; nr_cols--) {
			memset(cell.text, 0, sizeof(cell.text));
			cells[col++] = cell;
		}
	}
	return col;
}

int sb_canvas_textf(struct sb_canvas *canvas, struct sb_place at, enum sb_ink ink, const char *fmt,
		    ...)
{
	sb_cleanup(sb_freep) char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0) {
		text = NULL;
		return 0;
	}
	return sb_canvas_text(canvas, at, ink, text);
}

void sb_canvas_fill(struct sb_canvas *canvas, struct sb_place at, enum sb_ink ink)
{
	struct sb_cell *cells;
	int room = clip(canvas, &at, &cells), i;

	for (i = 0; i < room; i++)
		blank(&cells[i], ink);
}

static int render_row(const struct sb_cell *cells, int nr_cols, bool has_colour, struct sb_str *out)
{
	int i, ink = -1, err = 0;

	for (i = 0; i < nr_cols && !err; i++) {
		if (cells[i].ink != ink) {
			ink = cells[i].ink;
			err = sb_str_addf(out, "\033[0%sm",
					  has_colour ? inks[ink].colour : inks[ink].plain);
		}
		if (!err)
			err = sb_str_add(out, cells[i].text);
	}
	return err ? err : sb_str_add(out, "\033[0m");
}

int sb_canvas_render(const struct sb_canvas *canvas, const struct sb_canvas *before,
		     bool has_colour, struct sb_str *out)
{
	size_t nr_cols = (size_t)canvas->nr_cols;
	int row, err = 0;

	for (row = 0; row < canvas->nr_rows && !err; row++) {
		const struct sb_cell *cells = canvas->cells + (size_t)row * nr_cols;

		if (before &&
		    !memcmp(cells, before->cells + (size_t)row * nr_cols, nr_cols * sizeof(*cells)))
			continue;
		err = sb_str_addf(out, "\033[%d;1H", row + 1);
		if (!err)
			err = render_row(cells, canvas->nr_cols, has_colour, out);
	}
	return err;
}
