/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Behind <cmocka.h>: what tests of a store share. A directory for one, random numbers, frames. */
#ifndef SB_UNIT_STORE_DIR_H
#define SB_UNIT_STORE_DIR_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/store.h"

static char dir[64];
static const struct sb_store_opts no_sync = { .no_sync = true };
static uint64_t seed = 1;

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

/* Return: 0, or -1 with errno. */
static inline int remove_below(const char *path)
{
	return nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline int setup(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/sb-store-XXXXXX");
	seed = 1;
	return mkdtemp(dir) ? 0 : -1;
}

static inline int teardown(void **state)
{
	return remove_below(dir);
}

/* Return: the next number below @nr, the same ones in each test. */
static inline uint32_t random_of(uint32_t nr)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % nr;
}

/* Return: the ID of a function of the program "prog". */
static inline uint32_t frame_of(struct sb_profile *profile, const char *name)
{
	struct sb_frame of = { .name = name, .module = "prog", .kind = SB_FRAME_USER };
	uint32_t id;

	assert_int_equal(sb_profile_frame(profile, &of, &id), 0);
	return id;
}

#endif
