/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Text for the picture: hostile names made safe, long names made short, numbers made readable. */
#ifndef SB_FLAMEGRAPH_LABEL_H
#define SB_FLAMEGRAPH_LABEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/*
 * Append @s as XML text or attribute value. What may not be shown (base/utf8.h) becomes U+FFFD, each character or
 * sequence of invalid bytes one; *@nr_repaired, if not NULL, grows by their number.
 * Return: 0 or -ENOMEM.
 */
int sb_fg_label_add_xml(struct sb_str *out, const char *s, size_t len, uint64_t *nr_repaired);

/* Length of the longest part of @s of at most @max bytes that does not split a character. */
size_t sb_fg_label_clip(const char *s, size_t len, size_t max);

/* Width of @s in em: of the widest common sans-serif faces, or @fixed_em per character if not 0. */
double sb_fg_label_width(const char *s, size_t len, double fixed_em);

/*
 * Append the most telling form of @name that is at most @max_em wide: whole; without arguments and
 * template arguments; the last component of a path or qualified name; or the beginning of that.
 * Nothing is appended where not even three characters fit. Not escaped.
 */
int sb_fg_label_add_fitted(struct sb_str *out, const char *name, size_t len, double max_em,
			   double fixed_em);

/* Append with thousands separators, and up to two decimals when it is not whole. */
int sb_fg_label_add_number(struct sb_str *out, double val);

/*
 * Append a weight in a readable unit: @unit "us" (ns, ms, s) and "bytes" scale, any other name is
 * shown behind the number.
 */
int sb_fg_label_add_weight(struct sb_str *out, double weight, const char *unit);

/* Append a share as "12.3%"; what is not nothing never shows as 0%. */
int sb_fg_label_add_share(struct sb_str *out, double share);

/* Append a coordinate with at most one decimal, independent of the locale. */
int sb_fg_label_add_px(struct sb_str *out, double px);

#endif
