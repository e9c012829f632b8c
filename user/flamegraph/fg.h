/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Flame graphs: text in, picture out. The library behind the `flamegraph` program and behind
 * `stackbpf -o x.svg`. Knows base only. Not thread-safe; input is taken to be hostile.
 */
#ifndef SB_FLAMEGRAPH_FG_H
#define SB_FLAMEGRAPH_FG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct sb_fg;
struct sb_fg_opts;

int sb_fg_new(struct sb_fg **ret_fg);
void sb_fg_free(struct sb_fg *fg);

/* Take from the options what shapes the tree: reverse and flamechart. Before the first line. */
void sb_fg_shape(struct sb_fg *fg, const struct sb_fg_opts *opts);

/*
 * Add one folded line, "root;...;leaf weight", without its newline. "#stackbpf;k=v;..." sets facts
 * of the run; other lines that begin with # are comments. Frames may carry the annotations _[k]
 * _[i] _[j] _[w] _[f] _[p] _[z], which give their kind and are not shown. The weight is the last number on the
 * line, whole or decimal; what stands before it are frames, spaces and all.
 * Return: 0, -EINVAL for a line without a weight or a stack, -E2BIG for one that is too long or
 * needs more than SB_FG_NODES_MAX nodes (both counted, see sb_fg_nr_ignored()), -ENOMEM.
 */
int sb_fg_add_folded(struct sb_fg *fg, const char *line, size_t len);

/*
 * The same of a comparison, "root;...;leaf a b", as difffolded.pl writes it: the weights in A, what is compared
 * with, and in B. A line "#n;12;3.5" says of how many samples the weights of the next one are; without it those
 * of times and bytes are of an unknown number, others of as many as they are. Lines with one weight
 * cannot be added to these: -EINVAL.
 */
int sb_fg_add_diff(struct sb_fg *fg, const char *line, size_t len);

/*
 * Read a whole stream; the format (folded, with one count or two, stap .bt, perf script) is found out from its first
 * bytes. Several streams are merged. Lines that cannot be taken are counted and left out.
 * Return: 0, -EINVAL: it is no text, sb_fg_complaint() says what instead, -ENOMEM, or the error of
 * reading.
 */
int sb_fg_read(struct sb_fg *fg, int fd);

/* Return: lines and samples left out so far. */
uint64_t sb_fg_nr_ignored(const struct sb_fg *fg);
/* Return: the sum of the weights so far. */
double sb_fg_total(const struct sb_fg *fg);
/* Return: what "#stackbpf" lines said about @key ("unit"), until the next line; NULL: nothing. */
const char *sb_fg_said(const struct sb_fg *fg, const char *key);

/*
 * What was left out or changed since the last call, one sentence at a time: "ignored 3 lines
 * without a count, first at line 7". Return: the sentence, until the next call; NULL: no more.
 */
const char *sb_fg_complaint(struct sb_fg *fg);

/*
 * Options by the names of their long options, so that no struct leaks: see flamegraph(1). They are
 * not changed by drawing.
 */
int sb_fg_opts_new(struct sb_fg_opts **ret_opts);
void sb_fg_opts_free(struct sb_fg_opts *opts);
/* @value is NULL for an option without one. Return: 0, -ENOENT: no such option, -EINVAL: not a
 * value for it, -ENOMEM. */
int sb_fg_opts_set(struct sb_fg_opts *opts, const char *name, const char *value);

/*
 * Write the SVG; more lines cannot be added afterwards.
 * Return: 0, -ENODATA (an SVG that says so was written), -EIO or the stream's error, -ENOMEM, or
 * the error of the palette or attribute file.
 */
int sb_fg_render(struct sb_fg *fg, const struct sb_fg_opts *opts, FILE *out);

/*
 * The same as an element <svg class="page"> without XML declaration, for an HTML page in which it fills the
 * window: html, body { height: 100%; margin: 0 }. Keys and the fragment of the address are the viewer's.
 */
int sb_fg_render_inline(struct sb_fg *fg, const struct sb_fg_opts *opts, FILE *out);

#endif
