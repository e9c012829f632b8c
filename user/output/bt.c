// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The text of agentzh's SystemTap toolkits: frames leaf first, one in each line, then a tab and the
 * weight. Their filters and stackcollapse-stap.pl read it.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "output/outputs.h"

static int put_stack(const struct sb_profile *profile, size_t i, const struct sb_fold_opts *opts,
		     struct sb_str *text)
{
	const struct sb_row row = sb_profile_row_at(profile, i);
	size_t nr = row.nr;
	int err = 0;

	while (nr-- && !err) {
		err = sb_str_addc(text, ' ');
		if (!err)
			err = sb_fold_frame(text, sb_profile_frame_at(profile, row.frames[nr]),
					    opts);
		if (!err)
			err = sb_str_addc(text, '\n');
	}
	return err ? err : sb_str_addf(text, "\t%" PRIu64 "\n", row.weight);
}

static int write_bt(const struct sb_profile *profile, const struct sb_output_opts *opts, FILE *out)
{
	sb_cleanup(sb_str_release) struct sb_str text = {};
	size_t i, nr = sb_output_nr_stacks(profile, opts);
	int err;

	for (i = 0; i < nr; i++) {
		sb_str_clear(&text);
		err = put_stack(profile, i, &opts->fold, &text);
		if (err)
			return err;
		if (fwrite(text.s, 1, text.len, out) != text.len)
			return -EIO;
	}
	return 0;
}

const struct sb_output sb_output_bt = {
	.name = "bt",
	.extension = ".bt",
	.summary = "backtraces as agentzh's toolkits print them",
	.write = write_bt,
};
