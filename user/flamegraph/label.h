/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Text for the picture: escapes hostile names, shortens long names, formats numbers. Output does
 * not depend on the locale. Thread: any. All sb_fg_label_add_*() append to @out, which the caller
 * initialized and releases, and return 0 or -ENOMEM; a part may have been appended then, and the
 * text is to be discarded. Texts with a @len need no NUL at their end. Widths are in em, the size
 * of the font. Pointers are not NULL unless it says so, and nothing is kept.
 */
#ifndef SB_FLAMEGRAPH_LABEL_H
#define SB_FLAMEGRAPH_LABEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/*
 * Append @s escaped for XML text and attributes. Characters that may not be shown (base/utf8.h) and
 * sequences of invalid bytes become U+FFFD; their number is added to *@nr_repaired, if that is not
 * NULL.
 */
int sb_fg_label_add_xml(struct sb_str *out, const char *s, size_t len, uint64_t *nr_repaired);

/* Return: the longest length in bytes, up to @max, at which @s can be cut without splitting a UTF-8
 * character; @len if that is not more than @max. */
size_t sb_fg_label_clip(const char *s, size_t len, size_t max);

/*
 * Return: the width of @s in em: an upper bound for common fonts, or @fixed_em for each character
 * if that is not 0.
 */
double sb_fg_label_width(const char *s, size_t len, double fixed_em);

/*
 * Append the form of @name that says most in at most @max_em: the whole name; the name without
 * arguments and template arguments; its last component; or the beginning of that. Nothing if not
 * even three characters fit. @fixed_em: as for sb_fg_label_width(). The result is not escaped.
 */
int sb_fg_label_add_fitted(struct sb_str *out, const char *name, size_t len, double max_em,
			   double fixed_em);

/* Append a number with commas between thousands, and two decimals if it is not whole: "1,234.50";
 * from 1e15 on with an exponent: "1.234e+15"; "?" if it is not finite. */
int sb_fg_label_add_number(struct sb_str *out, double val);

/*
 * Append a weight with its unit, such as "samples", which is not escaped. Times ("ns", "us", "ms",
 * "s"), "bytes" and "byte-seconds" are scaled to a readable unit: "1.50 ms", "12 MiB", "2 GiB·s".
 */
int sb_fg_label_add_weight(struct sb_str *out, double weight, const char *unit);

/* Append a fraction, 0 to 1, as "12.3%". Only 0 is shown as "0%", less than 0.00005 as "under
 * 0.01%". */
int sb_fg_label_add_share(struct sb_str *out, double share);

/* Append a coordinate in pixels with at most one decimal. */
int sb_fg_label_add_px(struct sb_str *out, double px);

#endif
