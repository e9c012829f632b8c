// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/symbols/symbolizer_priv.h"

const char *const sb_sym_reason_names[SB_SYM_REASON_MAX] = {
	[SB_SYM_OK] = "ok",
	[SB_SYM_UNMAPPED] = "unmapped",
	[SB_SYM_GONE] = "gone",
	[SB_SYM_NO_FILE] = "no-file",
	[SB_SYM_BAD_FILE] = "bad-file",
	[SB_SYM_NO_SYMBOLS] = "no-symbols",
	[SB_SYM_NO_MATCH] = "no-match",
	[SB_SYM_ANON] = "anon",
	[SB_SYM_RESTRICTED] = "restricted",
	[SB_SYM_LIMIT] = "limit",
};

/* The options are kept: their strings must not depend on the caller. */
static int copy_strings(struct sb_symbolizer *sym)
{
	const char *const *dirs = sym->opts.debug_dirs;
	size_t nr = 0, i;

	if (sym->opts.kallsyms_path) {
		sym->kallsyms_path = strdup(sym->opts.kallsyms_path);
		if (!sym->kallsyms_path)
			return -ENOMEM;
		sym->opts.kallsyms_path = sym->kallsyms_path;
	}
	if (!dirs)
		return 0;
	while (dirs[nr])
		nr++;
	sym->debug_dirs = calloc(nr + 1, sizeof(*sym->debug_dirs));
	if (!sym->debug_dirs)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		sym->debug_dirs[i] = strdup(dirs[i]);
		if (!sym->debug_dirs[i])
			return -ENOMEM;
	}
	sym->opts.debug_dirs = (const char *const *)sym->debug_dirs;
	return 0;
}

int sb_symbolizer_new(const struct sb_symbolizer_opts *opts, struct sb_symbolizer **ret_sym)
{
	struct sb_symbolizer *sym = calloc(1, sizeof(*sym));
	struct sb_module_opts module_opts = {};
	int err;

	if (!sym)
		return -ENOMEM;
	sym->opts = *opts;
	sym->memo.frames_max = opts->memo_max;
	sym->procs.free_priv = sb_symbolizer_free_jit;
	sym->procs.free_arg = sym;
	module_opts.sym = &sym->opts;
	module_opts.strings = &sym->strings;
	module_opts.losses = &sym->losses;
	module_opts.pool = sym->perfmaps.pool = &sym->budget;
	sb_budget_pool_init(&sym->budget, opts->bytes_max);
	err = sb_strtab_init(&sym->strings);
	if (!err)
		err = copy_strings(sym);
	if (!err)
		err = sb_modcache_init(&sym->modules, &module_opts);
	if (err) {
		sb_symbolizer_free(sym);
		return err;
	}
	sym->kallsyms.path = sym->kallsyms_path;
	*ret_sym = sym;
	return 0;
}

void sb_symbolizer_free(struct sb_symbolizer *sym)
{
	size_t i;

	if (!sym)
		return;
	sb_procmaps_release(&sym->procs);
	sb_modcache_release(&sym->modules);
	sb_kallsyms_release(&sym->kallsyms);
	sb_memo_release(&sym->memo);
	sb_strtab_release(&sym->strings);
	sb_str_release(&sym->scratch);
	sb_vec_release(&sym->places);
	sb_vec_release(&sym->frames);
	free(sym->answers);
	for (i = 0; sym->debug_dirs && sym->debug_dirs[i]; i++)
		free(sym->debug_dirs[i]);
	free(sym->debug_dirs);
	free(sym->kallsyms_path);
	sb_perfmaps_release(&sym->perfmaps);
	sb_budget_pool_release(&sym->budget);
	free(sym);
}

void sb_symbolizer_stats(const struct sb_symbolizer *sym, struct sb_sym_stats *ret_stats)
{
	const struct sb_procmaps *procs = &sym->procs;
	const struct sb_modcache *modules = &sym->modules;

	*ret_stats = (struct sb_sym_stats){
		.nr_modules = modules->nr_opened,
		.nr_processes = procs->processes.nr,
		.nr_light_bytes = modules->light_bytes + sb_kallsyms_bytes(&sym->kallsyms) +
				  sb_perfmaps_bytes(&sym->perfmaps),
		.nr_heavy_bytes = modules->heavy_bytes,
		.nr_heavy_bytes_peak = modules->heavy_bytes_peak,
		.nr_evictions = modules->nr_evictions,
		.nr_bytes_peak = sym->budget.bytes_peak,
		.nr_bytes_max = sym->budget.bytes_max,
		.nr_files_cut = sym->budget.nr_refused_files,
		.nr_units_damaged = sym->losses.nr_units,
		.nr_splits_missing = sym->losses.nr_splits,
		.nr_refused = procs->nr_mappings_refused + procs->nr_generations_refused +
			      modules->nr_files_refused,
		.nr_files_closed = modules->nr_pins_dropped,
		.nr_lookups = sym->nr_lookups,
	};
	memcpy(ret_stats->nr_reason, sym->nr_reason, sizeof(ret_stats->nr_reason));
}
