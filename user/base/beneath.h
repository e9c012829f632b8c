/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Open a path as a process in another root directory would: the work of openat2(2) with
 * RESOLVE_IN_ROOT, done with openat(2) alone. A seccomp filter cannot look at the flags of
 * openat2(2), which lie in memory, so a process that may call it can open files for writing.
 */
#ifndef SB_BASE_BENEATH_H
#define SB_BASE_BENEATH_H

/**
 * sb_open_beneath() - look up a path that cannot lead out of a directory
 * @root_fd: the directory that "/" and ".." above it stand for; O_PATH is enough; not closed
 * @path: not NULL; absolute or relative, both begin at @root_fd; a slash at its end is ignored
 *
 * Symbolic links, absolute ones too, are followed inside @root_fd. Links of /proc that lead to an
 * open file ("magic links") are followed by their text only.
 *
 * Return: a new O_PATH descriptor, close-on-exec, which the caller closes; or -ELOOP after 40
 * links, -ENAMETOOLONG when the path with the links in it is longer than PATH_MAX, or deeper than
 * 128 directories, or what openat(2), fstat(2), readlinkat(2) fail with, such as -ENOENT, also for
 * an empty path.
 * Thread: any.
 */
int sb_open_beneath(int root_fd, const char *path);

#endif
