/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sink of a sampler of `stackbpf record`: at each multiple of 10 s of wall-clock time it sends
 * a block of samples to the store writer, one for each kind of profile. See recorder.c for the
 * processes.
 *
 * The duration of a block is measured with CLOCK_MONOTONIC; its begin is the wall-clock time at
 * that moment. When the clock is set, the block ends at once: samples before it keep their time,
 * later ones have the new time. Blocks of the same time add up.
 *
 * Order: sb_blocks_new(), sb_run_go() with sb_blocks_sink(), sb_blocks_flush() if the run has begun
 * to sample, sb_run_release(), sb_blocks_free(). One thread: that of the run. Pointers are not NULL
 * unless it says so.
 */
#ifndef SB_RECORDER_BLOCKS_H
#define SB_RECORDER_BLOCKS_H

#include "recorder/watchdog.h"
#include "run/run.h"

struct sb_blocks;

/* What the recorder tells a sampler, one word each. The end of the stream means SB_BLOCKS_END as
 * well. */
enum sb_blocks_order {
	SB_BLOCKS_END,
	SB_BLOCKS_TAKE, /* send what the block has by now; a further block has the rest of it */
};

struct sb_blocks_opts {
	int orders_fd;	   /* of a struct sb_peer; borrowed */
	int writer_fd;	   /* stream of messages as in store/block.h; made non-blocking; borrowed */
	uint32_t nr_kinds; /* views of the run: 1 to SB_VIEWS_MAX, which is not checked */
	const struct sb_recorder_config *config; /* borrowed */
	/* Called once, in the run, when all is attached. */
	void (*on_ready)(void *arg);
	void *arg;		      /* may be NULL */
	const struct sb_watch *watch; /* borrowed: receives a sign of life about once a second */
	size_t part;		      /* of this sampler in the watch */
};

/* Make the sink, before the run. @opts is copied; what it points to is borrowed until
 * sb_blocks_free(), which does not close the descriptors in it. Return: 0 and *ret_blocks, owned by
 * the caller; -ENOMEM or a negative errno of making descriptors, and it is untouched. */
int sb_blocks_new(const struct sb_blocks_opts *opts, struct sb_blocks **ret_blocks);
/* Free the sink; NULL is allowed. Blocks that were not sent are lost. */
void sb_blocks_free(struct sb_blocks *blocks);

/* Return: the sink for sb_run_go(), valid as long as @blocks. */
struct sb_run_sink *sb_blocks_sink(struct sb_blocks *blocks);
/* Wait until the socket has taken all blocks, at most 10 s; whether the writer has read them is not
 * known. It ends no block: sb_run_go() has ended the last one. Return: 0; -ETIMEDOUT; -ECHILD when
 * the writer has ended; after an error blocks are lost, and the sink is only to be freed. */
int sb_blocks_flush(struct sb_blocks *blocks);

#endif
