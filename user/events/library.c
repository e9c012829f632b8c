// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * From "c" to the file of the C library, as bcc does it. With a process, it is the file that the
 * process maps, opened below the root of the process, so that a container's library is found.
 * Without one, it is what the dynamic linker would take (/etc/ld.so.cache), or a program in $PATH.
 */
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/reason.h"
#include "base/str.h"
#include "events/probe_priv.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/process/reader.h"

#define CACHE_BYTES_MAX (16u << 20)
#define CACHE_MAGIC	"glibc-ld.so.cache1.1"
/* glibc's sysdeps/generic/ldconfig.h: an ELF library of this machine's 64-bit ABI. */
#if defined(__x86_64__)
#define CACHE_FLAGS 0x0303u
#else
#define CACHE_FLAGS 0x0a03u
#endif

/* The file that ldconfig(8) writes: glibc's elf/cache.c, struct cache_file_new. */
struct cache_head {
	char magic[20];
	uint32_t nr_libs, nr_string_bytes;
	uint32_t unused[5];
};
struct cache_entry {
	uint32_t flags, key, value, os_version;
	uint64_t hwcap;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Whether what follows the name of a library, @len bytes, is ".so", ".so.6" or "-2.31.so". */
static bool is_end_of_library(const char *end, size_t len)
{
	if (len < 3)
		return false;
	if (!memcmp(end, ".so", 3))
		return len == 3 || end[3] == '.';
	return end[0] == '-' && is_digit(end[1]) && !memcmp(end + len - 3, ".so", 3);
}

/* Whether the base name of @path, @len bytes, is "libNAME.so..." or "libNAME-2.31.so", as for bcc,
 * the same without "lib", as "libc" is for bpftrace, or NAME. */
static bool is_library(const char *path, size_t len, const char *name)
{
	const char *base = path + len;
	size_t name_len = strlen(name), base_len;

	while (base > path && base[-1] != '/')
		base--;
	base_len = (size_t)(path + len - base);
	if (base_len >= name_len && !memcmp(base, name, name_len))
		return base_len == name_len ||
		       is_end_of_library(base + name_len, base_len - name_len);
	if (base_len < name_len + 3 || memcmp(base, "lib", 3) || memcmp(base + 3, name, name_len))
		return false;
	return is_end_of_library(base + 3 + name_len, base_len - 3 - name_len);
}

/* Whether @path, @len bytes, is the program NAME with a version, as "python3.11" is "python3". */
static bool is_versioned(const char *path, size_t len, const char *name)
{
	size_t name_len = strlen(name), i = len;

	while (i && path[i - 1] != '/')
		i--;
	if (len - i <= name_len || memcmp(path + i, name, name_len))
		return false;
	for (i += name_len; i < len; i++)
		if (!is_digit(path[i]) && path[i] != '.')
			return false;
	return true;
}

struct mapped {
	const char *name;
	char path[PATH_MAX];
	uint64_t ino;
};

static int look_at_mapping(void *arg, const struct sb_maps_line *line)
{
	struct mapped *mapped = arg;

	if (mapped->path[0] || !line->is_exec || line->path[0] != '/' ||
	    line->path_len >= sizeof(mapped->path) ||
	    !(is_library(line->path, line->path_len, mapped->name) ||
	      is_versioned(line->path, line->path_len, mapped->name)))
		return 0;
	memcpy(mapped->path, line->path, line->path_len);
	mapped->path[line->path_len] = '\0';
	mapped->ino = line->ino;
	return 0;
}

/* Whether what is "/" to the process is another directory than ours, or in another mount
 * namespace. */
static bool has_other_root(uint32_t tgid)
{
	int fd = sb_procfs_other_root(tgid);

	sb_closep(&fd);
	return fd >= 0;
}

/* Whether the kernel, asked to put a probe into @path, takes the file that is open as @fd. */
static bool leads_to(const char *path, int fd)
{
	const struct sb_reader_file file = { .place = SB_READER_HERE, .path = path };
	struct stat here, there;

	return !sb_reader_stat(&file, &here) && !sb_reader_fstat(fd, &there) &&
	       here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

/*
 * @path as the process sees it, as a path of ours. The kernel follows an absolute symbolic link
 * from our root, wherever it stands; then the path without links is taken, which begins at the root
 * of the process's mount namespace, or at ours if it is in ours, as after chroot(2).
 */
static int path_below(uint32_t tgid, const char *path, char **ret_path)
{
	const struct sb_reader_file file = { .place = SB_READER_IN, .tgid = tgid, .path = path };
	sb_cleanup(sb_closep) int fd = sb_reader_open(&file);
	char link[64], resolved[PATH_MAX], whole[PATH_MAX + 64];
	char root[32] = "";
	const char *const from[] = { root, root, "" }, *const to[] = { path, resolved, resolved };
	ssize_t len;
	size_t i;

	if (fd < 0)
		return fd;
	snprintf(root, sizeof(root), "/proc/%u/root", tgid);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, resolved, sizeof(resolved) - 1);
	resolved[len > 0 ? len : 0] = '\0';
	for (i = 0; i < SB_ARRAY_SIZE(to); i++) {
		if ((size_t)snprintf(whole, sizeof(whole), "%s%s", from[i], to[i]) >=
			    sizeof(whole) ||
		    !leads_to(whole, fd))
			continue;
		*ret_path = strdup(whole);
		return *ret_path ? 0 : -ENOMEM;
	}
	return -ELOOP;
}

static int path_of(const struct sb_resolving *to, const char *path, char **ret_path)
{
	int err;

	if (!to->tgid || path[0] != '/' || !has_other_root(to->tgid)) {
		*ret_path = strdup(path);
		return *ret_path ? 0 : -ENOMEM;
	}
	err = path_below(to->tgid, path, ret_path);
	if (err)
		sb_reason_set(to->reason, err,
			      "event '%s': cannot open '%s' below the root directory of process %u",
			      to->text, path, to->tgid);
	/* -ENOENT would mean: look elsewhere. */
	return err == -ENOENT ? -ESTALE : err;
}

/* The kernel names a mapped file from our root if it is below it (chroot(2)), and otherwise from
 * the root of the process: the inode tells which. */
static int path_of_mapped(const struct sb_resolving *to, const struct mapped *mapped,
			  char **ret_path)
{
	const struct sb_reader_file file = { .place = SB_READER_HERE, .path = mapped->path };
	struct stat st;

	if (sb_reader_stat(&file, &st) || st.st_ino != mapped->ino)
		return path_of(to, mapped->path, ret_path);
	*ret_path = strdup(mapped->path);
	return *ret_path ? 0 : -ENOMEM;
}

static int find_mapped(struct sb_resolving *to, char **ret_path)
{
	struct mapped mapped = { .name = to->spec->file };
	int err = sb_procfs_maps(to->tgid, look_at_mapping, &mapped);

	if (err == -ESRCH)
		return sb_reason_set(to->reason, 0, "there is no process %u; it may have ended",
				     to->tgid),
		       err;
	if (mapped.path[0])
		return path_of_mapped(to, &mapped, ret_path);
	return err && err != -EBADMSG && err != -EFBIG
		       ? sb_reason_set(to->reason, err, "cannot read the mappings of process %u",
				       to->tgid)
		       : -ENOENT;
}

struct wanted {
	const char *base;
	uint64_t ino;
	bool is_mapped;
};

static int look_for_file(void *arg, const struct sb_maps_line *line)
{
	struct wanted *wanted = arg;
	size_t len = strlen(wanted->base);
	bool is_named = line->path_len > len && line->path[line->path_len - len - 1] == '/' &&
			!memcmp(line->path + line->path_len - len, wanted->base, len);

	/* The inode of overlayfs is not always the one that stat(2) has. */
	wanted->is_mapped |= line->is_exec && (line->ino == wanted->ino || is_named);
	return 0;
}

bool sb_library_is_mapped(uint32_t tgid, const char *path, int fd)
{
	struct wanted wanted = { .base = sb_base_name(path) };
	struct stat st;

	if (sb_reader_fstat(fd, &st))
		return true;
	wanted.ino = st.st_ino;
	return sb_procfs_code(tgid, look_for_file, &wanted) || wanted.is_mapped;
}

static int find_in_cache(const char *name, char **ret_path)
{
	sb_cleanup(sb_freep) char *data = NULL;
	const struct cache_head *head;
	const struct cache_entry *entries;
	const char *path;
	size_t len, i;
	int err = sb_read_file("/etc/ld.so.cache", CACHE_BYTES_MAX, &data, &len);

	if (err)
		return err == -ENOMEM ? err : -ENOENT;
	head = (const struct cache_head *)data;
	if (len < sizeof(*head) || memcmp(head->magic, CACHE_MAGIC, sizeof(head->magic)) ||
	    head->nr_libs > (len - sizeof(*head)) / sizeof(*entries))
		return -ENOENT;
	entries = (const struct cache_entry *)(head + 1);
	for (i = 0; i < head->nr_libs; i++) {
		if (entries[i].flags != CACHE_FLAGS || entries[i].value >= len)
			continue;
		path = data + entries[i].value; /* sb_read_file() has put a NUL behind the data */
		if (!is_library(path, strlen(path), name))
			continue;
		*ret_path = strdup(path);
		return *ret_path ? 0 : -ENOMEM;
	}
	return -ENOENT;
}

static bool is_elf(const char *path)
{
	sb_cleanup(sb_closep) int fd = sb_procfs_open(-1, path);
	char magic[SELFMAG];

	return fd >= 0 && read(fd, magic, sizeof(magic)) == (ssize_t)sizeof(magic) &&
	       !memcmp(magic, ELFMAG, SELFMAG);
}

static int find_program(const char *name, char **ret_path)
{
	const char *at = getenv("PATH");
	char path[PATH_MAX];
	size_t len;

	for (at = at ? at : "/usr/sbin:/usr/bin:/sbin:/bin"; *at; at += len + (at[len] == ':')) {
		len = strcspn(at, ":");
		if (!len || (size_t)snprintf(path, sizeof(path), "%.*s/%s", (int)len, at, name) >=
				    sizeof(path))
			continue;
		/* A script of the same name only starts the program. */
		if (!sb_can_access(path, X_OK) || !is_elf(path))
			continue;
		*ret_path = strdup(path);
		return *ret_path ? 0 : -ENOMEM;
	}
	return -ENOENT;
}

int sb_library_of_mapping(uint32_t tgid, const char *path, uint64_t ino, char **ret_path)
{
	struct sb_reason ignored = {};
	const struct sb_resolving to = { .text = path, .tgid = tgid, .reason = &ignored };
	struct mapped mapped = { .ino = ino };

	if (strlen(path) >= sizeof(mapped.path))
		return -ENAMETOOLONG;
	memcpy(mapped.path, path, strlen(path));
	return path_of_mapped(&to, &mapped, ret_path);
}

static bool is_hidden(int err)
{
	return err == -EACCES || err == -EPERM;
}

int sb_library_find(struct sb_resolving *to, char **ret_path)
{
	const char *name = to->spec->file;
	int err = -ENOENT;

	if (strchr(name, '/'))
		err = path_of(to, name, ret_path);
	else if (to->tgid)
		err = find_mapped(to, ret_path);
	if (err == -ENOENT)
		err = find_in_cache(name, ret_path);
	if (err == -ENOENT)
		err = find_program(name, ret_path);
	if (err == -ENOENT && to->spec->is_either && is_hidden(to->events_fd))
		return sb_reason_set(to->reason, to->events_fd,
				     "event '%s': there is no library or program '%s', and the "
				     "kernel's list of tracepoints (tracefs) cannot be read",
				     to->text, name),
		       to->events_fd;
	if (err == -ENOENT && to->spec->is_either)
		return sb_reason_set(
			       to->reason, 0,
			       "event '%s': there is no category of tracepoints, library or "
			       "program '%s'; give the path of a file, or see 'stackbpf trace "
			       "--list'",
			       to->text, name),
		       err;
	if (err == -ENOENT)
		sb_reason_set(
			to->reason, 0,
			"event '%s': there is no library or program '%s'; give the path of a file",
			to->text, name);
	return err;
}
