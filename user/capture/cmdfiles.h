/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which files a command is going to run code of, before it begins: its program, the interpreters of a
 * script, the loader (PT_INTERP), and the libraries they need (DT_NEEDED), as execve(2) and ld.so(8) find
 * them: along DT_RPATH and DT_RUNPATH, $LD_LIBRARY_PATH, and where the loader itself lies, which is where
 * distributions have their libraries. What is elsewhere (ld.so.conf(5), dlopen(3)) is not found.
 *
 * It is a guess, good for having things ready: a wrong one costs time, a missing one is found out by the
 * first sample.
 */
#ifndef SB_CAPTURE_CMDFILES_H
#define SB_CAPTURE_CMDFILES_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

#define SB_CMDFILES_MAX 64u

struct sb_cmdfiles {
	struct sb_cmdfile {
		int fd; /* of a regular file, for reading; owned */
		dev_t dev;
		ino_t ino;
		char path[PATH_MAX]; /* as it was found */
	} at[SB_CMDFILES_MAX];
	size_t nr;
};

/* @name as execvp(3) takes it, with our environment and working directory. Never fails: what cannot be
 * found or read is left out. To be freed. Return: NULL without memory. */
struct sb_cmdfiles *sb_cmdfiles_find(const char *name);
void sb_cmdfiles_free(struct sb_cmdfiles *files);

#endif
