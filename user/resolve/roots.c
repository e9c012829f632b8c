// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "resolve/roots.h"

#include <errno.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/cleanup.h"

static int comm_text(const struct sb_sample_key *key, struct sb_str *text)
{
	size_t len = strnlen(key->comm, sizeof(key->comm));

	return len ? sb_str_addn(text, key->comm, len) : sb_str_add(text, "[no name]");
}

static int pid_text(const struct sb_sample_key *key, struct sb_str *text)
{
	int err = comm_text(key, text);

	return err ? err : sb_str_addf(text, "-%u", key->tgid);
}

static int thread_text(const struct sb_sample_key *key, struct sb_str *text)
{
	int err = pid_text(key, text);

	return err ? err : sb_str_addf(text, "/%u", key->tid);
}

static int cpu_text(const struct sb_sample_key *key, struct sb_str *text)
{
	return sb_str_addf(text, "cpu %u", key->cpu);
}

static int cgroup_text(const struct sb_sample_key *key, struct sb_str *text)
{
	int err = sb_cgroup_path(key->cgroup_id, text);

	if (err && err != -ENOMEM)
		err = sb_str_addf(text, "[cgroup %llu]", (unsigned long long)key->cgroup_id);
	return err;
}

static int container_text(const struct sb_sample_key *key, struct sb_str *text)
{
	sb_cleanup(sb_str_release) struct sb_str path = {};
	int err = sb_cgroup_path(key->cgroup_id, &path);

	if (err == -ENOMEM)
		return err;
	err = err ? -ENOENT : sb_cgroup_container(path.s, text);
	return err == -ENOENT ? sb_str_add(text, "[host]") : err;
}

static const struct {
	uint32_t by; /* what the key must be split by */
	int (*text)(const struct sb_sample_key *key, struct sb_str *text);
} roots[SB_ROOT_MAX] = {
	[SB_ROOT_COMM] = { 0, comm_text },
	[SB_ROOT_PID] = { 0, pid_text },
	[SB_ROOT_THREAD] = { SB_BY_THREAD, thread_text },
	[SB_ROOT_CPU] = { SB_BY_CPU, cpu_text },
	[SB_ROOT_CGROUP] = { SB_BY_CGROUP, cgroup_text },
	[SB_ROOT_CONTAINER] = { SB_BY_CGROUP, container_text },
};

const char *const sb_root_names[SB_ROOT_MAX] = {
	[SB_ROOT_COMM] = "comm", [SB_ROOT_PID] = "pid",	      [SB_ROOT_THREAD] = "thread",
	[SB_ROOT_CPU] = "cpu",	 [SB_ROOT_CGROUP] = "cgroup", [SB_ROOT_CONTAINER] = "container",
};

uint32_t sb_root_by(enum sb_root root)
{
	return roots[root].by;
}

int sb_root_text(enum sb_root root, const struct sb_sample_key *key, struct sb_str *text)
{
	return roots[root].text(key, text);
}
