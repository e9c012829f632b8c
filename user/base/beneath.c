// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 40 /* MAXSYMLINKS of the kernel */
#define DEPTH_MAX 128

/*
 * The directories from the root to where we are. ".." goes back to the one before, so that a
 * directory which is moved out of the root meanwhile leads nowhere: the kernel is never asked for
 * "..".
 */
struct walk {
	int root_fd;
	int fds[DEPTH_MAX];
	size_t nr;
	char path[PATH_MAX]; /* what is left of it, with the text of links in front */
	const char *at;
	unsigned int nr_links;
};

static int top(const struct walk *walk)
{
	return walk->nr ? walk->fds[walk->nr - 1] : walk->root_fd;
}

static void leave_all(struct walk *walk)
{
	while (walk->nr)
		close(walk->fds[--walk->nr]);
}

/* The next component into @name. Return: its length, 0 at the end of the path, or a negative
 * errno. */
static int next_name(struct walk *walk, char name[NAME_MAX + 1])
{
	size_t len;

	walk->at += strspn(walk->at, "/");
	len = strcspn(walk->at, "/");
	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, walk->at, len);
	name[len] = '\0';
	walk->at += len;
	return (int)len;
}

/* Put the text of the link @fd before what is left of the path. */
static int follow(struct walk *walk, int fd)
{
	char text[PATH_MAX];
	size_t left = strlen(walk->at) + 1;
	ssize_t len = readlinkat(fd, "", text, sizeof(text));

	if (len < 0)
		return -errno;
	if (!len)
		return -ENOENT;
	if (++walk->nr_links > LINKS_MAX)
		return -ELOOP;
	if ((size_t)len + left > sizeof(walk->path))
		return -ENAMETOOLONG;
	memmove(walk->path + len, walk->at, left);
	memcpy(walk->path, text, (size_t)len);
	walk->at = walk->path;
	if (text[0] == '/')
		leave_all(walk);
	return 0;
}

/* Enter what is called @name, or follow it. */
static int step(struct walk *walk, const char *name)
{
	int fd = openat(top(walk), name, O_PATH | O_NOFOLLOW | O_CLOEXEC), err;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st)) {
		err = -errno;
		close(fd);
		return err;
	}
	if (S_ISLNK(st.st_mode)) {
		err = follow(walk, fd);
		close(fd);
		return err;
	}
	if (walk->nr == DEPTH_MAX) {
		close(fd);
		return -ENAMETOOLONG;
	}
	walk->fds[walk->nr++] = fd;
	return 0;
}

static int go(struct walk *walk)
{
	char name[NAME_MAX + 1];
	int len, err = 0;

	while (!err && (len = next_name(walk, name)) != 0) {
		if (len < 0)
			return len;
		if (!strcmp(name, "..")) {
			if (walk->nr)
				close(walk->fds[--walk->nr]);
		} else if (strcmp(name, ".") != 0) {
			err = step(walk, name);
		}
	}
	return err;
}

int sb_open_beneath(int root_fd, const char *path)
{
	struct walk walk = { .root_fd = root_fd };
	size_t len = strlen(path);
	int err, fd;

	if (!len)
		return -ENOENT;
	if (len >= sizeof(walk.path))
		return -ENAMETOOLONG;
	memcpy(walk.path, path, len + 1);
	walk.at = walk.path;
	err = go(&walk);
	if (err)
		fd = err;
	else if (walk.nr)
		fd = walk.fds[--walk.nr];
	else
		fd = openat(root_fd, ".", O_PATH | O_CLOEXEC);
	if (fd < 0 && !err)
		fd = -errno;
	leave_all(&walk);
	return fd;
}
