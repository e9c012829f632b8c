/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Colours of frames. A palette is a list of rules that map kind and name to a family; a family has
 * SB_FG_NR_SHADES shades, one of which a hash of the name chooses. So a colour is one CSS class,
 * and the viewer, which gets the rules, colours frames in the same way. Order:
 * sb_fg_palette_init(), then any of the others, by any thread because they only read, then
 * sb_fg_palette_release(). A class is two characters and NUL, such as "a7". Pointers are not NULL
 * unless it says so. Functions that append to @out return 0 or -ENOMEM; on error a part may have
 * been appended, and the text is to be discarded.
 */
#ifndef SB_FLAMEGRAPH_PALETTE_H
#define SB_FLAMEGRAPH_PALETTE_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "flamegraph/tree.h"

struct sb_fg_opts;
struct sb_fg_family;

#define SB_FG_NR_SHADES	    8
#define SB_FG_NR_RULES_MAX  16
#define SB_FG_CLASS_LEN_MAX 3 /* "a7" and NUL */

struct sb_fg_rgb {
	uint8_t r, g, b;
};

struct sb_fg_palette {
	struct sb_fg_palette_rule {
		uint32_t kinds;	   /* bits of enum sb_fg_kind */
		const char *regex; /* extended; NULL: any name. Valid in JavaScript too. */
		const struct sb_fg_family *family;
		regex_t compiled;
	} rules[SB_FG_NR_RULES_MAX]; /* the first that matches; the last one always does */
	size_t nr_rules;
	bool is_by_kind;
	enum {
		SB_FG_SHADE_BY_NAME,
		SB_FG_SHADE_BY_PREFIX,
		SB_FG_SHADE_BY_PLACE,
		SB_FG_SHADE_BY_MODULE
	} shade_by;
};

/*
 * Choose the palette by opts->color_by unless that is SB_FG_BY_KIND, else by opts->colors, else by
 * @kind_of_run, the name of a view ("oncpu", "io", ...; NULL or another name: the usual colours).
 * opts->random and opts->hash choose the shades. @palette is overwritten and borrows nothing.
 * Return: 0; -EINVAL if there is no such palette; -ENOMEM. On error there is nothing to release.
 */
int sb_fg_palette_init(struct sb_fg_palette *palette, const struct sb_fg_opts *opts,
		       const char *kind_of_run);
/* Free what the palette holds, also of a zero-initialized one; no thread may use it any more.
 * sb_fg_palette_init() can make another one in it. */
void sb_fg_palette_release(struct sb_fg_palette *palette);

/*
 * Get the CSS class of a frame. Cannot fail.
 * @name: the text that the frame shows. A palette that shades by module finds the module in it:
 *	"[module]", "module`function" or "function (module)"
 * @kind: below SB_FG_KIND_MAX, which is not checked
 * @level: how many frames are below it: 0 for the root, 1 for its children. Only --random uses it.
 */
void sb_fg_palette_class(const struct sb_fg_palette *palette, const char *name,
			 enum sb_fg_kind kind, uint32_t level, char ret[SB_FG_CLASS_LEN_MAX]);

/* Append the CSS rules of all classes, in light colours or in dark ones: for a style sheet, where
 * the dark ones stand in a media query. */
int sb_fg_palette_add_css(const struct sb_fg_palette *palette, bool is_dark, struct sb_str *out);
/*
 * Append the rules for the viewer: [[kinds, "regex", first letter (0: a), number of shades], ...]
 * as JSON, not escaped for XML.
 */
int sb_fg_palette_add_json(const struct sb_fg_palette *palette, struct sb_str *out);

/* Get the CSS class of a kind, below SB_FG_KIND_MAX, in the legend: the middle shade of its family.
 * Return: true; false if the palette does not tell kinds apart, and @ret is untouched. */
bool sb_fg_palette_legend(const struct sb_fg_palette *palette, enum sb_fg_kind kind,
			  char ret[SB_FG_CLASS_LEN_MAX]);

/* Return: the contrast ratio of WCAG 2.1, from 1 to 21. */
double sb_fg_contrast(struct sb_fg_rgb a, struct sb_fg_rgb b);
/* Get the colours of a class of at least two characters: of the frame's rectangle and of the text
 * in it. Return: true; false if the palette does not have it, and nothing is set. */
bool sb_fg_palette_colors(const struct sb_fg_palette *palette, const char *class, bool is_dark,
			  struct sb_fg_rgb *ret_fill, struct sb_fg_rgb *ret_text);

#endif
