// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/slicer.h"

#include <math.h>

#include "base/time.h"
#include "bpf/abi/sb_abi.h"

/* To attach and detach takes 30 to 60 ms, most of it waiting. */
#define SLICE_NS   (20ull * SB_NS_PER_MS)
#define STAYING_NS (100ull * SB_NS_PER_MS)
/* Slices whose cost counts: a half of it goes after 22 of them. */
#define MEMORY	   (31.0 / 32)
/* No run waits longer than this for what it may find out then. */
#define GAP_NS_MAX (30ull * SB_NS_PER_SEC)
/* Of the distance; the rest is by chance, so that slices are in no step with what comes in turn. */
#define GAP_FIXED  0.5
/* The part of a thread's time that probes take: a part above BUSY_MAX comes from the error of the
 * measured cost. If it is above BUSY_ONE, more than one thread made the calls. */
#define BUSY_MAX   0.99
#define BUSY_ONE   1.1

/* xorshift64*, by Vigna. */
double sb_slicer_random(struct sb_slicer *slicer)
{
	slicer->random ^= slicer->random >> 12;
	slicer->random ^= slicer->random << 25;
	slicer->random ^= slicer->random >> 27;
	return (double)(slicer->random * 2685821657736338717ull >> 11) / 9007199254740992.0;
}

void sb_slicer_init(struct sb_slicer *slicer, double allowed, uint64_t seed,
		    const struct sb_slicer_reading *now)
{
	*slicer = (struct sb_slicer){
		.allowed = allowed,
		.random = seed | 1,
		.covered_to = now->now_ns,
		.first_ns = now->now_ns,
	};
}

void sb_slicer_prepare(struct sb_slicer *slicer, const struct sb_slicer_reading *now)
{
	slicer->began_cost_ns = now->cost_ns;
	slicer->began_ns = now->now_ns;
}

uint64_t sb_slicer_begin(struct sb_slicer *slicer, const struct sb_slicer_reading *now,
			 uint64_t *ret_weight)
{
	const uint64_t ns = slicer->is_staying ? STAYING_NS : SLICE_NS;

	slicer->began = *now;
	slicer->end_ns = now->now_ns + ns;
	slicer->stands_for = (double)(slicer->end_ns - slicer->covered_to);
	slicer->stats.attached_ns += ns;
	*ret_weight = (uint64_t)(slicer->stands_for / (double)ns * (1u << SB_SLICE_SHIFT) + 0.5);
	return slicer->end_ns;
}

/* Take into the sums what the slice saw. A thread that is busy for all of it, or that sleeps for
 * as long as ever between its events, has the rest of its time for what it does without probes. */
static void add_slice(struct sb_slicer *slicer, const struct sb_slicer_reading *now)
{
	const uint64_t ns = now->now_ns - slicer->began.now_ns;
	const uint64_t cost_ns = now->cost_ns - slicer->began.cost_ns;
	const double rate = ns ? (double)(now->hits - slicer->began.hits) / (double)ns : 0;
	const double busy = ns ? (double)cost_ns / (double)ns : 0;

	slicer->rates += rate;
	slicer->squares += rate * rate;
	slicer->slices_ns += ns;
	slicer->slices_cost_ns += cost_ns;
	slicer->estimate += rate * slicer->stands_for;
	slicer->unslowed += rate * slicer->stands_for / (1 - fmin(busy, BUSY_MAX));
	slicer->is_of_threads |= busy > BUSY_ONE;
}

/* Take what was spent since the last reading into the sums. */
static void account(struct sb_slicer *slicer, const struct sb_slicer_reading *now)
{
	const double cost = (double)(now->cost_ns - slicer->began_cost_ns);

	slicer->cost += cost;
	slicer->span += (double)(now->now_ns - slicer->began_ns);
	slicer->stats.cost_ns += now->cost_ns - slicer->began_cost_ns;
	sb_slicer_prepare(slicer, now);
}

bool sb_slicer_stays(struct sb_slicer *slicer, const struct sb_slicer_reading *now)
{
	add_slice(slicer, now);
	slicer->stats.nr++;
	slicer->stats.covered_ns = slicer->end_ns - slicer->first_ns;
	slicer->covered_to = slicer->end_ns;
	slicer->cost *= MEMORY;
	slicer->span *= MEMORY;
	slicer->each = slicer->each * MEMORY + 1;
	account(slicer, now);
	slicer->is_staying = slicer->cost <= slicer->allowed * slicer->span;
	return slicer->is_staying;
}

uint64_t sb_slicer_gap(struct sb_slicer *slicer, const struct sb_slicer_reading *now)
{
	double ns, gap_ns;

	account(slicer, now);
	/* The time of a slice and of the gap behind it has to pay for the slice. */
	ns = slicer->cost / slicer->allowed / slicer->each;
	gap_ns = ns - slicer->span / slicer->each;
	gap_ns *= GAP_FIXED + 2 * (1 - GAP_FIXED) * sb_slicer_random(slicer);
	if (gap_ns > (double)GAP_NS_MAX)
		gap_ns = (double)GAP_NS_MAX;
	return gap_ns < (double)SB_NS_PER_MS ? SB_NS_PER_MS : (uint64_t)gap_ns;
}

void sb_slicer_stats(const struct sb_slicer *slicer, struct sb_slicer_stats *ret_stats)
{
	const double nr = (double)slicer->stats.nr;
	double mean, variance;

	*ret_stats = slicer->stats;
	if (slicer->slices_ns)
		ret_stats->busy = (double)slicer->slices_cost_ns / (double)slicer->slices_ns;
	if (slicer->unslowed > 0 && !slicer->is_of_threads)
		ret_stats->missing = 1 - slicer->estimate / slicer->unslowed;
	if (slicer->stats.nr < 2 || slicer->rates <= 0)
		return;
	mean = slicer->rates / nr;
	variance = (slicer->squares / nr - mean * mean) * nr / (nr - 1);
	/* Of a finite time, of which a part was seen. */
	variance *= 1 - (double)slicer->stats.attached_ns / (double)slicer->stats.covered_ns;
	ret_stats->error = sqrt(variance > 0 ? variance / nr : 0) / mean;
}
