// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "resolve/idle.h"

#include <fnmatch.h>
#include <stdbool.h>

#include "base/cleanup.h"

/* A condition variable is waited for in one of so many frames next to the kernel. */
#define NR_USER_FRAMES 4u

/*
 * The first rule that fits: `kernel` is matched with the function that called the scheduler, `user`
 * with each of the frames next to the kernel. A mutex is no idle wait: somebody holds it.
 */
static const struct {
	const char *kind, *kernel, *user;
} rules[] = {
	{ "epoll", "ep_poll", NULL },
	{ "epoll", "do_epoll_*wait", NULL },
	{ "poll", "poll_schedule_timeout*", NULL },
	{ "poll", "do_sys_poll", NULL },
	{ "poll", "do_poll*", NULL },
	{ "poll", "do_select*", NULL },
	{ "io_uring", "io_cqring_wait*", NULL },
	{ "accept", "inet_csk_accept", NULL },
	{ "accept", "inet_csk_wait_for_connect", NULL },
	{ "condvar", "futex_*wait*", "*pthread_cond_*wait*" },
	{ "condvar", "futex_*wait*", "*sem_*wait*" },
	{ "condvar", "futex_*wait*", "runtime.notesleep*" },
	{ "condvar", "futex_*wait*", "runtime.notetsleep*" },
	{ "timer", "do_nanosleep", NULL },
	{ "timer", "hrtimer_nanosleep*", NULL },
	{ "timer", "timerfd_read*", NULL },
	{ "signal", "*sys_pause", NULL },
	{ "signal", "sigsuspend*", NULL },
	{ "signal", "do_sigtimedwait*", NULL },
	{ "signal", "signalfd_*", NULL },
	/* threads of the kernel, waiting for work */
	{ "worker", "worker_thread", NULL },
	{ "worker", "rescuer_thread", NULL },
	{ "worker", "kthread_worker_fn", NULL },
	{ "worker", "kthreadd", NULL },
	{ "worker", "smpboot_thread_fn", NULL },
	{ "worker", "rcu_*", NULL },
	{ "worker", "kswapd*", NULL },
	{ "worker", "kcompactd*", NULL },
	{ "worker", "khugepaged*", NULL },
	{ "worker", "kjournald2", NULL },
	{ "worker", "kauditd_thread", NULL },
	{ "worker", "oom_reaper", NULL },
	{ "worker", "watchdog", NULL },
	{ "worker", "irq_thread*", NULL },
	{ "worker", "irq_wait_for_interrupt", NULL },
	{ "worker", "io_wq*_worker", NULL },
	{ "worker", "ksm_scan_thread", NULL },
	{ "worker", "psi_*worker*", NULL },
	{ "worker", "hwrng_fillfn", NULL },
	{ "worker", "scsi_error_handler", NULL },
	{ "worker", "balloon*", NULL },
	{ "worker", "*_kthread", NULL },
};

static bool any_matches(const char *glob, const struct sb_idle_wait *wait)
{
	size_t i;

	for (i = 0; i < wait->nr_user && i < NR_USER_FRAMES; i++)
		if (!fnmatch(glob, wait->user[i], 0))
			return true;
	return false;
}

const char *sb_idle_kind(const struct sb_idle_wait *wait)
{
	size_t i;

	if (!wait->kernel)
		return NULL;
	for (i = 0; i < SB_ARRAY_SIZE(rules); i++)
		if (!fnmatch(rules[i].kernel, wait->kernel, 0) &&
		    (!rules[i].user || any_matches(rules[i].user, wait)))
			return rules[i].kind;
	return NULL;
}
