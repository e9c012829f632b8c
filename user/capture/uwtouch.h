/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Brings in pages of stacks that the walk in the kernel found not to be there, so that the next
 * walk finds them. A thread of its own: a page may come from a slow disk, or never, if the process
 * has it served by userfaultfd(2) or FUSE and does not serve it. Then this thread alone waits.
 */
#ifndef SB_CAPTURE_UWTOUCH_H
#define SB_CAPTURE_UWTOUCH_H

#include <stdint.h>

struct sb_uwtouch;

int sb_uwtouch_new(struct sb_uwtouch **ret_touch);
/* Does not wait for a page that does not come: the thread is left to its fate, with its memory. */
void sb_uwtouch_free(struct sb_uwtouch *touch);

/* Ask for the page at @addr of @tgid. Return: 0; -EAGAIN: too many are asked for already. */
int sb_uwtouch_ask(struct sb_uwtouch *touch, uint32_t tgid, uint64_t addr);

/* Return: how many were brought in. */
uint64_t sb_uwtouch_nr_touched(struct sb_uwtouch *touch);

#endif
