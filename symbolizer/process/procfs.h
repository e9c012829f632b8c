/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What /proc says about one process: its mappings, its files, its memory. Internal to the
 * symbolizer. A process may change or vanish between two calls; every function says so by its
 * return value. What the kernel tells without waiting for the process is read directly:
 * sb_procfs_ids(), sb_procfs_threads(), sb_procfs_next_task(), sb_procfs_stat(),
 * sb_procfs_stat_of(), sb_procfs_exists() and sb_procfs_comm(). All other accesses to a process go
 * through a reader (reader.h), and so can also fail with -ETIMEDOUT (the access blocked, or what it
 * is about blocked before and is left alone), -ENOMEM, -EIO or -EPROTO (the reader failed). What
 * opens a file for reading can also fail with -EWOULDBLOCK (another process holds a lease on it),
 * -EFBIG (it is not on a local file system, and too large to be copied), -EMFILE, others of
 * openat2(2). Out-parameters are untouched on error, unless a function says otherwise; no pointer
 * may be NULL, but @arg. Order: any; each call is complete, and can be repeated after an error. A
 * descriptor that is returned is the caller's. Thread: any. Sources: proc_pid_maps(5),
 * proc_pid_stat(5), proc_pid_status(5), openat2(2).
 */
#ifndef SB_PROCFS_H
#define SB_PROCFS_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Of a longer maps file only so much is read: 65,530 mappings (vm.max_map_count) of 256 bytes. */
#define SB_MAPS_BYTES_MAX (16u << 20)

/* A mapping: addresses [start, end), and the offset of `start` in the file, in bytes. */
struct sb_maps_line {
	uint64_t start, end, pgoff, ino;
	uint32_t maj, min;
	bool is_exec, is_writable;
	const char *path; /* not terminated, valid as long as the line; "" for anonymous memory */
	size_t path_len;
};

/* What is mapped, as the name that the kernel gives the mapping tells it. */
enum sb_map_kind {
	SB_MAP_FILE,
	SB_MAP_MEMORY, /* a file without a directory: memfd, shared memory; may be an ELF file */
	SB_MAP_ANON,
	SB_MAP_VDSO,
	SB_MAP_SPECIAL, /* "[uprobes]" and other mappings that the kernel made */
};
/*
 * Return: what is mapped, by how its name begins: SB_MAP_ANON: without a name, "//", "[heap]",
 * "[stack", "[anon", "/anon_hugepage"; SB_MAP_MEMORY: "/memfd:", "/dev/zero", "/SYSV", "/dev/shm/";
 * SB_MAP_VDSO: "[vdso]"; SB_MAP_FILE: any other "/"; SB_MAP_SPECIAL: all others.
 * @path: the name in /proc/PID/maps or in an MMAP2 record, @len bytes, not terminated
 */
enum sb_map_kind sb_map_kind(const char *path, size_t len);

/*
 * Parse one line of /proc/PID/maps, @len bytes without its newline; ret->path points into @line.
 * Return: false when it is not such a line; *@ret is untouched then.
 */
bool sb_maps_line_parse(const char *line, size_t len, struct sb_maps_line *ret);

/*
 * Call @fn for each line of /proc/@tgid/maps, lowest address first; also when the main thread has
 * ended and others still run. @line is valid during the call only. A negative return value of @fn
 * ends it and is returned; @fn may call the functions of this header.
 * Return: 0; -ESRCH (no such process); -EACCES; -EFBIG (longer than SB_MAPS_BYTES_MAX; @fn was
 * called for the lines before); -EBADMSG (some lines could not be parsed; @fn was called for the
 * others); -ENOMEM.
 */
int sb_procfs_maps(uint32_t tgid, int (*fn)(void *arg, const struct sb_maps_line *line), void *arg);

/*
 * Call @fn for the executable mappings of @tgid, and for what directly follows anonymous executable
 * memory, lowest address first; others may be passed to @fn, too. On kernels that answer
 * PROCMAP_QUERY (6.11) much cheaper than sb_procfs_maps(). @line is valid during the call only. A
 * negative return value of @fn ends it and is returned. Return: 0; -ESRCH (no such process);
 * -EACCES; -EFBIG (longer than SB_MAPS_BYTES_MAX, or more mappings than a process can have);
 * -EBADMSG (some lines could not be parsed); -ENOMEM. After an error @fn may have been called for
 * some.
 */
int sb_procfs_code(uint32_t tgid, int (*fn)(void *arg, const struct sb_maps_line *line), void *arg);
/* Call @fn for the executable mappings of @tgid as sb_procfs_code() does, and return the same, but
 * without reading if another call, in any thread, began to read at @since_ns (CLOCK_MONOTONIC) or
 * later, and its result is still kept (sb_reader_code_since()): 0, -ESRCH or -ENOMEM then, or what
 * @fn returned. */
int sb_procfs_code_since(uint32_t tgid, uint64_t since_ns,
			 int (*fn)(void *arg, const struct sb_maps_line *line), void *arg);

struct sb_moved_text {
	struct sb_maps_line before, anon, line; /* the last three; their paths are not valid */
	bool is_anon_code[2];			/* of @anon and @line */
};
/*
 * Find text that a program moved to huge pages: a piece of anonymous executable memory lies exactly
 * where a piece of a mapped file is missing. Begin with a zeroed struct for each process, and feed
 * all its lines, or those of sb_procfs_code(), lowest address first. Nothing is to be fed after the
 * last. Lines are copied, but for their paths, which may go after the call. Thread: one at a time
 * for each struct.
 * Return: whether moved->anon, the line that was fed before @line, is such a piece of the file of
 * moved->before.
 */
bool sb_moved_text_feed(struct sb_moved_text *moved, const struct sb_maps_line *line);

/* What tells the name of a process's perf map and who may have written it. */
struct sb_procfs_ids {
	uint32_t inner_tgid; /* its ID in its innermost PID namespace */
	uid_t uid, euid;
};
/* Parse the text of /proc/PID/status, a string. Return: 0; -EBADMSG: a field is missing or
 * wrong. */
int sb_procfs_ids_parse(const char *status, struct sb_procfs_ids *ret_ids);
/* Read and parse /proc/@tgid/status. Return: 0; -ESRCH, -EACCES, -EBADMSG, -ENOMEM; -EFBIG: it is
 * longer than 1 MiB; others of open(2) and read(2). */
int sb_procfs_ids(uint32_t tgid, struct sb_procfs_ids *ret_ids);

/* Open the list of a process's threads; the caller closes it. Return: NULL, and errno is that of
 * opendir(3). */
DIR *sb_procfs_threads(uint32_t tgid);
/* Return: the next thread in that list, or the next process in an open /proc, without @but, which
 * may be 0; 0: no more. */
uint32_t sb_procfs_next_task(DIR *threads, uint32_t but);

struct sb_procfs_stat {
	char state;	/* R, S, Z...; if the main thread has ended, of another one */
	bool is_kernel; /* a kernel thread, which has no memory of its own */
	uint32_t ppid;
	uint64_t start_ticks; /* when it started, in clock ticks since boot */
	/* Where its stack begins. Together with start_ticks this identifies an address space,
	 * because each execve() chooses a new place; except for the same program with the same
	 * arguments where addresses are not randomized. */
	uint64_t stack_addr;
};
/* Parse @len bytes of /proc/PID/stat. Return: 0; -EBADMSG: a field is missing or wrong. */
int sb_procfs_stat_parse(const char *text, size_t len, struct sb_procfs_stat *ret_stat);
/* Read and parse /proc/@tgid/stat. Return: 0; -ESRCH, -EACCES, -EBADMSG, -ENOMEM; -EFBIG: it is
 * longer than 4 KiB; others of open(2) and read(2). */
int sb_procfs_stat(uint32_t tgid, struct sb_procfs_stat *ret_stat);
/* The same, of the process with this ID that began at @start_ticks; 0: of any. Return: as above;
 * -ESRCH also if it has ended and nobody has waited for it, or another process has its ID. */
int sb_procfs_stat_of(uint32_t tgid, uint64_t start_ticks, struct sb_procfs_stat *ret_stat);

/* Return: false if there is no process @tgid, not even a zombie; true also for a later process with
 * the same ID, and if that cannot be found out. This is one system call, so it is cheaper than to
 * ask a reader (reader.h) that would return -ESRCH. */
bool sb_procfs_exists(uint32_t tgid);

/* Read the name of a process, "ruby", which is that of its first thread; the caller frees it.
 * Return: 0; -ESRCH, -EACCES, -ENOMEM; others of open(2) and read(2). */
int sb_procfs_comm(uint32_t tgid, char **ret_comm);

/*
 * Open the root directory of a process (O_PATH), if it differs from ours: it is another directory,
 * or in another mount namespace.
 * Return: the descriptor; -ENOENT: it is ours; -ESRCH, -EACCES, -EMFILE.
 */
int sb_procfs_other_root(uint32_t tgid);

/*
 * Open a regular file for reading: @path below @root_fd (borrowed), which symbolic links and ".."
 * cannot leave; or in our own root, or our working directory if it is relative, when @root_fd is
 * -1. Other files are never opened, because opening a device can have effects and opening a FIFO
 * can block.
 * Return: the descriptor; -ENOENT, -EACCES, -EINVAL (not a regular file), or as the opening says.
 */
int sb_procfs_open(int root_fd, const char *path);

/*
 * Open the regular file that @tgid maps at exactly the addresses [@start, @end), for reading, even
 * if it was deleted.
 * Return: the descriptor; -ENOENT (no such mapping or process); -EPERM or -EACCES without
 * CAP_CHECKPOINT_RESTORE; -EINVAL (not a regular file), or as the opening says.
 */
int sb_procfs_open_mapped(uint32_t tgid, uint64_t start, uint64_t end);

/*
 * Open the regular file of @line, a line of /proc/@tgid/maps, for reading, even if it was deleted.
 * A file that this program holds open already (sb_reader_held_open()) needs no access, and is then
 * for pread(2) only, because its position is shared. Without CAP_CHECKPOINT_RESTORE it is opened by
 * its name below the process's root instead; the device is not compared, only the inode number.
 * Return: the descriptor; -ENOENT: no such mapping, an anonymous one, or by that name there is no
 * file or one with another inode number; -ESRCH, -EACCES, -EINVAL (not a regular file),
 * -ENAMETOOLONG, or as the opening says.
 */
int sb_procfs_open_line(uint32_t tgid, const struct sb_maps_line *line);

/*
 * stat(2) of the mapped file of @line. Its name in our own root is tried first, because that is
 * faster, and taken if it leads to the same file (inode and device). Return: 0; -ENOENT (no such
 * mapping or process); -EPERM or -EACCES without CAP_CHECKPOINT_RESTORE; others of statx(2).
 * *@ret_st is undefined on error.
 */
struct stat;
int sb_procfs_stat_line(uint32_t tgid, const struct sb_maps_line *line, struct stat *ret_st);

/*
 * Copy exactly @len bytes, at least one, at @addr of the memory of process @tgid to @buf. Return:
 * 0; -ESRCH; -EACCES; -EFAULT: not all of it can be read, and @buf may have been written to.
 */
int sb_procfs_read_memory(uint32_t tgid, uint64_t addr, void *buf, size_t len);

#endif
