// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "base/cleanup.h"
#include "output/outputs.h"

static const struct sb_output *const outputs[] = {
#define SB_OUTPUT(name) &sb_output_##name,
#include "output/outputs.def"
#undef SB_OUTPUT
};

size_t sb_output_nr_stacks(const struct sb_profile *profile, const struct sb_output_opts *opts)
{
	size_t nr = sb_profile_nr_stacks(profile);

	return opts->fold.limit && nr > opts->fold.limit ? opts->fold.limit : nr;
}

const struct sb_output *sb_output_at(size_t i)
{
	return i < SB_ARRAY_SIZE(outputs) ? outputs[i] : NULL;
}

const struct sb_output *sb_output_find(const char *name)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(outputs); i++)
		if (!strcmp(outputs[i]->name, name))
			return outputs[i];
	return NULL;
}

const struct sb_output *sb_output_by_path(const char *path)
{
	const struct sb_output *best = NULL;
	size_t i, len = strlen(path), best_len = 0;

	for (i = 0; i < SB_ARRAY_SIZE(outputs); i++) {
		size_t ext_len = strlen(outputs[i]->extension);

		if (len > ext_len && ext_len > best_len &&
		    !strcmp(path + len - ext_len, outputs[i]->extension)) {
			best = outputs[i];
			best_len = ext_len;
		}
	}
	return best;
}
