/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between the parts of `snap`: cmd_snap.c finds a stack for each thread, snap_write.c writes them. */
#ifndef SB_CLI_SNAP_H
#define SB_CLI_SNAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/vec.h"
#include "cli/opts.h"
#include "model/profile.h"
#include "output/output.h"
#include "sb_abi.h"

struct sb_snap_thread {
	uint32_t tgid, tid;
	char comm[SB_COMM_LEN + 1];
	uint32_t state; /* enum sb_task_state; SB_STATE_NONE: no stack was found */
	char idle[24];	/* "epoll": what it waits for, if it is a worker without work; or empty */
	char lock[24];	/* "mutex": what kind of lock it waits for; or empty */
	/* Frames, root first, numbers in the profile; of the sample of this weight. */
	const uint32_t *ids;
	size_t nr_ids;
	uint64_t weight;
};

/* What its formats are given as their options, beside the profile that has the frames. */
struct sb_snap {
	struct sb_output_opts opts;	       /* first */
	SB_VEC(struct sb_snap_thread) threads; /* by process and thread */
	bool group;			       /* threads of equal stacks together */
};

/* Return: the format of that name, of profiles with a struct sb_snap only; NULL: there is none. */
const struct sb_output *sb_snap_format(const char *name);
/* Words of the option. */
extern const struct sb_opt_word sb_snap_formats[];

#endif
