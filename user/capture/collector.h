/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A thread that drains the BPF side while the session's thread is busy. Finding the names of one
 * batch may take seconds, since symbols and debug data of large files are loaded (up to 12 s by
 * symbolizer/elf/budget.h). Without this thread, the maps of counts would fill up meanwhile, and
 * samples would be lost. Internal to capture. Both functions are called by the session's thread.
 */
#ifndef SB_CAPTURE_COLLECTOR_H
#define SB_CAPTURE_COLLECTOR_H

struct sb_collector;
struct sb_drain;

/* Start the thread, which calls sb_drain_collect() when the maps fill up and the session's thread
 * has not drained them within 10 ms; after an error of sb_drain_collect() other than -EAGAIN and
 * -ENOMEM, which the next sb_drain_run() returns, it reads no more, and sb_collector_free() is
 * still due. Call it before sb_privileges_settle() (workers/privileges.h), as all threads. @drain
 * is borrowed, and must outlive it. The caller ends *ret_collector with sb_collector_free().
 * Return: 0; -ENOMEM; or a negative errno of making a descriptor or the thread; there is nothing to
 * free then, and *ret_collector is untouched. */
int sb_collector_new(struct sb_drain *drain, struct sb_collector **ret_collector);
/* End the thread, wait for it, also for a read that it is in, and free. Accepts NULL. */
void sb_collector_free(struct sb_collector *collector);

#endif
