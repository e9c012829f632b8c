/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All access to the memory, the files and the /proc entries of other processes. Such an access can
 * block for as long as the owner of the process wants: on a page of a FUSE server that never
 * answers, on userfaultfd(2), on a lock that the process holds meanwhile. A thread that waits for a
 * FUSE server cannot even be killed. Therefore another process, which can be abandoned, makes the
 * access:
 *
 *	caller	any thread of the program; its first access gives it a reader of its own
 *	spawner	forked when the program starts; starts readers, kills those that are late, and never
 *		waits for one
 *	reader	makes one access at a time and answers in memory that it shares with its caller
 *
 * A reader that blocks for longer than its patience (see below) is abandoned: it is killed, nobody
 * waits until it has ended, and another one replaces it. The process, file system or directory that
 * it waited for is left alone for a minute, and for twice as long each further time: accesses to it
 * fail with -ETIMEDOUT at once. Files are handed over as descriptors if they are on a local file
 * system, on that of our own root, or on virtiofs. The reader copies files on any other file system
 * (FUSE, NFS, ...) into memory.
 *
 * Order: sb_reader_begin() and sb_reader_settle(); accesses, each on its own, and sb_reader_tidy()
 * every few seconds; at the end sb_reader_stats(), sb_reader_warn() and sb_reader_end(). Without
 * sb_reader_begin() the calling thread makes the accesses itself. See symbolizer/README.md,
 * "Foreign memory and files".
 *
 * No pointer is NULL unless a contract says so; none is kept after the call.
 *
 * Thread: any, unless a function says otherwise. Return: every access can also fail with -ENOMEM,
 * -ETIMEDOUT, -EIO (the reader crashed) and -EPROTO (the reader gave an answer that cannot be).
 * After any error the next access can be made, if necessary by a new reader.
 */
#ifndef SB_READER_H
#define SB_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct sb_str;

struct sb_reader_opts {
	/* Called in the spawner, and then also in each reader, to drop the privileges that it does
	 * not need. A negative return value ends that process. NULL: keep all privileges. */
	int (*confine_spawner)(void *arg);
	int (*confine_reader)(void *arg);
	void *arg;
	uint64_t patience_ns; /* 0: SB_READER_PATIENCE_NS */
};

/* A reader is late when it has been blocked for so long in one access without making progress. Time
 * that it waits for a CPU does not count; on a local file system it has ten times as long. */
#define SB_READER_PATIENCE_NS	   300000000ull
/* Abandoned readers that are still alive. When there are more, no new reader is started, and
 * accesses that need one fail with -ETIMEDOUT. */
#define SB_READER_ABANDONED_MAX	   16u
/* Bound of a file that is copied, and of all open copies together. Beyond it: -EFBIG. */
#define SB_READER_COPY_BYTES_MAX   (64ull << 20)
#define SB_READER_COPIES_BYTES_MAX (256ull << 20)

/**
 * sb_reader_begin() - fork the spawner, for the whole process
 * @opts: copied; @opts->arg must stay valid
 *
 * Thread: the main one, before there are others. Return: 0; or a negative errno of socketpair(2) or
 * fork(2): threads go on making accesses themselves.
 */
int sb_reader_begin(const struct sb_reader_opts *opts);
/*
 * Wait until the spawner has dropped its privileges. Return: 0, also without a spawner; what
 * confine_spawner() returned, if negative, or another negative errno of the spawner's start;
 * -ECHILD when the spawner has died; others of recvmsg(2). After an error no access can be made
 * (-ETIMEDOUT). Later calls return the same at once. It need not be called: the first access waits,
 * too.
 */
int sb_reader_settle(void);
/*
 * End the spawner and with it all readers, and reset the counters. It does not wait for readers.
 * Thread: the main one, when no other thread makes accesses any more.
 */
void sb_reader_end(void);
/*
 * The run is about to end: from now on all accesses of all threads together may block for half a
 * second, and after that every access that needs a reader fails with -ETIMEDOUT. A pending SIGINT
 * or SIGTERM (the threads have them blocked) has the same effect. Async-signal-safe.
 */
void sb_reader_hurry(void);

/*
 * Copy up to @len bytes at @addr of the memory of @tgid, or of the process that this thread ID
 * belongs to, into @buf; also when the main thread has ended and others still run.
 * Return: the number of bytes, fewer than @len if the memory behind them cannot be read; -EFAULT
 * (not even the first byte, or @len is 0), -ESRCH, -EPERM. After an error @buf may have been
 * written to.
 */
ssize_t sb_reader_memory(uint32_t tgid, uint64_t addr, void *buf, size_t len);

/* Entries of /proc/TGID whose reading can block until the process lets go. */
enum sb_reader_entry {
	SB_READER_MAPS,
	SB_READER_CMDLINE,
	SB_READER_ENVIRON,
	SB_READER_ROLLUP,  /* smaps_rollup */
	SB_READER_PAGEMAP, /* for sb_reader_pages() only */
	SB_READER_ENTRY_MAX,
};
/*
 * Read an entry from @offset on, @len bytes but at most SB_READER_CODE_BYTES, into @buf, which is
 * untouched on error. Offset 0 opens it; other offsets go on in the entry that this thread's reader
 * has open, or open it anew if that is another one or the reader was replaced. To read all, go on
 * at what was read so far. If the main thread has ended, offset 0 opens the entry of another
 * thread.
 * Return: the number of bytes, which are fewer than that only at the end; -ESRCH, -EACCES, others
 * of read(2).
 */
ssize_t sb_reader_entry(uint32_t tgid, enum sb_reader_entry entry, uint64_t offset, void *buf,
			size_t len);

struct sb_reader_map {
	uint64_t start, end, pgoff, ino;
	uint32_t maj, min;
	uint32_t is_exec, is_writable;
	uint32_t path_len, record_bytes; /* the path follows, without NUL; then the next record */
};
#define SB_READER_CODE_BYTES (128u << 10)
/*
 * Get the executable mappings of @tgid, and what directly follows anonymous executable memory, in
 * pieces, lowest address first. Each mapping is a struct sb_reader_map, followed by its path. The
 * caller checks lengths: whoever controls the reader can forge them.
 * @is_first: open the entry anew: true for the first piece, false for the others
 * @at: 0, or as the last call left it; set to where the next call goes on, UINT64_MAX at the end;
 *	untouched on error
 * @records: a string that the caller releases; overwritten, and undefined on error; records in it
 *	are not aligned
 *
 * Return: the number of bytes in @records; -EFBIG (more mappings than a process can have);
 * -ESRCH; -ENOTSUP: nothing was found this way (an old kernel, a main thread that ended before
 * others, an entry that cannot be read), so the text of /proc/TGID/maps must be read.
 */
ssize_t sb_reader_code(uint32_t tgid, bool is_first, uint64_t *at, struct sb_str *records);
/*
 * Get what sb_reader_code() last read of @tgid, in any thread, without asking a reader. It is kept
 * only if it was one piece of at most 8 KiB, or if there was no such process; results that a reader
 * read ahead are not kept. It counts only if reading began at @since_ns (CLOCK_MONOTONIC) or later.
 * @records: as in sb_reader_code(); on error it is empty or truncated
 *
 * Return: the number of bytes in @records; -ESRCH: there was no such process; -ENOMEM; -ENODATA:
 * nothing that counts is kept, so that sb_reader_code() has to be called.
 */
ssize_t sb_reader_code_since(uint32_t tgid, uint64_t since_ns, struct sb_str *records);

/*
 * Get the pages of @tgid that are in memory or in swap, in pieces, lowest address first, as struct
 * sb_page_run (pagemap.h). The caller checks them: whoever controls the reader can forge them.
 * @is_first: open the entry anew: true for the first piece, false for the others
 * @is_by_word: read the word of each page (sb_pagemap_read()), for kernels without PAGEMAP_SCAN
 * @end: the address where to end, exclusive; a multiple of the page size, as *@at
 * @at: where to begin; set to where the next call goes on, @end at the end; untouched on error
 * @runs: room for SB_READER_RUNS_MAX
 *
 * Return: the number of runs; -ENOTTY (no PAGEMAP_SCAN); -ESRCH, -EACCES, others of ioctl(2) and
 * pread(2). @runs is untouched on error.
 */
struct sb_page_run;
#define SB_READER_RUNS_MAX 8192u
int sb_reader_pages(uint32_t tgid, bool is_first, bool is_by_word, uint64_t end, uint64_t *at,
		    struct sb_page_run *runs);

/* Accesses of one round of sb_reader_ahead(). */
#define SB_READER_AHEAD_MAX 64u
struct sb_reader_want {
	uint32_t tgid; /* for memory also the ID of a thread */
	uint32_t len;  /* bytes of memory; 0: the executable mappings */
	uint64_t addr; /* of memory */
	/* At @addr is a pointer. The piece of @len bytes, aligned to @len, that it points into is
	 * read, and the address of that piece is the argument of sb_reader_memory(). */
	uint32_t is_pointer;
	uint32_t padding;
};
/*
 * Make several accesses by one request, because two switches of processes cost more than most
 * accesses. The calling thread's next sb_reader_memory() with the same arguments, or
 * sb_reader_code() with @is_first, returns what was read now, once. The results are kept until they
 * are taken or the thread calls this function again; with @nr 0, when @wants may be NULL, it drops
 * them. The memory that they took, at most 1 MiB, is kept for the thread's next call. Without
 * sb_reader_begin() nothing is read, and @nr is returned.
 *
 * A piece that several pointers lead to is read once. If an access blocks, it alone is given up,
 * and what it waited for is left alone. Accesses that failed or do not fit are not kept: they are
 * made, and fail, when they are asked for.
 * Return: for how many of @wants, from the first on, there is nothing to be read ahead any more: at
 * least 1, unless @nr is 0. Call it with the others when these have been used.
 */
size_t sb_reader_ahead(const struct sb_reader_want *wants, size_t nr);
/* Return: whether the calling thread's next sb_reader_memory() with these arguments returns what
 * sb_reader_ahead() read. */
bool sb_reader_has_read(uint32_t tgid, uint64_t addr, uint32_t len);

/* Where to look for a file. */
enum sb_reader_place {
	SB_READER_HERE,	  /* @path in our own root; a relative path from our working directory */
	SB_READER_BELOW,  /* @path below @root_fd, which symbolic links and ".." cannot leave */
	SB_READER_IN,	  /* @path below the root of @tgid, as BELOW, without magic links */
	SB_READER_MAPPED, /* the file that @tgid maps at exactly [@start, @end) */
	SB_READER_PLACE_MAX,
};
struct sb_reader_file {
	enum sb_reader_place place;
	uint32_t tgid;	     /* of IN and MAPPED; else 0 */
	int root_fd;	     /* of BELOW; borrowed */
	uint64_t start, end; /* of MAPPED */
	const char *path;    /* may be NULL for SB_READER_MAPPED only, which ignores it */
	/* For sb_reader_stat(): hold the file for sb_reader_held_stat() if it has this device and
	 * inode number and is on the mount of our own root directory. hold_ino 0: do not. */
	uint64_t hold_dev, hold_ino;
};

/*
 * Open a regular file for reading. Nothing else is ever opened, because opening a device can have
 * effects. The caller owns the descriptor; it may be one of a copy.
 * Return: the descriptor; -ENOENT, -EACCES, -EINVAL (not a regular file), -EWOULDBLOCK (another
 * process holds a lease on it), -EFBIG (too large to be copied), -EMFILE, others of openat2(2).
 */
int sb_reader_open(const struct sb_reader_file *file);
/*
 * stat(2) of a file of any type. Return: 0; -ENOENT, -EACCES, or another negative errno of
 * statx(2); *@ret_st is untouched then.
 */
int sb_reader_stat(const struct sb_reader_file *file, struct stat *ret_st);
/*
 * stat(2) of the file that the kernel calls @dev and @ino in the mappings of a process, without a
 * reader. It cannot block, because the file is held open since sb_reader_stat() found it, and is on
 * the mount of our own root directory.
 * Return: whether it is held, and was not deleted; if not, *@ret_st is untouched.
 */
bool sb_reader_held_stat(dev_t dev, ino_t ino, struct stat *ret_st);
/*
 * Get another descriptor of a file that is held. The caller owns it; it shares its position with
 * others, so that it is for pread(2) only.
 * Return: the descriptor; -1 if the file is not held, or no descriptor is free.
 */
int sb_reader_held_open(dev_t dev, ino_t ino);
/* Close held files that nobody asked for in the last 10 s. Call it every few seconds. */
void sb_reader_tidy(void);
/* Return: whether @fd, or what it was duplicated from, is a copy in memory by sb_reader_open(). */
bool sb_reader_is_copy(int fd);
/*
 * fstat(2) of @fd or, if @fd is a copy, of the original, as it was when it was copied. It makes no
 * access and cannot block. Return: 0; or a negative errno of fstat(2), *@ret_st is untouched then.
 */
int sb_reader_fstat(int fd, struct stat *ret_st);
/*
 * Get another descriptor of the file that is open as @fd or, if @fd is a copy, of the original
 * (O_PATH), for the kernel to find it by /proc/self/fd. It makes no access and cannot block. The
 * caller owns it.
 * Return: the descriptor; or a negative errno of fstat(2) or fcntl(2), such as -EMFILE.
 */
int sb_reader_pin(int fd);

/*
 * Open the root directory of a process (O_PATH). The caller owns the descriptor.
 * @is_other: only if it differs from ours: another directory, or another mount namespace
 *
 * Return: the descriptor; -ENOENT (with @is_other: it is the same as ours); -ESRCH, -EACCES,
 * -EMFILE.
 */
int sb_reader_root(uint32_t tgid, bool is_other);

/* Counters since sb_reader_begin(). */
struct sb_reader_stats {
	/* Accesses, those of one sb_reader_ahead() as one; readers that were started. */
	uint64_t nr_requests, nr_readers;
	uint64_t nr_abandoned; /* readers that were late */
	uint64_t nr_crashed;
	uint64_t nr_refused; /* accesses to what is left alone, or beyond a bound */
	uint64_t nr_copies, nr_leased;
	uint64_t cpu_ns; /* of the spawner and all readers */
};
/* Get the counters. Without sb_reader_begin() those of readers stay 0. */
void sb_reader_stats(struct sb_reader_stats *ret_stats);

/*
 * Return: CPU time, in nanoseconds, of the calling thread and its reader. It decreases when the
 * reader is abandoned.
 */
uint64_t sb_reader_thread_cpu_ns(void);

/*
 * Describe the @i-th (from 0) of what is left alone, in words: "process 7 ('name')", "file system
 * 0:49 ('/path')". Control characters are replaced. What was left alone remains in the list.
 * Return: false when there are not so many; @text is untouched then.
 */
#define SB_READER_CULPRIT_BYTES 192u
bool sb_reader_culprit(size_t i, char text[SB_READER_CULPRIT_BYTES]);

/*
 * Log warnings: the first five of what was left alone (sb_reader_culprit()), and how many files
 * were not read because of leases. Call it before sb_reader_end(). @stats: of sb_reader_stats()
 */
void sb_reader_warn(const struct sb_reader_stats *stats);

#endif
