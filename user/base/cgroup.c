// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/cgroup.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"

#define CGROUP2_MAGIC	 0x63677270
#define FILEID_KERNFS	 0xfe
#define CONTAINER_DIGITS 64
#define SHORT_DIGITS	 12

/* Where cgroup2 is mounted, alone or beside the old hierarchies. */
static const char *mount_point(void)
{
	static const char *const points[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	struct statfs fs;
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(points); i++)
		if (!statfs(points[i], &fs) && fs.f_type == CGROUP2_MAGIC)
			return points[i];
	return NULL;
}

int sb_cgroup_path(uint64_t id, struct sb_str *path)
{
	struct {
		struct file_handle handle;
		uint64_t id;
	} handle = { .handle = { .handle_bytes = sizeof(id), .handle_type = FILEID_KERNFS } };
	const char *mount = mount_point();
	sb_cleanup(sb_closep) int mount_fd = -1;
	sb_cleanup(sb_closep) int fd = -1;
	char link[64], target[4096];
	ssize_t len;

	if (!mount)
		return -ENOENT;
	mount_fd = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (mount_fd < 0)
		return -errno;
	memcpy(handle.handle.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(mount_fd, &handle.handle, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, target, sizeof(target) - 1);
	if (len < 0)
		return -errno;
	target[len] = '\0';
	if (strncmp(target, mount, strlen(mount)))
		return -ESTALE;
	return sb_str_add(path, target[strlen(mount)] ? target + strlen(mount) : "/");
}

int sb_cgroup_container(const char *path, struct sb_str *container)
{
	const char *found = NULL, *p = path;
	size_t nr;

	while (*p) {
		for (nr = 0; isxdigit((unsigned char)p[nr]); nr++)
			;
		if (nr == CONTAINER_DIGITS)
			found = p;
		p += nr ? nr : 1;
	}
	return found ? sb_str_addn(container, found, SHORT_DIGITS) : -ENOENT;
}
