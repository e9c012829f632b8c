// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as an ELF file with call frame information, also as its own debug file. The table has
 * to be one that a walker can trust, and the same when it was saved.
 */
#include <stdlib.h>
#include <string.h>

#include "cfi_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_saved(const struct sb_cfi *cfi, uint16_t machine)
{
	size_t len = sb_cfi_saved_bytes(cfi);
	void *bytes = malloc(len);
	struct sb_cfi *same;

	must(bytes);
	sb_cfi_save(cfi, bytes);
	must(!sb_cfi_restore(bytes, len, machine, &same));
	must(sb_cfi_words(same, 0) == sb_cfi_words(cfi, 0));
	sb_cfi_free(same);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sb_elf *elf;
	struct sb_cfi *cfi;

	if (sb_elf_new_image(data, size, &elf))
		return 0;
	if (!sb_cfi_new(elf, elf, &cfi)) {
		check_table(cfi, (uint32_t)(size * 2) % AT_WORDS_MAX, true);
		check_saved(cfi, elf->machine);
		sb_cfi_free(cfi);
	}
	sb_elf_free(elf);
	return 0;
}
