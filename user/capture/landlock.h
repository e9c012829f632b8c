/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Landlock, landlock(7): which files a process may open, whatever its user is. It complements the filters of sandbox.h,
 * which see the flags with which a file is opened, but not which file it is.
 *
 * It is not for processes that look at others: a process below Landlock may not trace, and so not read the memory or
 * /proc/PID/maps of, any process outside of its own domain (hook_ptrace_access_check() of security/landlock).
 */
#ifndef SB_CAPTURE_LANDLOCK_H
#define SB_CAPTURE_LANDLOCK_H

#include <stdbool.h>

enum sb_landlock_files {
	SB_LANDLOCK_NONE,  /* no file at all can be opened */
	SB_LANDLOCK_READ,  /* files below one directory can be read */
	SB_LANDLOCK_WRITE, /* they can also be made, written, and removed; directories can be made */
};

/**
 * sb_landlock_version() - what the kernel can do
 *
 * The first call has to come before there are threads, and before a filter of system calls is installed;
 * sb_privileges_begin() does it.
 *
 * Return: the version of Landlock: 1 is that of Linux 5.13; from 6 on (Linux 6.12) signals are confined, too.
 * 0: the kernel has none, or it is switched off.
 */
int sb_landlock_version(void);

/**
 * sb_landlock() - confine this thread, and all that it makes from here on, for good
 * @files: what can be opened from here on
 * @dir: the directory; NULL with SB_LANDLOCK_NONE
 * @may_signal: whether processes that it did not make can be signalled, as far as the user allows
 *
 * What is open stays open. TCP connections and new TCP listeners are refused from version 4 on. The thread must have
 * no_new_privs.
 *
 * Return: 0, also where the kernel has no Landlock; or a negative errno.
 */
int sb_landlock(enum sb_landlock_files files, const char *dir, bool may_signal);

#endif
