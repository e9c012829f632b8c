/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes the targets of a run into the settings and maps of the BPF side. Internal to capture; the
 * session's thread. No pointer may be NULL but @reason, and none is kept. Order:
 * sb_targets_prepare() -> load -> sb_targets_apply() -> attach the fork hook ->
 * sb_targets_follow_existing() -> attach the others. After an error the run is given up. */
#ifndef SB_CAPTURE_TARGETS_H
#define SB_CAPTURE_TARGETS_H

#include <stdint.h>

#include "capture/session.h"

struct sampler_bpf;

/* Compile a glob for names of threads, which has to match the whole name: * stands for any number
 * of bytes, ? for one, every other byte for itself. @glob is not kept. @rule: SB_RULE_ALLOW or
 * SB_RULE_DENY. Return: 0; -E2BIG when it has more than SB_GLOB_POSITIONS_MAX bytes, repeated * not
 * counted: @matcher is undefined. A matcher owns no memory and needs no release; it is one of the
 * settings of the BPF side (cfg_comm_rules), where sb_targets_prepare() makes it. */
int sb_comm_matcher_init(struct sb_comm_matcher *matcher, const char *glob, uint32_t rule);

/* Write the settings and map sizes. Return: 0; -E2BIG: a glob is too long; or a negative errno of
 * libbpf; both with the cause in @reason: @skel is not to be loaded then. */
int sb_targets_prepare(const struct sb_targets *targets, struct sampler_bpf *skel,
		       struct sb_reason *reason);
/* Fill the maps, also with a rule that denies this process and its helper processes, and, unless it
 * has one of its own, with a neutral rule for @command_tgid, the command of the run (0: none), so
 * that it does not get that of this process. Return: 0; -ESRCH when a process, thread or cgroup
 * does not exist; or another negative errno of bpf(2) or of opening a cgroup. On error the cause is
 * in @reason, and the maps are incomplete. */
int sb_targets_apply(const struct sb_targets *targets, uint32_t command_tgid,
		     struct sampler_bpf *skel, struct sb_reason *reason);
/* With follow_children, add the existing descendants of targets. If @targets may select them, deny
 * the existing helper processes: the descendants of this process that run the same program. The
 * fork hook is attached, so that none is missed, but no hook that takes samples, so that no helper
 * process is sampled. *ret_nr_left_out, set in any case: processes for which the table of targets
 * has no room; their own descendants are not followed and not counted. Return: 0; -ENOMEM; -EMFILE
 * or -ENFILE; or another negative errno of listing or reading /proc. After an error, the processes
 * that were found until then are in the table of targets. */
int sb_targets_follow_existing(const struct sb_targets *targets, struct sampler_bpf *skel,
			       uint64_t *ret_nr_left_out);

#endif
