// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fsuser.h"
#include "base/num.h"
#include "base/str.h"

int sb_read_fd(int fd, size_t max_bytes, char **ret_data, size_t *ret_len)
{
	sb_cleanup(sb_freep) char *data = NULL;
	size_t len = 0, cap = 0, want;
	ssize_t n;
	char *bigger;

	for (;;) {
		if (len + 1 >= cap) {
			want = cap ? cap * 2 : 16384;
			bigger = realloc(data, want);
			if (!bigger)
				return -ENOMEM;
			data = bigger;
			cap = want;
		}
		n = read(fd, data + len, cap - len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > max_bytes)
			return -EFBIG;
	}
	data[len] = '\0';
	*ret_data = sb_take(data);
	if (ret_len)
		*ret_len = len;
	return 0;
}

int sb_read_file(const char *path, size_t max_bytes, char **ret_data, size_t *ret_len)
{
	/* O_NONBLOCK: a path we do not control may be a FIFO. */
	sb_cleanup(sb_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	return sb_read_fd(fd, max_bytes, ret_data, ret_len);
}

int sb_read_all_at(int fd, uint64_t offset, void *buf, size_t len)
{
	char *to = buf;
	ssize_t n;

	while (len) {
		n = pread(fd, to, len, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EBADMSG;
		to += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

bool sb_can_access(const char *path, int mode)
{
	return !faccessat(AT_FDCWD, path, mode, AT_EACCESS);
}

bool sb_dir_is_empty(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	size_t nr = 0;

	if (!dir) {
		sb_closep(&fd);
		return false;
	}
	while ((entry = readdir(dir)))
		nr += entry->d_name[0] != '.';
	closedir(dir);
	return !nr;
}

int sb_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;
	ssize_t n;

	while (len) {
		n = write(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

bool sb_is_in_deleted_cwd(const char *path)
{
	char cwd[PATH_MAX];

	if (path[0] == '/' || !strncmp(path, "../", 3))
		return false;
	/* The number of links is 0 in some file systems of FUSE, too, and the getcwd() of the C
	 * library fails so also where the directory is of no mount. */
	return syscall(SYS_getcwd, cwd, sizeof(cwd)) < 0 && errno == ENOENT;
}

void sb_raise_nofile(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	/* Fails only where it was raised already; those who run out say so themselves. */
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

void sb_lower_limit(int resource, uint64_t value)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return;
	if (limit.rlim_max > value)
		limit.rlim_max = value;
	if (limit.rlim_cur > value)
		limit.rlim_cur = value;
	(void)setrlimit(resource, &limit);
}

static bool env_id(const char *name, uint32_t *ret)
{
	const char *s = getenv(name);
	uint64_t val;

	/* (uid_t)-1 means "leave as it is" to chown(). */
	if (!s || sb_parse_u64(s, UINT32_MAX - 1, &val))
		return false;
	*ret = (uint32_t)val;
	return true;
}

struct sb_owner sb_sudo_owner(void)
{
	struct sb_owner owner = { .uid = getuid(), .gid = getgid() };
	uint32_t uid, gid;

	if (geteuid() == 0 && env_id("SUDO_UID", &uid) && env_id("SUDO_GID", &gid)) {
		owner.uid = uid;
		owner.gid = gid;
	}
	return owner;
}

static void release_groups(sb_vec_gid *groups)
{
	sb_vec_release(groups);
}

/* Outputs of one run. */
#define MADE_MAX   16u
/* Names tried for a file that is to replace another. */
#define NAME_TRIES 1000u

struct sb_output_file {
	FILE *stream;
	char *path, *tmp_path; /* tmp_path: NULL when written directly, or while it has no name */
	bool is_unnamed;       /* until it is committed: nothing is left of it, however we end */
	bool is_roots;	       /* below sudo, where the user may not write */
	struct sb_output_file *next;
};

/* Whole at every instruction, for sb_output_files_discard(). */
static struct sb_output_file *uncommitted;

static void list_add(struct sb_output_file *file)
{
	file->next = uncommitted;
	__atomic_store_n(&uncommitted, file, __ATOMIC_RELEASE);
}

static void list_remove(struct sb_output_file *file)
{
	struct sb_output_file **at;

	for (at = &uncommitted; *at; at = &(*at)->next) {
		if (*at == file) {
			__atomic_store_n(at, file->next, __ATOMIC_RELEASE);
			return;
		}
	}
}

void sb_output_files_discard(void)
{
	const struct sb_output_file *file;

	for (file = uncommitted; file; file = file->next)
		unlink(file->tmp_path);
}

static const char suffix[] = ".XXXXXX";

static int make_tmp_path(struct sb_output_file *file)
{
	size_t len = strlen(file->path);

	file->tmp_path = malloc(len + sizeof(suffix));
	if (!file->tmp_path)
		return -ENOMEM;
	memcpy(file->tmp_path, file->path, len);
	memcpy(file->tmp_path + len, suffix, sizeof(suffix));
	return 0;
}

/* Return: the directory that @path is in, to be freed by the caller, or NULL. */
static char *dir_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

/* A file without a name, where @path is to be. Return: a descriptor, or a negative errno:
 * -EOPNOTSUPP,
 * -EISDIR, -ENOENT or -EINVAL where the filesystem or the kernel does not have such files. */
static int open_unnamed(const char *path)
{
	sb_cleanup(sb_freep) char *dir = dir_of(path);
	int fd;

	if (!dir)
		return -ENOMEM;
	fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/* Give it its name. What has that name is replaced, by way of another name. */
static int name_it(struct sb_output_file *file)
{
	uint64_t tries = 0;
	char self[32];
	int err;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fileno(file->stream));
	if (!linkat(AT_FDCWD, self, AT_FDCWD, file->path, AT_SYMLINK_FOLLOW))
		return 0;
	if (errno != EEXIST)
		return -errno;
	err = make_tmp_path(file);
	if (err)
		return err;
	list_add(file);
	do {
		snprintf(file->tmp_path + strlen(file->path), sizeof(suffix), ".%06x",
			 (unsigned int)((uint64_t)getpid() * 40503 + tries) & 0xffffff);
		err = linkat(AT_FDCWD, self, AT_FDCWD, file->tmp_path, AT_SYMLINK_FOLLOW) ? -errno
											  : 0;
	} while (err == -EEXIST && tries++ < NAME_TRIES);
	if (err) {
		/* That name is another's. */
		list_remove(file);
		free(sb_take(file->tmp_path));
	}
	return err;
}

static int open_tmp(struct sb_output_file *file)
{
	int fd, err;

	fd = open_unnamed(file->path);
	file->is_unnamed = fd >= 0;
	if (fd >= 0 || (fd != -EOPNOTSUPP && fd != -EISDIR && fd != -ENOENT && fd != -EINVAL))
		return fd;
	err = make_tmp_path(file);
	if (err)
		return err;
	fd = mkostemp(file->tmp_path, O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		free(sb_take(file->tmp_path));
		return err;
	}
	return fd;
}

/* Return: which descriptor of ours @path stands for, or -1. */
static int own_fd(const char *path)
{
	static const char *const dirs[] = { "/dev/fd/", "/proc/self/fd/" };
	uint64_t fd;
	size_t i;

	if (sb_streq(path, "/dev/stdout"))
		return STDOUT_FILENO;
	if (sb_streq(path, "/dev/stderr"))
		return STDERR_FILENO;
	for (i = 0; i < SB_ARRAY_SIZE(dirs); i++)
		if (!strncmp(path, dirs[i], strlen(dirs[i])) &&
		    !sb_parse_u64(path + strlen(dirs[i]), INT_MAX, &fd))
			return (int)fd;
	return -1;
}

bool sb_output_is_fd(const char *path)
{
	return own_fd(path) >= 0;
}

/*
 * Below sudo, from here on with the rights of the user who called it: files are theirs then, and
 * what they may not replace is not replaced. Return: whether it is so.
 */
static bool begin_as_user(struct sb_fsuser *ret_before)
{
	sb_cleanup(release_groups) sb_vec_gid groups = {};
	struct sb_owner owner = sb_sudo_owner();

	if (geteuid() != 0 || !owner.uid || sb_user_groups(&owner, &groups))
		return false;
	return !sb_fsuser_begin(&owner, groups.at, groups.nr, ret_before);
}

/* What is read from a FIFO is read by who made it: the user, or root. */
static bool is_trusted(const struct stat *st)
{
	return !S_ISFIFO(st->st_mode) || st->st_uid == sb_sudo_owner().uid || !st->st_uid;
}

int sb_output_open_special(const char *path, int flags)
{
	sb_cleanup(sb_closep) int path_fd = -1;
	struct sb_fsuser before;
	bool is_user;
	struct stat st;
	char self[32];
	int fd;

	if (lstat(path, &st) || S_ISREG(st.st_mode) || S_ISLNK(st.st_mode) || S_ISDIR(st.st_mode))
		return -ENOENT;
	is_user = begin_as_user(&before);
	/* Looked at before it is opened: to open a FIFO has effects, and waits. */
	path_fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (path_fd < 0 || fstat(path_fd, &st)) {
		fd = -errno;
	} else if (!is_trusted(&st)) {
		fd = -EPERM;
	} else {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
		fd = open(self, O_WRONLY | O_CLOEXEC | O_NOCTTY | flags);
		fd = fd < 0 ? -errno : fd;
	}
	if (is_user)
		sb_fsuser_end(&before);
	return fd;
}

/* Files that this process has made where the sudo user may not write: it may replace them. */
static struct {
	dev_t dev;
	ino_t ino;
} made[MADE_MAX];
static size_t nr_made;

static void note_made(const struct stat *st)
{
	made[nr_made % MADE_MAX].dev = st->st_dev;
	made[nr_made++ % MADE_MAX].ino = st->st_ino;
}

/* Whether root may give a file of its own this name, for somebody who could not. */
static bool may_replace(const char *path)
{
	struct stat st;
	size_t i;

	if (lstat(path, &st))
		return true;
	for (i = 0; i < nr_made && i < MADE_MAX; i++)
		if (made[i].dev == st.st_dev && made[i].ino == st.st_ino)
			return true;
	return false;
}

/* Whether what is there cannot be replaced by @owner, for the directory is sticky, as /tmp is. */
static bool is_kept(const char *path, const struct sb_owner *owner)
{
	sb_cleanup(sb_freep) char *dir = dir_of(path);
	struct stat of_dir, st;

	if (!dir || lstat(path, &st) || stat(dir, &of_dir))
		return false;
	return of_dir.st_mode & S_ISVTX && st.st_uid != owner->uid && of_dir.st_uid != owner->uid;
}

static int open_regular(struct sb_output_file *file)
{
	struct sb_owner owner = sb_sudo_owner();
	struct sb_fsuser before;
	int fd;

	if (begin_as_user(&before)) {
		fd = is_kept(file->path, &owner) ? -EEXIST : open_tmp(file);
		sb_fsuser_end(&before);
		if (fd != -EACCES && fd != -EPERM)
			return fd;
	}
	file->is_roots = owner.uid != geteuid();
	if (file->is_roots && !may_replace(file->path))
		return -EEXIST;
	return open_tmp(file);
}

static int open_output(struct sb_output_file *file)
{
	int fd = own_fd(file->path);

	if (fd >= 0) {
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -errno : fd;
	}
	fd = sb_output_open_special(file->path, 0);
	return fd == -ENOENT ? open_regular(file) : fd;
}

int sb_output_file_new(const char *path, struct sb_output_file **ret_file)
{
	struct sb_output_file *file;
	struct stat st;
	int fd, err;

	if (!*path)
		return -ENOENT;
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return -EISDIR;
	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOMEM;
	file->path = strdup(path);
	if (!file->path) {
		sb_output_file_free(file);
		return -ENOMEM;
	}
	fd = open_output(file);
	if (fd < 0) {
		sb_output_file_free(file);
		return fd;
	}
	file->stream = fdopen(fd, "w");
	if (!file->stream) {
		err = -errno;
		close(fd);
		sb_output_file_free(file);
		return err;
	}
	if (file->tmp_path)
		list_add(file);
	*ret_file = file;
	return 0;
}

FILE *sb_output_file_stream(struct sb_output_file *file)
{
	return file->stream;
}

/* It gets its name from who made it. */
static int name_or_rename(struct sb_output_file *file)
{
	if (file->is_roots && !may_replace(file->path))
		return -EEXIST;
	if (file->is_unnamed) {
		int err = name_it(file);

		if (err)
			return err;
	}
	if (!file->tmp_path)
		return 0;
	if (rename(file->tmp_path, file->path))
		return -errno;
	list_remove(file);
	free(sb_take(file->tmp_path));
	return 0;
}

int sb_output_file_commit(struct sb_output_file *file)
{
	struct sb_fsuser before;
	struct stat st;
	bool is_user;
	int err;

	errno = 0;
	if (fflush(file->stream) || ferror(file->stream))
		return errno ? -errno : -EIO;
	if (file->is_roots && !fstat(fileno(file->stream), &st))
		note_made(&st);
	is_user = !file->is_roots && begin_as_user(&before);
	err = name_or_rename(file);
	if (is_user)
		sb_fsuser_end(&before);
	if (err)
		return err;
	return fclose(sb_take(file->stream)) ? -errno : 0;
}

void sb_output_file_free(struct sb_output_file *file)
{
	if (!file)
		return;
	if (file->stream)
		fclose(file->stream);
	if (file->tmp_path) {
		list_remove(file);
		unlink(file->tmp_path);
		free(file->tmp_path);
	}
	free(file->path);
	free(file);
}
