// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The files that processes map, each with a number. A file is known by what the kernel says of it,
 * and none is opened here: a number may come with a pinned descriptor, which is the only sure way
 * to a file that is deleted later. Pins are a quarter of our descriptors; when there are too many,
 * those are closed first whose path still leads to the same file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/process/reader.h"
#include "symbolizer/symbols/modcache_priv.h"

/* Pinned descriptors that are examined to find one whose file can be opened again by its path. */
#define PIN_LOOKS 32u

static const char deleted[] = " (deleted)";

static uint64_t hash_file(const struct sb_mapped_file *id)
{
	uint64_t hash = sb_hash(id->path, id->path_len, id->ino);

	return sb_hash(id->build_id, id->build_id_bytes, hash);
}

static bool is_same_file(const struct sb_mapped_file *a, const struct sb_mapped_file *b)
{
	return a->ino == b->ino && a->ino_generation == b->ino_generation && a->maj == b->maj &&
	       a->min == b->min && a->build_id_bytes == b->build_id_bytes &&
	       !memcmp(a->build_id, b->build_id, a->build_id_bytes) && a->path_len == b->path_len &&
	       !memcmp(a->path, b->path, a->path_len);
}

/*
 * Anonymous memory has many names, which make no difference here; the index has one entry for it.
 */
static struct sb_mapped_file simplify(const struct sb_mapped_file *id)
{
	static const char *const same[] = { "[heap]", "[stack]", "[vdso]" };
	struct sb_mapped_file anon = { .path = "[anon]", .path_len = strlen("[anon]") };
	enum sb_map_kind kind = sb_map_kind(id->path, id->path_len);
	size_t i;

	if (kind != SB_MAP_ANON && kind != SB_MAP_VDSO)
		return *id;
	for (i = 0; i < SB_ARRAY_SIZE(same); i++) {
		if (!sb_text_is(id->path, id->path_len, same[i]))
			continue;
		anon.path = same[i];
		anon.path_len = id->path_len;
	}
	return anon;
}

static int add_file(struct sb_modcache *cache, const struct sb_mapped_file *id, uint64_t hash,
		    uint32_t *ret_file)
{
	struct sb_file file = { .id = *id, .fd = -1 };
	uint32_t at;
	int err;

	file.kind = sb_map_kind(id->path, id->path_len);
	file.path = strndup(id->path, id->path_len);
	if (!file.path)
		return -ENOMEM;
	file.id.path = file.path;
	if (cache->free_files.nr) {
		at = cache->free_files.at[cache->free_files.nr - 1];
		err = 0;
	} else {
		at = (uint32_t)cache->files.nr;
		err = sb_vec_reserve(&cache->files, cache->files.nr + 1);
	}
	if (!err)
		err = sb_index_add(&cache->files_index, hash, at);
	if (err) {
		free(file.path);
		return err;
	}
	if (at == cache->files.nr)
		cache->files.nr++;
	else
		cache->free_files.nr--;
	cache->files.at[at] = file;
	*ret_file = at;
	return 0;
}

int sb_modcache_file(struct sb_modcache *cache, const struct sb_mapped_file *id, uint32_t *ret_file)
{
	struct sb_mapped_file key = simplify(id);
	uint64_t hash = hash_file(&key);

	sb_index_each(it, &cache->files_index, hash) {
		if (is_same_file(&cache->files.at[it.id].id, &key)) {
			*ret_file = it.id;
			return 0;
		}
	}
	if ((cache->files.nr >= SB_MODCACHE_FILES_MAX && !cache->free_files.nr) ||
	    key.path_len > SB_MODCACHE_PATH_MAX) {
		cache->nr_files_refused++;
		*ret_file = SB_MODCACHE_FILE_NONE;
		return 0;
	}
	return add_file(cache, &key, hash, ret_file);
}

int sb_modcache_line_file(struct sb_modcache *cache, const struct sb_maps_line *line,
			  uint32_t *ret_file)
{
	const struct sb_mapped_file id = {
		.path = line->path,
		.path_len = line->path_len,
		.ino = line->ino,
		.maj = line->maj,
		.min = line->min,
	};

	return sb_modcache_file(cache, &id, ret_file);
}

enum sb_map_kind sb_modcache_kind(const struct sb_modcache *cache, uint32_t file)
{
	return cache->files.at[file].kind;
}

/* Length of the path without the " (deleted)" that the kernel appends. */
size_t sb_modcache_real_len(const struct sb_file *file)
{
	size_t len = file->id.path_len, suffix = strlen(deleted);

	if (file->kind == SB_MAP_SPECIAL || len == suffix ||
	    !sb_text_ends(file->path, len, deleted))
		return len;
	return len - suffix;
}

const char *sb_modcache_name(struct sb_modcache *cache, uint32_t file)
{
	struct sb_file *at = &cache->files.at[file];
	size_t len, start;
	uint32_t id;

	if (at->name)
		return at->name;
	if (file == SB_MODCACHE_FILE_NONE)
		return at->name = "";
	start = len = sb_modcache_real_len(at);
	while (start && at->path[start - 1] != '/')
		start--;
	if (sb_strtab_add(cache->opts.strings, at->path + start, len - start, &id))
		return NULL;
	return at->name = sb_strtab_get(cache->opts.strings, id, NULL);
}

void sb_modcache_unpin(struct sb_modcache *cache, struct sb_file *file)
{
	if (file->fd < 0)
		return;
	close(file->fd);
	file->fd = -1;
	cache->nr_pins--;
}

/* Does the path still lead to what @fd is? */
static bool is_found_again(const struct sb_file *file)
{
	struct stat by_path, by_fd;

	return !sb_reader_fstat(file->fd, &by_fd) &&
	       !sb_reader_stat(
		       &(struct sb_reader_file){ .place = SB_READER_HERE, .path = file->path },
		       &by_path) &&
	       by_path.st_dev == by_fd.st_dev && by_path.st_ino == by_fd.st_ino;
}

/* Close one pinned descriptor, if possible one whose file can be opened again. */
static void drop_pin(struct sb_modcache *cache)
{
	uint32_t nr_looks = 0, nr = (uint32_t)cache->files.nr, i;
	struct sb_file *file, *first = NULL;

	for (i = 0; i < nr && nr_looks < PIN_LOOKS; i++) {
		file = &cache->files.at[cache->pin_clock++ % nr];
		if (file->fd < 0)
			continue;
		nr_looks++;
		if (!first)
			first = file;
		if (is_found_again(file)) {
			sb_modcache_unpin(cache, file);
			return;
		}
	}
	if (first) {
		cache->nr_pins_dropped++;
		sb_modcache_unpin(cache, first);
	}
}

void sb_modcache_pin(struct sb_modcache *cache, uint32_t file, int fd)
{
	struct sb_file *at = &cache->files.at[file];

	if (file == SB_MODCACHE_FILE_NONE || at->fd >= 0 || at->module_id) {
		close(fd);
		return;
	}
	if (cache->nr_pins >= cache->pins_max)
		drop_pin(cache);
	at->fd = fd;
	at->err = 0;
	at->nr_tries = 0;
	cache->nr_pins++;
}

bool sb_modcache_forget_begin(struct sb_modcache *cache)
{
	size_t i, nr = cache->files.nr - cache->free_files.nr;

	/* There are so many more files that examining those that stay is cheap in comparison. */
	if (nr < SB_MODCACHE_FILES_FEW || (nr < 2 * cache->nr_left && nr < SB_MODCACHE_FILES_MAX))
		return false;
	for (i = 0; i < cache->files.nr; i++)
		cache->files.at[i].is_used = false;
	return true;
}

void sb_modcache_mark(struct sb_modcache *cache, uint32_t file)
{
	cache->files.at[file].is_used = true;
}

static void free_file(struct sb_modcache *cache, uint32_t at)
{
	struct sb_file *file = &cache->files.at[at];

	sb_modcache_unpin(cache, file);
	free(file->path);
	*file = (struct sb_file){ .fd = -1 };
	/* There is room, because it was reserved before anything was freed. */
	cache->free_files.at[cache->free_files.nr++] = at;
}

void sb_modcache_forget_end(struct sb_modcache *cache)
{
	struct sb_index index = {};
	uint32_t i;

	/* Forgetting needs memory; without it nothing is forgotten. */
	if (sb_vec_reserve(&cache->free_files, cache->files.nr))
		return;
	for (i = 1; i < cache->files.nr; i++) {
		const struct sb_file *file = &cache->files.at[i];

		if (file->path && file->is_used && sb_index_add(&index, hash_file(&file->id), i)) {
			sb_index_release(&index);
			return;
		}
	}
	for (i = 1; i < cache->files.nr; i++)
		if (cache->files.at[i].path && !cache->files.at[i].is_used)
			free_file(cache, i);
	sb_index_release(&cache->files_index);
	cache->files_index = index;
	cache->nr_left = cache->files.nr - cache->free_files.nr;
	sb_modcache_drop_idle(cache);
}
