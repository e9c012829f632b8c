// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Text of /proc/kallsyms, and behind a NUL that of /proc/modules. */
#include <stdlib.h>
#include <string.h>

#include "symbolizer/symbols/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sb_kallsyms_table table = {};
	struct sb_ksym sym;
	size_t i, len;
	char *text;

	text = malloc(size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	len = strlen(text);
	if (sb_kallsyms_table_parse(&table, text, len, len < size ? text + len + 1 : NULL))
		abort();
	for (i = 0; i < table.syms.nr; i++) {
		const struct sb_kallsyms_entry *entry = &table.syms.at[i];

		if (i && table.syms.at[i - 1].addr + table.syms.at[i - 1].size > entry->addr)
			abort();
		if (!entry->size)
			continue;
		if (!sb_kallsyms_table_find(&table, entry->addr, &sym) ||
		    sym.start != entry->addr || strlen(sym.name) > size)
			abort();
	}
	sb_kallsyms_table_release(&table);
	free(text);
	return 0;
}
