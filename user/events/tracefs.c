// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "events/tracefs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/num.h"
#include "base/str.h"

#define FORMAT_BYTES_MAX 65536u

static const char *const places[] = {
	"/sys/kernel/tracing/events",
	"/sys/kernel/debug/tracing/events",
};

/* A tracefs that nobody else sees. Return: its root, or a negative errno. */
static int mount_own(void)
{
	sb_cleanup(sb_closep) int context = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
	int root;

	if (context < 0)
		return -errno;
	if (syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -errno;
	root = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
	return root < 0 ? -errno : root;
}

int sb_tracefs_open(void)
{
	sb_cleanup(sb_closep) int root = -1;
	size_t i;
	int fd;

	for (i = 0; i < SB_ARRAY_SIZE(places); i++) {
		fd = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			return fd;
		if (errno == EACCES || errno == EPERM)
			return -errno;
	}
	root = mount_own();
	if (root < 0)
		return root;
	fd = openat(root, "events", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Return: -ENOENT if it is no tracepoint but, for instance, the file "enable". */
static int read_id(int events_fd, const char *category, const char *name, uint64_t *ret_id)
{
	sb_cleanup(sb_closep) int fd = -1;
	char path[2 * NAME_MAX + 8], text[24];
	ssize_t len;

	snprintf(path, sizeof(path), "%s/%s/id", category, name);
	fd = openat(events_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOTDIR ? -ENOENT : -errno;
	len = read(fd, text, sizeof(text) - 1);
	if (len <= 0)
		return len ? -errno : -ENOENT;
	text[len] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return sb_parse_u64(text, UINT32_MAX, ret_id) ? -ENOENT : 0;
}

static int open_directory(int at_fd, const char *name, DIR **ret_dir)
{
	int fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	*ret_dir = fdopendir(fd);
	if (*ret_dir)
		return 0;
	err = -errno;
	close(fd);
	return err;
}

static bool is_wanted(const struct dirent *entry, const char *glob)
{
	return entry->d_name[0] != '.' && sb_glob_matches(glob, strlen(glob), entry->d_name);
}

static int each_of(int events_fd, const char *category, const char *glob,
		   int (*fn)(void *arg, const char *category, const char *name, uint64_t id),
		   void *arg)
{
	struct dirent *entry;
	DIR *dir = NULL;
	uint64_t id;
	int err = open_directory(events_fd, category, &dir);

	if (err)
		return err == -ENOTDIR || err == -ENOENT ? 0 : err;
	while (!err && (entry = readdir(dir))) {
		if (!is_wanted(entry, glob))
			continue;
		err = read_id(events_fd, category, entry->d_name, &id);
		if (!err)
			err = fn(arg, category, entry->d_name, id);
		else if (err == -ENOENT)
			err = 0;
	}
	closedir(dir);
	return err;
}

int sb_tracefs_each(int events_fd, const char *category, const char *name,
		    int (*fn)(void *arg, const char *category, const char *name, uint64_t id),
		    void *arg)
{
	struct dirent *entry;
	DIR *dir = NULL;
	int err = open_directory(events_fd, ".", &dir);

	if (err)
		return err;
	while (!err && (entry = readdir(dir)))
		if (is_wanted(entry, category))
			err = each_of(events_fd, entry->d_name, name, fn, arg);
	closedir(dir);
	return err;
}

int sb_tracefs_read_format(int events_fd, const char *name, char **ret_text)
{
	sb_cleanup(sb_closep) int fd = -1;
	const char *colon = strchr(name, ':');
	char path[2 * NAME_MAX + 12];
	size_t len;

	if (!colon || strchr(name, '/'))
		return -EINVAL;
	snprintf(path, sizeof(path), "%.*s/%s/format", (int)(colon - name), name, colon + 1);
	fd = openat(events_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return sb_read_fd(fd, FORMAT_BYTES_MAX, ret_text, &len);
}

bool sb_tracefs_has_category(int events_fd, const char *category)
{
	struct stat st;

	return !strchr(category, '/') && !fstatat(events_fd, category, &st, 0) &&
	       S_ISDIR(st.st_mode);
}
