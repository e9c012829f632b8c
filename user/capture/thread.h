/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads that serve the session. Internal to capture. Thread: any. No pointer may be NULL but
 * @arg. */
#ifndef SB_CAPTURE_THREAD_H
#define SB_CAPTURE_THREAD_H

#include <pthread.h>

/* Start a thread with all signals blocked, since they are for the main thread. @run must first call
 * sb_privileges_thread() (workers/privileges.h), for which sb_privileges_settle() waits. @name: at
 * most 15 characters, copied. The caller joins it. Return: 0; or a negative errno of
 * pthread_create(3), mostly -EAGAIN: there is no thread, and *ret_thread is undefined. */
int sb_thread_start(const char *name, void *(*run)(void *arg), void *arg, pthread_t *ret_thread);

/* Initialise a condition variable whose timed waits use CLOCK_MONOTONIC; the caller destroys it. */
void sb_cond_init(pthread_cond_t *cond);

/* Raise the priority of the calling thread, if that is allowed: samples wait for what it makes. If
 * not, nothing happens. Call it before sb_privileges_thread(), which drops CAP_SYS_NICE. */
void sb_thread_hurry(void);

#endif
