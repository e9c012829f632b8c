// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Split DWARF (DWARF 5, 3.1.2 and appendix F): functions are in a .dwo file, addresses and lines
 * in the program. The path of the .dwo file comes from a file that is not trusted. So only a
 * regular file is opened (no device, no pipe that waits for a writer), and only the unit with the
 * right ID is used.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "symbolizer/dwarf/dwarf_priv.h"
#include "symbolizer/elf/owner.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/process/reader.h"

static void file_freep(struct sb_dwarf_file **file)
{
	if (*file)
		sb_dwarf_file_release(*file);
	free(*file);
}

/* Without a budget the file was named by the user who runs us. */
static bool may_speak(int fd, const struct stat *st, const struct sb_budget *budget)
{
	const struct sb_file_owner owner = sb_file_owner(fd, st);

	return !budget || sb_owner_may_speak(&owner, budget->uid);
}

/* Return: a file descriptor, or a negative errno. */
static int open_regular(const char *path, const struct sb_budget *budget)
{
	int fd = sb_procfs_open(-1, path), err;
	struct stat st;

	if (fd < 0)
		return fd;
	err = sb_reader_fstat(fd, &st);
	if (!err && !st.st_size)
		err = -EINVAL;
	if (!err && !may_speak(fd, &st, budget))
		err = -EACCES;
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int open_split(const struct sb_unit *unit)
{
	char path[PATH_BYTES_MAX];
	int len;

	if (unit->dwo_name[0] == '/')
		return open_regular(unit->dwo_name, unit->file->dwarf->budget);
	if (!unit->comp_dir || unit->comp_dir[0] != '/')
		return -ENOENT;
	len = snprintf(path, sizeof(path), "%s/%s", unit->comp_dir, unit->dwo_name);
	return len < (int)sizeof(path) ? open_regular(path, unit->file->dwarf->budget)
				       : -ENAMETOOLONG;
}

/* Return: the unit that belongs to @skeleton, or NULL. */
static struct sb_unit *find_unit(struct sb_dwarf_file *file, const struct sb_unit *skeleton)
{
	size_t i;

	for (i = 0; i < file->units.nr; i++)
		if (file->units.at[i].is_code && file->units.at[i].dwo_id == skeleton->dwo_id)
			return &file->units.at[i];
	return NULL;
}

static void inherit(struct sb_unit *unit, const struct sb_unit *skeleton)
{
	unit->low_pc = skeleton->low_pc;
	unit->addr_base = skeleton->addr_base;
	unit->ranges_base = skeleton->ranges_base;
	unit->comp_dir = skeleton->comp_dir;
}

static int load(struct sb_unit *unit, struct sb_unit **ret_split)
{
	struct sb_dwarf *dwarf = unit->file->dwarf;
	sb_cleanup(file_freep) struct sb_dwarf_file *file = NULL;
	sb_cleanup(sb_closep) int fd = open_split(unit);
	struct sb_unit *split;
	int err;

	if (fd < 0)
		return fd;
	if (dwarf->splits.nr >= SPLIT_FILES_MAX)
		return -EFBIG;
	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOMEM;
	*file = (struct sb_dwarf_file){ .dwarf = dwarf, .main = unit->file, .is_dwo = true };
	err = sb_dwarf_file_load(file, fd);
	if (err)
		return err;
	split = find_unit(file, unit);
	if (!split)
		return -ENOENT;
	inherit(split, unit);
	err = sb_vec_push(&dwarf->splits, file);
	if (err)
		return err;
	(void)sb_take(file);
	*ret_split = split;
	return 0;
}

int sb_unit_load_split(struct sb_unit *unit)
{
	int err;

	if (unit->is_split_tried || !unit->dwo_name)
		return 0;
	unit->is_split_tried = true;
	err = load(unit, &unit->split);
	if (!err || err == -ENOMEM)
		return err;
	sb_debug("no '%s' for debug information: %s", unit->dwo_name, strerror(-err));
	unit->file->dwarf->losses.nr_splits++;
	return 0;
}
