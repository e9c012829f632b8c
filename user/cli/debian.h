/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which Debian package a file is from, and which one has its debug data. Spawns nothing. */
#ifndef SB_CLI_DEBIAN_H
#define SB_CLI_DEBIAN_H

#include <stddef.h>

/*
 * For each of @nr paths, find the installed package that owns it, from dpkg's lists in @info_dir
 * (NULL: /var/lib/dpkg/info). @ret_packages has room for @nr; each is NULL or a name without its
 * architecture, which the caller frees.
 * Return: 0, -ENOENT where there is no dpkg, -ENOMEM.
 */
int sb_debian_owners(const char *info_dir, const char *const *paths, size_t nr,
		     char **ret_packages);

/* Return: the debug package of @package, to be freed, or NULL without memory. */
char *sb_debian_debug_package(const char *package);

#endif
