/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows of table.c, and what several of them have in common; for the views themselves only. */
#ifndef SB_VIEWS_VIEWS_H
#define SB_VIEWS_VIEWS_H

#include "views/view.h"

extern const struct sb_view sb_view_io;
extern const struct sb_view sb_view_offcpu;
extern const struct sb_view sb_view_oncpu;

/* sched.c, the user half of bpf/views/sched.bpf.c: of the views of waits. */

/* Frames of the kernel that are the switch's and the tracer's. */
extern const char *const sb_sched_trim[];

/* Settings and programs that all of them need. Return: 0 or a negative errno. */
int sb_sched_prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts);
struct bpf_program *sb_sched_begin(struct sampler_bpf *skel);
struct bpf_program *sb_sched_settle(struct sampler_bpf *skel);

#endif
