/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Foreign text made fit for a tree, and what the shape of a frame's name says. */
#ifndef SB_FLAMEGRAPH_TEXT_H
#define SB_FLAMEGRAPH_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "flamegraph/tree.h"

/* Return: true if @s is printable ASCII only, so that it need not be cleaned. Fast. */
bool sb_fg_text_is_plain(const char *s, size_t len);

/*
 * Append @s to @out as XML 1.0 can hold it and a reader can trust it: a tab becomes a space; each byte of what may not
 * be shown (base/utf8.h) becomes U+FFFD.
 * Return: the number of replaced bytes (tabs not counted), or -ENOMEM.
 */
long sb_fg_text_clean(struct sb_str *out, const char *s, size_t len);

/*
 * A count: all of @s is a whole or decimal number without sign and exponent, at most 2^63. "5." is
 * one, ".5" is none. Return: false if it is none.
 */
bool sb_fg_parse_weight(const char *s, size_t len, double *ret_weight);

/*
 * The kind of a frame by its name: an annotation _[k] _[i] _[j] _[w] _[f] _[p] _[z] is taken off, "-" and
 * "--" delimit, "[unknown]" and "[module+0x12]" are unknown, "[truncated: ...]", "[Missed ...]" and
 * "[empty]" are marks, "[running]" and the like say what a thread was doing. The result points into
 * @name.
 */
struct sb_fg_tree_frame sb_fg_frame_parse(const char *name, size_t len);

/*
 * What a delimiter says about the frames behind it: SB_FG_KERNEL behind "-", SB_FG_WAKER behind
 * "--". Under an idle root it says nothing.
 */
enum sb_fg_kind sb_fg_frame_after(const struct sb_fg_tree_frame *frame, enum sb_fg_kind before);
/* "[idle]": if it is the outermost frame, what is above it is SB_FG_IDLE. */
bool sb_fg_frame_is_idle_root(const struct sb_fg_tree_frame *frame);
/* The kind of a frame behind those: plain ones take @above over; SB_FG_IDLE all code does. */
enum sb_fg_kind sb_fg_frame_under(enum sb_fg_kind kind, enum sb_fg_kind above);

#endif
