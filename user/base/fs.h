/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files: bounded reads, complete writes, and outputs that appear whole and belong to the user:
 * after sb_output_file_new() the caller writes to sb_output_file_stream(), calls
 * sb_output_file_commit() if all went well, and sb_output_file_free() in any case. Thread: any;
 * sb_output_*(): one at a time. No pointer may be NULL unless a contract says so. */
#ifndef SB_BASE_FS_H
#define SB_BASE_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/*
 * Read a whole file (of /proc too, whose size is not known beforehand) into a NUL-terminated buffer
 * that the caller ends with free(). @ret_len: without the NUL; may be NULL. It is opened with
 * O_NONBLOCK, as @path may be a FIFO.
 * Return: 0; -EFBIG beyond @max_bytes, without the NUL; -ENOMEM; or a negative errno of open(2) or
 * read(2), also -EAGAIN; both out-parameters are untouched then.
 */
int sb_read_file(const char *path, size_t max_bytes, char **ret_data, size_t *ret_len);
/* As sb_read_file(), but from @fd, which is read from where it stands, and not closed; after an
 * error it may stand anywhere. -EAGAIN: @fd is non-blocking and has no data yet. */
int sb_read_fd(int fd, size_t max_bytes, char **ret_data, size_t *ret_len);
/* Read exactly @len bytes of the file @fd, which begin at @offset, however often it takes; where
 * @fd stands does not change. Return: 0; -EBADMSG if the file ends before; or a negative errno of
 * pread(2); on error a part may be in @buf. */
int sb_read_all_at(int fd, uint64_t offset, void *buf, size_t len);

/*
 * Return: whether the effective user and capabilities of this thread allow what @mode asks for: to
 * read (R_OK), write (W_OK) or execute (X_OK) @path, or whether it exists (F_OK); false after any
 * error. access(2) would ask for the real user instead and, if that is not root, without any
 * capability.
 */
bool sb_can_access(const char *path, int mode);

/* Return: whether the directory @dir_fd, which stays open and for which O_PATH is enough, has no
 * entry other than names that begin with a dot; false if it cannot be read. */
bool sb_dir_is_empty(int dir_fd);

/* Write all of @data to @fd, however often it takes. Return: 0; or a negative errno of write(2),
 * also -EAGAIN of a non-blocking @fd: a part may have been written then. */
int sb_write_all(int fd, const void *data, size_t len);

/* Raise RLIMIT_NOFILE to its hard limit, since each CPU and each file kept open takes a descriptor.
 * Call it before anything that divides the limit is made, such as the symbolizer. A failure is
 * ignored, as by the next one. */
void sb_raise_nofile(void);
/* Return: whether @path lies in the current directory or below it and that was deleted, so that
 * nothing can be created there; errors of the kernel do not say that. False for a path that is
 * absolute or begins with "../", since the parent may exist. Any thread. */
bool sb_is_in_deleted_cwd(const char *path);
/* Lower the soft and the hard limit @resource (RLIMIT_*) of setrlimit(2) to @value. What is lower
 * already stays. A failure is ignored. */
void sb_lower_limit(int resource, uint64_t value);

/* A user and a group. */
struct sb_owner {
	uid_t uid;
	gid_t gid;
};
/* Return: who called sudo (SUDO_UID and SUDO_GID, believed only if the effective user is root),
 * else our real user and group. */
struct sb_owner sb_sudo_owner(void);

/*
 * An output file. It has no name, or a temporary one in the same directory, until
 * sb_output_file_commit() is called. Only its owner can read it (mode 0600): profiles have names,
 * paths and command lines of everybody on the machine. A device or a FIFO is written directly, and
 * so is /dev/stdout, /dev/stderr, /dev/fd/N: the descriptor itself, from where it stands. A
 * symbolic link is replaced, not followed: root must not write wherever another user's link in a
 * shared directory points to.
 *
 * Below sudo, files are made with the rights of the user who called it, and are theirs. Where they
 * may not write, root makes new files, which remain root's; a file that is there is not replaced
 * (-EEXIST).
 */
struct sb_output_file;

/* Return: whether @path, by its text alone, stands for a descriptor of ours, which need not be
 * open: /dev/stdout, /dev/stderr, /dev/fd/N, /proc/self/fd/N. */
bool sb_output_is_fd(const char *path);

/**
 * sb_output_open_special() - open a device or a FIFO to write to it
 * @path: its name; a symbolic link is not followed
 * @flags: further flags of open(2), or 0: O_NONBLOCK, not to wait for the reader of a FIFO
 *
 * Below sudo, with the rights of the user who called it. A FIFO must belong to that user, or to
 * root. Opening one waits for its reader.
 *
 * Return: a descriptor for writing, close-on-exec, which the caller closes; -ENOENT: it is a
 * regular file, a directory or a symbolic link, or lstat(2) fails, so that a file can be made by
 * sb_output_file_new(); -EPERM: it is another user's FIFO; -ENXIO: with O_NONBLOCK, it has no
 * reader; or what open(2) fails with.
 */
int sb_output_open_special(const char *path, int flags);

/*
 * Make the file @path, which is copied, or open the device or descriptor it stands for; a FIFO is
 * waited for until it has a reader. The caller ends *@ret_file with sb_output_file_free(); it is
 * untouched on error. Thread: the one that takes the signals, see sb_output_files_discard().
 * Return: 0; -EISDIR; -EACCES; -ENOENT, also for an empty path; -EEXIST: only root could replace
 * it; -EPERM: a FIFO of another user; -EBADF: no such descriptor; -ENOMEM; or another negative
 * errno of open(2).
 */
int sb_output_file_new(const char *path, struct sb_output_file **ret_file);
/* Return: the stream to write to; owned by the file, and valid until sb_output_file_commit() or
 * sb_output_file_free(). */
FILE *sb_output_file_stream(struct sb_output_file *file);
/*
 * Flush the stream, give the file its name, and close it: it is complete then, and only to be
 * freed. Call it once. Thread: the one that made it. Return: 0; or a negative errno: of flushing,
 * e.g. -ENOSPC, -EIO if an earlier write failed, or of naming the file (-EEXIST: only root could
 * replace what has that name by now), and then sb_output_file_free() removes it; or of closing,
 * when it has its name already.
 */
int sb_output_file_commit(struct sb_output_file *file);
/* Close and free. A file that was not committed is removed; a device, FIFO or descriptor keeps what
 * was written to it. Accepts NULL. */
void sb_output_file_free(struct sb_output_file *file);
/* For a signal handler that ends the program (async-signal-safe): remove every file that was not
 * committed. Files are made, committed and freed by the thread which takes the signal. */
void sb_output_files_discard(void);

#endif
