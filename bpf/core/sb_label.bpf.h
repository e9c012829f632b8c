/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Labels of threads, for core. Implemented in core/label.bpf.c. */
#ifndef SB_LABEL_BPF_H
#define SB_LABEL_BPF_H

#include "bpf/core/sb_stack.bpf.h"

/* Return: whether the run asks for labels. */
int sb_labels_are_on(void);
/*
 * Read the labels of the current thread, write the ID of the set into the key, and ship a new set.
 * To be called after sb_interp_start(), which finds out whether the process has labels. Return: 0.
 */
int sb_labels_take(__u32 slot);
/* Write an ID into the key of a thread that sleeps; user space reads its labels. */
void sb_labels_name_asleep(struct sb_sample_key *key);

#endif
