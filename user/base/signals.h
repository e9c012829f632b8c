/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which signals ask a program to end. Thread: any. */
#ifndef SB_BASE_SIGNALS_H
#define SB_BASE_SIGNALS_H

#include <signal.h>

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

#endif
