/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What /proc says about one process: its mappings, its files, its memory. Internal to the
 * symbolizer. A process may change or vanish between two calls; every function says so by its
 * return value. Sources: proc_pid_maps(5), proc_pid_stat(5), proc_pid_status(5), openat2(2).
 */
#ifndef SB_PROCFS_H
#define SB_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A maps file beyond this is read up to here: 65,530 mappings (vm.max_map_count) of 256 bytes. */
#define SB_MAPS_BYTES_MAX (16u << 20)

struct sb_maps_line {
	uint64_t start, end, pgoff, ino;
	uint32_t maj, min;
	bool is_exec, is_writable;
	const char *path; /* not terminated, points into the line; "" for anonymous memory */
	size_t path_len;
};

/* What a mapping is of, by what the kernel calls it. */
enum sb_map_kind {
	SB_MAP_FILE,
	SB_MAP_MEMORY, /* a file without a place: memfd, shared memory; perhaps an ELF file */
	SB_MAP_ANON,
	SB_MAP_VDSO,
	SB_MAP_SPECIAL, /* "[uprobes]" and other things of the kernel's */
};
/* @path is not terminated: of /proc/PID/maps, or of an MMAP2 record. */
enum sb_map_kind sb_map_kind(const char *path, size_t len);

/* Read one line without its newline. Return: false when it is not one of /proc/PID/maps. */
bool sb_maps_line_parse(const char *line, size_t len, struct sb_maps_line *ret);

/*
 * Call @fn for each line of /proc/@tgid/maps, lowest address first; also when the main thread has
 * ended and others run. A negative return value of @fn ends it and is handed on.
 * Return: 0, -ESRCH (no such process), -EACCES, -EFBIG (more than SB_MAPS_BYTES_MAX; the first
 * ones were given to @fn), -EBADMSG (lines that are not such lines), -ENOMEM.
 */
int sb_procfs_maps(uint32_t tgid, int (*fn)(void *arg, const struct sb_maps_line *line), void *arg);

/*
 * The same, but lines that are not executable may be left out, unless they are just behind anonymous ones
 * that are (see below). Much cheaper where the kernel can be asked for them (6.11).
 */
int sb_procfs_code(uint32_t tgid, int (*fn)(void *arg, const struct sb_maps_line *line), void *arg);

/*
 * Text that was moved to other memory, for huge pages: a piece of anonymous executable memory lies
 * exactly where a piece of one file is missing. Feed all lines of a process, or those of sb_procfs_code(), lowest
 * address first.
 * Return: whether @anon, the line before @line, is such a piece of the file of @before.
 */
struct sb_moved_text {
	struct sb_maps_line before, anon, line; /* the last three; their paths are not valid */
	bool is_anon_code[2];			/* of @anon and @line */
};
bool sb_moved_text_feed(struct sb_moved_text *moved, const struct sb_maps_line *line);

/* What the perf map of a process is called and who may have written it. */
struct sb_procfs_ids {
	uint32_t inner_tgid; /* in its innermost PID namespace */
	uid_t uid, euid;
};
/* From the text of /proc/PID/status. Return: 0, or -EBADMSG. */
int sb_procfs_ids_parse(const char *status, struct sb_procfs_ids *ret_ids);
/* Return: 0, -ESRCH, -EACCES, -EBADMSG. */
int sb_procfs_ids(uint32_t tgid, struct sb_procfs_ids *ret_ids);

struct sb_procfs_stat {
	char state;	/* R, S, Z... */
	bool is_kernel; /* a thread of the kernel: it has no memory */
	uint32_t ppid;
	uint64_t start_ticks; /* when it began, in ticks since boot */
	/* Where its stack begins: with start_ticks a name for what it has executed, because each
	 * execve() chooses anew (but for the same program, with the same arguments, where addresses
	 * are not random). */
	uint64_t stack_addr;
};
/* From the @len bytes of /proc/PID/stat. Return: 0, or -EBADMSG. */
int sb_procfs_stat_parse(const char *text, size_t len, struct sb_procfs_stat *ret_stat);
/* Return: 0, -ESRCH, -EACCES, -EBADMSG. */
int sb_procfs_stat(uint32_t tgid, struct sb_procfs_stat *ret_stat);

/* Return: a descriptor (O_PATH) of the root directory the process sees, -ESRCH, -EACCES. */
int sb_procfs_root(uint32_t tgid);

/* Return: the same if it is not what we ourselves see (another root, other mounts); -ENOENT if it
 * is. */
int sb_procfs_other_root(uint32_t tgid);

/*
 * Open a regular file for reading: @path below @root_fd, where symbolic links and ".." cannot lead
 * out of it; or in our own root when @root_fd is -1. Nothing but a regular file is ever opened:
 * opening a device can have effects, opening a FIFO can block.
 * Return: the descriptor, -ENOENT, -EACCES, -EINVAL (not a regular file), others of sb_open_beneath().
 */
int sb_procfs_open(int root_fd, const char *path);

/*
 * The same for the file mapped at exactly [@start, @end), whatever became of its name.
 * Return: the descriptor, -ENOENT (no such mapping, or no such process), -EPERM/-EACCES (needs
 * CAP_CHECKPOINT_RESTORE).
 */
int sb_procfs_open_mapped(uint32_t tgid, uint64_t start, uint64_t end);

/*
 * The same for a line of /proc/@tgid/maps; without the privilege, by its name below the process's
 * root, if that is still the file that is mapped.
 */
int sb_procfs_open_line(uint32_t tgid, const struct sb_maps_line *line);

/*
 * What stat(2) says of it: by its name where we are, which is quicker, if that leads to the file that is mapped.
 * Return: 0, -ENOENT, -EPERM/-EACCES.
 */
struct stat;
int sb_procfs_stat_line(uint32_t tgid, const struct sb_maps_line *line, struct stat *ret_st);

/*
 * Copy @len bytes of the memory of a process at @addr. Return: 0, -ESRCH, -EACCES, -EFAULT.
 */
int sb_procfs_read_memory(uint32_t tgid, uint64_t addr, void *buf, size_t len);

#endif
