/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the Debian package of a file, and the package with its debug data; for `doctor`. Starts no
 * process. Thread: any. Pointers are not NULL unless it says so, and nothing is kept. */
#ifndef SB_CLI_DEBIAN_H
#define SB_CLI_DEBIAN_H

#include <stddef.h>

/*
 * Find the installed packages that own @nr paths, in dpkg's lists in @info_dir (NULL:
 * /var/lib/dpkg/info).
 * @paths: absolute; "/usr/lib/x" and "/lib/x" are one file
 * @ret_packages: @nr elements, which are NULL before; each set to a package name without
 *	architecture, one of them if several own the path, which the caller frees with free(), or
 *	to NULL: nobody owns it. On error all are NULL
 *
 * Lists that cannot be read are skipped.
 *
 * Return: 0; -ENOENT when there is no dpkg; another error of opening @info_dir; -ENOMEM.
 */
int sb_debian_owners(const char *info_dir, const char *const *paths, size_t nr,
		     char **ret_packages);

/* Return: the name that the debug package of @package has ("NAME-dbgsym"; "libc6-dbg" of libc6, and
 * the like), if there is one, which is not checked; the caller frees it with free(); NULL: no
 * memory. */
char *sb_debian_debug_package(const char *package);

#endif
