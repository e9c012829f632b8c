// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "workers/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "base/cleanup.h"

/*
 * linux/landlock.h, as far as we use it: the header of the machine that builds may be older than
 * the kernel of the machine that runs. The numbers are the same on all architectures.
 */
#define NR_CREATE_RULESET 444
#define NR_ADD_RULE	  445
#define NR_RESTRICT_SELF  446
#define ASK_VERSION	  (1u << 0)
#define RULE_PATH_BENEATH 1
#define FS_WRITE_FILE	  (1ull << 1)
#define FS_READ_FILE	  (1ull << 2)
#define FS_READ_DIR	  (1ull << 3)
#define FS_REMOVE_DIR	  (1ull << 4)
#define FS_REMOVE_FILE	  (1ull << 5)
#define FS_MAKE_DIR	  (1ull << 7)
#define FS_MAKE_REG	  (1ull << 8)
#define FS_TRUNCATE	  (1ull << 14)

struct ruleset {
	uint64_t fs, net, scoped;
};

/* Packed, as the kernel has it. */
struct path_beneath {
	uint64_t allowed;
	int32_t parent_fd;
} __attribute__((packed));

#define READING (FS_READ_FILE | FS_READ_DIR)
#define WRITING \
	(FS_WRITE_FILE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG | FS_TRUNCATE)

/* What each version brought: all of it is refused, but for what a rule allows. */
static const struct {
	int version;
	struct ruleset handled;
} versions[] = {
	{ 1, { .fs = 0x1fff } },      /* from executing to making symbolic links */
	{ 2, { .fs = 1ull << 13 } },  /* renaming between directories */
	{ 3, { .fs = FS_TRUNCATE } }, /* Linux 6.2 */
	{ 4, { .net = 0x3 } },	      /* TCP: bind(2), connect(2) */
	{ 5, { .fs = 1ull << 15 } },  /* ioctl(2) on devices */
	{ 6, { .scoped = 0x3 } },     /* abstract Unix sockets, signals */
};
#define SCOPED_SIGNAL (1ull << 1)

static int ask_version(void)
{
#ifdef SB_NO_LANDLOCK
	return 0; /* sanitizers and coverage open files of their own */
#else
	long version = syscall(NR_CREATE_RULESET, NULL, 0, ASK_VERSION);

	return version < 0 ? 0 : (int)version;
#endif
}

int sb_landlock_version(void)
{
	static int version = -1;

	/* Below our own filters it cannot be asked any more. */
	if (version < 0)
		version = ask_version();
	return version;
}

static int allow(int ruleset_fd, uint64_t allowed, const char *dir)
{
	sb_cleanup(sb_closep) int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct path_beneath rule = { .allowed = allowed, .parent_fd = dir_fd };

	if (dir_fd < 0)
		return -errno;
	return syscall(NR_ADD_RULE, ruleset_fd, RULE_PATH_BENEATH, &rule, 0) ? -errno : 0;
}

int sb_landlock(enum sb_landlock_files files, const char *dir, bool may_signal)
{
	const uint64_t wanted = files == SB_LANDLOCK_WRITE ? READING | WRITING : READING;
	sb_cleanup(sb_closep) int fd = -1;
	struct ruleset handled = {};
	int version = sb_landlock_version(), err = 0;
	size_t i;

	if (!version)
		return 0;
	for (i = 0; i < SB_ARRAY_SIZE(versions) && versions[i].version <= version; i++) {
		handled.fs |= versions[i].handled.fs;
		handled.net |= versions[i].handled.net;
		handled.scoped |= versions[i].handled.scoped;
	}
	if (may_signal)
		handled.scoped &= ~SCOPED_SIGNAL;
	/* An older kernel takes a longer structure if the rest of it is 0. */
	fd = (int)syscall(NR_CREATE_RULESET, &handled, sizeof(handled), 0);
	if (fd < 0)
		return -errno;
	if (files != SB_LANDLOCK_NONE)
		err = allow(fd, wanted & handled.fs, dir);
	if (!err && syscall(NR_RESTRICT_SELF, fd, 0))
		err = -errno;
	return err;
}
