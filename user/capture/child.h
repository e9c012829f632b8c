/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The command of `-- CMD`: made first, so that it can be made a target, and let go when sampling
 * has begun, so that it is seen from its first instruction:
 *
 *	new (it exists and waits) -> start (it becomes the command) -> fd is readable -> wait
 *
 * It runs as the user behind sudo, with the environment such a user has, and with the signal
 * mask and dispositions that we had at sb_child_new(): make it before changing them, and before
 * there are threads or descriptors which it must not inherit. Its stdin, stdout, stderr and
 * working directory are ours. If we die before the start, it ends without having run anything.
 */
#ifndef SB_CAPTURE_CHILD_H
#define SB_CAPTURE_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/fs.h"

struct sb_child;

/*
 * @argv is NULL-terminated, looked up in $PATH by the new user, and copied nowhere: it must live
 * until the start. @owner is who it runs as; the same as we are: nothing is changed.
 * Return: 0, -ENOMEM, or what fork(2), pipe(2), pidfd_open(2) fail with.
 */
int sb_child_new(char *const *argv, struct sb_owner owner, struct sb_child **ret_child);

pid_t sb_child_pid(const struct sb_child *child);

/* Return: a descriptor which is readable once it has ended; owned by the child. */
int sb_child_fd(const struct sb_child *child);

/*
 * Let it go. Return: 0 when the command runs, or why it does not: -ENOENT, -EACCES, -ENOEXEC and
 * others of execve(2), -EPERM when it could not become @owner. It has ended then.
 */
int sb_child_start(struct sb_child *child);

/* Send a signal, unless it has ended. Return: 0 or a negative errno. */
int sb_child_kill(const struct sb_child *child, int sig);

/* Whether sb_child_wait() would return at once. */
bool sb_child_has_ended(const struct sb_child *child);

/* Wait for its end. Return: its exit status, or 128 + the signal that ended it. */
int sb_child_wait(struct sb_child *child);

/* Free. One that was never started ends; one that runs is left running. Accepts NULL. */
void sb_child_free(struct sb_child *child);

#endif
