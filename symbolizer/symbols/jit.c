// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/symbols/jit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/time.h"
#include "symbolizer/elf/owner.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/process/reader.h"
#include "symbolizer/symbols/perfmap.h"

#define MAP_PATH_MAX 64
/* An address that the map does not have is looked for again no sooner: some runtimes write their
 * map through a buffer. */
#define MISS_WAIT_NS (100 * SB_NS_PER_MS)

struct sb_jit {
	uint32_t tgid;
	bool has_ids;
	struct sb_procfs_ids ids;
	bool has_other_root;
	int root_fd; /* root directory of the process, if it differs from ours and is kept open */
	struct sb_perfmaps *maps;
	struct sb_perfmap *map; /* shared; NULL: none was read */
	uint64_t read_ns;
	uint64_t moved_start, moved_end; /* the mapping that is_moved is about */
	bool is_moved;
};

struct sb_jit *sb_jit_new(struct sb_perfmaps *maps, uint32_t tgid, bool keep_root)
{
	struct sb_jit *jit = calloc(1, sizeof(*jit));

	if (!jit)
		return NULL;
	jit->maps = maps;
	jit->tgid = tgid;
	jit->has_ids = !sb_procfs_ids(tgid, &jit->ids);
	jit->root_fd = sb_procfs_other_root(tgid);
	jit->has_other_root = jit->root_fd >= 0;
	if (jit->has_other_root && !keep_root) {
		close(jit->root_fd);
		jit->root_fd = -1;
	}
	return jit;
}

bool sb_jit_keeps_root(const struct sb_jit *jit)
{
	return jit->root_fd >= 0;
}

void sb_jit_free(struct sb_jit *jit)
{
	if (!jit)
		return;
	sb_perfmaps_put(jit->maps, jit->map);
	if (jit->root_fd >= 0)
		close(jit->root_fd);
	free(jit);
}

/* The user that root becomes when it drops privileges; many daemons run as it, too. */
#define UID_NOBODY 65534u

/* Anybody may write a file of that name into /tmp: believe the process's own user, and root; of one
 * that is gone, whose user is not known any more, the user who runs us. A file system that is not a
 * local one says of its files what its server wants: believe nobody there. */
static bool is_trusted(const struct sb_jit *jit, int fd)
{
	struct sb_file_owner owner;
	struct stat st;

	if (sb_reader_fstat(fd, &st))
		return false;
	owner = sb_file_owner(fd, &st);
	if (!sb_is_known_owner(&owner))
		return false;
	if (st.st_uid == 0)
		return true;
	return jit->has_ids ? st.st_uid == jit->ids.uid || st.st_uid == jit->ids.euid
			    : st.st_uid == geteuid() && st.st_uid != UID_NOBODY;
}

static bool read_from(struct sb_jit *jit, int root_fd, uint32_t tgid)
{
	sb_cleanup(sb_closep) int fd = -1;
	char path[MAP_PATH_MAX];

	snprintf(path, sizeof(path), "/tmp/perf-%u.map", tgid);
	fd = sb_procfs_open(root_fd, path);
	return fd >= 0 && is_trusted(jit, fd) && !sb_perfmaps_read(jit->maps, fd, &jit->map);
}

/* Read the map by the PID that the process has in its own namespace. */
static bool read_inner(struct sb_jit *jit)
{
	sb_cleanup(sb_closep) int fd = -1;

	if (!jit->has_ids)
		return false;
	if (jit->has_other_root && jit->root_fd < 0) {
		fd = sb_procfs_other_root(jit->tgid);
		return fd >= 0 && read_from(jit, fd, jit->ids.inner_tgid);
	}
	return read_from(jit, jit->root_fd, jit->ids.inner_tgid);
}

void sb_jit_read(struct sb_jit *jit)
{
	jit->read_ns = sb_now_ns();
	if (!read_inner(jit))
		read_from(jit, -1, jit->tgid);
}

const char *sb_jit_lookup(struct sb_jit *jit, uint64_t addr, uint64_t time_ns, uint64_t *ret_start)
{
	const char *name;

	if (!jit->read_ns || jit->read_ns < time_ns)
		sb_jit_read(jit);
	name = jit->map ? sb_perfmap_lookup(jit->map, addr, ret_start) : NULL;
	if (name || sb_now_ns() - jit->read_ns < MISS_WAIT_NS)
		return name;
	sb_jit_read(jit);
	return jit->map ? sb_perfmap_lookup(jit->map, addr, ret_start) : NULL;
}

bool sb_jit_is_cut(const struct sb_jit *jit)
{
	return jit->map && jit->map->is_cut;
}

bool sb_jit_has_map(const struct sb_jit *jit)
{
	return jit->map && jit->map->entries.nr;
}

struct moved_search {
	uint64_t addr;
	struct sb_jit *jit;
	struct sb_moved_text moved;
};

static int search_moved(void *arg, const struct sb_maps_line *line)
{
	struct moved_search *search = arg;
	struct sb_jit *jit = search->jit;

	if (sb_moved_text_feed(&search->moved, line) &&
	    search->moved.anon.start == jit->moved_start)
		jit->is_moved = true;
	if (line->start <= search->addr && search->addr < line->end) {
		jit->moved_start = line->start;
		jit->moved_end = line->end;
	}
	return 0;
}

bool sb_jit_is_moved_text(struct sb_jit *jit, uint64_t addr)
{
	struct moved_search search = { .addr = addr, .jit = jit };

	if (jit->moved_start <= addr && addr < jit->moved_end)
		return jit->is_moved;
	jit->moved_start = jit->moved_end = 0;
	jit->is_moved = false;
	if (sb_procfs_maps(jit->tgid, search_moved, &search))
		jit->is_moved = false;
	return jit->is_moved;
}
