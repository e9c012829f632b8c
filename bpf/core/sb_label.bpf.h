/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Labels that programs set on their threads (sb_abi_label.h), for core. Implemented in
 * core/label.bpf.c; runs in BPF programs. @slot: enum sb_scratch_slot of the calling program, whose
 * record (struct sb_scratch of this CPU and kind of program) holds the state, in `labels`, and the
 * key of the sample, in which tgid, start_ns and exec_id are set before (by sb_begin()). A slot
 * that does not exist has no labels. Where sb_interp_start() finds a process that is not known yet,
 * it asks user space, and the process has no labels in this sample.
 */
#ifndef SB_LABEL_BPF_H
#define SB_LABEL_BPF_H

#include "bpf/core/sb_stack.bpf.h"

/* Return: 1 if the run asks for labels, or needs them for spans; 0 if not. */
int sb_labels_are_on(void);
/*
 * After sb_interp_start(), which finds out whether the process has labels: read those of the
 * current thread, write the ID of the set into the key of the record of @slot, and ship a new set.
 * The ID stays as it is, 0, if there are no labels; it is written also if the set cannot be
 * shipped, and then the next sample with this set tries again. Labels that cannot be read, do not
 * fit or cannot be shipped are counted (SB_STAT_LABELS_*).
 * Return: 1, whether the thread has any or not; 0: the process has none, or the run asks for none.
 */
int sb_labels_take(__u32 slot);
/* sb_labels_span(): the labels could not be read just now, or were being changed, or the current
 * thread has none because it is the kernel's or runs no goroutine. Values are odd, this is not. */
#define SB_LABELS_UNSURE (~0ull - 1)
/*
 * Look at the label of the current thread on which spans depend, and find the goroutine as
 * sb_labels_find_goroutine() does. Calls sb_interp_start(), and leaves the ID of labels in the key
 * 0. Return: a hash of the value; 0: it has none, or spans do not depend on labels;
 * SB_LABELS_UNSURE: it may have one: its labels cannot be read or are being changed, it runs code
 * of Go outside of a goroutine, or it is a thread of the kernel. The caller passes the result, also
 * 0 and SB_LABELS_UNSURE, to sb_span_follow(), which begins and ends spans.
 */
__u64 sb_labels_span(__u32 slot);
/*
 * Find the goroutine that the current thread runs, for spans of goroutines: calls
 * sb_interp_start(), and sets labels.goroutine of the record of @slot to the address of its `g`; 0:
 * it runs none, or it cannot be read. Does nothing if no spans of the run are calls of goroutines.
 * Then sb_span_of_current() finds the span. Return: 0.
 */
int sb_labels_find_goroutine(__u32 slot);
/*
 * Write an ID for the set of labels of a thread that sleeps into @key->labels. It is derived from
 * @key->ustack, which must be set: sb_take_asleep() sets it, and calls this. User space reads the
 * labels, and stores them under this ID. Does nothing if the run asks for no labels. @key is not
 * NULL, and is not kept.
 */
void sb_labels_name_asleep(struct sb_sample_key *key);

#endif
