// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/debian.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/index.h"
#include "base/str.h"

/* The longest list of a package in Debian 12 has 5 MB. */
#define LIST_BYTES_MAX (64u << 20)

/* With merged /usr, /lib/x and /usr/lib/x are one file, and lists have either name. */
static const char *without_usr(const char *path, size_t *len)
{
	if (*len > 5 && !memcmp(path, "/usr/", 5)) {
		*len -= 4;
		return path + 4;
	}
	return path;
}

struct search {
	const char *const *paths;
	char **packages;
	struct sb_index index; /* hash of a path -> its number */
};

static int note_owner(struct search *search, const char *line, size_t len, const char *package)
{
	uint64_t hash;

	line = without_usr(line, &len);
	hash = sb_hash(line, len, 0);
	sb_index_each(it, &search->index, hash) {
		size_t path_len = strlen(search->paths[it.id]);
		const char *path = without_usr(search->paths[it.id], &path_len);

		if (search->packages[it.id] || path_len != len || memcmp(path, line, len))
			continue;
		search->packages[it.id] = strndup(package, strcspn(package, ":"));
		if (!search->packages[it.id])
			return -ENOMEM;
	}
	return 0;
}

static int search_list(struct search *search, const char *text, size_t len, const char *package)
{
	const char *end = text + len, *newline;
	int err = 0;

	for (; text < end && !err; text = newline + 1) {
		newline = memchr(text, '\n', (size_t)(end - text));
		if (!newline)
			newline = end;
		err = note_owner(search, text, (size_t)(newline - text), package);
	}
	return err;
}

static int search_all(struct search *search, DIR *dir)
{
	struct dirent *entry;
	int err = 0;

	while (!err && (entry = readdir(dir))) {
		sb_cleanup(sb_freep) char *text = NULL;
		sb_cleanup(sb_closep) int fd = -1;
		size_t name_len = strlen(entry->d_name), len;

		if (name_len < 6 || !sb_streq(entry->d_name + name_len - 5, ".list"))
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0 || sb_read_fd(fd, LIST_BYTES_MAX, &text, &len))
			continue; /* its files are taken for nobody's */
		entry->d_name[name_len - 5] = '\0';
		err = search_list(search, text, len, entry->d_name);
	}
	return err;
}

int sb_debian_owners(const char *info_dir, const char *const *paths, size_t nr, char **ret_packages)
{
	struct search search = { .paths = paths, .packages = ret_packages };
	sb_cleanup(sb_closedirp) DIR *dir = opendir(info_dir ? info_dir : "/var/lib/dpkg/info");
	size_t i;
	int err = 0;

	if (!dir)
		return -errno;
	memset(ret_packages, 0, nr * sizeof(*ret_packages));
	for (i = 0; i < nr && !err; i++) {
		size_t len = strlen(paths[i]);
		const char *path = without_usr(paths[i], &len);

		err = sb_index_add(&search.index, sb_hash(path, len, 0), (uint32_t)i);
	}
	if (!err)
		err = search_all(&search, dir);
	sb_index_release(&search.index);
	for (i = 0; err && i < nr; i++)
		free(sb_take(ret_packages[i]));
	return err;
}

/* Packages of debug data from before there were automatic ones, which were kept. */
static const struct {
	const char *prefix; /* of the package that has the file */
	const char *debug_package;
} old_debug_packages[] = {
	{ "libc6", "libc6-dbg" },
	{ "python3.11", "python3.11-dbg" },
	{ "libpython3.11", "python3.11-dbg" },
	{ "python3.13", "python3.13-dbg" },
	{ "libpython3.13", "python3.13-dbg" },
};

char *sb_debian_debug_package(const char *package)
{
	size_t i, len;
	char *name;

	for (i = 0; i < SB_ARRAY_SIZE(old_debug_packages); i++) {
		len = strlen(old_debug_packages[i].prefix);
		if (!strncmp(package, old_debug_packages[i].prefix, len) &&
		    (!package[len] || package[len] == '-'))
			return strdup(old_debug_packages[i].debug_package);
	}
	return asprintf(&name, "%s-dbgsym", package) < 0 ? NULL : name;
}
