/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The process of `stackbpf record` that writes the store, and the only one that may: those that sample lay down
 * the right to make files. It is no sampler, and as root it becomes the owner of the store's directory, without
 * a capability. It believes nothing that samplers send (store/block.h); what all samples have in common it
 * knows itself: kind, host, --tag.
 *
 * A block that cannot be written is kept and tried again with the next one, up to a bound: a full disk ends
 * nothing. It ends when all samplers have; its end is theirs.
 */
#ifndef SB_CLI_RECORDER_KEEPER_H
#define SB_CLI_RECORDER_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/peer.h"
#include "cli/recorder/opts.h"
#include "cli/recorder/watch.h"
#include "store/store.h"

struct sb_keeper_stats {
	uint64_t nr_blocks, nr_bytes; /* written; bytes as they came */
	uint64_t nr_dropped;	  /* blocks that could not be written, and were too many to keep */
	uint64_t nr_refused;	  /* that are none */
	uint64_t nr_other_series; /* whose tags had too many values in a day */
	uint64_t own_ns;	  /* CPU time */
};

/* Fork it. @opts and @watch are borrowed until then. Return: 0 when the store is open; -EBUSY, ... as
 * sb_store_open_to_write(). */
int sb_recorder_keeper_new(const struct sb_recorder_opts *opts, const struct sb_watch *watch,
			   struct sb_peer *ret_peer);
/* What a sampler samples, in the order of its numbers: sb_block_head.kind. */
struct sb_keeper_kinds {
	struct sb_store_kind at[SB_VIEWS_MAX];
	uint32_t nr;
};
/* @fd: of the stream that a sampler of @kinds writes to; the caller keeps it. Return: 0 or a negative errno. */
int sb_recorder_keeper_add(struct sb_peer *peer, const struct sb_keeper_kinds *kinds, int fd);
/* All samplers have ended: wait until all is written. Return: 0; -ECHILD: it had ended. */
int sb_recorder_keeper_end(struct sb_peer *peer, struct sb_keeper_stats *ret_stats);

#endif
