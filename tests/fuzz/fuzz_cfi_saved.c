// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Any bytes as a table that another process compiled: what is taken is one that a walker can
 * trust. */
#include <stdlib.h>
#include <string.h>

#include "cfi_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	void *bytes = malloc(size + 1); /* so that there is one */
	struct sb_cfi *cfi;

	must(bytes);
	memcpy(bytes, data, size);
	if (sb_cfi_restore(bytes, size, EM_X86_64, &cfi)) {
		free(bytes);
		return 0;
	}
	check_table(cfi, (uint32_t)(size * 2) % AT_WORDS_MAX, false);
	sb_cfi_free(cfi);
	return 0;
}
