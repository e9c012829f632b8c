/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a sampler of `stackbpf record` does with its samples: at each multiple of 10 s of the clock on the wall
 * a block of them goes to the process that writes, one for each kind. See cmd_recorder.c for who there is.
 *
 * Time of a block is what CLOCK_MONOTONIC says; when it began is what the clock on the wall said then. When
 * that clock is set, the block ends at once: what was sampled before it keeps its time, what comes has the new
 * one. Blocks of one time add up.
 */
#ifndef SB_CLI_RECORDER_BLOCKS_H
#define SB_CLI_RECORDER_BLOCKS_H

#include "cli/record.h"
#include "cli/recorder/watch.h"

struct sb_blocks;

/* What is said to a sampler, one word each. No more to come is the end, too. */
enum sb_blocks_order {
	SB_BLOCKS_END,
	SB_BLOCKS_TAKE, /* send what there is of this block, and go on with it */
};

struct sb_blocks_opts {
	int orders_fd;	   /* of struct sb_peer; borrowed */
	int keeper_fd;	   /* a stream of messages, store/block.h; made non-blocking; borrowed */
	uint32_t nr_kinds; /* views of the run */
	bool by_thread;
	const char *const *labels; /* keys, borrowed */
	size_t nr_labels;
	/* When all is attached. */
	void (*on_ready)(void *arg);
	void *arg;
	const struct sb_watch *watch; /* borrowed: who is told that we go on, */
	size_t part;		      /* and what we are there */
};

int sb_blocks_new(const struct sb_blocks_opts *opts, struct sb_blocks **ret_blocks);
void sb_blocks_free(struct sb_blocks *blocks);

/* For struct sb_run; as long as @blocks. */
struct sb_run_sink *sb_blocks_sink(struct sb_blocks *blocks);
/* After the run: wait until the writer has all that is left, some seconds at most. Return: 0, -ETIMEDOUT, or
 * -ECHILD: it has gone. */
int sb_blocks_flush(struct sb_blocks *blocks);

struct sb_blocks_stats {
	uint64_t nr_blocks, nr_dropped; /* dropped: the writer did not take them */
	uint64_t nr_restarts;		/* of tables that had grown too big */
};
void sb_blocks_stats(const struct sb_blocks *blocks, struct sb_blocks_stats *ret_stats);

#endif
