// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "export/file.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "output/output.h"

SB_DEFINE_CLEANUP(struct sb_output_file, sb_output_file_free)

int sb_export_file(struct sb_store *store, const struct sb_ask *ask, const char *path,
		   struct sb_store_answer *ret_answer)
{
	sb_cleanup(sb_output_file_freep) struct sb_output_file *file = NULL;
	sb_cleanup(sb_profile_freep) struct sb_profile *profile = NULL;
	const struct sb_output *output = sb_output_by_path(path);
	struct sb_output_opts opts = { .fold.header = true };
	int err;

	if (!output)
		return -EINVAL;
	err = sb_ask_profile(store, ask, &profile, ret_answer);
	if (!err && !sb_profile_nr_stacks(profile))
		err = -ENODATA;
	err = err ?: sb_output_file_new(path, &file);
	err = err ?: output->write(profile, &opts, sb_output_file_stream(file));
	return err ?: sb_output_file_commit(file);
}
