/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads that serve the session. Internal to capture. */
#ifndef SB_CAPTURE_THREAD_H
#define SB_CAPTURE_THREAD_H

#include <pthread.h>

/* Start a thread with all signals blocked, since they are for the main thread. @run calls
 * sb_privileges_thread() first (workers/privileges.h). @name: at most 15 characters. The caller
 * joins it. Return: 0 or a negative errno. */
int sb_thread_start(const char *name, void *(*run)(void *arg), void *arg, pthread_t *ret_thread);

/* Initialise a condition variable whose timed waits use CLOCK_MONOTONIC. */
void sb_cond_init(pthread_cond_t *cond);

/* Raise the priority of the calling thread, if that is allowed: samples wait for what it makes. */
void sb_thread_hurry(void);

#endif
