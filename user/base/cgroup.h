/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Paths of cgroups, and the memory limit of our own cgroup. No pointer is NULL. Thread: any. */
#ifndef SB_BASE_CGROUP_H
#define SB_BASE_CGROUP_H

#include <stdint.h>

#include "base/str.h"

/*
 * Append the path of the cgroup2 with this id (that of bpf_get_current_cgroup_id()) below the
 * mount of cgroup2 in /sys/fs/cgroup, "/" for the root. The id is a kernfs file handle, see
 * name_to_handle_at(2) and kernel commit 38cf3a687f58. Needs CAP_DAC_READ_SEARCH.
 * Return: 0; -ENOENT when cgroup2 is not mounted; -ESTALE when the cgroup is gone; -EPERM without
 * the capability; -ENOMEM; or another negative errno of open(2), open_by_handle_at(2) and
 * readlink(2). Nothing is appended then.
 */
int sb_cgroup_path(uint64_t id, struct sb_str *path);

/*
 * Append the short id (12 hex digits) of the container that a cgroup path belongs to: the last run
 * of exactly 64 hex digits in it, as docker, containerd, CRI-O and podman name their cgroups.
 * Return: 0; -ENOENT when the path names no container; -ENOMEM; nothing is appended then.
 */
int sb_cgroup_container(const char *path, struct sb_str *container);

/*
 * sb_cgroup_memory_max() - the least memory limit of this process's cgroup and of those above it
 * @ret_bytes: memory.max of cgroup2, or memory.limit_in_bytes of the older hierarchy
 *
 * Return: 0; -ENOENT when there is no limit, or none that can be read: *@ret_bytes is untouched.
 */
int sb_cgroup_memory_max(uint64_t *ret_bytes);

#endif
