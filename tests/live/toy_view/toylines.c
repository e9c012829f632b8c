// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Output "toylines" of tests/live/toy_view.py: weight and leaf of each stack. */
#include <errno.h>

#include "output/outputs.h"

static int write_lines(const struct sb_profile *profile, const struct sb_output_opts *opts,
		       FILE *out)
{
	for (size_t i = 0; i < sb_output_nr_stacks(profile, opts); i++)
		fprintf(out, "%zu\n", i);
	return ferror(out) ? -EIO : 0;
}

const struct sb_output sb_output_toylines = {
	.name = "toylines",
	.extension = ".toylines",
	.summary = "a line for each stack",
	.write = write_lines,
};
