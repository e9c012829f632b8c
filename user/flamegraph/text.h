/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Cleans text of others for the tree, and tells from a frame's name what it is. For each stack,
 * root first: sb_fg_frame_parse(), unless the kind is known, and then sb_fg_frame_place(). Texts
 * are @len bytes and need no NUL at their end. Pointers are not NULL, and none is kept, but by what
 * is returned where it says so. @out is initialized and released by the caller. Thread: any. */
#ifndef SB_FLAMEGRAPH_TEXT_H
#define SB_FLAMEGRAPH_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "flamegraph/tree.h"

/* Return: whether @s is printable ASCII only, bytes from 0x20 to 0x7e, so that it need not be
 * cleaned; true if @len is 0. Fast. */
bool sb_fg_text_is_plain(const char *s, size_t len);

/*
 * Append @s as XML 1.0 can hold it: a tab becomes a space; each byte of what may not be shown
 * (base/utf8.h) becomes U+FFFD. "<" and "&" stay: who writes XML escapes them. Return: how many
 * bytes were replaced, without tabs, for a warning; -ENOMEM, and a part may have been appended.
 */
long sb_fg_text_clean(struct sb_str *out, const char *s, size_t len);

/* Replace @out by the string @s, cleaned as sb_fg_text_clean() does; out->s is not NULL then, also
 * for "". Return: 0; -ENOMEM, and what was in @out is gone, and a part of @s may be there. */
int sb_fg_text_set(struct sb_str *out, const char *s);

/*
 * Tell name and kind of a frame from its text. An annotation at its end, the suffix of a row
 * SB_KIND of tree/frames.def, tells the kind and is removed; code with the annotation of a kind of
 * code is unknown all the same if its name says so. Without an annotation the form of the name
 * tells the kind: "-" and "--" are delimiters, "[unknown...]" and "[module+0x12]" are unknown, and
 * the rows SB_MARK and SB_FORM are what their kind says. The result borrows from @name.
 */
struct sb_tree_frame sb_fg_frame_parse(const char *name, size_t len);

/* Return: whether a name of @len bytes, 1 or more, is plain for certain. Nearly all names are. */
static inline bool sb_fg_name_is_plain(const char *name, size_t len)
{
	/* Each form that tells a kind ends with one of these. */
	return name[len - 1] != ']' && name[len - 1] != '-';
}

/* "[empty]", a mark that stands for a frame without a name. */
extern const struct sb_tree_frame sb_fg_frame_empty;

/* The part of sb_fg_frame_place() for a stack that is not all plain: set frame->kind to what
 * @above, which says what the frames above imply, makes of it, and update @above for the next
 * frame. Only sb_fg_frame_place() calls it. */
void sb_fg_frame_place_typed(struct sb_tree_frame *frame, bool is_root, enum sb_fg_kind *above);

/**
 * sb_fg_frame_place() - adjust the kind of a frame to the frames above it in its stack
 * @is_root: whether it is the first frame of the stack
 * @above: what the frames above imply; SB_FG_PLAIN before the first frame; updated for the next
 *
 * Plain frames after the delimiter "-" become SB_FG_KERNEL, after "--" SB_FG_WAKER. All code below
 * a root frame "[idle]" becomes SB_FG_IDLE.
 */
static inline void sb_fg_frame_place(struct sb_tree_frame *frame, bool is_root,
				     enum sb_fg_kind *above)
{
	/* Inline, because a plain frame below plain ones, which nearly all are, stays as it is. */
	if (frame->kind != SB_FG_PLAIN || *above != SB_FG_PLAIN)
		sb_fg_frame_place_typed(frame, is_root, above);
}

#endif
