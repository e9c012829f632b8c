// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* For frame_kinds.py: "KIND LENGTH" of each name, a line each. */
#include <stdio.h>
#include <string.h>

#include "flamegraph/text.h"

int main(void)
{
	char line[256];

	while (fgets(line, sizeof(line), stdin)) {
		struct sb_tree_frame frame = sb_fg_frame_parse(line, strcspn(line, "\n"));

		printf("%d %zu\n", frame.kind, frame.len);
	}
	return 0;
}
