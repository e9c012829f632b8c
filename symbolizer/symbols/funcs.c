// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/symbols/funcs.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* Browsers have 600,000. */
#define NR_FUNCS_MAX  (4u << 20)
/* Start, length, and a part of the index. */
#define BYTES_OF_FUNC 9u

/* Move those to the front of @list that are taken over. Return: how many. */
static size_t choose(struct sb_cfi_function *list, size_t nr)
{
	const uint64_t base = list[0].lo;
	uint64_t end = base;
	size_t i, kept = 0;

	for (i = 0; i < nr; i++) {
		/* Text of more than 4 GiB has no unwind table, either (cfi.h). */
		if (list[i].lo < end || list[i].hi <= list[i].lo || list[i].hi - base > UINT32_MAX)
			continue;
		list[kept++] = list[i];
		end = list[i].hi;
	}
	return kept;
}

static int take(const struct sb_cfi_function *list, size_t nr, struct sb_funcs *funcs)
{
	size_t i;
	int err = sb_addrs_init(&funcs->starts, list[0].lo, list[nr - 1].lo, nr);

	funcs->lens = malloc(nr * sizeof(*funcs->lens));
	if (err || !funcs->lens)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		sb_addrs_set(&funcs->starts, i, list[i].lo);
		funcs->lens[i] = (uint32_t)(list[i].hi - list[i].lo);
	}
	return sb_addrs_index(&funcs->starts);
}

int sb_funcs_init(struct sb_parser_seat *seat, const struct sb_elf *elf, struct sb_funcs *ret_funcs)
{
	sb_cleanup(sb_freep) struct sb_cfi_function *list = NULL;
	struct sb_funcs funcs = {};
	size_t nr = 0;
	int err = sb_parser_functions(seat, elf, &list, &nr);

	if (err)
		return err;
	if (nr > NR_FUNCS_MAX)
		return -EFBIG;
	nr = nr ? choose(list, nr) : 0;
	if (!nr)
		return -ENODATA;
	err = sb_budget_charge(elf->budget, nr * BYTES_OF_FUNC);
	if (!err)
		err = take(list, nr, &funcs);
	if (err)
		sb_funcs_release(&funcs);
	else
		*ret_funcs = funcs;
	return err;
}

void sb_funcs_release(struct sb_funcs *funcs)
{
	sb_addrs_release(&funcs->starts);
	free(funcs->lens);
	*funcs = (struct sb_funcs){};
}

/* Return: whether an entry begins at @addr or before; *@ret_func: the last of these. */
static bool find_last(const struct sb_funcs *funcs, uint64_t addr, struct sb_func *ret_func)
{
	size_t i = sb_addrs_find(&funcs->starts, addr);

	if (i == SIZE_MAX)
		return false;
	ret_func->lo = sb_addrs_get(&funcs->starts, i);
	ret_func->hi = ret_func->lo + funcs->lens[i];
	return true;
}

bool sb_funcs_find(const struct sb_funcs *funcs, uint64_t addr, struct sb_func *ret_func)
{
	struct sb_func func;

	if (!find_last(funcs, addr, &func) || addr >= func.hi)
		return false;
	*ret_func = func;
	return true;
}

bool sb_funcs_is_same(const struct sb_funcs *funcs, uint64_t from, uint64_t addr)
{
	struct sb_func func;

	if (!find_last(funcs, addr, &func))
		return true;
	return func.lo <= from && (from >= func.hi || addr < func.hi);
}

size_t sb_funcs_bytes(const struct sb_funcs *funcs)
{
	return sb_addrs_bytes(&funcs->starts) + funcs->starts.nr * sizeof(*funcs->lens);
}
