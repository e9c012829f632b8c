// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How a libc stores thread-specific data. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "interp/core/image_priv.h"
#include "interp/core/step.h"
#include "symbolizer/process/procfs.h"

/* No static TLS block is longer, so larger values are pointers. */
#define STATIC_BYTES_MAX (1 << 24)

static bool is_musl(const char *path)
{
	const char *base = sb_base_name(path);

	/* As musl itself, Alpine and Debian call it. */
	return !strncmp(base, "ld-musl-", 8) || !strncmp(base, "libc.musl-", 10) ||
	       (strstr(path, "-linux-musl/") && sb_streq(base, "libc.so"));
}

bool sb_threads_are_musl(const struct sb_process_maps *maps)
{
	size_t i;

	for (i = 0; i < maps->nr; i++)
		if (is_musl(maps->at[i].path))
			return true;
	return false;
}

int sb_threads_descriptor(const struct sb_memory *memory, uint64_t got, bool *ret_is_pair,
			  uint64_t *ret_arg)
{
	uint64_t words[2];

	if (sb_memory_read(memory, words, sizeof(words), got) || !words[0])
		return -EAGAIN;
	*ret_is_pair =
		(int64_t)words[1] <= -STATIC_BYTES_MAX || (int64_t)words[1] >= STATIC_BYTES_MAX;
	*ret_arg = words[1];
	return 0;
}

static bool is_glibc(const char *path)
{
	return strstr(path, "/libc.so.6") || strstr(path, "/libc-2.");
}

#ifdef SB_MACHINE_ARM64
/* The numbers that glibc has for debuggers: nptl_db/structs.def, db_info.c. */
static int read_numbers(struct sb_image *image, const char *name, uint32_t *ret, size_t nr)
{
	uint64_t addr;
	int err = sb_image_symbol(image, name, &addr, NULL);

	return err ? err : sb_image_read(image, addr, ret, nr * sizeof(*ret));
}

/*
 * struct pthread ends where the thread pointer points (aarch64/nptl/tls.h), and how long it is
 * differs by version. Its .specific is a description: bits, number, offset.
 */
static int read_tsd(uint32_t tgid, const struct sb_maps_line *map, struct sb_interp_tsd *tsd)
{
	sb_cleanup(sb_closep) int fd = sb_procfs_open_line(tgid, map);
	uint32_t size = 0, specific[3] = {};
	struct sb_image image = {};
	int err;

	if (fd < 0)
		return fd;
	err = sb_image_file_new(fd, map->path, &image.file);
	if (err)
		return err;
	err = read_numbers(&image, "_thread_db_sizeof_pthread", &size, 1);
	err = err ? err : read_numbers(&image, "_thread_db_pthread_specific", specific, 3);
	sb_image_file_free(image.file);
	if (err)
		return err;
	/* 32 slots of two words come before it. */
	if (size > UINT16_MAX || specific[2] >= size || specific[2] < 32 * 16)
		return -ENOENT;
	*tsd = (struct sb_interp_tsd){
		.first_block = (uint16_t)(specific[2] - 32 * 16),
		.blocks = (uint16_t)specific[2],
		.below = (uint16_t)size,
	};
	return 0;
}

/* Up to 2.33 they are in libpthread. */
int sb_threads_tsd(const struct sb_process_maps *maps, struct sb_interp_tsd *ret_tsd)
{
	size_t i;

	*ret_tsd = (struct sb_interp_tsd){};
	for (i = 0; i < maps->nr; i++) {
		const char *path = maps->at[i].path;

		if (!maps->at[i].is_exec)
			continue;
		if (is_musl(path))
			return -ENOENT;
		if ((is_glibc(path) || strstr(path, "/libpthread")) &&
		    !read_tsd(maps->tgid, &maps->at[i], ret_tsd))
			return 0;
	}
	return -ENOENT;
}
#else
/* struct pthread of glibc 2.4 to 2.42, x86-64: nptl/descr.h. pthread_getspecific() of all of them
 * has these numbers in its code; from 2.34 on libc.so exports them as
 * _thread_db_pthread_specific. */
static const struct sb_interp_tsd glibc = { .first_block = 0x310, .blocks = 0x510 };
/* struct pthread.tsd of musl 1.1 to 1.2, x86-64: src/internal/pthread_impl.h. */
static const struct sb_interp_tsd musl = { .is_musl = 1, .blocks = 0x80 };

int sb_threads_tsd(const struct sb_process_maps *maps, struct sb_interp_tsd *ret_tsd)
{
	size_t i;

	*ret_tsd = glibc;
	for (i = 0; i < maps->nr; i++) {
		if (is_musl(maps->at[i].path)) {
			*ret_tsd = musl;
			return 0;
		}
		if (is_glibc(maps->at[i].path))
			return 0;
	}
	return -ENOENT;
}
#endif
