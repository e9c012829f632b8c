// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * From a mapped file to its module: the ways to open the file, and whether what was opened may be
 * used. A path can lead to another file by now, or to another user's, so each candidate is compared
 * with what the kernel said of the mapping, and a file that is not root's must be the very one that
 * the process maps, or belong to the user that the process runs as (modcache.h says why).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/time.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/process/reader.h"
#include "symbolizer/symbols/modcache_priv.h"

/* Bound of processes through which a file is tried again after it could not be opened. */
#define TRIES_MAX    8u
#define MAP_PATH_MAX 64
#define ROOT_LEN_MAX 32

static struct sb_file_stamp stamp_of(const struct stat *st)
{
	return (struct sb_file_stamp){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_ns = sb_timespec_ns(&st->st_mtim),
		.ctime_ns = sb_timespec_ns(&st->st_ctim),
	};
}

static bool runs_as(uint32_t tgid, const struct sb_file_owner *owner)
{
	struct sb_procfs_ids ids;

	return !owner->ino && !sb_procfs_ids(tgid, &ids) && ids.euid == owner->uid;
}

/* Return: 1 if the process maps the file with this stamp at @at, 0 if it maps another file there,
 * -ENOENT if neither is known. */
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
	err = sb_modcache_add_module(cache, module, &stamp, ret_module);
	if (!err)
		(*ret_module)->owner = owner;
	return err;
}

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
	return sb_modcache_real_len(file) != file->id.path_len &&
	       try_fd(search, sb_procfs_open(root_fd, path));
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
	search.module = file->module_id ? sb_modcache_find_id(cache, file->module_id) : NULL;
	if (search.module && may_speak(file, at, &search.module->owner, &search.module->stamp)) {
		search.module->used = ++cache->tick;
		*ret_module = search.module;
		return 0;
	}
	search.module = NULL;
	if (file->err && (file->err_tgid == at->tgid || file->nr_tries >= TRIES_MAX))
		return file->err;
	path = strndup(file->path, sb_modcache_real_len(file));
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
		sb_modcache_unpin(cache, file);
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
	err = sb_modcache_add_module(cache, module, &stamp, ret_module);
	if (!err)
		(*ret_module)->hash = hash;
	return err;
}
