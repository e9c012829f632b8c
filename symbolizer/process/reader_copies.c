// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The copies of files that readers made, for as long as somebody has them open. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "symbolizer/process/reader_priv.h"

#define COPIES_MAX 256u

/* A copy of a file whose descriptor somebody still has open. */
struct copy {
	int probe_fd;
	int original_fd; /* sb_reader_state */
	uint64_t ino, nr_bytes;
	struct stat original;
};

static struct {
	pthread_mutex_t lock;
	SB_VEC(struct copy) all;
	dev_t dev;
} copies = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Return: whether somebody still has the descriptor open: see lock_anew() in reader_ops.c. */
static bool is_open(const struct copy *copy)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return !fcntl(copy->probe_fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

/* Forget copies that are closed, with the lock held. Return: how many bytes the others take. */
static uint64_t sweep_copies(void)
{
	uint64_t nr_bytes = 0;
	size_t i;

	for (i = copies.all.nr; i--;) {
		struct copy *copy = &copies.all.at[i];

		if (is_open(copy)) {
			nr_bytes += copy->nr_bytes;
			continue;
		}
		close(copy->probe_fd);
		close(copy->original_fd);
		*copy = copies.all.at[--copies.all.nr];
	}
	return nr_bytes;
}

int sb_reader_copies_keep(const struct sb_reader_answer *answer, int fd, int *original_fd)
{
	struct copy copy = { .original_fd = *original_fd,
			     .ino = answer->copy_ino,
			     .nr_bytes = answer->copy_bytes,
			     .original = answer->st };
	struct stat st;
	char path[32];
	int err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	copy.probe_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (copy.probe_fd < 0 || fstat(copy.probe_fd, &st)) {
		err = -errno;
		sb_closep(&copy.probe_fd);
		return err;
	}
	pthread_mutex_lock(&copies.lock);
	copies.dev = st.st_dev;
	err = sweep_copies() < SB_READER_COPIES_BYTES_MAX && copies.all.nr < COPIES_MAX
		      ? sb_vec_push(&copies.all, copy)
		      : -EFBIG;
	pthread_mutex_unlock(&copies.lock);
	if (err)
		close(copy.probe_fd);
	else
		*original_fd = -1;
	return err;
}

/* With the lock held. Return: the copy with the inode number of @st, or NULL. */
static const struct copy *find_copy(const struct stat *st)
{
	size_t i;

	for (i = 0; i < copies.all.nr && st->st_dev == copies.dev; i++)
		if (copies.all.at[i].ino == st->st_ino)
			return &copies.all.at[i];
	return NULL;
}

bool sb_reader_is_copy(int fd)
{
	struct stat st;
	bool ret;

	if (fstat(fd, &st))
		return false;
	pthread_mutex_lock(&copies.lock);
	ret = find_copy(&st);
	pthread_mutex_unlock(&copies.lock);
	return ret;
}

int sb_reader_fstat(int fd, struct stat *ret_st)
{
	const struct copy *copy;

	if (fstat(fd, ret_st))
		return -errno;
	pthread_mutex_lock(&copies.lock);
	copy = find_copy(ret_st);
	if (copy)
		*ret_st = copy->original;
	pthread_mutex_unlock(&copies.lock);
	return 0;
}

int sb_reader_pin(int fd)
{
	const struct copy *copy;
	struct stat st;
	int ret;

	if (fstat(fd, &st))
		return -errno;
	pthread_mutex_lock(&copies.lock);
	copy = find_copy(&st);
	ret = fcntl(copy ? copy->original_fd : fd, F_DUPFD_CLOEXEC, 0);
	if (ret < 0)
		ret = -errno;
	pthread_mutex_unlock(&copies.lock);
	return ret;
}

void sb_reader_copies_release(void)
{
	pthread_mutex_lock(&copies.lock);
	(void)sweep_copies();
	sb_vec_release(&copies.all);
	pthread_mutex_unlock(&copies.lock);
}
