/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads what the BPF side counted, from maps and the ring buffer, into a struct sb_batch. Internal
 * to capture.
 *
 * Counts have two maps ("generations"), of which the BPF side writes one while the other is read.
 * Thread: the session's, unless said otherwise. No pointer may be NULL unless a contract says so.
 */
#ifndef SB_CAPTURE_DRAIN_H
#define SB_CAPTURE_DRAIN_H

#include <stddef.h>
#include <stdint.h>

#include "capture/batch.h"

struct sampler_bpf;
struct sb_rawstacks;
struct sb_resident;
struct sb_drain;

/*
 * Make a drain. The second map of counts gets @counts_max entries, as many as the first was loaded
 * with, at least one. @early_bytes_max: SB_DRAIN_EARLY_BYTES_*. Call it after load; @skel is
 * borrowed until sb_drain_free(), with which the caller ends *ret_drain.
 * Return: 0; -ENOMEM; or a negative errno of making a map or reading a ring; *ret_drain is
 * untouched then.
 */
int sb_drain_new(struct sampler_bpf *skel, uint32_t counts_max, size_t early_bytes_max,
		 struct sb_drain **ret_drain);
/* Free it, when no other thread uses it any more. Accepts NULL. */
void sb_drain_free(struct sb_drain *drain);

/* Return: a descriptor, owned by the drain, that is readable when the BPF side asks to be
 * drained. */
int sb_drain_poll_fd(const struct sb_drain *drain);

/* When sb_drain_collect() keeps so much, it reads no more; the last reading may exceed it by what
 * the maps had. Further data stay in the kernel's maps, and are lost when these are full. */
#define SB_DRAIN_EARLY_BYTES_MAX     ((size_t)64 << 20)
/* The same for a long run. Stacks are evicted some batches later at the earliest, so that a machine
 * on which batches are large has several times as much in memory. */
#define SB_DRAIN_EARLY_BYTES_LASTING ((size_t)8 << 20)

/*
 * Swap the maps of counts, read the one that was written, then read stacks and objects from the
 * ring. The result, together with what sb_drain_collect() has read, is the next batch
 * (sb_drain_batch()), and ends the one before. A record of the ring for which there is no memory is
 * dropped and counted (sb_drain_stats()), and the BPF side ships its stack or object again. Return:
 * 0; -ENOMEM: counts are still in the maps; -EBADMSG: a record of the ring has a wrong size or
 * kind, and was dropped; or a negative errno of bpf(2), also of a sb_drain_collect() before. What
 * was read before the error is in the batch, which has replaced the one before, and the next run
 * goes on.
 */
int sb_drain_run(struct sb_drain *drain);
/*
 * Read counts, stacks and objects as sb_drain_run() does, but early: they are kept for the next
 * sb_drain_run(), and the last batch stays valid. Thread: any. Return: 0; -EAGAIN: what is kept
 * early has reached its limit (@early_bytes_max of sb_drain_new()), and nothing was read; -ENOMEM:
 * counts are still in the maps, and the call can be repeated; -EBADMSG for a malformed record, or
 * a negative errno of bpf(2), which the next sb_drain_run() returns again.
 */
int sb_drain_collect(struct sb_drain *drain);
/* Return: how many calls of sb_drain_run() have ended, so that one can tell whether there was one
 * in between. Thread: any. */
uint64_t sb_drain_nr_runs(const struct sb_drain *drain);

struct sb_drain_stats {
	uint64_t nr_early;	  /* early reads */
	uint64_t nr_early_full;	  /* early reads for which there was no room */
	uint64_t nr_lost_records; /* records of the ring that were dropped for lack of memory */
};
/* Get the figures so far. Thread: any. */
void sb_drain_stats(struct sb_drain *drain, struct sb_drain_stats *ret_stats);

/* Get the processes that are older than the session and that the last run saw sampled for the first
 * time, for sb_symbolizer_seed_unknown(): no event has told of their mappings. Return: an array of
 * *@ret_nr tgids, valid until the next run; may be NULL if *@ret_nr is 0. */
const uint32_t *sb_drain_processes(const struct sb_drain *drain, size_t *ret_nr);
/* Return: of the last run, valid until the next: stacks that have yet to be unwound; never NULL,
 * but there may be none, as before the first run. They are added by sb_drain_add() when they are
 * unwound. */
const struct sb_rawstacks *sb_drain_raw(const struct sb_drain *drain);
/* Add a stack to the batch of the last run; its frames are copied. @arg: the drain. Return: 0;
 * -ENOMEM: nothing was added. */
int sb_drain_add(void *arg, const struct sb_batch_stack *stack);
/* Add a stack to the batch of the next run; its frames are copied. @arg: the drain. Thread: any.
 * Return: 0; -ENOMEM: nothing was added. */
int sb_drain_add_early(void *arg, const struct sb_batch_stack *stack);
/* Hand the page faults of the last run to @resident, and add its counts to the batch; once for each
 * run, before sb_drain_batch(). Return: 0; -ENOMEM: faults or counts are missing from the batch,
 * and a second call does not bring them. */
int sb_drain_resident(struct sb_drain *drain, struct sb_resident *resident);
/* Add a count to the last run's, before sb_drain_batch(). Return: 0; -ENOMEM: it was not added. */
int sb_drain_add_count(struct sb_drain *drain, const struct sb_batch_count *count);
/* Return: the sum of the weights of the last run's counts that are of the view with index @view. */
uint64_t sb_drain_weight(const struct sb_drain *drain, uint32_t view);
/* Remove the counts of all other views from the batch, before sb_drain_batch(). */
void sb_drain_keep(struct sb_drain *drain, uint32_t view);
/* Get the batch: counts, stacks and objects of the last run, and what sb_drain_add() added to it.
 * Labels are set to none. Before the first run it is empty. It is borrowed, valid until the next
 * sb_drain_run(), sb_drain_add() or sb_drain_resident(); sb_drain_collect() and
 * sb_drain_add_early() of other threads do not touch it. */
void sb_drain_batch(struct sb_drain *drain, struct sb_batch *ret_batch);

#endif
