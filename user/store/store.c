// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/num.h"
#include "base/search.h"
#include "base/str.h"
#include "store/search.h"

#define MARK_TEXT "stackbpf store 1\n"
#define LOCK_NAME "LOCK"

/* Return: 0; -ENOENT if there is no mark; -EPROTO if it is of another version; others of I/O. */
static int check_mark(int dir_fd)
{
	sb_cleanup(sb_closep) int fd =
		openat(dir_fd, SB_STORE_MARK, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	sb_cleanup(sb_freep) char *text = NULL;
	size_t len;
	int err;

	if (fd < 0)
		return -errno;
	err = sb_read_fd(fd, 4096, &text, &len);
	if (err)
		return err;
	return sb_streq(text, MARK_TEXT) ? 0 : -EPROTO;
}

static int make_mark(int dir_fd)
{
	sb_cleanup(sb_closep) int fd = -1;
	size_t i;

	for (i = 0; i < SB_STORE_LEVELS; i++)
		if (mkdirat(dir_fd, sb_levels[i].name, 0750) && errno != EEXIST)
			return -errno;
	fd = openat(dir_fd, SB_STORE_MARK, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	return fd < 0 ? -errno : sb_write_all(fd, MARK_TEXT, strlen(MARK_TEXT));
}

/* @flags: O_CREAT, or 0: -ENOENT if nobody has locked the store yet. */
static int lock(struct sb_store *store, int flags)
{
	struct stat st;

	store->lock_fd =
		openat(store->dir_fd, LOCK_NAME, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0640);
	if (store->lock_fd < 0)
		return -errno;
	if (flock(store->lock_fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (fstat(store->lock_fd, &st))
		return -errno;
	/* Between open and lock, sb_store_remove_empty() may have removed the store. */
	return st.st_nlink ? 0 : -ENOENT;
}

/* Lock the store; one that has no mark yet is made if the directory is empty. */
static int lock_or_make(struct sb_store *store)
{
	int err = check_mark(store->dir_fd);

	if (err == -ENOENT)
		err = sb_dir_is_empty(store->dir_fd) ? 0 : -ENOTEMPTY;
	if (!err)
		err = lock(store, O_CREAT);
	if (err)
		return err;
	/* Before the lock was taken, another process may have made or removed the store. */
	err = check_mark(store->dir_fd);
	return err == -ENOENT ? make_mark(store->dir_fd) : err;
}

bool sb_store_has_writer(const struct sb_store *store)
{
	sb_cleanup(sb_closep) int fd =
		openat(store->dir_fd, LOCK_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (store->lock_fd >= 0)
		return true;
	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
}

/* @flags: further flags of open(2) */
static int new_store(const char *path, int flags, struct sb_store **ret_store)
{
	struct sb_store *store = calloc(1, sizeof(*store));

	if (!store)
		return -ENOMEM;
	store->lock_fd = -1;
	store->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
	if (store->dir_fd < 0) {
		free(store);
		return -errno;
	}
	*ret_store = store;
	return 0;
}

int sb_store_open(const char *path, struct sb_store **ret_store)
{
	struct sb_store *store = NULL;
	int err = new_store(path, 0, &store);

	if (err)
		return err;
	err = check_mark(store->dir_fd);
	if (err) {
		sb_store_close(store);
		return err == -ENOENT ? -ENOTEMPTY : err;
	}
	*ret_store = store;
	return 0;
}

int sb_store_open_to_write(const char *path, const struct sb_store_opts *opts,
			   struct sb_store **ret_store)
{
	struct sb_store *store = NULL;
	int64_t now_s = time(NULL);
	int err;

	if (mkdir(path, 0750) && errno != EEXIST)
		return -errno;
	err = new_store(path, 0, &store);
	if (err)
		return err;
	store->opts = *opts;
	err = lock_or_make(store);
	if (!err)
		err = sb_store_find_rolled(store, now_s);
	if (!err)
		err = sb_store_downsample(store, now_s);
	if (err) {
		sb_store_close(store);
		return err;
	}
	*ret_store = store;
	return 0;
}

void sb_store_close(struct sb_store *store)
{
	size_t i;

	if (!store)
		return;
	for (i = 0; i < SB_STORE_LEVELS; i++)
		if (store->out[i].is_open)
			sb_segment_release(&store->out[i].segment);
	sb_store_forget_parts(store);
	sb_closep(&store->lock_fd);
	close(store->dir_fd);
	free(store);
}

/* Files. */

struct names {
	SB_VEC(struct name {
		char name[SB_LEVEL_NAME_MAX];
		int64_t begin_s;
	})
	at;
};

static int by_time(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	return sb_compare(x->begin_s, y->begin_s);
}

/* Accept only names that sb_level_file() makes, so that a file's time leads back to its name. */
static bool time_of(size_t level, const char *file, int64_t *ret_begin_s)
{
	char name[SB_LEVEL_NAME_MAX], given[SB_LEVEL_NAME_MAX];
	const char *at = file;
	struct tm tm = { .tm_mday = 1 };
	uint64_t digits;

	if (!sb_scan_u64(&at, file + strnlen(file, 9), &digits) || digits < 1900)
		return false;
	if (sb_levels[level].span == SB_SPAN_DAY) {
		tm.tm_mday = (int)(digits % 100);
		digits /= 100;
	}
	tm.tm_mon = (int)(digits % 100) - 1;
	tm.tm_year = (int)(digits / 100 % 10000) - 1900;
	*ret_begin_s = timegm(&tm);
	sb_level_file(level, *ret_begin_s, name);
	snprintf(given, sizeof(given), "%s/%.16s", sb_levels[level].name, file);
	return sb_streq(name, given);
}

/* Open a directory of the store to read its entries. */
static int open_dir(const struct sb_store *store, const char *name, DIR **ret_dir)
{
	int fd = openat(store->dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	int err = dir ? 0 : -errno;

	if (err)
		sb_closep(&fd);
	else
		*ret_dir = dir;
	return err;
}

static int list(const struct sb_store *store, size_t level, struct names *names)
{
	const struct dirent *entry;
	struct name name;
	DIR *dir;
	int err = open_dir(store, sb_levels[level].name, &dir);

	if (err)
		return err;
	while (!err && (entry = readdir(dir))) {
		if (!time_of(level, entry->d_name, &name.begin_s))
			continue;
		sb_level_file(level, name.begin_s, name.name);
		err = names->at.nr < SB_STORE_FILES_MAX ? sb_vec_push(&names->at, name) : -EFBIG;
	}
	closedir(dir);
	sb_vec_sort(&names->at, by_time);
	return err;
}

void sb_store_tell_kinds(struct sb_store *store)
{
	if (!store->has_told_kinds)
		sb_warn("the store has more than %d kinds of profiles, so some are left out; keep "
			"fewer kinds in one store",
			SB_STORE_KINDS_MAX);
	store->has_told_kinds = true;
}

int sb_store_each_file(const struct sb_store *store, size_t level,
		       int (*fn)(void *arg, const char *name, int64_t begin_s), void *arg)
{
	struct names names = {};
	size_t i;
	int err = list(store, level, &names);

	for (i = 0; i < names.at.nr && !err; i++)
		err = fn(arg, names.at.at[i].name, names.at.at[i].begin_s);
	sb_vec_release(&names.at);
	return err;
}

/* Removing a store. */

#define NR_PARTS (SB_STORE_LEVELS + 2)

/* Return: the name of what a store without blocks has, in the order in which it is removed. */
static const char *part_name(size_t i)
{
	static const char *const files[] = { SB_STORE_MARK, LOCK_NAME };

	return i < SB_STORE_LEVELS ? sb_levels[i].name : files[i - SB_STORE_LEVELS];
}

static bool is_part(const char *name)
{
	size_t i;

	for (i = 0; i < NR_PARTS; i++)
		if (sb_streq(name, part_name(i)))
			return true;
	return false;
}

/* Return: 0, also if there is no such directory; -ENOTEMPTY if it has any entries, but for
 * @has_parts those of an empty store. */
static int check_dir(const struct sb_store *store, const char *name, bool has_parts)
{
	const struct dirent *entry;
	DIR *dir;
	int err = open_dir(store, name, &dir);

	if (err)
		return err == -ENOENT ? 0 : err;
	while (!err && (entry = readdir(dir)))
		if (!sb_streq(entry->d_name, ".") && !sb_streq(entry->d_name, "..") &&
		    !(has_parts && is_part(entry->d_name)))
			err = -ENOTEMPTY;
	closedir(dir);
	return err;
}

static int remove_parts(const struct sb_store *store)
{
	size_t i;
	int err = check_dir(store, ".", true);

	for (i = 0; i < SB_STORE_LEVELS && !err; i++)
		err = check_dir(store, sb_levels[i].name, false);
	for (i = 0; i < NR_PARTS && !err; i++)
		if (unlinkat(store->dir_fd, part_name(i), i < SB_STORE_LEVELS ? AT_REMOVEDIR : 0) &&
		    errno != ENOENT)
			err = -errno;
	return err;
}

int sb_store_remove_empty(const char *path)
{
	sb_cleanup(sb_freep) char *name = strdup(path);
	char from_inside[NAME_MAX + sizeof("../")];
	struct sb_store *store = NULL;
	size_t len = strlen(path);
	int err;

	if (!name)
		return -ENOMEM;
	/* Slashes at the end would make open(2) follow a symbolic link. */
	while (len > 1 && name[len - 1] == '/')
		name[--len] = '\0';
	err = new_store(name, O_NOFOLLOW, &store);
	if (err)
		return err;
	err = lock(store, 0);
	if (!err)
		err = remove_parts(store);
	else if (err == -ENOENT)
		err = 0; /* The lock is made first: a directory without it has nothing of a store. */
	/* The path is not looked up again, as it may lead elsewhere by now. */
	snprintf(from_inside, sizeof(from_inside), "../%s", sb_base_name(name));
	if (!err && unlinkat(store->dir_fd, from_inside, AT_REMOVEDIR))
		err = -errno;
	sb_store_close(store);
	return err;
}

/* Removing files. */

struct expiry {
	struct sb_store *store;
	const struct sb_store_prune *prune;
	size_t level;
	int64_t now_s, before_s;
	uint64_t bytes; /* of the files that are left */
	bool is_for_room;
};

/* Open for writing here; or it covers the present, and another writer may have it open. */
static bool is_written(const struct expiry *expiry, const char *name, int64_t begin_s)
{
	const struct sb_store_file *out = &expiry->store->out[expiry->level];

	if (out->is_open && sb_streq(out->name, name))
		return true;
	return sb_level_file_end(expiry->level, begin_s) > expiry->now_s - SB_STORE_BLOCK_S;
}

static int remove_file(const struct expiry *expiry, const char *name, uint64_t bytes)
{
	const struct sb_store_prune *prune = expiry->prune;

	if (!prune->is_dry && unlinkat(expiry->store->dir_fd, name, 0))
		return errno == ENOENT ? 0 : -errno;
	if (prune->fn)
		prune->fn(prune->arg, name, bytes);
	return 0;
}

static int expire_file(void *arg, const char *name, int64_t begin_s)
{
	struct expiry *expiry = arg;
	struct stat st;
	bool is_old = sb_level_file_end(expiry->level, begin_s) <= expiry->before_s;

	if (fstatat(expiry->store->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	/* In a dry run, old files are still there in the second pass. */
	if (expiry->is_for_room && is_old)
		return 0;
	if (expiry->is_for_room ? expiry->bytes <= expiry->prune->bytes_max : !is_old) {
		expiry->bytes += expiry->is_for_room ? 0 : (uint64_t)st.st_size;
		return 0;
	}
	if (is_written(expiry, name, begin_s)) {
		expiry->bytes += expiry->is_for_room ? 0 : (uint64_t)st.st_size;
		return 0;
	}
	if (expiry->is_for_room)
		expiry->bytes -= (uint64_t)st.st_size;
	return remove_file(expiry, name, (uint64_t)st.st_size);
}

static int expire_level(struct expiry *expiry, size_t level)
{
	uint64_t keep_s = expiry->prune->keep_s[level];

	expiry->level = level;
	expiry->before_s = keep_s ? expiry->now_s - (int64_t)keep_s : INT64_MIN;
	return sb_store_each_file(expiry->store, level, expire_file, expiry);
}

int sb_store_prune(struct sb_store *store, const struct sb_store_prune *prune, int64_t now_s)
{
	struct expiry expiry = { .store = store, .prune = prune, .now_s = now_s };
	size_t level;
	int err = 0;

	for (level = 0; level < SB_STORE_LEVELS && !err; level++)
		err = expire_level(&expiry, level);
	expiry.is_for_room = true;
	for (level = 0; level < SB_STORE_LEVELS && !err && prune->bytes_max; level++)
		err = expire_level(&expiry, level);
	return err;
}

int sb_store_expire(struct sb_store *store, int64_t now_s)
{
	struct sb_store_prune prune = { .bytes_max = store->opts.bytes_max };

	memcpy(prune.keep_s, store->opts.keep_s, sizeof(prune.keep_s));
	return sb_store_prune(store, &prune, now_s);
}
