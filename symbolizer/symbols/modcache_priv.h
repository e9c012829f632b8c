/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the three files of the module cache need of each other: modcache.c keeps the modules,
 * modcache_files.c the mapped files, and modcache_open.c opens the ones for the others. Internal to
 * modcache*.c. No pointer is NULL. Thread: one at a time for each cache.
 */
#ifndef SB_MODCACHE_PRIV_H
#define SB_MODCACHE_PRIV_H

#include "symbolizer/symbols/modcache.h"

/* modcache.c */

/* Return: the module with this ID, valid as in sb_modcache_get(); NULL: it was closed, or @id is
 * 0. */
struct sb_cached_module *sb_modcache_find_id(const struct sb_modcache *cache, uint32_t id);
/*
 * Add @module, which the cache owns from now on, also on error; @stamp is copied. If there are too
 * many modules, the least recently used one is closed.
 * Return: 0, and the new module in *@ret_module, valid as in sb_modcache_get(); -ENOMEM: @module
 * was freed, and *@ret_module is untouched.
 */
int sb_modcache_add_module(struct sb_modcache *cache, struct sb_module *module,
			   const struct sb_file_stamp *stamp, struct sb_cached_module **ret_module);
/* Close the modules of which no file is known any more, unless they were used since the last
 * call. */
void sb_modcache_drop_idle(struct sb_modcache *cache);

/* modcache_files.c */

/* Close the pinned descriptor of @file, if it has one. */
void sb_modcache_unpin(struct sb_modcache *cache, struct sb_file *file);
/* Return: the length of the file's path without the " (deleted)" that the kernel appends to that of
 * a file that is gone; the whole length if it has none. */
size_t sb_modcache_real_len(const struct sb_file *file);

#endif
