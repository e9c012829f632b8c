/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Guesses which files a command will execute code from, before it starts: its program, the
 * interpreters of a script, the dynamic loader (PT_INTERP), and the libraries they need
 * (DT_NEEDED). They are searched for as execve(2) and ld.so(8) do: along DT_RPATH, DT_RUNPATH,
 * $LD_LIBRARY_PATH, and in the loader's own directory, where distributions have their libraries.
 * Files found by other means (ld.so.conf(5), dlopen(3)) are missing.
 *
 * The session makes unwind tables of these files in advance. A wrong guess costs time; a missing
 * file is noticed at its first sample. Thread: any.
 */
#ifndef SB_CAPTURE_CMDFILES_H
#define SB_CAPTURE_CMDFILES_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

#define SB_CMDFILES_MAX 64u

struct sb_cmdfiles {
	struct sb_cmdfile {
		int fd; /* a regular file, open for reading; owned; -1: the caller took it over */
		dev_t dev;
		ino_t ino;
		char path[PATH_MAX]; /* under which it was found */
	} at[SB_CMDFILES_MAX];
	size_t nr;
};

/* Find the files of the command @name (not NULL, not kept), which is looked up as by execvp(3), in
 * our own root and with our own $PATH and $LD_LIBRARY_PATH. What cannot be found or read is left
 * out, and so is what is beyond SB_CMDFILES_MAX. It reads files. Return: the files, the program
 * first, possibly none, which the caller ends with sb_cmdfiles_free(); NULL: there is no memory.
 * Thread: any, while none changes the environment. */
struct sb_cmdfiles *sb_cmdfiles_find(const char *name);
/* Close all files, and free. Accepts NULL. */
void sb_cmdfiles_free(struct sb_cmdfiles *files);

#endif
