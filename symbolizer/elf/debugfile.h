/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Find the separate file that has the symbols and the DWARF of a stripped file. Internal to the
 * symbolizer.
 *
 * The search goes in this order: DIR/.build-id/xx/yyyy.debug; the file that .gnu_debuglink names,
 * next to the binary, in .debug next to it, and in DIR + the binary's directory; debuginfod if
 * asked for. DIR is each of the debug directories, first in our own root, then in the process's. A
 * file is taken if its build ID is the same or, if the binary has none, its checksum; and only if
 * its owner is root, the binary's owner, or the user who runs this program. Sources: "Debugging
 * Information in Separate Files", GDB manual; libdwfl's find-debuginfo.c.
 *
 * No pointer is NULL unless a comment says so. Thread: any, one at a time for each struct sb_elf.
 */
#ifndef SB_DEBUGFILE_H
#define SB_DEBUGFILE_H

#include <stdbool.h>

#include "symbolizer/elf/elf_file.h"

struct sb_debugfile_opts {
	const char *path;	 /* of the binary, as its process sees it; not NULL */
	const char *root;	 /* "/proc/PID/root", or NULL */
	const char *const *dirs; /* NULL-terminated; NULL: /usr/lib/debug */
	bool debuginfod;
};

struct sb_debugfile {
	struct sb_elf *elf; /* owned */
	char *path;	    /* owned; below opts.root if it was found there */
};

/*
 * Find and open the debug file of @elf; @opts is used during the call only. The caller ends
 * *ret_file, which is overwritten, with sb_debugfile_release(). It may ask a server on the network,
 * and wait for it (opts->debuginfod).
 * Return: 0; -ENOENT: there is none that can be used; -ENOMEM. *@ret_file is untouched on error.
 */
int sb_debugfile_find(const struct sb_elf *elf, const struct sb_debugfile_opts *opts,
		      struct sb_debugfile *ret_file);
/* Close it, and leave zeroes. Accepts an object of zeroes, so a second call does no harm. */
void sb_debugfile_release(struct sb_debugfile *file);

/*
 * Find the dwz file that .gnu_debugaltlink of @elf (the binary, or its debug file) names, with the
 * build ID it gives. @path: of @elf, where the search for a relative name begins; of @opts, root
 * and dirs are used. A file is taken only if it has that build ID, and an owner as said above.
 * Return: 0 and a descriptor that the caller owns, for sb_dwarf_new(); -ENOENT: no link, or no file
 * that is taken; -ENOMEM; -EMFILE. On error *@ret_fd means nothing.
 */
int sb_debugfile_find_alt(const struct sb_elf *elf, const char *path,
			  const struct sb_debugfile_opts *opts, int *ret_fd);

#endif
