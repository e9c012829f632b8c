/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Brings in pages of user stacks that were not in memory, so that the next walk in the kernel finds
 * them. It has a thread of its own, because a page may come from a slow disk, or never, if the
 * process serves it by userfaultfd(2) or FUSE and does not. Then only this thread waits. No pointer
 * may be NULL unless a contract says so. Thread: any; the unwinder calls new and free on the
 * session's.
 */
#ifndef SB_CAPTURE_UWTOUCH_H
#define SB_CAPTURE_UWTOUCH_H

#include <stdint.h>

struct sb_uwtouch;

/*
 * Start the thread, before sb_privileges_settle() (workers/privileges.h): it drops its privileges
 * itself and keeps those of SB_ROLE_READER. The caller ends *ret_touch with sb_uwtouch_free().
 * Return: 0; -ENOMEM; or a negative errno of pthread_create(3); *ret_touch is untouched then.
 */
int sb_uwtouch_new(struct sb_uwtouch **ret_touch);
/* End the thread and free; requests that wait are dropped. It does not wait for a page that the
 * thread is just bringing in: the thread is then detached, and frees its memory when it ends. No
 * other thread may use @touch any more. Accepts NULL. */
void sb_uwtouch_free(struct sb_uwtouch *touch);

/* Request the page that has the address @addr of process @tgid. Does not block. Return: 0, whether
 * it will come or not; -EAGAIN when the queue is full. */
int sb_uwtouch_ask(struct sb_uwtouch *touch, uint32_t tgid, uint64_t addr);

/* Return: how many pages were brought in so far. */
uint64_t sb_uwtouch_nr_touched(struct sb_uwtouch *touch);

#endif
