/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The mappings of one generation (procgen.c), which is an address space: a process between two
 * calls of execve(). The events of processes (procmaps.c) change them. Internal to these two files.
 * Order: add or insert mappings as they come, then sb_procgen_settle() before anything reads them
 * in order. No pointer is NULL. Thread: one at a time for each struct sb_procmaps.
 */
#ifndef SB_PROCMAPS_PRIV_H
#define SB_PROCMAPS_PRIV_H

#include "symbolizer/process/procmaps.h"

/*
 * Append a mapping to @gen, whose mappings are out of order then. add() sets its place in the order
 * of arrival (seq), insert() leaves it to the caller. Beyond a bound the mapping is counted in @pm
 * and marked as missing in @gen. @is_seed: it was read from /proc.
 * Return: 0, also beyond a bound; -ENOMEM: nothing was added.
 */
int sb_procgen_add(struct sb_procmaps *pm, struct sb_procgen *gen, uint64_t time_ns, bool is_seed,
		   const struct sb_procmaps_new *new);
int sb_procgen_insert(struct sb_procmaps *pm, struct sb_procgen *gen, struct sb_mapping map);
/* Put the mappings in order that came since the last lookup; pointers to mappings and indices of
 * them are stale then. Cannot fail: without memory it is slower. */
void sb_procgen_settle(struct sb_procgen *gen);
/* Keep only the first @nr mappings, which are in order. A mapping holds nothing that needs a
 * release: its file is only a number. The caller corrects nr_mappings of @pm. */
void sb_procgen_truncate(struct sb_procgen *gen, size_t nr);
/* Put the mappings in order, remove those that one later mapping hides from @time_ns on, and
 * correct nr_mappings of @pm. */
void sb_procgen_forget_hidden(struct sb_procmaps *pm, struct sb_procgen *gen, uint64_t time_ns);

#endif
