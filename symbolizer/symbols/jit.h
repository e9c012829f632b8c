/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The perf map of one process: where it is, whether it can be trusted, and when to read it again.
 * Internal to the symbolizer. Thread: one at a time for each symbolizer.
 */
#ifndef SB_JIT_H
#define SB_JIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sb_jit;
struct sb_perfmaps;

/*
 * Note the IDs and the root of a process while it lives, so that its perf map can be found later.
 * The caller ends it with sb_jit_free().
 * @maps: borrowed; the pool of maps, which processes may share
 * @keep_root: hold the process's root directory open if it is not ours (that takes a descriptor);
 *	otherwise a map below another root can be read only while the process lives
 *
 * Return: NULL without memory.
 */
struct sb_jit *sb_jit_new(struct sb_perfmaps *maps, uint32_t tgid, bool keep_root);
/* Return: whether a root directory is held open. */
bool sb_jit_keeps_root(const struct sb_jit *jit);
/* Accepts NULL. */
void sb_jit_free(struct sb_jit *jit);

/*
 * Look up @addr in the map as it was at @time_ns or later; the file is read again if necessary.
 * Return: the name of the code, valid until the next call, and where it begins; NULL: it has none.
 */
const char *sb_jit_lookup(struct sb_jit *jit, uint64_t addr, uint64_t time_ns, uint64_t *ret_start);

/* Read what was appended to the map; called when the process exits. */
void sb_jit_read(struct sb_jit *jit);

/* Return: whether a bound prevented names from being read. */
bool sb_jit_is_cut(const struct sb_jit *jit);
/* Return: whether a map with any names was read. */
bool sb_jit_has_map(const struct sb_jit *jit);

/*
 * Return: whether the process has moved the text of a file to other memory, for huge pages:
 * anonymous executable memory around @addr lies exactly where a piece of one file is missing
 * between two others (procfs.h, sb_moved_text_feed()). The answer for the last such piece is
 * cached.
 */
bool sb_jit_is_moved_text(struct sb_jit *jit, uint64_t addr);

#endif
