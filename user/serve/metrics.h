/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counters for /metrics: of the server itself, and of what was recorded while it runs. */
#ifndef SB_SERVE_METRICS_H
#define SB_SERVE_METRICS_H

#include <stdint.h>

#include "store/segment.h"

/* Replies are counted by the first digit of the status. */
#define SB_SERVE_NR_CLASSES 6u
#define SB_SERVE_KINDS_MAX  32u

struct sb_serve_counts {
	uint64_t nr_replies[SB_SERVE_NR_CLASSES];
	uint64_t nr_conns;   /* open now */
	uint64_t nr_evicted; /* connections closed to make room for others */
	uint64_t nr_late;    /* connections that took too long to send a request or take a reply */
	uint64_t nr_refused; /* questions refused because too many were queued */
	uint64_t nr_unknown; /* requests without the right token */
	uint64_t nr_expired; /* questions that took too long */
	uint64_t nr_worker_ends; /* workers that died for another reason */
	uint64_t nr_sent_bytes;
	uint64_t start_s; /* since the epoch */
};

/*
 * Sums over all blocks that ended since the server first looked. They only grow, whatever the store
 * removes. A worker adds to a copy; if two do so at the same time, the first copy that comes back
 * is kept.
 */
struct sb_serve_totals {
	uint64_t version; /* incremented each time */
	uint32_t nr_kinds, pad;
	struct sb_serve_kind {
		char name[24];
		int64_t until_s;
		uint64_t figure[SB_BLOCK_FIGURE_MAX];
	} kinds[SB_SERVE_KINDS_MAX];
};

#endif
