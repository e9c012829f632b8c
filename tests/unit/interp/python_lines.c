// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Line tables as user/interp reads them. stdin: "VERSION(hex) FIRST_LINE LAST_POSITION TABLE(hex)",
 * a code object on each line; stdout: the lines of positions 1 to LAST_POSITION. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interp/python/python_priv.h"

int main(void)
{
	char *line = NULL, *hex;
	size_t cap = 0, len, i;
	uint32_t version, first;
	uint64_t last, position;
	unsigned int byte;
	uint8_t *table;
	int at;

	while (getline(&line, &cap, stdin) > 0) {
		if (sscanf(line, "%" SCNx32 " %" SCNu32 " %" SCNu64 " %n", &version, &first, &last,
			   &at) != 3)
			return 1;
		hex = line + at;
		len = strcspn(hex, "\n") / 2;
		table = malloc(len + 1);
		if (!table)
			return 1;
		for (i = 0; i < len && sscanf(hex + 2 * i, "%2x", &byte) == 1; i++)
			table[i] = (uint8_t)byte;
		for (position = 1; position <= last; position++)
			printf("%" PRIu32 " ",
			       sb_python_line(version, table, len, first, position));
		puts("");
		free(table);
	}
	free(line);
	return 0;
}
