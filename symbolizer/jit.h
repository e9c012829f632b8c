/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The perf map of one process: where it is, whether it may be believed, when to read it again.
 * Internal to the symbolizer.
 */
#ifndef SB_JIT_H
#define SB_JIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sb_jit;
struct sb_perfmaps;

/*
 * Note who the process is while it lives; later, its map can be found even if it has ended.
 * @keep_root: hold its root directory open if it is not ours; descriptors are few. Without, its map
 * can be read only as long as it lives. @maps: borrowed; where its map is, which others may share.
 * Return: NULL without memory.
 */
struct sb_jit *sb_jit_new(struct sb_perfmaps *maps, uint32_t tgid, bool keep_root);
bool sb_jit_keeps_root(const struct sb_jit *jit);
void sb_jit_free(struct sb_jit *jit);

/* Return: the name of the code at @addr, valid until the next call, and its start; or NULL.
 * @time_ns: the map as it was then, or later, is good enough. */
const char *sb_jit_lookup(struct sb_jit *jit, uint64_t addr, uint64_t time_ns, uint64_t *ret_start);

/* Read what has been added to the map, for the last time before the process is gone. */
void sb_jit_read(struct sb_jit *jit);

/* Return: whether a bound kept names from being read. */
bool sb_jit_is_cut(const struct sb_jit *jit);
bool sb_jit_has_map(const struct sb_jit *jit);

/*
 * Has the process moved the text of a file to other memory, for huge pages? True if its anonymous
 * executable memory around @addr lies exactly where a piece of one file is missing between two
 * others. Asked once for each such piece.
 */
bool sb_jit_is_moved_text(struct sb_jit *jit, uint64_t addr);

#endif
