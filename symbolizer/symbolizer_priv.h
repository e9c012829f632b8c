/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The symbolizer's own state: symbolizer.c keeps it, processes.c feeds it, lookup.c asks it. */
#ifndef SB_SYMBOLIZER_PRIV_H
#define SB_SYMBOLIZER_PRIV_H

#include "base/index.h"
#include "base/str.h"
#include "base/vec.h"
#include "budget.h"
#include "jit.h"
#include "kallsyms.h"
#include "memo.h"
#include "modcache.h"
#include "module.h"
#include "perfmap.h"
#include "procmaps.h"
#include "sb_sym.h"

/* Root directories of processes with generated code held open, so that their maps can be read when
 * they have ended. */
#define SB_JIT_ROOTS_MAX 256u

/* An address in a mapped file. */
struct sb_place {
	uint64_t addr;
	uint64_t offset;     /* in the file */
	uint64_t start, end; /* of the mapping */
	uint32_t file;	     /* of the module cache */
	uint32_t idx;	     /* of the request, in its chunk */
};

struct sb_symbolizer {
	struct sb_symbolizer_opts opts; /* with its own copies of strings */
	char **debug_dirs;
	char *kallsyms_path;
	struct sb_strtab strings;
	struct sb_budget_pool budget; /* of all files that are kept here, perf maps too */
	struct sb_procmaps procs;
	struct sb_modcache modules;
	struct sb_kallsyms kallsyms;
	struct sb_memo memo;
	struct sb_str scratch;
	uint64_t lost_ns;
	struct sb_perfmaps perfmaps;
	uint32_t nr_jit_roots;
	uint64_t nr_lookups;
	uint64_t nr_reason[SB_SYM_REASON_MAX];
	/* Of the lookup under way. */
	SB_VEC(struct sb_place) places;
	SB_VEC(struct sb_sym_frame) frames;
	struct sb_answer {
		size_t first_frame, nr_frames;
	} * answers; /* by request */
};

/*
 * Make the generation that @tgid had at @time_ns known, out of /proc if need be. Return: 0 and the
 * generation, or NULL if nothing is known, and whether that is because of a bound; or -ENOMEM.
 */
int sb_symbolizer_generation(struct sb_symbolizer *sym, uint32_t tgid, uint64_t time_ns,
			     struct sb_procgen **ret_gen, bool *ret_limit);

/* Return: the perf map of a process, or NULL without memory. */
struct sb_jit *sb_symbolizer_jit(struct sb_symbolizer *sym, struct sb_procgen *gen);
void sb_symbolizer_free_jit(void *sym, void *jit);

/* The module of the vDSO which @tgid has at @map. Return: 0, -ENOMEM, others: it cannot be read. */
int sb_symbolizer_vdso(struct sb_symbolizer *sym, uint32_t tgid, const struct sb_mapping *map,
		       struct sb_cached_module **ret_module);

#endif
