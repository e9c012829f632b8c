/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Labels that programs set on their threads (sb_abi_label.h), for core. Implemented in
 * core/label.bpf.c; runs in BPF programs.
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
 * To be called after sb_interp_start(), which finds out whether the process has labels. Return: 0.
 */
int sb_labels_take(__u32 slot);
/*
 * Write an ID for the set of labels into the key of a thread that sleeps, derived from
 * @key->ustack, which must be set; user space reads the labels under this ID. Does nothing if the
 * run asks for no labels.
 */
void sb_labels_name_asleep(struct sb_sample_key *key);

#endif
