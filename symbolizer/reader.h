/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every access to memory, files and /proc entries of processes that we look at. Such an access can wait for as long
 * as the owner of the process wants: for a page of a FUSE server that never answers, for userfaultfd(2), for a lock
 * that the process holds meanwhile. A thread that waits for a FUSE server cannot even be killed. So the
 * access is made by a process that can be abandoned:
 *
 *	caller	any thread of ours; on its first access it gets a reader of its own
 *	spawner	forked by us at the beginning; starts readers and kills those that are late, never waits for one
 *	reader	makes one access at a time; it answers in memory that it shares with its caller
 *
 * A reader that has been blocked for the patience below is abandoned: it is killed, nobody waits for its end, and
 * another takes its place. The process, the file system or the directory that made us wait is left alone for a minute,
 * the next time for two, and so on: meanwhile accesses fail with -ETIMEDOUT at once. Every access can also fail with
 * -ENOMEM. Files are handed over as descriptors if their file system is a local one, our own root's, or virtiofs; files
 * of any other (FUSE, NFS, ...) are copied into memory by the reader.
 *
 * Without sb_reader_begin() the calling thread makes the accesses itself. docs/architecture.md, "Foreign memory and
 * files".
 */
#ifndef SB_READER_H
#define SB_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct sb_reader_opts {
	/* Called in the spawner, and then in each reader: drop the privileges that it does not need.
	 * Return: 0, or a negative errno, and then the process ends. NULL: keep all. */
	int (*confine_spawner)(void *arg);
	int (*confine_reader)(void *arg);
	void *arg;
	uint64_t patience_ns; /* 0: SB_READER_PATIENCE_NS */
};

/* Blocked for so long in one access, without progress. Time that a reader waits for a CPU does not count. */
#define SB_READER_PATIENCE_NS	   300000000ull
/* Abandoned readers that have not ended yet. Beyond it every access fails with -ETIMEDOUT. */
#define SB_READER_ABANDONED_MAX	   16u
/* A file that is copied, and all copies together that are open. Larger ones fail with -EFBIG. */
#define SB_READER_COPY_BYTES_MAX   (64ull << 20)
#define SB_READER_COPIES_BYTES_MAX (256ull << 20)

/**
 * sb_reader_begin() - fork the spawner, for the whole process
 * @opts: copied; @opts->arg must stay valid
 *
 * Thread: the main one, before others are made. Return: 0 or a negative errno.
 */
int sb_reader_begin(const struct sb_reader_opts *opts);
/* Wait until the spawner has dropped its privileges. Return: 0, what confine_spawner() said, or -ECHILD. */
int sb_reader_settle(void);
/* End the spawner and all readers; does not wait for a reader. When no other thread reads any more. */
void sb_reader_end(void);
/*
 * The run is to end soon: from here on all accesses of the process together are blocked for half a second at
 * most, and then all that would go to a reader fail with -ETIMEDOUT. A pending SIGINT or SIGTERM, which the threads
 * have blocked, does the same. Async-signal-safe. Any thread.
 */
void sb_reader_hurry(void);

/*
 * Copy up to @len bytes of the memory of @tgid (or of the process of that thread) from @addr on into @buf.
 * Return: how many, fewer than @len when memory ends before; -EFAULT, -ESRCH, -EPERM, -ETIMEDOUT; -EIO: the reader
 * crashed, as in all accesses below, and the next access gets another.
 */
ssize_t sb_reader_memory(uint32_t tgid, uint64_t addr, void *buf, size_t len);

/* An entry of /proc/TGID that can wait for the process. */
enum sb_reader_entry {
	SB_READER_MAPS,
	SB_READER_CMDLINE,
	SB_READER_ENVIRON,
	SB_READER_ENTRY_MAX,
};
/*
 * Read on in an entry from @offset; 0 opens it. If the main thread has ended, another thread's entry is read.
 * Return: how many bytes, 0 at its end; -ESRCH, -EACCES, -ETIMEDOUT, others of read(2).
 */
ssize_t sb_reader_entry(uint32_t tgid, enum sb_reader_entry entry, uint64_t offset, void *buf,
			size_t len);

/*
 * Executable mappings from *@at on, as PROCMAP_QUERY has them (symbolizer/procmap_query.h), as struct sb_reader_map
 * one behind the other. *@at is set to where to go on, or to UINT64_MAX at the end. @is_first: open the entry anew.
 * Return: bytes in @buf; -ENOTSUP (the kernel does not have it, or the process has no memory), -ESRCH, -EACCES,
 * -ETIMEDOUT.
 */
struct sb_reader_map {
	uint64_t start, end, pgoff, ino;
	uint32_t maj, min;
	uint32_t is_exec, is_writable;
	uint32_t path_len,
		record_bytes; /* the path follows, without NUL; the next record follows @record_bytes */
};
#define SB_READER_CODE_BYTES (128u << 10)
ssize_t sb_reader_code(uint32_t tgid, bool is_first, uint64_t *at,
		       uint8_t buf[SB_READER_CODE_BYTES]);

/* Where a file is looked for. */
enum sb_reader_place {
	SB_READER_HERE,	 /* @path in our own root */
	SB_READER_BELOW, /* @path below @root_fd, which links and ".." cannot leave */
	SB_READER_IN, /* @path below the root of @tgid, in the same way, and without magic links */
	SB_READER_MAPPED, /* what @tgid maps at exactly [@start, @end) */
	SB_READER_PLACE_MAX,
};
struct sb_reader_file {
	enum sb_reader_place place;
	uint32_t tgid;
	int root_fd;
	uint64_t start, end;
	const char *path; /* NULL: none */
};

/*
 * Open a regular file for reading. Nothing else is ever opened: opening a device can have effects.
 * Return: a descriptor; -ENOENT, -EACCES, -EINVAL (not a regular file), -EWOULDBLOCK (somebody has a lease on it),
 * -EFBIG (it is not on a local file system, and too large to be copied), -ETIMEDOUT, others of openat2(2).
 */
int sb_reader_open(const struct sb_reader_file *file);
/* stat(2) of it, of whatever kind it is. Return: 0 or a negative errno. */
int sb_reader_stat(const struct sb_reader_file *file, struct stat *ret_st);
/* Whether @fd is of a copy. */
bool sb_reader_is_copy(int fd);
/* fstat(2), but of the original if @fd is of a copy. Return: 0 or a negative errno. */
int sb_reader_fstat(int fd, struct stat *ret_st);

/*
 * The root directory of a process (O_PATH). @is_other: only if it is not what we ourselves see: another root, or
 * other mounts. Return: a descriptor; -ENOENT: it is not another one; -ESRCH, -EACCES, -ETIMEDOUT.
 */
int sb_reader_root(uint32_t tgid, bool is_other);

struct sb_reader_stats {
	uint64_t nr_requests, nr_readers; /* readers that were started */
	uint64_t nr_abandoned;		  /* readers that were late */
	uint64_t nr_crashed;
	uint64_t nr_refused; /* accesses of what is left alone, or beyond a bound */
	uint64_t nr_copies, nr_leased;
	uint64_t cpu_ns; /* of spawner and readers */
};
/* Any thread; zeroes without readers. */
void sb_reader_stats(struct sb_reader_stats *ret_stats);

/*
 * What is left alone, in words ("process 7 ('name')", "the file system 0:49 ('/path')"), control characters
 * replaced. @i counts from 0. Return: false when there are not so many. Any thread.
 */
#define SB_READER_CULPRIT_BYTES 192u
bool sb_reader_culprit(size_t i, char text[SB_READER_CULPRIT_BYTES]);

/* Warn of the first of them, and of leases. @stats: of this run. Before sb_reader_end(). */
void sb_reader_warn(const struct sb_reader_stats *stats);

#endif
