/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Exit statuses of the command line. They are part of the interface and documented in
 * stackbpf(8). */
#ifndef SB_CLI_EXIT_H
#define SB_CLI_EXIT_H

#include "base/log.h"

enum sb_exit {
	SB_EXIT_DATA,	   /* a result was written */
	SB_EXIT_FAILED,	   /* something went wrong at run time */
	SB_EXIT_USAGE,	   /* wrong options */
	SB_EXIT_EMPTY,	   /* nothing was sampled */
	SB_EXIT_PRIVILEGE, /* a privilege or a kernel feature is missing */
	SB_EXIT_NO_TARGET, /* no such process, thread or cgroup */
	SB_EXIT_NO_EXEC = 126,
	SB_EXIT_NO_COMMAND, /* these two as in a shell, for -- CMD */
	SB_EXIT_SIGNAL,	    /* plus the number of the signal */
};

/* Log an error as sb_err() does: a text as for printf(), with the reason of the negative errno @err
 * behind it unless that is 0. Value: @status, so that a command can `return sb_fail(...)`.
 * Thread: any. */
#define sb_fail(status, err, ...) (sb_err(err, __VA_ARGS__), (int)(status))

#endif
