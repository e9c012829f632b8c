/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A view says when a sample is taken and what its weight means.
 *
 * To add one: bpf/views/NAME.bpf.c (programs NAME_*, all SEC("?...")), user/views/NAME.c which
 * defines sb_view_NAME, and a row in table.c. See docs/adding-a-view.md.
 */
#ifndef SB_VIEWS_VIEW_H
#define SB_VIEWS_VIEW_H

#include <stddef.h>

struct sampler_bpf;
struct bpf_program;

struct sb_view {
	const char *name;    /* the command, and "kind" in outputs */
	const char *title;   /* of a picture: "On-CPU" */
	const char *unit;    /* of the weight: "samples" */
	const char *summary; /* one line for help */
	/* Between open and load: switch on the view's programs and maps, write its settings. */
	int (*prepare)(struct sampler_bpf *skel);
	/* The program that a timer on each CPU runs, or NULL. The other programs that prepare()
	 * switched on are attached to what their section names. */
	struct bpf_program *(*timer)(struct sampler_bpf *skel);
};

/* Return: the view of that name, or NULL. */
const struct sb_view *sb_view_find(const char *name);
/* Return: the i-th row, or NULL past the end. */
const struct sb_view *sb_view_at(size_t i);

#endif
