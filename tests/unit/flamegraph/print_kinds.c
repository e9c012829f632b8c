// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* For frame_kinds.py: "KIND LENGTH" of each name, a line each; or, with an argument, "NAME FUNCTION
 * PICTURE" of each kind of frames. */
#include <stdio.h>
#include <string.h>

#include "flamegraph/text.h"
#include "model/profile.h"

static const char *const pictures[] = {
#define SB_KIND(kind, ...) [SB_FG_##kind] = #kind,
#include "tree/frames.def"
};

static int print_frames(void)
{
	for (int i = 0; i < SB_FRAME_KIND_MAX; i++)
		printf("%s %d %s\n", sb_frame_kinds[i].name,
		       sb_function_kind((enum sb_frame_kind)i),
		       pictures[sb_frame_kinds[i].picture]);
	return 0;
}

int main(int argc, char **argv)
{
	char line[256];

	if (argc > 1)
		return print_frames();
	while (fgets(line, sizeof(line), stdin)) {
		struct sb_tree_frame frame = sb_fg_frame_parse(line, strcspn(line, "\n"));

		printf("%d %zu\n", frame.kind, frame.len);
	}
	return 0;
}
