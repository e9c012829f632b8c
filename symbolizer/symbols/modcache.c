// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/symbols/modcache.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/search.h"
#include "base/time.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/process/reader.h"

/* Bound of processes through which a file is tried again after it could not be opened. */
#define TRIES_MAX	  8u
/* Pinned descriptors that are examined to find one whose file can be opened again by its path. */
#define PIN_LOOKS	  32u
#define MAP_PATH_MAX	  64
#define ROOT_LEN_MAX	  32
/* An unwind table that was not used for so long is freed. */
#define RESTED_NS	  (10 * SB_NS_PER_SEC)
/* Usual size of headers: some 40 sections, and their names. */
#define HEADER_BYTES_FAIR (64u << 10)

static const char deleted[] = " (deleted)";

/* Of all descriptors this process may have, a quarter for pins and a quarter for modules. */
static void set_fd_budget(struct sb_modcache *cache)
{
	struct rlimit limit;
	uint64_t quarter = 256;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur != RLIM_INFINITY)
		quarter = limit.rlim_cur / 4;
	cache->pins_max = quarter < 16384 ? (uint32_t)quarter : 16384;
	/* A module may hold two, but few are busy at a time. */
	cache->modules_max =
		quarter < SB_MODCACHE_MODULES_MAX ? (uint32_t)quarter : SB_MODCACHE_MODULES_MAX;
	if (!cache->modules_max)
		cache->modules_max = 1;
}

static void reclaim(void *arg, const struct sb_budget *keep_budget, size_t bytes);

int sb_modcache_init(struct sb_modcache *cache, const struct sb_module_opts *opts)
{
	struct sb_file none = { .fd = -1, .kind = SB_MAP_SPECIAL };

	*cache = (struct sb_modcache){ .opts = *opts };
	cache->heavy_bytes_max =
		opts->sym->heavy_bytes_max ? opts->sym->heavy_bytes_max : SB_MODCACHE_HEAVY_BYTES;
	set_fd_budget(cache);
	if (opts->pool) {
		opts->pool->reclaim = reclaim;
		opts->pool->reclaim_arg = cache;
	}
	return sb_vec_push(&cache->files, none);
}

static void unpin(struct sb_modcache *cache, struct sb_file *file)
{
	if (file->fd < 0)
		return;
	close(file->fd);
	file->fd = -1;
	cache->nr_pins--;
}

void sb_modcache_release(struct sb_modcache *cache)
{
	size_t i;

	for (i = 0; i < cache->files.nr; i++) {
		unpin(cache, &cache->files.at[i]);
		free(cache->files.at[i].path);
	}
	for (i = 0; i < cache->modules.nr; i++) {
		sb_module_free(cache->modules.at[i]->module);
		free(cache->modules.at[i]);
	}
	sb_vec_release(&cache->files);
	sb_vec_release(&cache->free_files);
	sb_vec_release(&cache->modules);
	sb_index_release(&cache->files_index);
}

/* Files */

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
		if (id->path_len != strlen(same[i]) || memcmp(id->path, same[i], id->path_len))
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
	struct sb_index_iter it;

	for (it = sb_index_first(&cache->files_index, hash); it.id != SB_INDEX_NONE;
	     it = sb_index_next(&cache->files_index, it)) {
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
static size_t real_len(const struct sb_file *file)
{
	size_t len = file->id.path_len, suffix = strlen(deleted);

	if (file->kind == SB_MAP_SPECIAL || len <= suffix ||
	    memcmp(file->path + len - suffix, deleted, suffix))
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
	start = len = real_len(at);
	while (start && at->path[start - 1] != '/')
		start--;
	if (sb_strtab_add(cache->opts.strings, at->path + start, len - start, &id))
		return NULL;
	return at->name = sb_strtab_get(cache->opts.strings, id, NULL);
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
			unpin(cache, file);
			return;
		}
	}
	if (first) {
		cache->nr_pins_dropped++;
		unpin(cache, first);
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

/* Modules */

static uint64_t in_ns(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * SB_NS_PER_SEC + (uint64_t)ts->tv_nsec;
}

static struct sb_file_stamp stamp_of(const struct stat *st)
{
	return (struct sb_file_stamp){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_ns = in_ns(&st->st_mtim),
		.ctime_ns = in_ns(&st->st_ctim),
	};
}

static bool runs_as(uint32_t tgid, const struct sb_file_owner *owner)
{
	struct sb_procfs_ids ids;

	return !owner->ino && !sb_procfs_ids(tgid, &ids) && ids.euid == owner->uid;
}

/* Return: 1 if the process maps that very file, 0 if it maps another one there, -ENOENT if that cannot be told. */
static int is_mapping(const struct sb_mapped_at *at, const struct sb_file_stamp *stamp)
{
	struct statx stx;
	char path[MAP_PATH_MAX];

	snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", at->tgid,
		 (unsigned long long)at->start, (unsigned long long)at->end);
	/* AT_STATX_DONT_SYNC: do not ask the server of a file system, which may not answer. */
	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &stx))
		return -ENOENT;
	return stx.stx_ino == stamp->ino &&
	       makedev(stx.stx_dev_major, stx.stx_dev_minor) == stamp->dev;
}

/* Return: whether a file that is not root's may be used for what the process @at maps as @file. */
static bool may_speak(struct sb_file *file, const struct sb_mapped_at *at,
		      const struct sb_file_owner *owner, const struct sb_file_stamp *stamp)
{
	struct sb_procfs_ids ids;
	int proof;

	if (sb_is_of_root(owner) || file->proven_tgid == at->tgid)
		return true;
	proof = is_mapping(at, stamp);
	if (proof > 0)
		file->proven_tgid = at->tgid;
	if (!proof)
		file->is_contested = true;
	if (proof >= 0)
		return proof;
	if (!sb_procfs_ids(at->tgid, &ids))
		return runs_as(at->tgid, owner);
	/* It has ended. For children of a user's programs the files of their parents are used. */
	return !file->is_contested;
}

static bool has_build_id(const struct sb_cached_module *module, const uint8_t *build_id, size_t len)
{
	size_t have_len;
	const uint8_t *have = sb_module_build_id(module->module, &have_len);

	return len && have_len == len && !memcmp(have, build_id, len);
}

/* A linear search is enough: it is made once for each of a few hundred modules. */
static struct sb_cached_module *find_stamp(struct sb_modcache *cache,
					   const struct sb_file_stamp *stamp)
{
	size_t i;

	for (i = 0; i < cache->modules.nr; i++)
		if (!memcmp(&cache->modules.at[i]->stamp, stamp, sizeof(*stamp)))
			return cache->modules.at[i];
	return NULL;
}

/* A stripped file and its unstripped twin have the same build ID, but not the same size. */
static struct sb_cached_module *find_twin(struct sb_modcache *cache, const uint8_t *build_id,
					  size_t len, uint64_t size,
					  const struct sb_file_owner *owner)
{
	struct sb_cached_module *module;
	size_t i;

	for (i = 0; i < cache->modules.nr; i++) {
		module = cache->modules.at[i];
		if (module->stamp.size == size && sb_is_same_owner(&module->owner, owner) &&
		    has_build_id(module, build_id, len))
			return module;
	}
	return NULL;
}

/*
 * Find a module for a process whose file cannot be opened: root's, or that of the process's user.
 */
static struct sb_cached_module *find_stand_in(struct sb_modcache *cache,
					      const struct sb_mapped_file *id, uint32_t tgid)
{
	struct sb_cached_module *module;
	size_t i;

	for (i = 0; i < cache->modules.nr; i++) {
		module = cache->modules.at[i];
		if (has_build_id(module, id->build_id, id->build_id_bytes) &&
		    (sb_is_of_root(&module->owner) || runs_as(tgid, &module->owner)))
			return module;
	}
	return NULL;
}

static struct sb_cached_module *find_id(const struct sb_modcache *cache, uint32_t id)
{
	size_t at = sb_bisect(cache->modules.nr, i, cache->modules.at[i]->id < id);

	return at < cache->modules.nr && cache->modules.at[at]->id == id ? cache->modules.at[at]
									 : NULL;
}

static void drop_module(struct sb_modcache *cache, size_t i)
{
	struct sb_cached_module *module = cache->modules.at[i];

	/* Files that refer to its id will find that it is gone. */
	cache->light_bytes -= module->light_bytes;
	cache->heavy_bytes -= module->heavy_bytes;
	sb_module_free(module->module);
	free(module);
	memmove(&cache->modules.at[i], &cache->modules.at[i + 1],
		(cache->modules.nr - i - 1) * sizeof(*cache->modules.at));
	cache->modules.nr--;
	cache->nr_evictions++;
}

/* Return: the index of the least recently used module. There must be one. */
static size_t find_oldest(const struct sb_modcache *cache)
{
	size_t i, oldest = 0;

	for (i = 1; i < cache->modules.nr; i++)
		if (cache->modules.at[i]->used < cache->modules.at[oldest]->used)
			oldest = i;
	return oldest;
}

static size_t heavy_bytes_of(const struct sb_cached_module *module)
{
	return module->heavy_bytes;
}

static size_t light_bytes_of(const struct sb_cached_module *module)
{
	return module->light_bytes;
}

/* Return: the least recently used module, other than @keep, that has any such bytes; or NULL. */
static struct sb_cached_module *find_idle(const struct sb_modcache *cache,
					  const struct sb_cached_module *keep,
					  size_t (*bytes_of)(const struct sb_cached_module *module))
{
	struct sb_cached_module *oldest = NULL, *module;
	size_t i;

	for (i = 0; i < cache->modules.nr; i++) {
		module = cache->modules.at[i];
		if (module != keep && bytes_of(module) && (!oldest || module->used < oldest->used))
			oldest = module;
	}
	return oldest;
}

/* Takes ownership of @module. */
static int add_module(struct sb_modcache *cache, struct sb_module *module,
		      const struct sb_file_stamp *stamp, struct sb_cached_module **ret_module)
{
	struct sb_cached_module *new;
	int err;

	if (cache->modules.nr >= cache->modules_max)
		drop_module(cache, find_oldest(cache));
	new = calloc(1, sizeof(*new));
	err = new ? sb_vec_push(&cache->modules, new) : -ENOMEM;
	if (err) {
		free(new);
		sb_module_free(module);
		return err;
	}
	new->module = module;
	new->id = ++cache->last_id;
	new->used = ++cache->tick;
	new->stamp = *stamp;
	cache->nr_opened++;
	*ret_module = new;
	return 0;
}

/* Is what lies behind @fd the file that was mapped? Without a build ID the inode must be the same;
 * overlayfs and btrfs show another device number in maps than by stat(). */
static bool is_mapped_file(const struct sb_mapped_file *id, int fd, const struct stat *st)
{
	struct statfs fs;

	if (id->build_id_bytes || !id->ino)
		return true;
	if (st->st_ino != id->ino)
		return false;
	if (st->st_dev == makedev(id->maj, id->min))
		return true;
	/* The original of a copy was found by the mapping, or by its inode number. */
	if (sb_reader_is_copy(fd))
		return true;
	return !fstatfs(fd, &fs) &&
	       (fs.f_type == OVERLAYFS_SUPER_MAGIC || fs.f_type == BTRFS_SUPER_MAGIC);
}

struct opening {
	const char *path; /* name of the file; debug files are looked for next to it */
	const char *root;
	const struct sb_mapped_file *id; /* what it must be, or NULL */
};

/* Return: 0, -ESTALE (another file), -ENOEXEC, -EFBIG, -ENOMEM, others of I/O. */
static int open_module(struct sb_modcache *cache, int fd, const struct opening *opening,
		       struct sb_cached_module **ret_module)
{
	const struct sb_mapped_file *id = opening->id;
	struct sb_module_opts opts = cache->opts;
	struct sb_cached_module *have;
	struct sb_file_stamp stamp;
	struct sb_file_owner owner;
	struct sb_module *module;
	const uint8_t *build_id;
	struct stat st;
	size_t len;
	int err;

	err = sb_reader_fstat(fd, &st);
	if (err)
		return err;
	owner = sb_file_owner(fd, &st);
	if (id && !is_mapped_file(id, fd, &st))
		return -ESTALE;
	stamp = stamp_of(&st);
	have = find_stamp(cache, &stamp);
	if (have && id && id->build_id_bytes &&
	    !has_build_id(have, id->build_id, id->build_id_bytes))
		return -ESTALE;
	if (have) {
		*ret_module = have;
		return 0;
	}
	opts.root = opening->root;
	err = sb_module_new_fd(fd, opening->path, &opts, &module);
	if (err)
		return err;
	build_id = sb_module_build_id(module, &len);
	if (id && id->build_id_bytes &&
	    (len != id->build_id_bytes || memcmp(build_id, id->build_id, len))) {
		sb_module_free(module);
		return -ESTALE;
	}
	have = find_twin(cache, build_id, len, stamp.size, &owner);
	if (have) {
		sb_module_free(module);
		*ret_module = have;
		return 0;
	}
	err = add_module(cache, module, &stamp, ret_module);
	if (!err)
		(*ret_module)->owner = owner;
	return err;
}

/* Ways to a mapped file */

struct search {
	struct sb_modcache *cache;
	struct opening opening;
	char root[ROOT_LEN_MAX]; /* opening.root may point here */
	struct sb_cached_module *module;
	int err; /* the most informative error so far */
};

/* Try the file behind @fd, and close it. Return: whether the search is over. */
static bool try_fd(struct search *search, int fd)
{
	int err;

	if (fd < 0)
		return false;
	err = open_module(search->cache, fd, &search->opening, &search->module);
	close(fd);
	if (!err || err == -ENOMEM || err == -ENOEXEC || err == -EFBIG)
		search->err = err;
	return !err || err == -ENOMEM;
}

/* A file that the kernel marked " (deleted)" may exist again; a name may also end like that. */
static bool try_paths(struct search *search, int root_fd, const struct sb_file *file, char *path)
{
	if (try_fd(search, sb_procfs_open(root_fd, file->path)))
		return true;
	return real_len(file) != file->id.path_len && try_fd(search, sb_procfs_open(root_fd, path));
}

/* The pinned file is that of the first process that was seen to map a file of this name. */
static bool may_use_pin(struct sb_file *file, const struct sb_mapped_at *at)
{
	struct sb_file_owner owner;
	struct sb_file_stamp stamp;
	struct stat st;

	if (file->fd < 0 || sb_reader_fstat(file->fd, &st))
		return false;
	owner = sb_file_owner(file->fd, &st);
	stamp = stamp_of(&st);
	return may_speak(file, at, &owner, &stamp);
}

static bool try_all(struct search *search, struct sb_file *file, const struct sb_mapped_at *at,
		    char *path)
{
	sb_cleanup(sb_closep) int root_fd = -1;

	root_fd = sb_procfs_other_root(at->tgid);
	if (root_fd >= 0) {
		snprintf(search->root, sizeof(search->root), "/proc/%u/root", at->tgid);
		search->opening.root = search->root;
	}
	if (may_use_pin(file, at) && try_fd(search, fcntl(file->fd, F_DUPFD_CLOEXEC, 0)))
		return true;
	if (try_fd(search, sb_procfs_open_mapped(at->tgid, at->start, at->end)))
		return true;
	if (file->kind != SB_MAP_FILE)
		return false;
	if (root_fd >= 0 && try_paths(search, root_fd, file, path))
		return true;
	search->opening.root = NULL;
	return try_paths(search, -1, file, path);
}

/* Try other files with the same build ID that are open or pinned. */
static bool try_same_build_id(struct search *search, const struct sb_mapped_file *id, uint32_t tgid)
{
	struct sb_modcache *cache = search->cache;
	struct sb_file_owner owner;
	struct stat st;
	size_t i;

	search->module = find_stand_in(cache, id, tgid);
	if (search->module) {
		search->err = 0;
		return true;
	}
	for (i = 0; id->build_id_bytes && i < cache->files.nr; i++) {
		const struct sb_file *file = &cache->files.at[i];

		if (file->fd >= 0 && file->id.build_id_bytes == id->build_id_bytes &&
		    !memcmp(file->id.build_id, id->build_id, id->build_id_bytes) &&
		    !sb_reader_fstat(file->fd, &st) &&
		    (owner = sb_file_owner(file->fd, &st),
		     sb_is_of_root(&owner) || runs_as(tgid, &owner)) &&
		    try_fd(search, fcntl(file->fd, F_DUPFD_CLOEXEC, 0)))
			return true;
	}
	return false;
}

int sb_modcache_get(struct sb_modcache *cache, uint32_t file_nr, const struct sb_mapped_at *at,
		    struct sb_cached_module **ret_module)
{
	struct sb_file *file = &cache->files.at[file_nr];
	sb_cleanup(sb_freep) char *path = NULL;
	struct search search = { .cache = cache, .err = -ENOENT };

	if (file_nr == SB_MODCACHE_FILE_NONE)
		return -EFBIG;
	search.module = file->module_id ? find_id(cache, file->module_id) : NULL;
	if (search.module && may_speak(file, at, &search.module->owner, &search.module->stamp)) {
		search.module->used = ++cache->tick;
		*ret_module = search.module;
		return 0;
	}
	search.module = NULL;
	if (file->err && (file->err_tgid == at->tgid || file->nr_tries >= TRIES_MAX))
		return file->err;
	path = strndup(file->path, real_len(file));
	if (!path)
		return -ENOMEM;
	search.opening.path = path;
	search.opening.id = &file->id;
	if (!try_all(&search, file, at, path))
		try_same_build_id(&search, &file->id, at->tgid);
	if (search.err || !search.module) {
		sb_debug("cannot use '%s' of process %u (error %d)", path, at->tgid, -search.err);
		file->err = search.err == -ENOMEM ? 0 : search.err;
		file->err_tgid = at->tgid;
		file->nr_tries++;
		return search.err;
	}
	/* A module that all processes may use is remembered for the file. */
	if (!file->is_contested || sb_is_of_root(&search.module->owner)) {
		unpin(cache, file);
		file->module_id = search.module->id;
	}
	file->err = 0;
	search.module->used = ++cache->tick;
	*ret_module = search.module;
	return 0;
}

int sb_modcache_get_path(struct sb_modcache *cache, const char *path,
			 struct sb_cached_module **ret_module)
{
	struct opening opening = { .path = path };
	sb_cleanup(sb_closep) int fd = sb_procfs_open(-1, path);

	if (fd < 0)
		return fd;
	return open_module(cache, fd, &opening, ret_module);
}

int sb_modcache_get_image(struct sb_modcache *cache, const void *image, size_t len,
			  const char *name, struct sb_cached_module **ret_module)
{
	struct sb_module_opts opts = cache->opts;
	struct sb_file_stamp stamp = {};
	uint64_t hash = sb_hash(image, len, 0);
	struct sb_module *module;
	size_t i;
	int err;

	/* Stamps of images differ from those of files, of which none has the inode number 0. */
	stamp.size = len;
	for (i = 0; i < cache->modules.nr; i++) {
		if (cache->modules.at[i]->hash != hash || cache->modules.at[i]->stamp.ino ||
		    cache->modules.at[i]->stamp.size != len)
			continue;
		*ret_module = cache->modules.at[i];
		(*ret_module)->used = ++cache->tick;
		return 0;
	}
	opts.root = NULL;
	err = sb_module_new_image(image, len, name, &opts, &module);
	if (err)
		return err;
	err = add_module(cache, module, &stamp, ret_module);
	if (!err)
		(*ret_module)->hash = hash;
	return err;
}

static void drop_heavy(struct sb_modcache *cache, struct sb_cached_module *module)
{
	sb_module_drop_heavy(module->module);
	sb_module_settle(module->module);
	cache->heavy_bytes -= module->heavy_bytes;
	module->heavy_bytes = 0;
	cache->nr_evictions++;
}

static void drop_light(struct sb_modcache *cache, struct sb_cached_module *module)
{
	sb_module_drop_light(module->module);
	sb_module_settle(module->module);
	cache->light_bytes -= module->light_bytes;
	module->light_bytes = 0;
	cache->nr_evictions++;
}

void sb_modcache_account(struct sb_modcache *cache, struct sb_cached_module *module)
{
	struct sb_cached_module *oldest;

	cache->light_bytes -= module->light_bytes;
	cache->heavy_bytes -= module->heavy_bytes;
	module->light_bytes = sb_module_light_bytes(module->module);
	module->heavy_bytes = sb_module_heavy_bytes(module->module);
	sb_module_settle(module->module);
	cache->light_bytes += module->light_bytes;
	cache->heavy_bytes += module->heavy_bytes;
	if (cache->heavy_bytes > cache->heavy_bytes_peak)
		cache->heavy_bytes_peak = cache->heavy_bytes;
	while (cache->heavy_bytes > cache->heavy_bytes_max) {
		/* This module alone exceeds the bound. */
		oldest = find_idle(cache, module, heavy_bytes_of);
		if (!oldest)
			oldest = find_idle(cache, NULL, heavy_bytes_of);
		if (!oldest)
			break;
		drop_heavy(cache, oldest);
	}
	/* The file stays open, because it may have been deleted. */
	while (cache->light_bytes > cache->heavy_bytes_max) {
		oldest = find_idle(cache, module, light_bytes_of);
		if (!oldest)
			break;
		drop_light(cache, oldest);
	}
}

/*
 * Headers that are larger than usual. Such a module can be closed, and is opened again if
 * necessary.
 */
static size_t odd_header_bytes_of(const struct sb_cached_module *module)
{
	size_t bytes = sb_module_header_bytes(module->module);

	return bytes > HEADER_BYTES_FAIR ? bytes : 0;
}

static void close_module(struct sb_modcache *cache, struct sb_cached_module *module)
{
	size_t i;

	for (i = 0; cache->modules.at[i] != module; i++)
		;
	drop_module(cache, i);
}

/*
 * See struct sb_budget_pool. What is cheapest to load again is evicted first, least recently used
 * first.
 */
static void reclaim(void *arg, const struct sb_budget *keep_budget, size_t bytes)
{
	static const struct {
		size_t (*bytes_of)(const struct sb_cached_module *module);
		void (*drop)(struct sb_modcache *cache, struct sb_cached_module *module);
	} kinds[] = {
		{ light_bytes_of, drop_light },
		{ heavy_bytes_of, drop_heavy },
		{ odd_header_bytes_of, close_module },
	};
	struct sb_modcache *cache = arg;
	const struct sb_budget_pool *pool = cache->opts.pool;
	const struct sb_cached_module *keep = NULL;
	struct sb_cached_module *oldest;
	size_t i;

	for (i = 0; i < cache->modules.nr; i++)
		if (sb_module_is_charged(cache->modules.at[i]->module, keep_budget))
			keep = cache->modules.at[i];
	for (i = 0; i < SB_ARRAY_SIZE(kinds); i++) {
		while (pool->bytes + bytes > pool->bytes_max) {
			oldest = find_idle(cache, keep, kinds[i].bytes_of);
			if (!oldest)
				break;
			kinds[i].drop(cache, oldest);
		}
	}
}

void sb_modcache_rest(struct sb_modcache *cache, uint64_t now_ns)
{
	bool is_first = !cache->now_ns;
	struct sb_cached_module *module;
	size_t i;

	if (now_ns < cache->now_ns + RESTED_NS / 2)
		return;
	cache->now_ns = now_ns;
	if (is_first)
		return;
	for (i = 0; i < cache->modules.nr; i++) {
		module = cache->modules.at[i];
		if (!module->table_ns || now_ns - module->table_ns < RESTED_NS)
			continue;
		sb_module_drop_table(module->module);
		module->table_ns = 0;
		sb_modcache_account(cache, module);
	}
}

/* Forgetting */

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

	unpin(cache, file);
	free(file->path);
	*file = (struct sb_file){ .fd = -1 };
	/* There is room, because it was reserved before anything was freed. */
	cache->free_files.at[cache->free_files.nr++] = at;
}

static void drop_idle_modules(struct sb_modcache *cache)
{
	struct sb_cached_module *module;
	size_t i;

	for (i = 0; i < cache->modules.nr; i++)
		cache->modules.at[i]->is_mapped = false;
	for (i = 1; i < cache->files.nr; i++) {
		module = find_id(cache, cache->files.at[i].module_id);
		if (module)
			module->is_mapped = true;
	}
	for (i = cache->modules.nr; i--;) {
		module = cache->modules.at[i];
		if (!module->is_mapped && module->used <= cache->tick_forgot)
			drop_module(cache, i);
	}
	cache->tick_forgot = cache->tick;
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
	drop_idle_modules(cache);
}
