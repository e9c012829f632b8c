/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Metadata of a profile by key, as folded stacks say it. */
#ifndef SB_TESTS_READ_META_H
#define SB_TESTS_READ_META_H

#include "model/profile.h"

/* What has no member, or is no number where one is expected, is a piece of its own. */
static inline int read_meta(struct sb_profile *profile, const char *key, const char *value)
{
	struct sb_metadata metadata = *sb_profile_metadata(profile);

	if (sb_metadata_read(&metadata, key, value))
		return sb_profile_meta(profile, key, "%s", value);
	return sb_profile_set_metadata(profile, &metadata);
}

#endif
