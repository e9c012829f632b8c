/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Maps and ring buffer -> struct sb_batch. Internal to capture. */
#ifndef SB_CAPTURE_DRAIN_H
#define SB_CAPTURE_DRAIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/num.h"
#include "capture/batch.h"

struct sampler_bpf;
struct sb_rawstacks;
struct sb_drain;

/*
 * Make the second generation of counts, of @counts_max keys like the first. After load.
 * Return: 0 or a negative errno.
 */
int sb_drain_new(struct sampler_bpf *skel, uint32_t counts_max, struct sb_drain **ret_drain);
void sb_drain_free(struct sb_drain *drain);

/* Return: a descriptor that is readable when the BPF side asks to be drained. */
int sb_drain_poll_fd(const struct sb_drain *drain);

/*
 * Swap the generations and read the one that was written, then the stacks. @tgids is appended with
 * processes older than the run that were sampled first. Return: 0 or a negative errno.
 */
int sb_drain_run(struct sb_drain *drain, sb_vec_u32 *tgids);
/* Return: those of the stacks that have to be unwound yet; until the next run. */
const struct sb_rawstacks *sb_drain_raw(const struct sb_drain *drain);
/* Add a stack; its frames are copied. @arg is the drain. Return: 0 or -ENOMEM. */
int sb_drain_add(void *arg, const struct sb_batch_stack *stack);
/* The same between two runs: it is among the stacks of the next one. */
int sb_drain_add_early(void *arg, const struct sb_batch_stack *stack);
/* All that the last run and additions gave; valid until the next of either. */
void sb_drain_batch(struct sb_drain *drain, struct sb_batch *ret_batch);

#endif
