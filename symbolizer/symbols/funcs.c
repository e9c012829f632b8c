// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/symbols/funcs.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/search.h"

/* Browsers have 600,000. */
#define NR_FUNCS_MAX (4u << 20)

/* As few bytes as will do: text of more than 4 GiB has no unwind table, either (cfi.h). */
struct sb_func_span {
	uint32_t start; /* from the base on */
	uint32_t len;
};

/* Return: how many of @list are taken over into @at, which has room for all. */
static size_t pack(const struct sb_cfi_function *list, size_t nr, struct sb_func_span *at)
{
	const uint64_t base = list[0].lo;
	uint64_t end = base;
	size_t i, kept = 0;

	for (i = 0; i < nr; i++) {
		if (list[i].lo < end || list[i].hi <= list[i].lo || list[i].hi - base > UINT32_MAX)
			continue;
		at[kept++] = (struct sb_func_span){
			.start = (uint32_t)(list[i].lo - base),
			.len = (uint32_t)(list[i].hi - list[i].lo),
		};
		end = list[i].hi;
	}
	return kept;
}

int sb_funcs_init(struct sb_parser_seat *seat, const struct sb_elf *elf, struct sb_funcs *ret_funcs)
{
	sb_cleanup(sb_freep) struct sb_cfi_function *list = NULL;
	struct sb_funcs funcs = {};
	size_t nr = 0;
	int err = sb_parser_functions(seat, elf, &list, &nr);

	if (err)
		return err;
	if (!nr || nr > NR_FUNCS_MAX)
		return nr ? -EFBIG : -ENODATA;
	err = sb_budget_charge(elf->budget, nr * sizeof(*funcs.at));
	if (err)
		return err;
	funcs.at = malloc(nr * sizeof(*funcs.at));
	if (!funcs.at)
		return -ENOMEM;
	funcs.base = list[0].lo;
	funcs.nr = pack(list, nr, funcs.at);
	*ret_funcs = funcs;
	return 0;
}

void sb_funcs_release(struct sb_funcs *funcs)
{
	free(funcs->at);
	*funcs = (struct sb_funcs){};
}

/* Return: the last entry that begins at @addr or before, or NULL. */
static const struct sb_func_span *find_last(const struct sb_funcs *funcs, uint64_t addr)
{
	size_t behind;

	if (addr < funcs->base)
		return NULL;
	behind = sb_bisect(funcs->nr, i, funcs->at[i].start <= addr - funcs->base);
	return behind ? &funcs->at[behind - 1] : NULL;
}

bool sb_funcs_find(const struct sb_funcs *funcs, uint64_t addr, struct sb_func *ret_func)
{
	const struct sb_func_span *span = find_last(funcs, addr);

	if (!span || addr - funcs->base - span->start >= span->len)
		return false;
	ret_func->lo = funcs->base + span->start;
	ret_func->hi = ret_func->lo + span->len;
	return true;
}

bool sb_funcs_is_same(const struct sb_funcs *funcs, uint64_t from, uint64_t addr)
{
	const struct sb_func_span *span = find_last(funcs, addr);
	uint64_t start, end;

	if (!span)
		return true;
	start = funcs->base + span->start;
	end = start + span->len;
	return start <= from && (from >= end || addr < end);
}

size_t sb_funcs_bytes(const struct sb_funcs *funcs)
{
	return funcs->nr * sizeof(*funcs->at);
}
