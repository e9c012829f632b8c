/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Labels that programs set on their threads (sb_abi_label.h), for core. Implemented in
 * core/label.bpf.c; runs in BPF programs. @slot: enum sb_scratch_slot of the calling program.
 */
#ifndef SB_LABEL_BPF_H
#define SB_LABEL_BPF_H

#include "bpf/core/sb_stack.bpf.h"

/* Return: whether the run asks for labels. */
int sb_labels_are_on(void);
/*
 * Read the labels of the current thread, write the ID of the set into the key of the record of
 * @slot (enum sb_scratch_slot), and ship a new set. The ID stays 0 if there are no labels. Labels
 * that cannot be read, do not fit or cannot be shipped are counted (SB_STAT_LABELS_*).
 * To be called after sb_interp_start(), which finds out whether the process has labels. Return: 1;
 * 0: it has none.
 */
int sb_labels_take(__u32 slot);
/* sb_labels_span(): the labels could not be read just now. Values are odd. */
#define SB_LABELS_UNSURE (~0ull - 1)
/*
 * Look at the label of the current thread on which spans depend, and find the goroutine as
 * sb_labels_find_goroutine() does. The key of the record of @slot must say which process it is.
 * Return: a hash of the value; 0: it has none; SB_LABELS_UNSURE.
 */
__u64 sb_labels_span(__u32 slot);
/* Find the goroutine that the current thread runs, if its process has any, in labels.goroutine of the
 * record of @slot. The key of the record must say which process it is. Return: 0. */
int sb_labels_find_goroutine(__u32 slot);
/*
 * Write an ID for the set of labels into the key of a thread that sleeps, derived from
 * @key->ustack, which must be set; user space reads the labels under this ID. Does nothing if the
 * run asks for no labels.
 */
void sb_labels_name_asleep(struct sb_sample_key *key);

#endif
