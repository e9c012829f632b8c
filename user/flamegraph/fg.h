/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Flame graphs: stacks in, picture out. The library behind the `flamegraph` program, which reads
 * stacks from text, and behind `stackbpf -o x.svg`, which adds typed stacks. It depends on base,
 * tree and kinds only. Not thread-safe; input may be hostile. Pointers are not NULL unless it says
 * so. After -ENOMEM a picture can only be freed.
 *
 * Order: sb_fg_new() and sb_fg_opts_new(); sb_fg_shape(); stacks and metadata are added or read,
 * and sb_fg_complaint() is asked after each stream until it returns NULL; the picture is drawn,
 * once or more; sb_fg_free() and sb_fg_opts_free(). After another error than -ENOMEM the picture
 * can be used further.
 */
#ifndef SB_FLAMEGRAPH_FG_H
#define SB_FLAMEGRAPH_FG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "flamegraph/tree.h"

struct sb_fg;
struct sb_fg_opts;

/* Make an empty picture, owned by the caller, who ends it by sb_fg_free(). Return: 0; -ENOMEM, and
 * *ret_fg is untouched. */
int sb_fg_new(struct sb_fg **ret_fg);
/* Free a picture; NULL is allowed. */
void sb_fg_free(struct sb_fg *fg);
SB_DEFINE_CLEANUP(struct sb_fg, sb_fg_free)

/* Apply the options that shape the tree: reverse and flamechart. Call it before the first stack is
 * added; @opts is not kept. */
void sb_fg_shape(struct sb_fg *fg, const struct sb_fg_opts *opts);

/**
 * sb_fg_add_stack() - add a typed stack
 * @frames: root first; copied. Names are as the picture shows them: UTF-8 that may be shown
 *	(base/utf8.h), without ';'; one of 0 bytes becomes "[empty]". Their kinds are
 *	what the caller says, whatever the names look like.
 * @nr: at least 1
 * @weight: 0 or more, in the unit that the metadata "unit" names
 *
 * Applies what the frames above imply for a frame, see sb_fg_frame_place().
 *
 * Return: 0; -EINVAL if @nr is 0; -E2BIG if the tree would have more than SB_TREE_NODES_MAX nodes
 * or 2^31 bytes of names: no weight was added, and sb_fg_complaint() does not count it; -ENOMEM.
 */
int sb_fg_add_stack(struct sb_fg *fg, const struct sb_tree_frame *frames, size_t nr, double weight);

/**
 * sb_fg_add_pair() - add a typed stack of a comparison
 * @frames: @nr frames as for sb_fg_add_stack()
 * @pair: its weights in both profiles, and the squares of their samples' weights; copied
 *
 * All stacks of a picture must be added this way, or none, which is not checked.
 *
 * Return: 0; -EINVAL if @nr is 0; -E2BIG, and no weight was added; -ENOMEM.
 */
int sb_fg_add_pair(struct sb_fg *fg, const struct sb_tree_frame *frames, size_t nr,
		   const struct sb_tree_pair *pair);

/*
 * Add metadata, as sb_metadata_merge() does with that of several inputs. @metadata: copied. Return:
 * 0, also if units differ or a sum is too large (sb_fg_complaint()); -ENOMEM.
 */
int sb_fg_add_metadata(struct sb_fg *fg, const struct sb_metadata *metadata);

/*
 * Read a whole stream. The format (folded with one count or two, SystemTap .bt, perf script) is
 * recognised by its first bytes, after a byte order mark, which is skipped. Several streams are
 * merged. A line that is not valid, is too long, or needs more than SB_TREE_NODES_MAX nodes is
 * counted and left out. @fd is read to its end and not closed; if it is non-blocking, this waits
 * for data.
 *
 * A folded line is "root;...;leaf weight". The weight is the last number, whole or decimal;
 * everything before it, with spaces, is frames. Annotations such as _[k] tell the kind of a frame
 * and are not shown (sb_fg_frame_parse()). "#stackbpf;k=v;..." sets metadata; other lines that
 * begin with # are comments.
 *
 * Return: 0, also if all lines were left out; -EINVAL if it is not text, or has two weights in a
 * line and the streams before one, or the other way round, and sb_fg_complaint() says so, and
 * nothing was added; -ENOMEM; another error of reading, and the lines before it were added, but not
 * an incomplete stack at the end.
 */
int sb_fg_read(struct sb_fg *fg, int fd);

/* Return: the sum of all weights that were added, of a comparison those of both profiles. */
double sb_fg_total(const struct sb_fg *fg);
/* Return: the metadata that was added or read; valid until sb_fg_free(), and its strings, too. */
const struct sb_metadata *sb_fg_metadata(const struct sb_fg *fg);

/*
 * Return: a sentence about what was left out or changed since the last call, such as "ignored 3
 * lines without a count, first at line 7", valid until the next call; NULL if there is no more.
 */
const char *sb_fg_complaint(struct sb_fg *fg);

/*
 * Make options with their defaults. They are set by the names of their long options
 * (flamegraph(1)), so that no caller depends on a struct. Drawing does not change them. Return: 0
 * and *ret_opts, owned by the caller; -ENOMEM, and *ret_opts is untouched.
 */
int sb_fg_opts_new(struct sb_fg_opts **ret_opts);
/* Free options with their strings; NULL is allowed. */
void sb_fg_opts_free(struct sb_fg_opts *opts);
SB_DEFINE_CLEANUP(struct sb_fg_opts, sb_fg_opts_free)
/*
 * Set an option. @name: without "--", in full. @value: copied; a text has 4096 bytes at most (else
 * -EINVAL), a path one at least, and case does not matter in a word; NULL for a flag, which becomes
 * true. Return: 0; -ENOENT if there is no such option; -EINVAL for a wrong value, for NULL if it
 * takes one, and for any value of a flag; -ENOMEM. On error the option is unchanged.
 */
int sb_fg_opts_set(struct sb_fg_opts *opts, const char *name, const char *value);

/*
 * Write the SVG to @out, which is flushed, not closed. No stacks can be added afterwards, but it
 * can be drawn again, with other options. With --cp, colors of functions are read from
 * palette.map (a file that does not exist is an empty one), and the file is replaced if functions
 * were added to it, after the picture was written. Return: 0; -ENODATA if there is no weight, and
 * an SVG that says so was written; -EINVAL if opts->colors or the background is not known; -EIO or
 * another error of the stream; -ENOMEM; an error of the palette or attribute file. After all errors
 * but -ENODATA, @out may have a part of the picture, or all of it if palette.map could not be
 * written.
 */
int sb_fg_render(struct sb_fg *fg, const struct sb_fg_opts *opts, FILE *out);

/*
 * Write the picture as an element <svg class="page"> without XML declaration, for an HTML page that
 * it fills: html, body { height: 100%; margin: 0 }. The viewer handles keys and the fragment of the
 * address. In all else it does what sb_fg_render() does, also with palette.map. Return: 0; -ENODATA
 * if there is no weight, and a picture that says so was written; -EINVAL if opts->colors or the
 * background is not known; -EIO or another error of the stream; -ENOMEM; an error of the palette or
 * attribute file.
 */
int sb_fg_render_inline(struct sb_fg *fg, const struct sb_fg_opts *opts, FILE *out);

#endif
