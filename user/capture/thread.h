/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads that serve the session. Internal to capture. */
#ifndef SB_CAPTURE_THREAD_H
#define SB_CAPTURE_THREAD_H

#include <pthread.h>

/* Start a thread that takes no signals: they are for the thread that made us. It calls
 * sb_privileges_thread() first (capture/privileges.h). @name: 15 characters.
 * Return: 0 or a negative errno. */
int sb_thread_start(const char *name, void *(*run)(void *arg), void *arg, pthread_t *ret_thread);

/* A condition whose timed waits are by CLOCK_MONOTONIC. */
void sb_cond_init(pthread_cond_t *cond);

/* The calling thread goes before others, where that is allowed: what it makes is waited for. */
void sb_thread_hurry(void);

#endif
