// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The overlay and virtiofs mounts in our own mount table. The kernel takes about 1 us for each
 * mount to print /proc/self/mountinfo: 4 ms with 5,000 mounts, for each file that is opened. So
 * what was found is kept until the table changes, which poll(2) reports (proc_pid_mountinfo(5)):
 * each open file of the table has its own mark of what it has seen.
 *
 * A device number that was found cannot have been given to another file system meanwhile. The
 * caller has a file of the device open, so the device has existed since before the poll; and when
 * a mount of our table goes, the table changes.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "reader_priv.h"

static const char *const types[SB_READER_MOUNT_MAX] = {
	[SB_READER_OVERLAY] = " - overlay ",
	[SB_READER_VIRTIOFS] = " - virtiofs ",
};

/*
 * poll(2) sets the mark, reading does not: the next poll sees what changes while the table is
 * read.
 */
static bool has_changed(struct sb_reader_mounts *mounts)
{
	struct pollfd table = { .events = POLLPRI };

	if (!mounts->table)
		mounts->table = fopen("/proc/self/mountinfo", "re");
	if (!mounts->table)
		return true;
	table.fd = fileno(mounts->table);
	return poll(&table, 1, 0) != 0 || !mounts->is_read;
}

static int add_line(struct sb_reader_mounts *mounts, const char *line)
{
	unsigned int maj, min, kind;

	/* Spaces in paths are written as \040, so these strings occur only between fields. */
	for (kind = 0; kind < SB_READER_MOUNT_MAX && !strstr(line, types[kind]); kind++)
		;
	if (kind == SB_READER_MOUNT_MAX || sscanf(line, "%*u %*u %u:%u ", &maj, &min) != 2)
		return 0;
	return sb_vec_push(&mounts->found, (struct sb_reader_mount){ makedev(maj, min), kind });
}

/* The size of the table is bounded by the kernel (fs.mount-max). */
static bool read_table(struct sb_reader_mounts *mounts)
{
	sb_cleanup(sb_freep) char *line = NULL;
	size_t size = 0;
	int err = 0;

	mounts->found.nr = 0;
	if (!mounts->table || fseek(mounts->table, 0, SEEK_SET))
		return false;
	while (!err && getline(&line, &size, mounts->table) > 0)
		err = add_line(mounts, line);
	return !err && feof(mounts->table) && !ferror(mounts->table);
}

bool sb_reader_is_mounted(struct sb_reader_mounts *mounts, dev_t dev,
			  enum sb_reader_mount_kind kind)
{
	size_t i;

	if (has_changed(mounts))
		mounts->is_read = read_table(mounts);
	for (i = 0; mounts->is_read && i < mounts->found.nr; i++)
		if (mounts->found.at[i].dev == dev && mounts->found.at[i].kind == kind)
			return true;
	return false;
}

void sb_reader_mounts_release(struct sb_reader_mounts *mounts)
{
	if (mounts->table)
		fclose(mounts->table);
	sb_vec_release(&mounts->found);
	*mounts = (struct sb_reader_mounts){};
}
