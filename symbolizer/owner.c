// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "owner.h"

#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

/* How the reader names its copies of files that must not be read in place. Others may use it, to their own harm. */
static const char copy_mark[] = "/memfd:stackbpf-copy";

static bool is_copy(int fd)
{
	char path[64], link[sizeof(copy_mark)];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	len = readlink(path, link, sizeof(link) - 1);
	return len == (ssize_t)sizeof(link) - 1 && !memcmp(link, copy_mark, sizeof(link) - 1);
}

struct sb_file_owner sb_file_owner(int fd, const struct stat *st)
{
	struct sb_file_owner owner = { .uid = st->st_uid };
	struct statfs fs;

	if (fstatfs(fd, &fs) || fs.f_type == FUSE_SUPER_MAGIC ||
	    (fs.f_type == TMPFS_MAGIC && is_copy(fd)))
		owner.ino = st->st_ino;
	if (owner.ino || owner.uid)
		owner.dev = st->st_dev;
	return owner;
}
