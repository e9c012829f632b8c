// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The accesses themselves: see reader.h. This code runs in a reader, which may block in any of
 * these calls for ever, or in the calling thread if there are no readers. Nothing that is read is
 * parsed here.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/cleanup.h"
#include "base/time.h"
#include "symbolizer/process/pagemap.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/process/procmap_query.h"
#include "symbolizer/process/reader_priv.h"

/* "/proc/4294967295/task/4294967295/map_files/" and two addresses. */
#define PROC_PATH_MAX 128
#define COPY_PIECE    (1u << 20)

/* In linux/magic.h of newer kernels only, or of file systems that are not in it. */
#define FS_EXFAT      0x2011bab0u
#define FS_BCACHEFS   0xca451a4eu
#define FS_ZFS	      0x2fc12fc1u
#define FS_XFS	      0x58465342u
#define FS_NTFS3      0x7366746eu

static const char *const entries[SB_READER_ENTRY_MAX] = {
	[SB_READER_MAPS] = "maps",	 [SB_READER_CMDLINE] = "cmdline",
	[SB_READER_ENVIRON] = "environ", [SB_READER_ROLLUP] = "smaps_rollup",
	[SB_READER_PAGEMAP] = "pagemap",
};

/* Callers test for ESRCH; /proc reports a missing process by other errors, too. */
static int no_such_process(int err)
{
	return err == -ENOENT ? -ESRCH : err;
}

/* Memory. */

static bool has_memory(uint32_t tgid, uint32_t tid)
{
	char path[PROC_PATH_MAX], target[1];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/exe", tgid, tid);
	return readlinkat(AT_FDCWD, path, target, sizeof(target)) >= 0 || errno != ENOENT;
}

/* Return: 0 if the main thread has memory, or none has; else, because the main thread has ended,
 * another one that has. All threads have the same memory. */
static uint32_t thread_with_memory(uint32_t tgid)
{
	sb_cleanup(sb_closedirp) DIR *dir = NULL;
	uint32_t tid;

	if (has_memory(tgid, tgid))
		return 0;
	dir = sb_procfs_threads(tgid);
	while (dir && (tid = sb_procfs_next_task(dir, tgid)))
		if (has_memory(tgid, tid))
			return tid;
	return 0;
}

static int64_t read_memory(uint32_t tgid, uint64_t addr, uint64_t len, void *buf)
{
	const struct iovec ours = { .iov_base = buf, .iov_len = len };
	const struct iovec theirs = { .iov_base = (void *)(uintptr_t)addr, .iov_len = len };
	uint32_t tid;
	ssize_t nr;

	if (len > SB_READER_DATA_BYTES)
		return -EINVAL;
	nr = process_vm_readv((pid_t)tgid, &ours, 1, &theirs, 1, 0);
	if (nr < 0 && errno == ESRCH) {
		tid = thread_with_memory(tgid);
		if (!tid)
			return -ESRCH;
		nr = process_vm_readv((pid_t)tid, &ours, 1, &theirs, 1, 0);
	}
	return nr < 0 ? -errno : nr;
}

/* Entries of /proc. */

static int open_entry(uint32_t tgid, uint32_t tid, const char *name)
{
	char path[PROC_PATH_MAX];
	int fd;

	if (tid)
		snprintf(path, sizeof(path), "/proc/%u/task/%u/%s", tgid, tid, name);
	else
		snprintf(path, sizeof(path), "/proc/%u/%s", tgid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Have an entry open, anew if it @is_first, and its descriptor or a negative errno in entry_fd. */
static void need_entry(struct sb_reader_state *state, uint32_t tgid, uint32_t entry, bool is_first)
{
	if (!is_first && state->tgid == tgid && state->entry == entry)
		return;
	sb_closep(&state->entry_fd);
	state->tgid = tgid;
	state->entry = entry;
	state->entry_fd = open_entry(
		tgid, entry == SB_READER_PAGEMAP ? thread_with_memory(tgid) : 0, entries[entry]);
}

/* Return: bytes read, or a negative errno. */
static int64_t read_at(const struct sb_reader_state *state, const struct sb_reader_request *request,
		       void *buf)
{
	size_t done = 0;
	ssize_t nr = 1;

	if (state->entry_fd < 0)
		return no_such_process(state->entry_fd);
	/* The kernel gives a page of lines at a time, and each access costs two switches of
	 * threads. */
	while (done < request->len && nr > 0) {
		nr = pread(state->entry_fd, (char *)buf + done, request->len - done,
			   (off_t)(request->addr + done));
		if (nr < 0)
			return -errno;
		done += (size_t)nr;
	}
	return (int64_t)done;
}

/*
 * A process whose main thread has ended still lives in its other threads, but its own entries are
 * dead, or empty: take the first entry of a thread that has something. Return: bytes read, or a
 * negative errno.
 */
static int64_t read_of_threads(const struct sb_reader_request *request,
			       struct sb_reader_state *state, void *buf)
{
	sb_cleanup(sb_closedirp) DIR *dir = sb_procfs_threads(request->tgid);
	int64_t nr = -ESRCH;
	uint32_t tid;

	if (!dir)
		return no_such_process(-errno);
	while (nr <= 0 && (tid = sb_procfs_next_task(dir, request->tgid))) {
		sb_closep(&state->entry_fd);
		state->entry_fd = open_entry(request->tgid, tid, entries[request->entry]);
		nr = read_at(state, request, buf);
	}
	return nr;
}

static int64_t read_entry(const struct sb_reader_request *request, struct sb_reader_state *state,
			  void *buf)
{
	bool is_first = !request->addr;
	int64_t nr, of_threads;

	if (request->entry >= SB_READER_ENTRY_MAX || request->len > SB_READER_DATA_BYTES)
		return -EINVAL;
	need_entry(state, request->tgid, request->entry, is_first);
	nr = read_at(state, request, buf);
	if (nr > 0 || !is_first || nr == -EACCES || nr == -EPERM)
		return nr;
	/* A kernel thread, a zombie, or a main thread that ended before the others. */
	of_threads = read_of_threads(request, state, buf);
	return of_threads > 0 ? of_threads : nr;
}

struct records {
	uint8_t *at;
	size_t len, max;
	uint64_t next;
	bool is_full;
};

static int add_record(void *arg, const struct sb_maps_line *line)
{
	struct records *records = arg;
	const size_t nr_bytes = (sizeof(struct sb_reader_map) + line->path_len + 7) & ~(size_t)7;
	struct sb_reader_map map = {
		.start = line->start,
		.end = line->end,
		.pgoff = line->pgoff,
		.ino = line->ino,
		.maj = line->maj,
		.min = line->min,
		.is_exec = line->is_exec,
		.is_writable = line->is_writable,
		.path_len = (uint32_t)line->path_len,
		.record_bytes = (uint32_t)nr_bytes,
	};

	if (records->len + nr_bytes > records->max) {
		records->is_full = true;
		return -ENOSPC;
	}
	memcpy(records->at + records->len, &map, sizeof(map));
	memcpy(records->at + records->len + sizeof(map), line->path, line->path_len);
	records->len += nr_bytes;
	records->next = line->end;
	/* The lowest bit is @is_behind of sb_procmap_query_code() for the next piece. */
	if (line->is_exec && sb_map_kind(line->path, line->path_len) == SB_MAP_ANON)
		records->next |= 1;
	return 0;
}

/*
 * The main thread has no memory. Return: 0: nor has the process; -ENOTSUP: it has other threads,
 * which have; -ESRCH: it is gone. The number of links of /proc/TGID/task is two more than that of
 * threads.
 */
static int without_memory(uint32_t tgid)
{
	char path[PROC_PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u/task", tgid);
	if (stat(path, &st))
		return errno == ENOENT || errno == ESRCH ? -ESRCH : -ENOTSUP;
	return st.st_nlink == 3 ? 0 : -ENOTSUP;
}

/* @records->next: where to begin. */
static int64_t read_code(uint32_t tgid, bool is_first, struct sb_reader_state *state,
			 struct records *records, uint64_t *ret_next)
{
	const uint64_t from = records->next;
	int err;

	need_entry(state, tgid, SB_READER_MAPS, is_first);
	*ret_next = UINT64_MAX;
	if (state->entry_fd == -ENOENT)
		return -ESRCH;
	if (state->entry_fd < 0)
		return state->entry_fd == -ESRCH ? without_memory(tgid) : -ENOTSUP;
	err = sb_procmap_query_code(state->entry_fd, from & ~1ull, from & 1, add_record, records);
	if (records->is_full)
		*ret_next = records->next;
	if (records->is_full && records->len)
		return (int64_t)records->len;
	if (err == -ESRCH)
		return without_memory(tgid);
	return err ? err : (int64_t)records->len;
}

/* Return: number of runs in @area; or a negative errno. */
static int64_t read_pages(struct sb_reader_area *area, struct sb_reader_state *state)
{
	const struct sb_reader_request *request = &area->request;
	struct sb_page_run *runs = (struct sb_page_run *)area->data;

	_Static_assert(SB_READER_RUNS_MAX * sizeof(*runs) <= sizeof(area->data), "they fit");
	need_entry(state, request->tgid, SB_READER_PAGEMAP, request->is_first);
	if (state->entry_fd < 0)
		return no_such_process(state->entry_fd);
	area->answer.addr = request->addr;
	return (request->is_by_word ? sb_pagemap_read : sb_pagemap_scan)(
		state->entry_fd, request->end, runs, SB_READER_RUNS_MAX, &area->answer.addr);
}

/* Several accesses. */

/* Time since it began, if the thread slept meanwhile; else 0. */
struct sleep_watch {
	struct rusage before;
	uint64_t begin_ns;
};

static void watch_sleep(struct sleep_watch *watch)
{
	watch->begin_ns = sb_now_ns();
	(void)getrusage(RUSAGE_THREAD, &watch->before);
}

static uint64_t slept_ns(const struct sleep_watch *watch)
{
	struct rusage after = {};

	(void)getrusage(RUSAGE_THREAD, &after);
	return after.ru_nvcsw == watch->before.ru_nvcsw ? 0 : sb_now_ns() - watch->begin_ns;
}

/* Find where the memory of a part begins. Return: 0 or a negative errno. */
static int find_part(const struct sb_reader_want *want, uint64_t *ret_addr)
{
	uint64_t pointer;
	int64_t nr;

	*ret_addr = want->addr;
	if (!want->is_pointer || !want->len)
		return 0;
	nr = read_memory(want->tgid, want->addr, sizeof(pointer), &pointer);
	if (nr != sizeof(pointer))
		return nr < 0 ? (int)nr : -EFAULT;
	*ret_addr = pointer - pointer % want->len;
	return 0;
}

/* Return: whether one of the parts before the @i-th has its memory. */
static bool has_part(const struct sb_reader_area *area, uint32_t i)
{
	const struct sb_reader_want *wants = area->request.wants;
	uint32_t j;

	for (j = 0; j < i; j++)
		if (wants[j].tgid == wants[i].tgid && wants[j].len == wants[i].len &&
		    area->parts[j].addr == area->parts[i].addr && area->parts[j].ret > 0)
			return true;
	return false;
}

/* Return: number of bytes; -ENOSPC: more than @max; or another negative errno. */
static int64_t read_part(struct sb_reader_area *area, uint32_t i, struct sb_reader_state *state,
			 void *buf, size_t max)
{
	const struct sb_reader_want *want = &area->request.wants[i];
	struct records records = { .at = buf, .max = max };
	uint64_t next;
	int64_t nr = find_part(want, &area->parts[i].addr);

	if (nr || (want->is_pointer && has_part(area, i)))
		return nr;
	if (want->len)
		return want->len > max
			       ? -ENOSPC
			       : read_memory(want->tgid, area->parts[i].addr, want->len, buf);
	nr = read_code(want->tgid, true, state, &records, &next);
	return nr >= 0 && next != UINT64_MAX ? -ENOSPC : nr;
}

/* Return: how many of the accesses were made; the others do not fit. */
static int64_t read_ahead(struct sb_reader_area *area, struct sb_reader_state *state)
{
	const struct sb_reader_request *request = &area->request;
	struct sleep_watch watch;
	uint32_t i;
	size_t len = 0;

	for (i = 0; i < request->nr_wants && i < SB_READER_AHEAD_MAX; i++) {
		struct sb_reader_part *part = &area->parts[i];

		__atomic_store_n(&area->part, i, __ATOMIC_RELAXED);
		watch_sleep(&watch);
		part->ret = read_part(area, i, state, area->data + len, SB_READER_DATA_BYTES - len);
		part->blocked_ns = slept_ns(&watch);
		if (part->ret == -ENOSPC && i)
			break;
		len += part->ret > 0 ? (size_t)part->ret : 0;
	}
	return i;
}

/* Files. */

static int64_t open_place(const struct sb_reader_request *request, int root_fd)
{
	sb_cleanup(sb_closep) int own_root_fd = -1;
	char path[PROC_PATH_MAX];
	int fd;

	switch ((enum sb_reader_place)request->place) {
	case SB_READER_HERE:
		fd = openat(root_fd < 0 ? AT_FDCWD : root_fd, request->path, O_PATH | O_CLOEXEC);
		break;
	case SB_READER_BELOW:
		return sb_open_beneath(root_fd, request->path);
	case SB_READER_IN:
		snprintf(path, sizeof(path), "/proc/%u/root", request->tgid);
		own_root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		return own_root_fd < 0 ? -errno : sb_open_beneath(own_root_fd, request->path);
	case SB_READER_MAPPED:
		snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", request->tgid,
			 (unsigned long long)request->start, (unsigned long long)request->end);
		fd = open(path, O_PATH | O_CLOEXEC);
		break;
	case SB_READER_PLACE_MAX:
	default:
		return -EINVAL;
	}
	return fd < 0 ? -errno : fd;
}

/* Note the device of a file, without asking the server of its file system. */
static int note_dev(struct sb_reader_area *area, const struct sb_reader_request *request, int fd)
{
	struct statx stx;
	uint64_t dev;
	uint32_t i;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &stx))
		return -errno;
	dev = makedev(stx.stx_dev_major, stx.stx_dev_minor);
	__atomic_store_n(&area->dev, dev, __ATOMIC_RELAXED);
	for (i = 0; i < request->nr_devs && i < SB_READER_DEVS_MAX; i++)
		if (request->devs[i] == dev)
			return -ETIMEDOUT;
	return 0;
}

/* Return: the ID of the mount that @stx was found on; 0: not known. */
static uint64_t mount_of(const struct statx *stx)
{
	return stx->stx_mask & STATX_MNT_ID ? stx->stx_mnt_id : 0;
}

/*
 * The root file system counts as local: if it does not answer, the whole machine stands still. Our
 * root directory stays the same, so it is looked at once.
 */
static const struct sb_reader_root *own_root(struct sb_reader_state *state)
{
	struct sb_reader_root *root = &state->root;
	struct statx stx;

	if (root->is_known ||
	    statx(AT_FDCWD, "/", AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MNT_ID, &stx))
		return root;
	root->dev = makedev(stx.stx_dev_major, stx.stx_dev_minor);
	root->mount_id = mount_of(&stx);
	root->is_known = true;
	return root;
}

/* File systems on a local disk or in memory, which no other process serves. */
static bool is_local(struct sb_reader_state *state, int fd, const struct stat *st)
{
	static const uint32_t types[] = {
		BTRFS_SUPER_MAGIC,
		EROFS_SUPER_MAGIC_V1,
		EXT4_SUPER_MAGIC,
		F2FS_SUPER_MAGIC,
		FS_BCACHEFS,
		FS_EXFAT,
		FS_NTFS3,
		FS_XFS,
		FS_ZFS,
		HUGETLBFS_MAGIC,
		ISOFS_SUPER_MAGIC,
		MSDOS_SUPER_MAGIC,
		RAMFS_MAGIC,
		SQUASHFS_MAGIC,
		TMPFS_MAGIC,
		UDF_SUPER_MAGIC,
	};
	const struct sb_reader_root *root = own_root(state);
	struct statfs fs;
	size_t i;

	if (root->is_known && root->dev == st->st_dev)
		return true;
	if (fstatfs(fd, &fs))
		return false;
	if ((uint32_t)fs.f_type == OVERLAYFS_SUPER_MAGIC)
		return sb_reader_is_mounted(&state->mounts, st->st_dev, SB_READER_OVERLAY);
	if ((uint32_t)fs.f_type == FUSE_SUPER_MAGIC)
		return sb_reader_is_mounted(&state->mounts, st->st_dev, SB_READER_VIRTIOFS);
	for (i = 0; i < SB_ARRAY_SIZE(types); i++)
		if ((uint32_t)fs.f_type == types[i])
			return true;
	return false;
}

/* Return: an O_PATH descriptor, and what stat(2) says of it; or a negative errno. */
static int64_t find_place(struct sb_reader_area *area, struct sb_reader_state *state, int root_fd,
			  struct stat *ret_st)
{
	const struct sb_reader_request *request = &area->request;
	int64_t fd = open_place(request, root_fd);
	int err;

	if (fd < 0)
		return fd;
	err = note_dev(area, request, (int)fd);
	if (!err && fstat((int)fd, ret_st))
		err = -errno;
	area->answer.is_local = !err && is_local(state, (int)fd, ret_st);
	if (!err)
		return fd;
	close((int)fd);
	return err;
}

static int64_t find(struct sb_reader_area *area, struct sb_reader_state *state, int root_fd,
		    struct stat *ret_st)
{
	if (!memchr(area->request.path, '\0', sizeof(area->request.path)))
		return -ENAMETOOLONG;
	return find_place(area, state, root_fd, ret_st);
}

static bool is_zero(const char *buf, size_t len)
{
	return !len || (!buf[0] && !memcmp(buf, buf + 1, len - 1));
}

/* Pieces of zeros are not written, because a sparse file may be mostly zeros. */
static int copy_all(struct sb_reader_area *area, int from_fd, int to_fd, uint64_t len)
{
	sb_cleanup(sb_freep) char *buf = malloc(COPY_PIECE);
	uint64_t at = 0;
	ssize_t nr;

	if (!buf)
		return -ENOMEM;
	while (at < len) {
		nr = pread(from_fd, buf, COPY_PIECE < len - at ? COPY_PIECE : len - at, (off_t)at);
		if (nr < 0 && errno == EINTR)
			continue;
		if (nr < 0)
			return -errno;
		if (!nr)
			return 0; /* shorter than it was: the rest is zeros */
		__atomic_fetch_add(&area->progress, 1, __ATOMIC_RELAXED);
		if (!is_zero(buf, (size_t)nr) && pwrite(to_fd, buf, (size_t)nr, (off_t)at) != nr)
			return -ENOMEM;
		at += (uint64_t)nr;
	}
	return 0;
}

/*
 * The descriptor that is handed out is opened anew, and its open file description has a lock. So
 * the caller of sb_reader_open() can be left alone, and how much memory the copies take is known: a
 * lock lasts as long as somebody has that description (reader.c, is_open()).
 */
static int lock_anew(int fd)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	char path[32];
	int ret;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = open(path, O_RDONLY | O_CLOEXEC);
	if (ret < 0)
		return -errno;
	if (!fcntl(ret, F_OFD_SETLK, &lock))
		return ret;
	close(ret);
	return -EIO;
}

static int copy(struct sb_reader_area *area, int fd)
{
	const struct stat *st = &area->answer.st;
	sb_cleanup(sb_closep) int to_fd = -1;
	struct stat of_copy;
	int err;

	if ((uint64_t)st->st_size > SB_READER_COPY_BYTES_MAX)
		return -EFBIG;
	to_fd = memfd_create("stackbpf-copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (to_fd < 0 || ftruncate(to_fd, st->st_size))
		return -errno;
	err = copy_all(area, fd, to_fd, (uint64_t)st->st_size);
	if (err)
		return err;
	if (fcntl(to_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) ||
	    fstat(to_fd, &of_copy))
		return -errno;
	area->answer.copy_ino = of_copy.st_ino;
	area->answer.copy_bytes = (uint64_t)of_copy.st_blocks * 512;
	return lock_anew(to_fd);
}

/*
 * Open the file of an O_PATH descriptor. By /proc it is the same file, even if the path leads to
 * another one now. O_NONBLOCK: leases.
 */
static int open_found(int path_fd)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int64_t open_file(struct sb_reader_area *area, struct sb_reader_state *state, int root_fd,
			 int *ret_fd)
{
	sb_cleanup(sb_closep) int path_fd = -1;
	sb_cleanup(sb_closep) int fd = -1;
	struct sb_reader_answer *answer = &area->answer;

	path_fd = (int)find(area, state, root_fd, &answer->st);
	if (path_fd < 0)
		return path_fd;
	if (!S_ISREG(answer->st.st_mode))
		return -EINVAL;
	fd = open_found(path_fd);
	if (fd < 0)
		return fd;
	if (answer->is_local) {
		*ret_fd = sb_take_fd(fd);
		return 0;
	}
	*ret_fd = copy(area, fd);
	answer->is_copy = *ret_fd >= 0;
	if (*ret_fd < 0)
		return *ret_fd;
	state->original_fd = sb_take_fd(path_fd);
	return 0;
}

/* Return: whether the file is on the mount of our root directory, which nobody can unmount. */
static bool is_on_root_mount(struct sb_reader_state *state, int fd)
{
	const struct sb_reader_root *root = own_root(state);
	struct statx stx;

	return root->is_known && root->mount_id &&
	       !statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MNT_ID,
		      &stx) &&
	       mount_of(&stx) == root->mount_id;
}

static int64_t stat_file(struct sb_reader_area *area, struct sb_reader_state *state, int root_fd,
			 int *ret_fd)
{
	sb_cleanup(sb_closep) int fd = (int)find(area, state, root_fd, &area->answer.st);
	const struct stat *st = &area->answer.st;

	if (fd < 0)
		return fd;
	if (area->request.hold_ino && st->st_ino == area->request.hold_ino &&
	    st->st_dev == area->request.hold_dev && S_ISREG(st->st_mode) &&
	    is_on_root_mount(state, fd))
		*ret_fd = open_found(fd); /* an error: it is not held */
	return 0;
}

static int64_t open_root(const struct sb_reader_request *request, int *ret_fd)
{
	sb_cleanup(sb_closep) int fd = -1;
	struct stat ours, theirs;
	char path[PROC_PATH_MAX];

	snprintf(path, sizeof(path), "/proc/%u/root", request->tgid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return no_such_process(-errno);
	if (request->is_other && !stat("/", &ours) && !fstat(fd, &theirs) &&
	    ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino) {
		/* The same root with other mounts is another mount namespace. */
		snprintf(path, sizeof(path), "/proc/%u/ns/mnt", request->tgid);
		if (!stat("/proc/self/ns/mnt", &ours) && !stat(path, &theirs) &&
		    ours.st_ino == theirs.st_ino)
			return -ENOENT;
	}
	*ret_fd = sb_take_fd(fd);
	return 0;
}

static int64_t make_access(struct sb_reader_area *area, struct sb_reader_state *state, int root_fd,
			   int *ret_fd)
{
	const struct sb_reader_request *request = &area->request;
	struct records records = {
		.at = area->data,
		.max = SB_READER_CODE_BYTES,
		.next = request->addr,
	};

	switch ((enum sb_reader_op)request->op) {
	case SB_READER_OP_MEMORY:
		return read_memory(request->tgid, request->addr, request->len, area->data);
	case SB_READER_OP_ENTRY:
		return read_entry(request, state, area->data);
	case SB_READER_OP_CODE:
		return read_code(request->tgid, request->is_first, state, &records,
				 &area->answer.addr);
	case SB_READER_OP_PAGES:
		return read_pages(area, state);
	case SB_READER_OP_OPEN:
		return open_file(area, state, root_fd, ret_fd);
	case SB_READER_OP_STAT:
		return stat_file(area, state, root_fd, ret_fd);
	case SB_READER_OP_ROOT:
		return open_root(request, ret_fd);
	case SB_READER_OP_AHEAD:
		return read_ahead(area, state);
	case SB_READER_OP_MAX:
		break;
	}
	return -EINVAL;
}

int sb_reader_serve(struct sb_reader_area *area, struct sb_reader_state *state, int root_fd)
{
	struct sleep_watch watch;
	int fd = -1;

	area->answer = (struct sb_reader_answer){};
	__atomic_store_n(&area->dev, 0, __ATOMIC_RELAXED);
	watch_sleep(&watch);
	area->answer.ret = make_access(area, state, root_fd, &fd);
	if (area->request.op != SB_READER_OP_AHEAD)
		area->answer.blocked_ns = slept_ns(&watch);
	area->answer.has_fd = fd >= 0;
	return fd;
}
