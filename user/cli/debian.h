/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the Debian package of a file, and the package with its debug data; for `doctor`. Starts no
 * process. Thread: any. */
#ifndef SB_CLI_DEBIAN_H
#define SB_CLI_DEBIAN_H

#include <stddef.h>

/*
 * Find the installed packages that own @nr paths, in dpkg's lists in @info_dir (NULL:
 * /var/lib/dpkg/info).
 * @ret_packages: @nr elements, each set to a package name without architecture, which the caller
 *	frees, or to NULL; all NULL on error
 *
 * Return: 0; -ENOENT when there is no dpkg; -ENOMEM.
 */
int sb_debian_owners(const char *info_dir, const char *const *paths, size_t nr,
		     char **ret_packages);

/* Return: the name of the debug package of @package, which the caller frees; NULL: no memory. */
char *sb_debian_debug_package(const char *package);

#endif
