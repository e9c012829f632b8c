/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the parts of `snap`: cmd_snap.c finds a stack for each thread, fills a struct sb_snap,
 * and gives it to the write() of a format, which is in snap_write.c. One thread. Pointers are not
 * NULL unless it says so. */
#ifndef SB_CLI_SNAP_H
#define SB_CLI_SNAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "bpf/abi/sb_abi.h"
#include "cli/opts.h"
#include "model/profile.h"
#include "output/output.h"

struct sb_snap_thread {
	uint32_t tgid, tid;
	char comm[SB_COMM_LEN + 1];
	uint32_t state;	  /* enum sb_task_state; SB_STATE_NONE: no stack was found */
	const char *idle; /* "epoll": what an idle worker waits for; NULL: it is none */
	const char *lock; /* "mutex": the kind of lock that it waits for; NULL: it waits for none */
	/* The frames, root first, as numbers in the profile; and the weight of that sample. Strings
	 * belong to the profile. */
	const uint32_t *ids;
	size_t nr_ids;
	uint64_t weight;
};

/* The options that snap passes to its own output formats. */
struct sb_snap {
	struct sb_output_opts opts;	       /* first */
	SB_VEC(struct sb_snap_thread) threads; /* sorted by process and thread */
	bool group;			       /* show threads with equal stacks together */
};

/* Return: the format named @name, which is not NULL; its write() needs the `opts` of a struct
 * sb_snap as its options; static; NULL: there is none. */
const struct sb_output *sb_snap_format(const char *name);
/* Their names, for SB_OPT_WORD. */
extern const struct sb_opt_word sb_snap_formats[];

#endif
