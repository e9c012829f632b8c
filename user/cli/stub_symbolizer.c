// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names nothing. Stands in until the library links; then this file and its row go. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sb_sym.h"

const char *const sb_sym_reason_names[SB_SYM_REASON_MAX] = {
	"ok",	      "unmapped", "gone", "no-file",	"bad-file",
	"no-symbols", "no-match", "anon", "restricted", "limit",
};

struct sb_symbolizer {
	struct sb_sym_stats stats;
};

int sb_symbolizer_new(const struct sb_symbolizer_opts *opts, struct sb_symbolizer **ret_sym)
{
	*ret_sym = calloc(1, sizeof(**ret_sym));
	return *ret_sym ? 0 : -1;
}

void sb_symbolizer_free(struct sb_symbolizer *sym)
{
	free(sym);
}

int sb_symbolizer_mmap(struct sb_symbolizer *sym, const struct sb_sym_mmap *ev)
{
	if (ev->fd >= 0)
		close(ev->fd);
	return 0;
}

int sb_symbolizer_fork(struct sb_symbolizer *sym, uint64_t time_ns, uint32_t tgid,
		       uint32_t parent_tgid)
{
	return 0;
}

int sb_symbolizer_exec(struct sb_symbolizer *sym, uint64_t time_ns, uint32_t tgid)
{
	return 0;
}

int sb_symbolizer_exit(struct sb_symbolizer *sym, uint64_t time_ns, uint32_t tgid)
{
	return 0;
}

int sb_symbolizer_lost(struct sb_symbolizer *sym, uint64_t time_ns)
{
	return 0;
}

int sb_symbolizer_seed(struct sb_symbolizer *sym, uint64_t time_ns, uint32_t tgid)
{
	return 0;
}

static int name_nothing(const struct sb_sym_query *query)
{
	const struct sb_sym_frame frame = { .module = "", .raw_name = "", .reason = SB_SYM_GONE };
	size_t i;
	int err = 0;

	for (i = 0; i < query->nr && !err; i++)
		err = query->emit(query->arg, i, &frame, 1);
	return err;
}

int sb_symbolizer_kernel(struct sb_symbolizer *sym, const struct sb_sym_query *query)
{
	return name_nothing(query);
}

int sb_symbolizer_user(struct sb_symbolizer *sym, uint32_t tgid, uint64_t time_ns,
		       const struct sb_sym_query *query)
{
	return name_nothing(query);
}

void sb_symbolizer_stats(const struct sb_symbolizer *sym, struct sb_sym_stats *ret_stats)
{
	*ret_stats = sym->stats;
}

int sb_symbolizer_sources(struct sb_symbolizer *sym, uint32_t tgid,
			  int (*fn)(void *arg, const struct sb_sym_source *source), void *arg)
{
	return -1;
}
