/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What /metrics says of the server itself, and what was recorded while it looked. */
#ifndef SB_SERVE_METRICS_H
#define SB_SERVE_METRICS_H

#include <stdint.h>

#include "store/segment.h"

/* By the first digit of the status. */
#define SB_SERVE_NR_CLASSES 6u
#define SB_SERVE_KINDS_MAX  32u

struct sb_serve_counts {
	uint64_t nr_replies[SB_SERVE_NR_CLASSES];
	uint64_t nr_conns;   /* open now */
	uint64_t nr_evicted; /* were closed because others came */
	uint64_t nr_late;    /* did not say in time what they want, or did not take the answer */
	uint64_t nr_refused; /* questions: too many were waiting */
	uint64_t nr_unknown; /* had no token, or another */
	uint64_t nr_expired; /* questions that took too long */
	uint64_t nr_worker_ends; /* by anything but the above */
	uint64_t nr_sent_bytes;
	uint64_t start_s;
};

/*
 * Of all blocks that ended since the server looked first: sums that only grow, whatever is expired in the
 * store. Of two workers that add to the same ones, the first to come back counts.
 */
struct sb_serve_totals {
	uint64_t version; /* one more for each time that something was added */
	uint32_t nr_kinds, pad;
	struct sb_serve_kind {
		char name[16];
		int64_t until_s;
		uint64_t figure[SB_BLOCK_FIGURE_MAX];
	} kinds[SB_SERVE_KINDS_MAX];
};

#endif
