/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For tests that write to devices by name, as root. */
#ifndef SB_TEST_PRIVATE_DEV_H
#define SB_TEST_PRIVATE_DEV_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mount.h>
#include <unistd.h>

/*
 * See /dev read-only from now on: its devices work, but a defect in the code under test cannot
 * replace /dev/null for the whole machine. Return: false when that cannot be had, with the reason
 * in errno. Without root there is nothing to fear.
 */
static inline bool private_dev(void)
{
	return geteuid() != 0 ||
	       (!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
		!mount("/dev", "/dev", NULL, MS_BIND, NULL) &&
		!mount(NULL, "/dev", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL));
}

#endif
