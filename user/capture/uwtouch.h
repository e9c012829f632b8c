/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Brings in pages of user stacks that were not in memory, so that the next walk in the kernel finds
 * them. It has a thread of its own, because a page may come from a slow disk, or never, if the
 * process serves it by userfaultfd(2) or FUSE and does not. Then only this thread waits.
 */
#ifndef SB_CAPTURE_UWTOUCH_H
#define SB_CAPTURE_UWTOUCH_H

#include <stdint.h>

struct sb_uwtouch;

/* Start the thread. Return: 0 or a negative errno. */
int sb_uwtouch_new(struct sb_uwtouch **ret_touch);
/* Does not wait for a page that does not come: the thread is then detached, and frees its memory
 * when it ends. */
void sb_uwtouch_free(struct sb_uwtouch *touch);

/* Request the page at @addr of @tgid. Any thread; does not block. Return: 0; -EAGAIN when the queue
 * is full. */
int sb_uwtouch_ask(struct sb_uwtouch *touch, uint32_t tgid, uint64_t addr);

/* Return: how many pages were brought in. */
uint64_t sb_uwtouch_nr_touched(struct sb_uwtouch *touch);

#endif
