/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stages of a run. Only go() of run.c calls them, after it has checked the views, in this
 * order: sb_run_check_targets(), sink->prepare(), sb_run_make_parser(), sb_run_make_readers(), the
 * command is forked, sb_run_block_signals(), sb_run_begin_privileges(), sb_run_make_resolver(), the
 * session is made, sb_run_loop_init(), sampling starts, sb_run_settle_privileges(), sb_run_loop(),
 * sb_run_arm_give_up(), sampling stops, the last take. Each returns SB_RUN_OK to go on, or how the
 * run ended, with run->reason; none is called again then. That is SB_RUN_FAILED unless a function
 * says otherwise. What they make is in struct sb_run, and is freed by sb_run_release(), also after
 * an error. @run is initialised and not NULL. Called on the thread of the run.
 */
#ifndef SB_RUN_RUN_PRIV_H
#define SB_RUN_RUN_PRIV_H

#include "base/time.h"
#include "run/run.h"

/* targets.c: check that the CPUs of the configuration are online, and open its processes and
 * threads, of which those to be sampled stay open, so that the loop learns when they end. The
 * session checks all other targets. Return: SB_RUN_OK; SB_RUN_WRONG: a CPU is not online;
 * SB_RUN_NO_TARGET: there is no such process or thread, or a thread was given as a process;
 * SB_RUN_FAILED. */
enum sb_run_status sb_run_check_targets(struct sb_run *run);

/* run.c. Return: whether the run samples for ten seconds at most, so that its start costs more than
 * its sampling. It may be asked from the first stage on. */
bool sb_run_is_short(const struct sb_run *run);

/* privileges.c: parser: fork the process that parses files, if tables or interpreters are asked
 * for. readers: fork the one that makes those which read memory and files of other processes.
 * sb_run_release() ends them. Return: SB_RUN_OK; SB_RUN_FAILED: a process cannot be made. */
enum sb_run_status sb_run_make_parser(struct sb_run *run);
enum sb_run_status sb_run_make_readers(struct sb_run *run);
/* begin: become the user of the run; this returns SB_RUN_OK in any case, as root that may not
 * change its user stays root. settle: when all is attached, keep only what is needed, in all
 * processes and threads of the run (workers/privileges.h). Return: SB_RUN_OK; SB_RUN_FAILED: a
 * privilege could not be dropped, so the run must not go on. */
enum sb_run_status sb_run_begin_privileges(struct sb_run *run);
enum sb_run_status sb_run_settle_privileges(struct sb_run *run);

/* run.c: Return: whether a rule allows tasks that may begin at any time, by their name, user or
 * cgroup; rules for IDs of processes and threads do not count, because those end. If there is no
 * such rule, nor --all or a command, the loop ends the run when the last of those IDs has ended. */
bool sb_run_has_lasting_rule(const struct sb_targets *targets);

/* loop.c: block SIGINT, SIGTERM, SIGHUP and SIGUSR1, and read them from a descriptor from here on,
 * unless the sink has an owner that does. Called before threads are made, which inherit the mask.
 * Return: SB_RUN_OK; SB_RUN_FAILED: a system call failed. */
enum sb_run_status sb_run_block_signals(struct sb_run *run);
/* Open what the loop polls: timers, and an epoll descriptor. Return: SB_RUN_OK; SB_RUN_FAILED:
 * there is no descriptor or no memory left. */
enum sb_run_status sb_run_loop_init(struct sb_run *run);
/* Poll until something ends the sampling. Return: SB_RUN_OK; SB_RUN_NO_COMMAND or SB_RUN_NO_EXEC:
 * the command does not exist, or cannot be executed; SB_RUN_FAILED. */
enum sb_run_status sb_run_loop(struct sb_run *run);
/* From here on SIGINT and SIGTERM call sb_run_sink.give_up(), in a signal handler; nothing changes
 * if the sink has an owner. SIGHUP stays blocked. Return: SB_RUN_OK; SB_RUN_FAILED: signals cannot
 * be set up. */
enum sb_run_status sb_run_arm_give_up(struct sb_run *run);
/* Close the descriptors of the loop, and that of sb_run_block_signals(), if there are any; again is
 * harmless. For sb_run_release(). */
void sb_run_loop_release(struct sb_run *run);

/* pipeline.c: make the registry of processes, the symbolizer, the profile and the resolver. Return:
 * SB_RUN_OK; SB_RUN_FAILED, mostly for want of memory. */
enum sb_run_status sb_run_make_resolver(struct sb_run *run);
/* Drain the session and put the samples into the profile, while sampling goes on and once after it
 * was stopped. Return: 0 or a negative errno, with run->reason: the run cannot go on, and what was
 * sampled since the last call may be lost. */
int sb_run_drain(struct sb_run *run);

/* How often to drain, to look for new CPUs, and to call sb_run_tick(). */
#define SB_RUN_TICK_NS SB_NS_PER_SEC
/* Throttle or speed up sampling by what it costs now, if it has not ended, and call the sink's
 * tick. A lasting run does so also while a drain goes on, if that takes longer. */
void sb_run_tick(struct sb_run *run);

/* Set run->reason: a text as for printf(), to which the meaning of @err, a negative errno, is
 * added; 0: nothing is. Value: SB_RUN_FAILED. */
#define sb_run_fail(run, err, ...)                               \
	({                                                       \
		sb_reason_set(&(run)->reason, err, __VA_ARGS__); \
		SB_RUN_FAILED;                                   \
	})

#endif
