/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Landlock, landlock(7): which files a process may open, whatever its user may. It complements the
 * filters of sandbox.h, which see the flags of an open but not the file.
 *
 * It is not for processes that observe others: under Landlock a process cannot trace any process
 * outside of its own domain, so it cannot read its memory or /proc/PID/maps
 * (hook_ptrace_access_check() of security/landlock).
 */
#ifndef SB_WORKERS_LANDLOCK_H
#define SB_WORKERS_LANDLOCK_H

#include <stdbool.h>

enum sb_landlock_files {
	SB_LANDLOCK_NONE,  /* no file can be opened */
	SB_LANDLOCK_READ,  /* files below one directory can be read */
	SB_LANDLOCK_WRITE, /* also made, written and removed there; directories can be made */
};

/**
 * sb_landlock_version() - find out what the kernel supports
 *
 * The first call must come before there are threads and before a filter of system calls is
 * installed; sb_privileges_begin() makes it. Later calls return the same, in any thread and in
 * processes forked since.
 *
 * Return: the version of Landlock: 1 is that of Linux 5.13; from 6 on (Linux 6.12) signals are
 * confined, too. 0: the kernel does not have it, or it is switched off.
 */
int sb_landlock_version(void);

/**
 * sb_landlock() - confine this thread, and all threads and processes that it makes later, for good
 * @files: what can still be opened
 * @dir: the directory, which must exist; only used during the call; NULL with SB_LANDLOCK_NONE
 * @may_signal: allow signals to processes outside, as far as the user is permitted
 *
 * Files that are open stay open. From version 4 on, TCP connections and new TCP listeners are
 * refused; from version 6 on, also connections to abstract Unix sockets of processes outside. The
 * thread must have no_new_privs. sb_landlock_version() must have been called before, in this
 * process or the one that forked it, if a filter of system calls is installed.
 *
 * Return: 0, also where the kernel has no Landlock, and then nothing is checked; -EPERM without
 * no_new_privs; or another negative errno of the system calls of landlock(7) or of opening @dir.
 * After an error the thread is not confined, and the caller must not go on as if it were.
 */
int sb_landlock(enum sb_landlock_files files, const char *dir, bool may_signal);

#endif
