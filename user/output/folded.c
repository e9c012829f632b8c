// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>

#include "output/outputs.h"

int sb_put_line(void *arg, const char *line, size_t len)
{
	FILE *out = arg;

	if (fwrite(line, 1, len, out) != len || putc('\n', out) == EOF)
		return -EIO;
	return 0;
}

static int write_folded(const struct sb_profile *profile, const struct sb_output_opts *opts,
			FILE *out)
{
	return sb_fold(profile, &opts->fold, sb_put_line, out);
}

const struct sb_output sb_output_folded = {
	.name = "folded",
	.extension = ".folded",
	.summary = "one line a stack: root;...;leaf weight",
	.write = write_folded,
};
