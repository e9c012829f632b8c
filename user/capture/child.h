/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The process of `-- CMD`. It is created first, so that it can be made a target, and runs the
 * command when sampling has begun, so that it is sampled from its first instruction:
 *
 *	new (it exists and waits) -> start (it executes the command) -> answer_fd is readable ->
 *	answer (it runs) -> fd is readable -> wait
 *
 * It runs as the user behind sudo, with that user's environment, and with the signal mask and
 * dispositions that the caller had at sb_child_new(). So call that before changing them, before
 * starting threads, and before opening descriptors that it must not inherit. It inherits stdin,
 * stdout, stderr and the working directory. If this process dies before the start, the child exits
 * without running anything. One thread. No pointer may be NULL unless a contract says so.
 */
#ifndef SB_CAPTURE_CHILD_H
#define SB_CAPTURE_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/fs.h"

struct sb_child;

/*
 * Create the process. @argv is NULL-terminated, looked up in $PATH by the new user, and used during
 * the call only, because the child has its own copy. The caller ends *ret_child with
 * sb_child_free(); it is untouched on error.
 * @owner: who it runs as; if that is the current user, its environment is left alone. That it may
 * not become @owner is found out by sb_child_answer().
 * Return: 0; -ENOMEM; or another negative errno of fork(2), socketpair(2), pidfd_open(2) or of
 * reading the groups of @owner.
 */
int sb_child_new(char *const *argv, struct sb_owner owner, struct sb_child **ret_child);

/* Return: the ID of the process, valid until sb_child_wait() has returned. */
pid_t sb_child_pid(const struct sb_child *child);

/* Return: a descriptor that is readable once the process has ended; owned by @child, valid until
 * sb_child_free(). */
int sb_child_fd(const struct sb_child *child);

/*
 * Let it execute the command; call it once, before sb_child_answer(). Nobody waits for that: the
 * file can be on a file system that never answers.
 */
void sb_child_start(struct sb_child *child);
/* Return: a descriptor that is readable when sb_child_answer() has an answer, owned by the child;
 * -1 once sb_child_answer() has returned anything but -EAGAIN. */
int sb_child_answer_fd(const struct sb_child *child);
/*
 * Find out whether the command runs; does not block, unless it does not run, when the end of the
 * process is waited for. Return: 0 when it does; -EAGAIN: not known yet; else why not, and the
 * process has ended: -ENOENT, -EACCES, -ENOEXEC and other errors of execve(2); -EPERM when it could
 * not become @owner of sb_child_new(); -EIO: its answer cannot be read. May be called again: it
 * returns the same, but for -EAGAIN.
 */
int sb_child_answer(struct sb_child *child);
/* Return: whether sb_child_answer() has returned 0, so that the command runs or ran. false does not
 * mean that it does not run: it can run already while nobody has called sb_child_answer(). */
bool sb_child_has_run(const struct sb_child *child);

/* Send the signal @sig to it, through a process of ours that forwards signals and whose answer it
 * waits for; never to another process with the same ID. It can be called at any time, also before
 * sb_child_start() and after the end. Return: 0; -ESRCH when it has ended; -ECHILD when the process
 * that forwards has died; or another negative errno of pidfd_send_signal(2), such as -EPERM or
 * -EINVAL. */
int sb_child_kill(const struct sb_child *child, int sig);

/* Return: whether the process has ended, so that sb_child_wait() does not block. */
bool sb_child_has_ended(const struct sb_child *child);

/* Wait until it has ended; for ever, if it was not started. Return: its exit status, or 128 + the
 * signal that killed it; 0 if it is not known, because SIGCHLD is ignored. May be called again, and
 * returns the same. */
int sb_child_wait(struct sb_child *child);

/* Free the handle. A process that was not started exits, and is waited for; one that was started
 * and of which sb_child_answer() has not found out that it runs is killed, which nobody waits for;
 * one that runs is left running. Accepts NULL. */
void sb_child_free(struct sb_child *child);

#endif
