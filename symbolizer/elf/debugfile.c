// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/elf/debugfile.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "symbolizer/elf/owner.h"
#include "symbolizer/process/reader.h"
#include "symbolizer/sb_sym.h"

static const char *const default_dirs[] = { "/usr/lib/debug", NULL };

#define LINK_BYTES_MAX	   (PATH_MAX + 64u)
/* Bound of a file whose checksum is computed; this is done only if the binary has no build ID. */
#define CHECKSUM_BYTES_MAX (1ull << 30)

/* The state of one search. */
struct search {
	const struct sb_debugfile_opts *opts;
	const struct sb_elf *elf; /* that links to it */
	const uint8_t *build_id;  /* that the file must have */
	size_t build_id_len;	  /* 0: @crc counts instead */
	uint32_t crc;
	bool is_alt; /* a dwz file: without code, so it may be an object to be linked */
	struct sb_debugfile found;
};

static int open_regular(const char *root, const char *path)
{
	struct sb_reader_file file = { .place = SB_READER_HERE, .path = path, .root_fd = -1 };
	sb_cleanup(sb_closep) int root_fd = -1;
	int end = 0;

	if (!root)
		return sb_reader_open(&file);
	if (sscanf(root, "/proc/%u/root%n", &file.tgid, &end) == 1 && end && !root[end]) {
		file.place = SB_READER_IN;
		return sb_reader_open(&file);
	}
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;
	file.tgid = 0;
	file.place = SB_READER_BELOW;
	file.root_fd = root_fd;
	return sb_reader_open(&file);
}

static int checksum(const struct sb_elf *elf, uint32_t *ret_crc)
{
	sb_cleanup(sb_freep) uint8_t *buf = NULL;
	const size_t piece = 256u << 10;
	uLong crc = crc32(0, NULL, 0);
	uint64_t at, len;
	int err;

	if (elf->size > CHECKSUM_BYTES_MAX)
		return -EFBIG;
	buf = malloc(piece);
	if (!buf)
		return -ENOMEM;
	for (at = 0; at < elf->size; at += len) {
		len = elf->size - at < piece ? elf->size - at : piece;
		err = sb_elf_read(elf, at, buf, len);
		if (err)
			return err;
		crc = crc32(crc, buf, (uInt)len);
	}
	*ret_crc = (uint32_t)crc;
	return 0;
}

static bool is_same_file(int fd_a, int fd_b)
{
	struct stat a, b;

	return fd_a >= 0 && fd_b >= 0 && !sb_reader_fstat(fd_a, &a) && !sb_reader_fstat(fd_b, &b) &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Of a file server nobody can tell who owns its files, but it may speak for other files of its
 * own. */
static bool may_speak(const struct sb_elf *of, const struct sb_elf *debug)
{
	struct sb_file_owner of_owner, owner;
	struct stat of_st, st;

	if (debug->fd < 0)
		return true;
	if (sb_reader_fstat(debug->fd, &st))
		return false;
	owner = sb_file_owner(debug->fd, &st);
	if (sb_owner_may_speak(&owner, of->uid))
		return true;
	if (sb_is_known_owner(&owner) || of->fd < 0 || sb_reader_fstat(of->fd, &of_st))
		return false;
	of_owner = sb_file_owner(of->fd, &of_st);
	return !sb_is_known_owner(&of_owner) && of_owner.dev == owner.dev;
}

/* Return: 0 if this is the wanted file; -ENOENT if not; or another negative errno. */
static int check(const struct search *search, const struct sb_elf *elf)
{
	uint32_t crc;
	int err;

	/* A link may have the binary's own name and mean a file in another directory. */
	if (is_same_file(search->elf->fd, elf->fd) || (elf->type == ET_REL && !search->is_alt))
		return -ENOENT;
	if (!may_speak(search->elf, elf)) {
		sb_debug("skipping a debug file of user %u, who owns neither the program nor "
			 "stackbpf",
			 elf->uid);
		return -ENOENT;
	}
	if (search->build_id_len) {
		return elf->build_id_len == search->build_id_len &&
				       !memcmp(elf->build_id, search->build_id, elf->build_id_len)
			       ? 0
			       : -ENOENT;
	}
	err = checksum(elf, &crc);
	if (err)
		return err;
	return crc == search->crc ? 0 : -ENOENT;
}

/* Take the file behind @fd if it is the wanted one. Return: 0, -ENOENT, -ENOMEM. */
static int try_fd(struct search *search, int fd, const char *root, const char *path)
{
	sb_cleanup(sb_freep) char *full = NULL;
	struct sb_elf *elf;
	int err;

	err = sb_elf_new_fd(fd, &elf);
	if (!err) {
		err = check(search, elf);
		if (!err && asprintf(&full, "%s%s", root ? root : "", path) < 0) {
			full = NULL;
			err = -ENOMEM;
		}
		if (err)
			sb_elf_free(elf);
	}
	if (err) {
		sb_debug("'%s%s' is not the debug file (error %d), skipping", root ? root : "",
			 path, -err);
		return err == -ENOMEM ? err : -ENOENT;
	}
	search->found.elf = elf;
	search->found.path = sb_take(full);
	return 0;
}

static int try_path(struct search *search, const char *root, const char *path)
{
	sb_cleanup(sb_closep) int fd = open_regular(root, path);

	return fd < 0 ? -ENOENT : try_fd(search, fd, root, path);
}

/* Try a path in our own root, then in the process's. */
static int try_both(struct search *search, const char *path)
{
	int err = try_path(search, NULL, path);

	if (err == -ENOENT && search->opts->root)
		err = try_path(search, search->opts->root, path);
	return err;
}

/* Try a path in the process's root first, because the path comes from there. */
static int try_near(struct search *search, const char *path)
{
	int err = -ENOENT;

	if (search->opts->root)
		err = try_path(search, search->opts->root, path);
	return err == -ENOENT ? try_path(search, NULL, path) : err;
}

static const char *const *dirs_of(const struct search *search)
{
	return search->opts->dirs ? search->opts->dirs : default_dirs;
}

static int find_by_build_id(struct search *search)
{
	char hex[2 * SB_BUILD_ID_MAX + 1], path[PATH_MAX];
	const char *const *dir;
	size_t i;
	int err = -ENOENT;

	if (search->build_id_len < 2)
		return -ENOENT;
	for (i = 0; i < search->build_id_len; i++)
		snprintf(hex + 2 * i, 3, "%02x", search->build_id[i]);
	for (dir = dirs_of(search); *dir && err == -ENOENT; dir++) {
		if (snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", *dir, hex, hex + 2) <
		    (int)sizeof(path))
			err = try_both(search, path);
	}
	return err;
}

/* The directory of a file, to be printed with "%.*s": "" for "/x", "." for "x". */
struct dir {
	int len;
	const char *path;
};

static struct dir dir_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (struct dir){ (int)(slash - path), path } : (struct dir){ 1, "." };
}

static int find_by_link(struct search *search, const char *name)
{
	const char *binary = search->opts->path;
	const struct dir dir_of_binary = dir_of(binary);
	static const char *const places[] = { "", "/.debug" };
	const char *const *dir;
	char path[PATH_MAX];
	size_t i;
	int err = -ENOENT;

	/*
	 * The format allows only a name without directories; others would leave these directories.
	 */
	if (strchr(name, '/') || !*name)
		return -ENOENT;
	for (i = 0; i < SB_ARRAY_SIZE(places) && err == -ENOENT; i++) {
		if (snprintf(path, sizeof(path), "%.*s%s/%s", dir_of_binary.len, dir_of_binary.path,
			     places[i], name) < (int)sizeof(path))
			err = try_near(search, path);
	}
	for (dir = dirs_of(search); *dir && err == -ENOENT && binary[0] == '/'; dir++) {
		if (snprintf(path, sizeof(path), "%s%.*s/%s", *dir, dir_of_binary.len,
			     dir_of_binary.path, name) < (int)sizeof(path))
			err = try_both(search, path);
	}
	return err;
}

/* Return: 0 and the section, which the caller frees; -ENOENT: there is none to be read; -ENOMEM. */
static int load_link(const struct sb_elf *elf, const char *name, char **ret_data, size_t *ret_len)
{
	const Elf64_Shdr *shdr = sb_elf_section_named(elf, name);
	int err = shdr ? sb_elf_load(elf, shdr, LINK_BYTES_MAX, ret_data, ret_len) : -ENOENT;

	return err && err != -ENOMEM ? -ENOENT : err;
}

/* .gnu_debuglink: name, NUL, padding to four bytes, checksum. */
static int read_link(const struct sb_elf *elf, char **ret_name, uint32_t *ret_crc)
{
	sb_cleanup(sb_freep) char *data = NULL;
	size_t len, at;
	int err = load_link(elf, ".gnu_debuglink", &data, &len);

	if (err)
		return err;
	at = (strlen(data) + 1 + 3) & ~(size_t)3;
	if (at > len || len - at < sizeof(*ret_crc))
		return -ENOENT;
	memcpy(ret_crc, data + at, sizeof(*ret_crc));
	*ret_name = sb_take(data);
	return 0;
}

/* The part of debuginfod's client library that we use; see debuginfod_find_debuginfo(3). */
struct debuginfod {
	void *(*begin)(void);
	int (*find_debuginfo)(void *client, const unsigned char *build_id, int len, char **path);
	void (*end)(void *client);
};

static int load_debuginfod(struct debuginfod *ret_api)
{
	void *lib = NULL;

	/* Never closed: it starts libcurl, which does not like to be unloaded. A static program
	 * would need the very C library that it was linked with. */
#ifndef SB_STATIC
	lib = dlopen("libdebuginfod.so.1", RTLD_LAZY | RTLD_LOCAL);
#endif
	if (!lib) {
		sb_debug("cannot load libdebuginfod.so.1, skipping debuginfod");
		return -ENOENT;
	}
	ret_api->begin = (void *(*)(void))dlsym(lib, "debuginfod_begin");
	ret_api->find_debuginfo = (int (*)(void *, const unsigned char *, int, char **))dlsym(
		lib, "debuginfod_find_debuginfo");
	ret_api->end = (void (*)(void *))dlsym(lib, "debuginfod_end");
	return ret_api->begin && ret_api->find_debuginfo && ret_api->end ? 0 : -ENOENT;
}

bool sb_sym_has_debuginfod(void)
{
	struct debuginfod api;

	return !load_debuginfod(&api);
}

static int find_by_debuginfod(struct search *search)
{
	sb_cleanup(sb_freep) char *path = NULL;
	sb_cleanup(sb_closep) int fd = -1;
	struct debuginfod api;
	void *client;

	if (!search->opts->debuginfod || !search->build_id_len || load_debuginfod(&api))
		return -ENOENT;
	client = api.begin();
	if (!client)
		return -ENOENT;
	fd = api.find_debuginfo(client, search->build_id, (int)search->build_id_len, &path);
	api.end(client);
	if (fd < 0)
		return -ENOENT;
	return try_fd(search, fd, NULL, path ? path : "debuginfod");
}

int sb_debugfile_find(const struct sb_elf *elf, const struct sb_debugfile_opts *opts,
		      struct sb_debugfile *ret_file)
{
	sb_cleanup(sb_freep) char *name = NULL;
	struct search search = {
		.opts = opts,
		.elf = elf,
		.build_id = elf->build_id,
		.build_id_len = elf->build_id_len,
	};
	int err;

	err = find_by_build_id(&search);
	if (err == -ENOENT) {
		err = read_link(elf, &name, &search.crc);
		if (!err)
			err = find_by_link(&search, name);
	}
	if (err == -ENOENT)
		err = find_by_debuginfod(&search);
	if (!err)
		*ret_file = search.found;
	return err;
}

void sb_debugfile_release(struct sb_debugfile *file)
{
	sb_elf_free(file->elf);
	free(file->path);
	*file = (struct sb_debugfile){};
}

/*
 * Find a dwz file by name. A relative name is relative to the real place of the file with the
 * link.
 */
static int find_alt_by_name(struct search *search, const char *name, const char *debug_path)
{
	char path[PATH_MAX], real[PATH_MAX], link[64];
	struct dir dir = dir_of(debug_path);
	ssize_t len;
	int err;

	if (name[0] == '/')
		return try_both(search, name);
	if (snprintf(path, sizeof(path), "%.*s/%s", dir.len, dir.path, name) >= (int)sizeof(path))
		return -ENOENT;
	err = try_path(search, NULL, path);
	if (err != -ENOENT)
		return err;
	/* The real path of the open file, without asking its file system. */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", search->elf->fd);
	len = readlink(link, real, sizeof(real) - 1);
	if (len < 0 || real[0] != '/')
		return err;
	real[len] = '\0';
	dir = dir_of(real);
	if (snprintf(path, sizeof(path), "%.*s/%s", dir.len, dir.path, name) >= (int)sizeof(path))
		return -ENOENT;
	return try_path(search, NULL, path);
}

int sb_debugfile_find_alt(const struct sb_elf *elf, const char *path,
			  const struct sb_debugfile_opts *opts, int *ret_fd)
{
	sb_cleanup(sb_freep) char *data = NULL;
	struct search search = { .opts = opts, .elf = elf, .is_alt = true };
	size_t len, name_len;
	int err = load_link(elf, ".gnu_debugaltlink", &data, &len);

	if (err)
		return err;
	/* Name, NUL, and the rest is the build ID. */
	name_len = strlen(data) + 1;
	if (name_len >= len || len - name_len > SB_BUILD_ID_MAX)
		return -ENOENT;
	search.build_id = (const uint8_t *)data + name_len;
	search.build_id_len = len - name_len;
	err = find_by_build_id(&search);
	if (err == -ENOENT)
		err = find_alt_by_name(&search, data, path);
	if (err)
		return err;
	*ret_fd = fcntl(search.found.elf->fd, F_DUPFD_CLOEXEC, 0);
	if (*ret_fd < 0)
		err = -errno;
	sb_debugfile_release(&search.found);
	return err;
}
