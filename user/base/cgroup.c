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
#include "base/fs.h"
#include "base/num.h"

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

/* The old hierarchy has this, less the size of a page, where nothing is limited. */
#define NO_LIMIT_BYTES	   (1ull << 62)
#define LIMIT_BYTES_MAX	   64
#define OWN_PATH_BYTES_MAX (64u << 10)

/* The limit in the file @name of the cgroup at @path, if that is less than *@least. */
static void take_limit(const char *path, const char *name, uint64_t *least)
{
	sb_cleanup(sb_freep) char *file = NULL;
	sb_cleanup(sb_freep) char *text = NULL;
	uint64_t bytes;
	size_t len;

	if (asprintf(&file, "%s/%s", path, name) < 0) {
		file = NULL;
		return;
	}
	if (sb_read_file(file, LIMIT_BYTES_MAX, &text, &len))
		return;
	text[strcspn(text, "\n")] = '\0';
	/* "max" is no number. */
	if (!sb_parse_u64(text, UINT64_MAX, &bytes) && bytes < *least)
		*least = bytes;
}

/* Those of the cgroup @below the mount point and of all that it is in. */
static void take_limits(const char *mount, const char *below, const char *name, uint64_t *least)
{
	sb_cleanup(sb_freep) char *path = NULL;
	char *slash;

	if (asprintf(&path, "%s%s", mount, below) < 0) {
		path = NULL;
		return;
	}
	while (strlen(path) > strlen(mount)) {
		take_limit(path, name, least);
		slash = strrchr(path, '/');
		*slash = '\0';
	}
	take_limit(mount, name, least);
}

int sb_cgroup_memory_max(uint64_t *ret_bytes)
{
	static const char old_mark[] = ":memory:", new_mark[] = "0::";
	sb_cleanup(sb_freep) char *own = NULL;
	const char *mount = mount_point();
	uint64_t least = UINT64_MAX;
	char *line, *next, *old;
	size_t len;

	if (sb_read_file("/proc/self/cgroup", OWN_PATH_BYTES_MAX, &own, &len))
		return -ENOENT;
	for (line = own; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		old = strstr(line, old_mark);
		if (old)
			take_limits("/sys/fs/cgroup/memory", old + strlen(old_mark),
				    "memory.limit_in_bytes", &least);
		else if (mount && !strncmp(line, new_mark, strlen(new_mark)))
			take_limits(mount, line + strlen(new_mark), "memory.max", &least);
	}
	if (least >= NO_LIMIT_BYTES)
		return -ENOENT;
	*ret_bytes = least;
	return 0;
}
