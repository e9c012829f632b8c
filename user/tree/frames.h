/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tables of frames.def that pictures and folded text share. All is constant: safe on any
 * thread, nothing is freed. */
#ifndef SB_TREE_FRAMES_H
#define SB_TREE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* What pictures tell apart: a row SB_KIND for each. */
enum sb_fg_kind {
#define SB_KIND(kind, ...) SB_FG_##kind,
#include "tree/frames.def"
	SB_FG_GAP, /* in_order trees: the parent's own time between children; not drawn */
	SB_FG_KIND_MAX,
};

struct sb_fg_kind_row {
	const char *suffix;    /* "_[k]"; "" if the kind has none */
	const char *legend;    /* "" if it is not in the legend */
	bool is_code, is_told; /* is_told: the name tells the kind, so that it needs no suffix */
};

/* Indexed by enum sb_fg_kind; the row of SB_FG_GAP is empty strings. */
extern const struct sb_fg_kind_row sb_fg_kinds[SB_FG_KIND_MAX];

/* Return: whether a name of @len bytes that ends in "]" has the form of a row SB_MARK or SB_FORM:
 * it is the whole form, or begins with it if the form does not end in "]". */
static inline bool sb_frame_has_form(const char *name, size_t len, const char *form)
{
	const size_t nr = __builtin_strlen(form);

	return sb_text_begins(name, len, form) && (form[nr - 1] != ']' || len == nr);
}

#endif
