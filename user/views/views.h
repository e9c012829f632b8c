/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows of table.c, and what several of them have in common; for the views themselves only. */
#ifndef SB_VIEWS_VIEWS_H
#define SB_VIEWS_VIEWS_H

#include "views/view.h"

extern const struct sb_view sb_view_io;
extern const struct sb_view sb_view_offcpu;
extern const struct sb_view sb_view_offwake;
extern const struct sb_view sb_view_oncpu;
extern const struct sb_view sb_view_wakeup;
extern const struct sb_view sb_view_wall;

/* sched_waker of bpf/views/sched.bpf.c. */
enum { SB_SCHED_WAKER_WEIGHS = 1, SB_SCHED_WAKER_NAMED };

/* For prepare(): programs are loaded only if they are switched on. */
int sb_views_switch_on(struct bpf_program *const *programs, size_t nr);

/* sched.c, the user half of bpf/views/sched.bpf.c: of the views of waits. */

/* Frames of the kernel that are the switch's and the tracer's; of the wake-up; of both. */
extern const char *const sb_sched_trim[];
extern const char *const sb_sched_trim_waking[];
extern const char *const sb_sched_trim_both[];

/* Settings and programs that all of them need. Return: 0 or a negative errno. */
int sb_sched_prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts);
/* With these, all of a wait is accounted, the part in the run queue included. */
int sb_sched_prepare_whole(struct sampler_bpf *skel, const struct sb_view_opts *opts);
struct bpf_program *sb_sched_begin(struct sampler_bpf *skel);
struct bpf_program *sb_sched_settle(struct sampler_bpf *skel);

#endif
