/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of a symbolizer: symbolizer.c owns it, processes.c feeds it, lookup.c queries it. A
 * generation (procmaps.h) is an address space of a process. No pointer is NULL. Thread: one at a
 * time for each symbolizer.
 */
#ifndef SB_SYMBOLIZER_PRIV_H
#define SB_SYMBOLIZER_PRIV_H

#include "base/index.h"
#include "base/ration.h"
#include "base/str.h"
#include "base/vec.h"
#include "symbolizer/dwarf/sb_dwarf.h"
#include "symbolizer/elf/budget.h"
#include "symbolizer/process/procmaps.h"
#include "symbolizer/sb_sym.h"
#include "symbolizer/symbols/jit.h"
#include "symbolizer/symbols/kallsyms.h"
#include "symbolizer/symbols/memo.h"
#include "symbolizer/symbols/modcache.h"
#include "symbolizer/symbols/module.h"
#include "symbolizer/symbols/perfmap.h"

/*
 * Bound of root directories that are held open, of processes with generated code, so that their
 * perf maps can be read after they have ended.
 */
#define SB_JIT_ROOTS_MAX 256u

/* One requested address that lies in a mapped file. */
struct sb_place {
	uint64_t addr;
	uint64_t offset;     /* in the file */
	uint64_t start, end; /* of the mapping */
	uint32_t file;	     /* its number in the module cache */
	uint32_t idx;	     /* number of the request in its chunk */
};

struct sb_symbolizer {
	struct sb_symbolizer_opts opts; /* its strings are copies, owned below */
	char **debug_dirs;
	char *kallsyms_path;
	struct sb_strtab strings;
	struct sb_budget_pool budget;  /* of all files that are loaded here, perf maps included */
	struct sb_dwarf_losses losses; /* of all modules so far */
	struct sb_procmaps procs;
	struct sb_modcache modules;
	struct sb_kallsyms kallsyms;
	struct sb_memo memo;
	struct sb_str scratch;
	uint64_t lost_ns;
	struct sb_ration ration; /* bounds how often processes are read again */
	struct sb_perfmaps perfmaps;
	uint32_t nr_jit_roots;
	uint64_t nr_lookups;
	uint64_t nr_reason[SB_SYM_REASON_MAX];
	/* Of the lookup in progress. */
	SB_VEC(struct sb_place) places;
	SB_VEC(struct sb_sym_frame) frames;
	struct sb_answer {
		size_t first_frame, nr_frames;
	} * answers; /* by request */
};

/*
 * Find the generation that @tgid had at @time_ns; /proc is read if necessary and allowed by the
 * ration.
 * Return: 0 with the generation, valid until the next event, seeding or forget, or with NULL if
 * nothing is known (because of a bound if *ret_limit); -ENOMEM: *ret_gen is untouched, *ret_limit
 * is not, and the next call tries again.
 */
int sb_symbolizer_generation(struct sb_symbolizer *sym, uint32_t tgid, uint64_t time_ns,
			     struct sb_procgen **ret_gen, bool *ret_limit);
/*
 * Return: whether @gen may be out of date at @time_ns, because events were lost or skipped and it
 * has not been read since.
 */
bool sb_symbolizer_is_unsure(const struct sb_symbolizer *sym, const struct sb_procgen *gen,
			     uint64_t time_ns);

/* Return: the perf map of a process, made at the first call, owned by @gen and valid as long; NULL:
 * no memory. */
struct sb_jit *sb_symbolizer_jit(struct sb_symbolizer *sym, struct sb_procgen *gen);
/* Free @jit, which sb_symbolizer_jit() made, and release its place among the open root directories.
 * It is procs.free_priv, which procmaps.h calls when a generation goes; @sym: the symbolizer. */
void sb_symbolizer_free_jit(void *sym, void *jit);

/*
 * Get the module of the vDSO that @tgid has mapped at @map. It belongs to the module cache, is
 * valid as that of sb_modcache_get(), and is passed to sb_modcache_account() after lookups. Return:
 * 0; -ENOENT: the process's memory cannot be read; -EFBIG: larger than SB_VDSO_BYTES_MAX, or a
 * bound; -ENOEXEC: no ELF file; -ENOMEM. *@ret_module is untouched on error.
 */
int sb_symbolizer_vdso(struct sb_symbolizer *sym, uint32_t tgid, const struct sb_mapping *map,
		       struct sb_cached_module **ret_module);

#endif
