/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows of an unwind table, one by one. Pointers are not NULL. */
#ifndef SB_TEST_CFI_EACH_ROW_H
#define SB_TEST_CFI_EACH_ROW_H

#include "symbolizer/unwind/cfi_priv.h"

struct cfi_row {
	uint64_t addr; /* ELF address of its first byte; it is valid up to the next row */
	struct sb_uw_rule rule;
};

/*
 * Call @fn for the rows in order of address, without those that have the rule of the row before.
 * @row is valid during the call. Return: 0, or the first value of @fn that is not 0.
 */
static inline int cfi_each_row(const struct sb_cfi *cfi,
			       int (*fn)(void *arg, const struct cfi_row *row), void *arg)
{
	uint32_t rule = SB_UW_RULE_FP_CHAIN, next, k;
	struct cfi_row row;
	size_t i;
	int err = 0;

	for (i = 0; i < cfi->granules.nr; i++) {
		const struct sb_cfi_granule *granule = &cfi->granules.at[i];

		for (k = 0; k < granule->nr_rows || k < 1; k++) {
			uint32_t word = granule->nr_rows ? cfi->rows.at[granule->first_row + k]
							 : SB_UW_ROW(granule->first_row, 0);

			next = word >> 16;
			if (next == rule)
				continue;
			rule = next;
			row.addr = cfi->text_lo + i * SB_UW_GRANULE_BYTES +
				   (word & (SB_UW_GRANULE_BYTES - 1));
			row.rule = cfi->rules.at[rule];
			err = fn(arg, &row);
			if (err)
				return err;
		}
	}
	return 0;
}

#endif
