// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Files that most processes map, such as libc, are opened and asked for their size and times again
 * and again. Each access by a reader takes two switches of threads and ten system calls. A file
 * that is held open takes one fstat(2) or a copy of its descriptor, by the thread that asks. Nobody
 * can block these calls: readers hand such a descriptor over only for a file on the mount of our
 * own root directory, whose files are read without a reader as well once they are open.
 *
 * The answer is exact: as long as the file is held, no other file can get its inode number. Nothing
 * is kept from being unmounted or freed, because the mount of our own root stays as long as we do,
 * and a file without a name, or without use for a while, is let go.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/index.h"
#include "base/time.h"
#include "symbolizer/process/reader_priv.h"

/* A power of two. When the places of a file are full, the file that was asked for first goes. */
#define SETS	      64u
#define PLACES	      4u
/* A process that may have fewer descriptors needs them for other files. */
#define LIMIT_MIN     (16u * SETS * PLACES)
#define UNUSED_MAX_NS (10 * SB_NS_PER_SEC)

struct held {
	dev_t dev;
	ino_t ino;
	int fd;
	bool is_there;
	uint32_t nr_users; /* threads in fstat(); it is not closed then */
	uint64_t used_ns;
};

static struct {
	pthread_mutex_t lock; /* not held during fstat() */
	struct held at[SETS][PLACES];
} held = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct held *set_of(dev_t dev, ino_t ino)
{
	const uint64_t words[] = { dev, ino };

	return held.at[sb_hash(words, sizeof(words), 0) % SETS];
}

/* With the lock held. */
static struct held *find(dev_t dev, ino_t ino)
{
	struct held *set = set_of(dev, ino);
	size_t i;

	for (i = 0; i < PLACES; i++)
		if (set[i].is_there && set[i].dev == dev && set[i].ino == ino)
			return &set[i];
	return NULL;
}

/* With the lock held. */
static void let_go(struct held *file)
{
	if (!file->is_there || file->nr_users)
		return;
	close(file->fd);
	file->is_there = false;
}

bool sb_reader_held_stat(dev_t dev, ino_t ino, struct stat *ret_st)
{
	struct held *file;
	struct stat st;
	bool is_valid;

	pthread_mutex_lock(&held.lock);
	file = find(dev, ino);
	if (file) {
		file->nr_users++;
		file->used_ns = sb_now_ns();
	}
	pthread_mutex_unlock(&held.lock);
	if (!file)
		return false;
	is_valid = !fstat(file->fd, &st) && st.st_nlink;
	pthread_mutex_lock(&held.lock);
	file->nr_users--;
	if (!is_valid)
		let_go(file);
	pthread_mutex_unlock(&held.lock);
	if (is_valid)
		*ret_st = st;
	return is_valid;
}

int sb_reader_held_open(dev_t dev, ino_t ino)
{
	struct held *file;
	int fd = -1;

	pthread_mutex_lock(&held.lock);
	file = find(dev, ino);
	if (file) {
		file->used_ns = sb_now_ns();
		fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
	}
	pthread_mutex_unlock(&held.lock);
	return fd;
}

/* With the lock held. Return: a free place; NULL: all are in use right now. */
static struct held *make_room(struct held *set)
{
	struct held *oldest = NULL;
	size_t i;

	for (i = 0; i < PLACES; i++) {
		if (!set[i].is_there)
			return &set[i];
		if (!set[i].nr_users && (!oldest || set[i].used_ns < oldest->used_ns))
			oldest = &set[i];
	}
	if (oldest)
		let_go(oldest);
	return oldest;
}

static bool has_descriptors(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur >= LIMIT_MIN;
}

void sb_reader_hold(int fd)
{
	struct held *file;
	struct stat st;

	/* What is held is what fstat() says, whatever a reader said. */
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !st.st_nlink || !has_descriptors()) {
		close(fd);
		return;
	}
	pthread_mutex_lock(&held.lock);
	file = find(st.st_dev, st.st_ino) ? NULL : make_room(set_of(st.st_dev, st.st_ino));
	if (file)
		*file = (struct held){ .dev = st.st_dev,
				       .ino = st.st_ino,
				       .fd = fd,
				       .is_there = true,
				       .used_ns = sb_now_ns() };
	pthread_mutex_unlock(&held.lock);
	if (!file)
		close(fd);
}

static void let_go_before(uint64_t before_ns)
{
	size_t i;

	pthread_mutex_lock(&held.lock);
	for (i = 0; i < SETS * PLACES; i++)
		if (held.at[i / PLACES][i % PLACES].used_ns < before_ns)
			let_go(&held.at[i / PLACES][i % PLACES]);
	pthread_mutex_unlock(&held.lock);
}

void sb_reader_tidy(void)
{
	let_go_before(sb_now_ns() - UNUSED_MAX_NS);
}

void sb_reader_held_release(void)
{
	let_go_before(UINT64_MAX);
}
