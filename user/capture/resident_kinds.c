// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tells kinds of pages apart: the kernel says of each page whether it is of a file, as RssFile,
 * RssShmem and RssAnon of /proc/PID/status count it, and the name of its mapping tells the rest. A
 * page of a private mapping of a file that was written to is a copy, and no page of the file any
 * more.
 */
#include <errno.h>
#include <string.h>

#include "bpf/abi/sb_abi_memory.h"
#include "capture/resident_priv.h"
#include "symbolizer/process/procfs.h"

/* A mapping, and of what kind its pages are. */
struct area {
	uint64_t start, end;
	uint8_t of_file, of_none; /* enum sb_memory_kind: pages of a file, and others */
};

struct areas {
	SB_VEC(struct area) at;
};

struct runs {
	SB_VEC(struct sb_page_run) at;
};

static bool is_named(const struct sb_maps_line *line, const char *name)
{
	const size_t len = strlen(name);

	return line->path_len >= len && !memcmp(line->path, name, len);
}

static int add_area(void *arg, const struct sb_maps_line *line)
{
	struct areas *areas = arg;
	struct area area = {
		.start = line->start,
		.end = line->end,
		.of_file = SB_MEMORY_FILE,
		.of_none = SB_MEMORY_ANON,
	};

	if (sb_map_kind(line->path, line->path_len) == SB_MAP_MEMORY)
		area.of_file = SB_MEMORY_SHMEM;
	if (is_named(line, "[heap]"))
		area.of_none = SB_MEMORY_HEAP;
	else if (is_named(line, "[stack]"))
		area.of_none = SB_MEMORY_STACK;
	return sb_vec_push(&areas->at, area);
}

/* Return: the mapping at @addr, or else the one above it; the number of all: there is none. */
static size_t find_area(const struct areas *areas, uint64_t addr)
{
	size_t low = 0, high = areas->at.nr;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (areas->at.at[mid].end <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The kind of the mapping at @addr, up to the next one. What was mapped after the pages were looked
 * at, or lies beyond the bound of what is read, has no name. *@ret_is_read: there is a mapping that
 * was read. */
static struct area area_at(const struct areas *areas, uint64_t addr, bool *ret_is_read)
{
	const size_t i = find_area(areas, addr);
	struct area none = { addr, UINT64_MAX, SB_MEMORY_FILE, SB_MEMORY_ANON };

	*ret_is_read = i < areas->at.nr && areas->at.at[i].start <= addr;
	if (*ret_is_read)
		return areas->at.at[i];
	if (i < areas->at.nr)
		none.end = areas->at.at[i].start;
	return none;
}

/* Append a run, in as many parts as it has mappings. @unsorted: grows by bytes of no mapping that
 * was read. */
static int mark_run(const struct sb_resident *resident, const struct areas *areas,
		    const struct sb_page_run *run, struct runs *marked, uint64_t *unsorted)
{
	const uint64_t page_bytes = 1ull << resident->page_shift;
	uint64_t at = run->start, end = run->start + run->nr * page_bytes, until;
	uint32_t kind;
	bool is_read;
	int err = 0;

	for (; at < end && !err; at = until) {
		const struct area area = area_at(areas, at, &is_read);

		until = area.end < end ? area.end : end;
		if (!is_read && run->kind & SB_PAGE_PRESENT && !(run->kind & SB_PAGE_ZERO))
			*unsorted += until - at;
		kind = run->kind & SB_PAGE_FILE ? area.of_file : area.of_none;
		err = sb_vec_push(&marked->at,
				  ((struct sb_page_run){
					  .start = at,
					  .nr = (uint32_t)((until - at) / page_bytes),
					  .kind = run->kind | (resident->opts.kinds >> kind & 1
								       ? 0
								       : SB_PAGE_ACCOUNT_PASS),
				  }));
	}
	return err;
}

int sb_resident_mark_kinds(struct sb_resident *resident, uint32_t number)
{
	struct space *space = &resident->spaces.at[number];
	struct areas areas = {};
	struct runs marked = {};
	uint64_t unsorted = 0;
	size_t i;
	int err = sb_procfs_maps(space->key.tgid, add_area, &areas);

	if (err == -EBADMSG || err == -EFBIG)
		err = 0;
	for (i = 0; i < space->runs.nr && !err; i++) {
		err = mark_run(resident, &areas, &space->runs.at[i], &marked, &unsorted);
		if (!err &&
		    resident->nr_runs - space->runs.nr + marked.at.nr > SB_RESIDENT_RUNS_MAX)
			err = -E2BIG;
	}
	sb_vec_release(&areas.at);
	if (err) {
		sb_vec_release(&marked.at);
		return err;
	}
	/* A process that is left out has none. */
	resident->stats.unsorted += unsorted;
	resident->nr_runs += marked.at.nr - space->runs.nr;
	sb_vec_release(&space->runs);
	space->runs.at = marked.at.at;
	space->runs.nr = marked.at.nr;
	space->runs.cap = marked.at.cap;
	return 0;
}
