/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of a symbol table. symtab_read.c reads symbols into it, symtab_flatten.c decides which
 * of them owns which addresses, symtab.c keeps the result and searches it. Internal to symtab*.c.
 * No pointer is NULL.
 * Thread: one at a time for each table.
 */
#ifndef SB_SYMTAB_PRIV_H
#define SB_SYMTAB_PRIV_H

#include "base/vec.h"
#include "symbolizer/symbols/addrs.h"
#include "symbolizer/symbols/names.h"
#include "symbolizer/symbols/symtab.h"

/* .symtab (broken), of the debug file (too), .dynsym, .gnu_debugdata, Go's */
#define NR_NAMES_MAX 5

enum layer { LAYER_FUNC, LAYER_UNTYPED, LAYER_UNSIZED, LAYER_MAX };

/* Bits that rank aliases, the most important first. */
#define RANK_FUNC   4
#define RANK_STRONG 2
#define RANK_GLOBAL 1

struct candidate {
	uint64_t start, end; /* without a size: the latest possible end */
	uint32_t name;
	uint8_t names_idx;
	uint8_t layer; /* enum layer */
	uint8_t rank;
	bool is_label;
};

/* The addresses from @start to the start of the next segment belong to the symbol with index
 * @owner, or to none (SB_SYMBOL_NONE). */
struct segment {
	uint64_t start;
	uint32_t owner;
};
typedef SB_VEC(struct segment) segment_vec;

struct sb_symtab {
	struct sb_budget *budget; /* borrowed, or NULL */
	struct sb_names names[NR_NAMES_MAX];
	size_t nr_names;
	SB_VEC(struct candidate) candidates; /* until flattened */
	size_t nr_broken;
	/* Arrays indexed by symbol. */
	struct sb_addrs addrs;
	uint32_t *symbol_names;
	uint8_t *label_bits;
	size_t nr_symbols;
	/* Arrays indexed by segment; a search reads only the first one. */
	struct sb_addrs starts;
	uint32_t *owners;
};

/*
 * Find which symbol owns which addresses: @ret_segments, zeroed by the caller, becomes an array in
 * ascending order, in which neighbours have different owners. An owner is an index of
 * tab->candidates, which this function sorts by start. The caller releases @ret_segments, after an
 * error, too.
 * Return: 0 or -ENOMEM.
 */
int sb_symtab_flatten(struct sb_symtab *tab, segment_vec *ret_segments);

#endif
