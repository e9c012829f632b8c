/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which signals ask a program to end, and which one must not end it. Thread: any. */
#ifndef SB_BASE_SIGNALS_H
#define SB_BASE_SIGNALS_H

#include <signal.h>
#include <stddef.h>

/* Add SIGINT, SIGTERM and SIGHUP to @set, which is initialised and not NULL. SIGHUP comes when a
 * terminal is closed; where it is ignored, as under nohup(1), it is not added. */
static inline void sb_signals_add_ends(sigset_t *set)
{
	struct sigaction hangup;

	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	/* A blocked signal comes to a signalfd(2) even if it is ignored. */
	if (sigaction(SIGHUP, NULL, &hangup) || hangup.sa_handler != SIG_IGN)
		sigaddset(set, SIGHUP);
}

static inline void sb_signals_do_nothing(int sig) {}

/* Have write(2) return EFBIG at the limit of a file's size (ulimit -f), where SIGXFSZ would end the
 * program without a word. execve(2) resets handlers, so that commands are not changed. */
static inline void sb_signals_survive_limit(void)
{
	const struct sigaction action = { .sa_handler = sb_signals_do_nothing };
	struct sigaction before;

	if (!sigaction(SIGXFSZ, NULL, &before) && before.sa_handler == SIG_DFL)
		(void)sigaction(SIGXFSZ, &action, NULL);
}

#endif
