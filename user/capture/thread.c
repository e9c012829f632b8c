// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/thread.h"

#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "workers/privileges.h"

/* They work for milliseconds, while every sample waits for what they make. */
#define NICE (-10)

void sb_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

void sb_thread_hurry(void)
{
	/* Of this thread only: on Linux, and says setpriority(2). Refused without CAP_SYS_NICE. */
	(void)setpriority(PRIO_PROCESS, 0, NICE);
}

int sb_thread_start(const char *name, void *(*run)(void *arg), void *arg, pthread_t *ret_thread)
{
	sigset_t all, before;
	int err;

	/* A new thread inherits the mask. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	sb_privileges_thread_begins();
	err = pthread_create(ret_thread, NULL, run, arg);
	if (err)
		sb_privileges_thread_done(0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		pthread_setname_np(*ret_thread, name);
	return -err;
}
