/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Targets -> settings and maps of the BPF side. Internal to capture. */
#ifndef SB_CAPTURE_TARGETS_H
#define SB_CAPTURE_TARGETS_H

#include <stdint.h>

#include "capture/session.h"

struct sampler_bpf;

/* Compile a glob of * and ?. Return: 0, or -E2BIG when it has too many positions. */
int sb_comm_matcher_init(struct sb_comm_matcher *matcher, const char *glob, uint32_t rule);

/* Between open and load. Errors are logged. Return: 0 or a negative errno. */
int sb_targets_prepare(const struct sb_targets *targets, struct sampler_bpf *skel);
/* After load, before anything is attached: fill the maps; -ESRCH for a process there is not. */
int sb_targets_apply(const struct sb_targets *targets, struct sampler_bpf *skel);
/* After the fork hook is attached: children that targets already have. */
int sb_targets_follow_existing(const struct sb_targets *targets, struct sampler_bpf *skel);
/* Let one more process in. */
int sb_targets_add(struct sampler_bpf *skel, uint32_t tgid, uint32_t rule);

#endif
