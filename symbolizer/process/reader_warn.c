// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "symbolizer/process/reader.h"

/* Longer lists help nobody. */
#define CULPRITS_SHOWN 5

void sb_reader_warn(const struct sb_reader_stats *stats)
{
	sb_cleanup(sb_str_release) struct sb_str list = {};
	char text[SB_READER_CULPRIT_BYTES];
	size_t i;

	/* Without memory the list is shorter. */
	for (i = 0; sb_reader_culprit(i, text); i++)
		if (i < CULPRITS_SHOWN)
			(void)sb_str_addf(&list, "%s%s", i ? ", " : "", text);
	if (i > CULPRITS_SHOWN)
		(void)sb_str_addf(&list, " and %zu more", i - CULPRITS_SHOWN);
	if (list.len)
		sb_warn("reading memory or files of %s hung (%llu readers abandoned, %llu "
			"reads refused), so stacks and names are missing there; a file system "
			"there, such as one of FUSE or NFS, may not answer",
			list.s, (unsigned long long)stats->nr_abandoned,
			(unsigned long long)stats->nr_refused);
	if (stats->nr_leased)
		sb_warn("%llu times a file was not read because another process holds a "
			"lease on it, so names in it are missing; /proc/locks shows who holds "
			"leases",
			(unsigned long long)stats->nr_leased);
}
