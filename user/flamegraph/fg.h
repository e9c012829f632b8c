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

/*
 * Add one folded line, "root;...;leaf weight", without its newline. "#stackbpf;k=v;..." sets facts
 * of the run; other lines that begin with # are comments. Frames may carry the annotations _[k]
 * _[i] _[j] _[w], which give their kind and are not shown.
 * Return: 0, -EINVAL for a line without a weight (counted, see sb_fg_nr_ignored()), -ENOMEM.
 */
int sb_fg_add_folded(struct sb_fg *fg, const char *line, size_t len);

/* Read a whole stream; the format (folded, stap .bt, perf script) is found out from its first bytes. */
int sb_fg_read(struct sb_fg *fg, int fd);

/* Options by the names of their long options, so that no struct leaks: see flamegraph(1). */
int sb_fg_opts_new(struct sb_fg_opts **ret_opts);
void sb_fg_opts_free(struct sb_fg_opts *opts);
/* Return: 0, -ENOENT: no such option, -EINVAL: not a value for it. */
int sb_fg_opts_set(struct sb_fg_opts *opts, const char *name, const char *value);

/* Write the SVG. Return: 0, -ENODATA (an SVG that says so was written), -EIO, -ENOMEM. */
int sb_fg_render(struct sb_fg *fg, const struct sb_fg_opts *opts, FILE *out);

#endif
