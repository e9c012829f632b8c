// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Targets that can be checked before the run, and that can end during it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/status.h"
#include "capture/perf_event.h"
#include "run/run_priv.h"

/* Linux 6.9: a descriptor of one thread, not of its process. */
#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

/* Return: the process of thread @tid, 0 when there is no such thread. */
static uint32_t process_of(uint32_t tid)
{
	sb_cleanup(sb_freep) char *status = NULL;
	uint64_t tgid;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/status", tid);
	if (sb_read_file(path, SB_STATUS_BYTES_MAX, &status, NULL))
		return 0;
	return sb_status_numbers(status, "Tgid", &tgid, 1) == 1 ? (uint32_t)tgid : 0;
}

/* Return: a descriptor which is readable when the process has ended, or a negative errno. */
static int open_process(struct sb_run *run, uint32_t pid)
{
	uint32_t tgid;
	int fd = pidfd_open((pid_t)pid, 0), err = -errno;

	if (fd >= 0)
		return fd;
	/* Up to 6.8 a thread is refused with EINVAL, later with ENOENT. */
	tgid = process_of(pid);
	if (tgid && tgid != pid) {
		sb_reason_set(&run->reason, 0, "%u is a thread of process %u", pid, tgid);
		run->tid = pid;
		run->tid_process = tgid;
		return -ESRCH;
	}
	if (err == -ESRCH)
		sb_reason_set(&run->reason, 0, "there is no process %u; it may have ended", pid);
	else
		sb_reason_set(&run->reason, err, "cannot open process %u to learn when it ends",
			      pid);
	return err;
}

static int open_thread(struct sb_run *run, uint32_t tid)
{
	uint32_t tgid;
	int fd = pidfd_open((pid_t)tid, PIDFD_THREAD), err;

	if (fd >= 0)
		return fd;
	tgid = process_of(tid);
	if (!tgid) {
		sb_reason_set(&run->reason, 0, "there is no thread %u; it may have ended", tid);
		return -ESRCH;
	}
	/* Older than 6.9: the best to be had is the end of its process. */
	fd = pidfd_open((pid_t)tgid, 0);
	err = -errno;
	return fd >= 0 ? fd
		       : sb_reason_set(&run->reason, err,
				       "cannot open thread %u to learn when it ends", tid);
}

static int add_targets(struct sb_run *run, const struct sb_pid_rule *rules, size_t nr,
		       int (*open_target)(struct sb_run *run, uint32_t id))
{
	struct sb_run_target target;
	size_t i;
	int err;

	for (i = 0; i < nr; i++) {
		target.id = rules[i].pid;
		target.fd = open_target(run, target.id);
		if (target.fd < 0)
			return target.fd;
		if (!(rules[i].rule & SB_RULE_ALLOW)) {
			close(target.fd);
			continue;
		}
		err = sb_vec_push(&run->targets, target);
		if (err) {
			close(target.fd);
			return sb_reason_set(&run->reason, err,
					     "cannot keep process %u open as a target", target.id);
		}
	}
	return 0;
}

static bool has_cpu(const sb_vec_u32 *cpus, uint32_t cpu)
{
	size_t i;

	for (i = 0; i < cpus->nr; i++)
		if (cpus->at[i] == cpu)
			return true;
	return false;
}

static enum sb_run_status check_cpus(struct sb_run *run)
{
	const sb_vec_u32 *asked = &run->config->cpus;
	sb_vec_u32 online = {};
	size_t i;
	enum sb_run_status status = SB_RUN_OK;

	if (!asked->nr || sb_cpus_online(&online))
		return SB_RUN_OK; /* the session will say it */
	for (i = 0; i < asked->nr && !status; i++) {
		if (has_cpu(&online, asked->at[i]))
			continue;
		sb_reason_set(&run->reason, 0,
			      "CPU %u is not online; lscpu(1) lists those that are, up to CPU %u",
			      asked->at[i], online.at[online.nr - 1]);
		status = SB_RUN_WRONG;
	}
	sb_vec_release(&online);
	return status;
}

enum sb_run_status sb_run_check_targets(struct sb_run *run)
{
	const struct sb_targets *targets = &run->config->targets;
	enum sb_run_status status = check_cpus(run);
	int err;

	if (status)
		return status;
	err = add_targets(run, targets->tgids.at, targets->tgids.nr, open_process);
	if (!err)
		err = add_targets(run, targets->tids.at, targets->tids.nr, open_thread);
	if (err)
		return err == -ESRCH ? SB_RUN_NO_TARGET : SB_RUN_FAILED;
	return SB_RUN_OK;
}
