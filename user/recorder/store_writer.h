/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The store writer: the process of `stackbpf record` that writes the store. It is the only one that
 * may create files; samplers drop that right. It does not sample, and if it was root it becomes the
 * owner of the store's directory, without capabilities. It checks all that samplers send
 * (store/block.h); what all samples have in common it knows itself: kind, host, --tag.
 *
 * A block that cannot be written is kept, up to a bound, and tried again with the next one, so that
 * a full disk does not end the recording. The store writer ends when all samplers have ended.
 *
 * Order: sb_store_writer_new(), sb_store_writer_add() for each sampler when it starts, also for one
 * that is started again, and sb_store_writer_end(). The functions are called by the recorder
 * process, which has one thread; struct sb_peer is its connection to the writer. -ECHILD means that
 * the writer has ended; sb_store_writer_end() is due all the same. Pointers are not NULL.
 */
#ifndef SB_RECORDER_STORE_WRITER_H
#define SB_RECORDER_STORE_WRITER_H

#include <stdint.h>

#include "base/peer.h"
#include "recorder/recorder.h"
#include "recorder/watchdog.h"
#include "store/store.h"

/* Fork the process and wait until it has opened the store. @opts and @watch are borrowed until it
 * returns; the child process has copies. *ret_peer is owned by the caller. Return: 0; -EBUSY if
 * another process writes; -ENOTEMPTY if the directory is not a store, but has files; -EPROTO if the
 * store is of another version; -ECHILD; -ENOMEM; other negative errnos of making or opening the
 * store, dropping privileges, or fork(2). On error the process has ended, and *ret_peer, which is
 * untouched or zeroed, needs no sb_store_writer_end(). */
int sb_store_writer_new(const struct sb_recorder_config *opts, const struct sb_watch *watch,
			struct sb_peer *ret_peer);
/* The kinds of profiles of one sampler, indexed by sb_block_head.kind. */
struct sb_store_writer_kinds {
	struct sb_store_kind at[SB_VIEWS_MAX];
	uint32_t nr;
};
/* Announce a sampler. @kinds: copied. @fd: the receiving end of its stream of blocks; the writer
 * gets a copy, and the caller closes its own, also on error. It does not wait for the writer.
 * Return: 0; -ECHILD; or another negative errno of sendmsg(2), such as -EAGAIN when the writer has
 * not read what was sent before; nothing was announced then, and it may be called again. */
int sb_store_writer_add(struct sb_peer *peer, const struct sb_store_writer_kinds *kinds, int fd);
/* After all samplers have ended: wait until everything is written, and release @peer, in any case.
 * Blocks that were kept are tried once more; what the disk does not take is then dropped, and
 * counted in ret_stats->nr_dropped. Return: 0; -ECHILD when the process had ended, or another
 * negative errno of the socket, and @ret_stats is untouched. */
int sb_store_writer_end(struct sb_peer *peer, struct sb_recorder_stats *ret_stats);

#endif
