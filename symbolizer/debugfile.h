/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the symbols and the DWARF of a stripped file are. Internal to the symbolizer.
 *
 * Searched are, in this order: DIR/.build-id/xx/yyyy.debug; the file that .gnu_debuglink names,
 * next to the binary, in .debug next to it, and in DIR + its directory; debuginfod if asked for.
 * DIR is each of the debug directories; as it is, then below the process's root. A file is taken
 * if its build ID is the same; without a build ID in the binary, if the checksum is.
 * Source: "Debugging Information in Separate Files", GDB manual; libdwfl's find-debuginfo.c.
 */
#ifndef SB_DEBUGFILE_H
#define SB_DEBUGFILE_H

#include <stdbool.h>

#include "elf_file.h"

struct sb_debugfile_opts {
	const char *path;	 /* of the binary, as its process sees it */
	const char *root;	 /* "/proc/PID/root", or NULL */
	const char *const *dirs; /* NULL-terminated, or NULL: /usr/lib/debug */
	bool debuginfod;
};

struct sb_debugfile {
	struct sb_elf *elf;
	char *path; /* as it was opened; below the root if it was found there */
};

/* Return: 0, -ENOENT when there is none, -ENOMEM. */
int sb_debugfile_find(const struct sb_elf *elf, const struct sb_debugfile_opts *opts,
		      struct sb_debugfile *ret_file);
void sb_debugfile_release(struct sb_debugfile *file);

/*
 * The dwz file that .gnu_debugaltlink of @elf (at @path) names; its build ID has to match.
 * Return: 0 and a file descriptor for the caller to close, -ENOENT, -ENOMEM.
 */
int sb_debugfile_find_alt(const struct sb_elf *elf, const char *path,
			  const struct sb_debugfile_opts *opts, int *ret_fd);

#endif
