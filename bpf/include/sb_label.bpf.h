/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Labels of threads: what core calls. */
#ifndef SB_LABEL_BPF_H
#define SB_LABEL_BPF_H

#include "sb_stack.bpf.h"

/* Return: whether the run asks for labels. */
int sb_labels_are_on(void);
/* After sb_interp_start(), which finds out whether the process has any: those of the current thread into the
 * key. */
int sb_labels_take(__u32 slot);
/* The same for a thread that sleeps, and whose labels user space is to read: a name, for now. */
void sb_labels_name_asleep(struct sb_sample_key *key);

#endif
