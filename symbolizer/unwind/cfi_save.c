// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Saving a table in the process that compiled it, and restoring it in another one. An attacker may
 * control the first process by then, so a restored table is checked completely.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/abi/sb_abi.h"
#include "symbolizer/unwind/cfi.h"
#include "symbolizer/unwind/cfi_priv.h"

/* Then come rules, granules, rows, of which none has padding before it. */
struct head {
	uint64_t text_lo, first_lo, last_hi;
	uint32_t machine, nr_fdes, nr_rows, nr_unsup, nr_bad;
	uint32_t nr_rules, nr_granules, nr_words;
};

_Static_assert(sizeof(struct head) % sizeof(uint64_t) == 0, "what follows is aligned");
_Static_assert(sizeof(struct sb_cfi_granule) == 8, "what follows is aligned");

#define SAVED_BYTES_MAX                                                      \
	(sizeof(struct head) + SB_UW_RULES_MAX * sizeof(struct sb_uw_rule) + \
	 (uint64_t)SB_CFI_GRANULES_MAX * sizeof(struct sb_cfi_granule) +     \
	 (uint64_t)SB_CFI_WORDS_MAX * sizeof(uint32_t))
_Static_assert(SAVED_BYTES_MAX <= SB_CFI_SAVED_BYTES_MAX, "as the header promises");

size_t sb_cfi_saved_bytes(const struct sb_cfi *cfi)
{
	return sizeof(struct head) + cfi->rules.nr * sizeof(*cfi->rules.at) +
	       cfi->granules.nr * sizeof(*cfi->granules.at) + cfi->rows.nr * sizeof(*cfi->rows.at);
}

static uint8_t *put(uint8_t *to, const void *bytes, size_t len)
{
	memcpy(to, bytes, len);
	return to + len;
}

void sb_cfi_save(const struct sb_cfi *cfi, void *to)
{
	const struct head head = {
		.text_lo = cfi->text_lo,
		.first_lo = cfi->info.text_lo,
		.last_hi = cfi->info.text_hi,
		.machine = cfi->info.machine,
		.nr_fdes = cfi->info.nr_fdes,
		.nr_rows = cfi->info.nr_rows,
		.nr_unsup = cfi->info.nr_unsup,
		.nr_bad = cfi->info.nr_bad,
		.nr_rules = (uint32_t)cfi->rules.nr,
		.nr_granules = (uint32_t)cfi->granules.nr,
		.nr_words = (uint32_t)cfi->rows.nr,
	};
	uint8_t *at = put(to, &head, sizeof(head));

	at = put(at, cfi->rules.at, cfi->rules.nr * sizeof(*cfi->rules.at));
	at = put(at, cfi->granules.at, cfi->granules.nr * sizeof(*cfi->granules.at));
	if (cfi->rows.nr)
		put(at, cfi->rows.at, cfi->rows.nr * sizeof(*cfi->rows.at));
}

static bool is_head_good(const struct head *head, uint16_t machine, size_t len)
{
	/* None of the factors is more than 32 bits wide. */
	return head->machine == machine && head->nr_rules >= SB_UW_RULE_FIRST &&
	       head->nr_rules <= SB_UW_RULES_MAX && head->nr_granules &&
	       head->nr_granules <= SB_CFI_GRANULES_MAX && head->nr_words <= SB_CFI_WORDS_MAX &&
	       head->nr_rows <= SB_CFI_ROWS_MAX && head->text_lo % SB_UW_GRANULE_BYTES == 0 &&
	       head->text_lo <= UINT64_MAX - (uint64_t)head->nr_granules * SB_UW_GRANULE_BYTES &&
	       len == sizeof(*head) + (uint64_t)head->nr_rules * sizeof(struct sb_uw_rule) +
			       (uint64_t)head->nr_granules * sizeof(struct sb_cfi_granule) +
			       (uint64_t)head->nr_words * sizeof(uint32_t);
}

static bool are_rules_good(const struct sb_cfi *cfi)
{
	size_t i;

	if (cfi->rules.at[SB_UW_RULE_FP_CHAIN].cfa != SB_UW_CFA_FP_CHAIN ||
	    cfi->rules.at[SB_UW_RULE_STOP].cfa != SB_UW_CFA_STOP)
		return false;
	for (i = 0; i < cfi->rules.nr; i++) {
		uint8_t cfa = cfi->rules.at[i].cfa;

		if (cfa > SB_UW_CFA_GO_GROW &&
		    (cfa < SB_UW_CFA_REG || cfa >= SB_UW_CFA_REG + SB_UNWIND_REGS))
			return false;
	}
	return true;
}

/* Rows of one granule: the first at its beginning, the others behind each other, so that they are
 * never more than a chunk holds. */
static bool are_rows_good(const struct sb_cfi *cfi, const struct sb_cfi_granule *granule)
{
	const uint32_t *row = cfi->rows.at + granule->first_row;
	uint32_t i;

	for (i = 0; i < granule->nr_rows; i++) {
		uint32_t off = row[i] & 0xffff;

		if (row[i] >> 16 >= cfi->rules.nr || off >= SB_UW_GRANULE_BYTES ||
		    (i ? off <= (row[i - 1] & 0xffff) : off))
			return false;
	}
	return true;
}

static bool are_granules_good(const struct sb_cfi *cfi)
{
	const struct sb_cfi_granule *granule;
	size_t nr = 0, i;

	for (i = 0; i < cfi->granules.nr; i++) {
		granule = &cfi->granules.at[i];
		if (!granule->nr_rows) {
			if (granule->first_row >= cfi->rules.nr)
				return false;
			continue;
		}
		if (granule->first_row != nr || granule->nr_rows > cfi->rows.nr - nr ||
		    !are_rows_good(cfi, granule))
			return false;
		nr += granule->nr_rows;
	}
	return nr == cfi->rows.nr;
}

/* Where in @bytes the parts are, as the head says. */
static void lay_out(struct sb_cfi *cfi, uint8_t *bytes, const struct head *head)
{
	cfi->text_lo = head->text_lo;
	cfi->info = (struct sb_cfi_info){
		.source = "saved",
		.machine = (uint16_t)head->machine,
		.text_lo = head->first_lo,
		.text_hi = head->last_hi,
		.nr_fdes = head->nr_fdes,
		.nr_rows = head->nr_rows,
		.nr_rules = head->nr_rules,
		.nr_granules = head->nr_granules,
		.nr_unsup = head->nr_unsup,
		.nr_bad = head->nr_bad,
	};
	bytes += sizeof(*head);
	cfi->rules.at = (void *)bytes;
	cfi->rules.nr = head->nr_rules;
	bytes += head->nr_rules * sizeof(*cfi->rules.at);
	cfi->granules.at = (void *)bytes;
	cfi->granules.nr = head->nr_granules;
	bytes += head->nr_granules * sizeof(*cfi->granules.at);
	cfi->rows.at = (void *)bytes;
	cfi->rows.nr = head->nr_words;
}

int sb_cfi_restore(void *bytes, size_t len, uint16_t machine, struct sb_cfi **ret_cfi)
{
	struct sb_cfi *cfi;
	struct head head;

	if (len < sizeof(head))
		return -EPROTO;
	memcpy(&head, bytes, sizeof(head));
	if (!is_head_good(&head, machine, len))
		return -EPROTO;
	cfi = calloc(1, sizeof(*cfi));
	if (!cfi)
		return -ENOMEM;
	lay_out(cfi, bytes, &head);
	if (!are_rules_good(cfi) || !are_granules_good(cfi)) {
		free(cfi);
		return -EPROTO;
	}
	cfi->saved = bytes;
	*ret_cfi = cfi;
	return 0;
}
