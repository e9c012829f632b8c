// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The finished table: where symbols start, where pieces start, and who owns them, each in an array
 * of its own, so that a search touches nothing else.
 */
#include "symbolizer/symbols/symtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "symbolizer/symbols/symtab_priv.h"

/* A name is stored as its offset, with the number of its table in the upper bits. */
#define NAME_BITS 29
_Static_assert(SB_NAMES_BYTES_MAX == 1u << NAME_BITS && NR_NAMES_MAX <= 8, "both fit");

/* Work of sorting a symbol and finding the addresses it owns. */
#define WORK_OF_CANDIDATE 250u
/* Memory that finishing takes for each candidate, in addition to the candidate itself. */
#define BYTES_TO_FINISH	  (sizeof(struct candidate) + 6 * sizeof(struct segment))

struct sb_symtab *sb_symtab_new(struct sb_budget *budget)
{
	struct sb_symtab *tab = calloc(1, sizeof(*tab));

	if (tab)
		tab->budget = budget;
	return tab;
}

void sb_symtab_free(struct sb_symtab *tab)
{
	size_t i;

	if (!tab)
		return;
	for (i = 0; i < tab->nr_names; i++)
		sb_names_release(&tab->names[i]);
	sb_vec_release(&tab->candidates);
	sb_addrs_release(&tab->addrs);
	free(tab->symbol_names);
	free(tab->label_bits);
	sb_addrs_release(&tab->starts);
	free(tab->owners);
	free(tab);
}

/* Keep addresses and names of the symbols that own something, indexed by number. */
static int keep_symbols(struct sb_symtab *tab, const uint32_t *numbers)
{
	size_t i;
	int err =
		sb_addrs_init(&tab->addrs, tab->starts.base,
			      tab->candidates.nr ? tab->candidates.at[tab->candidates.nr - 1].start
						 : tab->starts.base,
			      tab->nr_symbols);

	tab->symbol_names = malloc(tab->nr_symbols * sizeof(*tab->symbol_names) + 1);
	tab->label_bits = calloc(tab->nr_symbols / 8 + 1, 1);
	if (err || !tab->symbol_names || !tab->label_bits)
		return -ENOMEM;
	for (i = 0; i < tab->candidates.nr; i++) {
		const struct candidate *cand = &tab->candidates.at[i];

		if (numbers[i] == SB_SYMBOL_NONE)
			continue;
		sb_addrs_set(&tab->addrs, numbers[i], cand->start);
		tab->symbol_names[numbers[i]] = cand->name | (uint32_t)cand->names_idx << NAME_BITS;
		if (cand->is_label)
			tab->label_bits[numbers[i] / 8] |= (uint8_t)(1u << numbers[i] % 8);
	}
	return 0;
}

/* Number the symbols that own something, in order of appearance. */
static int keep_owners(struct sb_symtab *tab, const segment_vec *segments)
{
	sb_cleanup(sb_freep) uint32_t *numbers = NULL;
	size_t i, nr = segments->nr;
	uint32_t owner;

	numbers = malloc(tab->candidates.nr * sizeof(*numbers) + 1);
	tab->owners = malloc(nr * sizeof(*tab->owners) + 1);
	if (!numbers || !tab->owners ||
	    sb_addrs_init(&tab->starts, nr ? segments->at[0].start : 0,
			  nr ? segments->at[nr - 1].start : 0, nr))
		return -ENOMEM;
	memset(numbers, 0xff, tab->candidates.nr * sizeof(*numbers));
	for (i = 0; i < nr; i++) {
		owner = segments->at[i].owner;
		if (owner != SB_SYMBOL_NONE && numbers[owner] == SB_SYMBOL_NONE)
			numbers[owner] = (uint32_t)tab->nr_symbols++;
		sb_addrs_set(&tab->starts, i, segments->at[i].start);
		tab->owners[i] = owner == SB_SYMBOL_NONE ? owner : numbers[owner];
	}
	return sb_addrs_index(&tab->starts) ?: keep_symbols(tab, numbers);
}

int sb_symtab_finish(struct sb_symtab *tab)
{
	segment_vec segments = {};
	size_t i;
	int err;

	err = sb_budget_charge(tab->budget, tab->candidates.nr * BYTES_TO_FINISH)
		      ?: sb_budget_work(tab->budget, tab->candidates.nr * WORK_OF_CANDIDATE);
	if (!err)
		err = sb_symtab_flatten(tab, &segments);
	if (!err)
		err = keep_owners(tab, &segments);
	sb_vec_release(&segments);
	sb_vec_release(&tab->candidates);
	for (i = 0; i < tab->nr_names; i++)
		sb_names_unload(&tab->names[i]);
	if (tab->nr_broken)
		sb_debug("%zu symbols have a name outside of the string table, ignoring them",
			 tab->nr_broken);
	return err;
}

uint32_t sb_symtab_find(const struct sb_symtab *tab, uint64_t addr)
{
	size_t segment = sb_addrs_find(&tab->starts, addr);

	return segment == SIZE_MAX ? SB_SYMBOL_NONE : tab->owners[segment];
}

uint64_t sb_symtab_addr(const struct sb_symtab *tab, uint32_t symbol)
{
	return sb_addrs_get(&tab->addrs, symbol);
}

bool sb_symtab_is_label(const struct sb_symtab *tab, uint32_t symbol)
{
	return tab->label_bits[symbol / 8] >> symbol % 8 & 1;
}

size_t sb_symtab_nr(const struct sb_symtab *tab)
{
	return tab->nr_symbols;
}

int sb_symtab_name(const struct sb_symtab *tab, uint32_t symbol, struct sb_str *name)
{
	uint32_t packed = tab->symbol_names[symbol];

	return sb_names_get(&tab->names[packed >> NAME_BITS], packed & ((1u << NAME_BITS) - 1),
			    name);
}

size_t sb_symtab_bytes(const struct sb_symtab *tab)
{
	size_t i, bytes = sizeof(*tab);

	bytes += sb_addrs_bytes(&tab->starts) + tab->starts.nr * sizeof(*tab->owners);
	bytes += sb_addrs_bytes(&tab->addrs) + tab->nr_symbols * sizeof(*tab->symbol_names) +
		 tab->nr_symbols / 8;
	/* The module's IDs of labels (module_priv.h), also before they are allocated. */
	bytes += tab->nr_symbols * sizeof(uint32_t);
	for (i = 0; i < tab->nr_names; i++)
		bytes += tab->names[i].mem ? tab->names[i].len + 1 : 0;
	return bytes;
}
