/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a walker trusts in: ascending rows, each found again in the pool, with a rule that there
 * is. */
#ifndef SB_FUZZ_CFI_TABLE_H
#define SB_FUZZ_CFI_TABLE_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "symbolizer/unwind/cfi.h"
#include "tests/unit/symbolizer/cfi_each_row.h"

/* The search of the walkers; nothing is walked here. */
static int read_nothing(void *mem, void *dst, size_t len, uint64_t addr)
{
	return -1;
}
#define SB_STEP_READ read_nothing
#include "bpf/step/sb_unwind_step.h"

/* Larger tables are built, but not laid out: the fuzzer has 2 GiB. */
#define NR_WORDS_MAX (1u << 22)
#define AT_WORDS_MAX (2 * SB_UW_CHUNK_WORDS)

struct check {
	const uint32_t *pool;
	struct sb_uw_bin bin;
	uint64_t end, last;
	uint32_t nr_rows, nr_unsup;
};

static inline int check_row(void *arg, const struct cfi_row *row)
{
	struct check *check = arg;
	const struct sb_uw_bin *bin = &check->bin;
	uint64_t granule = (row->addr - bin->text_lo) >> SB_UW_GRANULE_BITS;
	uint32_t first, nr, id;

	must(row->addr >= bin->text_lo && granule < bin->nr_granules);
	must(!check->nr_rows || row->addr > check->last);
	first = check->pool[bin->index_word + 2 * granule];
	nr = check->pool[bin->index_word + 2 * granule + 1];
	id = first;
	if (nr) {
		must(first % SB_UW_CHUNK_WORDS + nr <= SB_UW_CHUNK_WORDS &&
		     first + nr <= check->end);
		id = sb_uw_row_at(check->pool + first / SB_UW_CHUNK_WORDS * SB_UW_CHUNK_WORDS,
				  first % SB_UW_CHUNK_WORDS, nr, row->addr % SB_UW_GRANULE_BYTES) >>
		     16;
	}
	must(id < bin->nr_rules);
	must(!memcmp(check->pool + bin->rules_word + 2 * id, &row->rule, sizeof(row->rule)));
	check->last = row->addr;
	check->nr_rows++;
	check->nr_unsup += row->rule.cfa == SB_UW_CFA_UNSUP;
	return 0;
}

/* @is_ours: what is said about the table is true as well. */
static inline void check_table(const struct sb_cfi *cfi, uint32_t at_word, bool is_ours)
{
	struct check check = {};
	struct sb_cfi_info info;
	uint32_t *pool;
	size_t nr = sb_cfi_words(cfi, at_word);

	sb_cfi_info(cfi, &info);
	must(info.nr_granules && info.nr_rules >= SB_UW_RULE_FIRST);
	must(!is_ours || info.text_lo < info.text_hi);
	if (nr > NR_WORDS_MAX)
		return;
	check.end = at_word + nr;
	/* The search reads anywhere in a chunk, and drops what is not in the granule. */
	pool = calloc(check.end + SB_UW_CHUNK_WORDS, sizeof(*pool));
	must(pool);
	check.pool = pool;
	sb_cfi_place(cfi, pool, at_word, &check.bin);
	must(!cfi_each_row(cfi, check_row, &check));
	must(!is_ours || (check.nr_rows == info.nr_rows && check.nr_unsup == info.nr_unsup));
	free(pool);
}

#endif
