// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The unwind table of a single binary, in a pool of its own. */
#include <errno.h>
#include <stdlib.h>

#include "symbolizer/unwind/cfi.h"
#include "symbolizer/unwind/parser.h"
#include "symbolizer/unwind/walk.h"

int sb_walk_table_init(struct sb_walk_table *table, struct sb_parser_seat *parser,
		       const struct sb_elf *elf, const struct sb_elf *debug)
{
	struct sb_cfi *cfi;
	size_t nr_words;
	int err = sb_parser_cfi(parser, elf, debug, &cfi);

	if (err)
		return err;
	nr_words = sb_cfi_words(cfi, 0);
	nr_words = (nr_words + SB_UW_CHUNK_WORDS - 1) / SB_UW_CHUNK_WORDS * SB_UW_CHUNK_WORDS;
	table->words = calloc(nr_words, sizeof(*table->words));
	if (table->words) {
		table->nr_words = nr_words;
		sb_cfi_place(cfi, table->words, 0, &table->bin);
	}
	sb_cfi_free(cfi);
	return table->words ? 0 : -ENOMEM;
}

void sb_walk_table_release(struct sb_walk_table *table)
{
	free(table->words);
	*table = (struct sb_walk_table){};
}
