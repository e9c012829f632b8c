// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/process/procmap_query.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#define VMA_WRITABLE	  0x02
#define VMA_EXECUTABLE	  0x04
#define COVERING_OR_NEXT  0x10
/* More than sysctl vm.max_map_count allows. */
#define ANSWERS_MAX	  (1u << 17)

/* Replaces a name that contains a newline, or is longer than a path may be. */
#define FILE_WITHOUT_NAME "/"

/* The kernel does not support the query, so it is not tried again. */
static bool is_absent;

/* Get the next mapping from @addr on. Return: 0; -ENOENT: there is none; others of ioctl(2). */
static int ask(int fd, uint64_t addr, uint64_t flags, char name[PATH_MAX],
	       struct sb_maps_line *ret_line)
{
	struct sb_procmap_query query = {
		.size = sizeof(query),
		.query_flags = COVERING_OR_NEXT | flags,
		.query_addr = addr,
		.vma_name_size = PATH_MAX,
		.vma_name_addr = (uint64_t)(uintptr_t)name,
	};
	bool has_name = !ioctl(fd, SB_PROCMAP_QUERY, &query);

	if (!has_name && errno == ENAMETOOLONG) {
		query.vma_name_size = 0;
		query.vma_name_addr = 0;
		if (ioctl(fd, SB_PROCMAP_QUERY, &query))
			return -errno;
	} else if (!has_name) {
		return -errno;
	}
	/* The text of /proc/PID/maps has no such names either. */
	if (!has_name || memchr(name, '\n', query.vma_name_size)) {
		memcpy(name, FILE_WITHOUT_NAME, sizeof(FILE_WITHOUT_NAME));
		query.vma_name_size = sizeof(FILE_WITHOUT_NAME);
	}
	*ret_line = (struct sb_maps_line){
		.start = query.vma_start,
		.end = query.vma_end,
		.pgoff = query.vma_offset,
		.ino = query.inode,
		.maj = query.dev_major,
		.min = query.dev_minor,
		.is_exec = query.vma_flags & VMA_EXECUTABLE,
		.is_writable = query.vma_flags & VMA_WRITABLE,
		.path = name,
		.path_len = query.vma_name_size ? query.vma_name_size - 1 : 0,
	};
	return 0;
}

int sb_procmap_query_code(int fd, uint64_t from, bool is_behind,
			  int (*fn)(void *arg, const struct sb_maps_line *line), void *arg)
{
	uint64_t addr = from, flags = is_behind ? 0 : VMA_EXECUTABLE;
	struct sb_maps_line line;
	char name[PATH_MAX] = {}; /* memory checkers do not know that the kernel writes there */
	uint32_t nr;
	int err;

	if (__atomic_load_n(&is_absent, __ATOMIC_RELAXED))
		return -ENOTSUP;
	for (nr = 0; nr < ANSWERS_MAX; nr++) {
		err = ask(fd, addr, flags, name, &line);
		if (err == -ENOTTY)
			__atomic_store_n(&is_absent, true, __ATOMIC_RELAXED);
		/* -ENOENT: there are no more, and at the start none: the process is in
		 * execve(2). */
		if (err)
			return nr || from || err == -ENOENT ? 0 : err == -ESRCH ? err : -ENOTSUP;
		err = fn(arg, &line);
		if (err < 0)
			return err;
		/* The mapping after anonymous code may continue the file before it. */
		flags = line.is_exec && sb_map_kind(line.path, line.path_len) == SB_MAP_ANON
				? 0
				: VMA_EXECUTABLE;
		addr = line.end;
	}
	return -EFBIG;
}
