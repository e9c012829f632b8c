/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The perf map of one process (/tmp/perf-PID.map, names of generated code): where it is, whether it
 * can be trusted, and when to read it again. A map that cannot be opened, or that neither root nor
 * the process's user owns, counts as missing. Internal to the symbolizer. Order: sb_jit_new() while
 * the process lives; sb_jit_lookup(), which reads the map; sb_jit_read() when the process exits;
 * and sb_jit_free(). Only that accepts NULL. Thread: one at a time for each symbolizer.
 */
#ifndef SB_JIT_H
#define SB_JIT_H

#include <stdbool.h>
#include <stdint.h>

struct sb_jit;
struct sb_perfmaps;

/*
 * Note the IDs and the root of a process while it lives, so that its perf map can be found later.
 * The caller ends it with sb_jit_free().
 * @maps: borrowed until sb_jit_free(); the pool of maps, which processes may share
 * @tgid: must be alive, otherwise its user and root are not known
 * @keep_root: hold the process's root directory open if it is not ours (that takes a descriptor);
 *	otherwise a map below another root can be read only while the process lives
 *
 * Return: the object; NULL without memory.
 */
struct sb_jit *sb_jit_new(struct sb_perfmaps *maps, uint32_t tgid, bool keep_root);
/* Return: whether a root directory is held open. */
bool sb_jit_keeps_root(const struct sb_jit *jit);
/* Free it, and give its map back to the pool. Accepts NULL. */
void sb_jit_free(struct sb_jit *jit);

/*
 * Look up @addr, an address of the process, in the map as it was at @time_ns (CLOCK_MONOTONIC) or
 * later; the file is read again if necessary.
 * Return: the name of the code, valid until the next call for any process of the pool, with the
 * address where it begins in *@ret_start; NULL: it has none, or the map cannot be read, and
 * *@ret_start is untouched.
 */
const char *sb_jit_lookup(struct sb_jit *jit, uint64_t addr, uint64_t time_ns, uint64_t *ret_start);

/*
 * Read what was appended to the map, e.g. when the process exits, before the file disappears.
 * Errors show in sb_jit_is_cut() or as missing names.
 */
void sb_jit_read(struct sb_jit *jit);

/* Return: whether a bound of memory or work (perfmap.h, budget.h) ever kept names of the process's
 * present map from being read. It stays true even if they could be read later; false before the
 * first reading. */
bool sb_jit_is_cut(const struct sb_jit *jit);
/* Return: whether a map with any names was read; it stays so when the file is deleted. */
bool sb_jit_has_map(const struct sb_jit *jit);

/*
 * Return: whether the process has moved the text of a file to other memory, for huge pages:
 * anonymous executable memory around @addr lies exactly where a piece of one file is missing
 * between two others (procfs.h, sb_moved_text_feed()). False, too, if /proc cannot be read. The
 * answer for the last mapping asked about is cached.
 */
bool sb_jit_is_moved_text(struct sb_jit *jit, uint64_t addr);

#endif
