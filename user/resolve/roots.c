// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "resolve/roots.h"

#include <errno.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/cleanup.h"

int sb_comm_text(const char *comm, struct sb_str *text)
{
	size_t len = strnlen(comm, SB_COMM_LEN);

	sb_str_clear(text);
	return len ? sb_str_addn(text, comm, len) : sb_str_add(text, "[no name]");
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

const char *const sb_root_names[SB_ATTR_CONTAINER + 1] = {
	[SB_ATTR_COMM] = "comm", [SB_ATTR_PROCESS] = "pid",   [SB_ATTR_THREAD] = "thread",
	[SB_ATTR_CPU] = "cpu",	 [SB_ATTR_CGROUP] = "cgroup", [SB_ATTR_CONTAINER] = "container",
};

uint32_t sb_root_by(enum sb_attr_kind root)
{
	static const uint32_t by[SB_ATTR_CONTAINER + 1] = {
		[SB_ATTR_THREAD] = SB_BY_THREAD,
		[SB_ATTR_CPU] = SB_BY_CPU,
		[SB_ATTR_CGROUP] = SB_BY_CGROUP,
		[SB_ATTR_CONTAINER] = SB_BY_CGROUP,
	};

	return by[root];
}

int sb_root_attr(enum sb_attr_kind root, const struct sb_sample_key *key, struct sb_str *text,
		 struct sb_attr *ret_attr)
{
	int err = sb_comm_text(key->comm, text);

	if (root == SB_ATTR_CGROUP || root == SB_ATTR_CONTAINER) {
		sb_str_clear(text);
		err = root == SB_ATTR_CGROUP ? cgroup_text(key, text) : container_text(key, text);
	}
	*ret_attr = (struct sb_attr){
		.kind = root,
		.pid = key->tgid,
		.tid = key->tid,
		.cpu = key->cpu,
		.text = text->s,
	};
	return err;
}
