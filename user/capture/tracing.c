// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/tracing.h"

#include "base/time.h"
#include "capture/governor.h"

/* A program that does nothing but allocate is slowed down for one of these at least. */
#define LOOK_NS	      (20ull * SB_NS_PER_MS)
#define LATER_LOOK_NS (100ull * SB_NS_PER_MS)
#define EARLY_NS      SB_NS_PER_SEC

/* If each call was traced for this part of the run, or of its first half, what slices see of the
 * rest is not needed, as long as pages hold what calls say is held: if not, it was given back when
 * nobody saw it. */
#define MOST	      0.75
/* Else fewer slices say too little of what is held, and so do fewer pieces of memory that were
 * allocated in them and outlived them. That all of these were given back is an answer, too. */
#define SLICES_MIN    4u
#define PIECES_MIN    50u
/* A heap takes no less from the kernel at once (M_TOP_PAD of glibc). So if pages hold less, that is
 * no sign of memory that slices have missed, and if they hold so much less than what calls say is
 * held, that can be memory that the heap had before the run. */
#define PAGES_MIN     (128u << 10)

void sb_tracing_init(struct sb_tracing *tracing, double allowed,
		     const struct sb_slicer_reading *now)
{
	*tracing = (struct sb_tracing){
		.allowed = allowed,
		.first = *now,
		.last = *now,
		.rise = *now,
	};
}

bool sb_tracing_goes_on(struct sb_tracing *tracing, const struct sb_slicer_reading *now)
{
	tracing->level_ns += (double)(now->cost_ns - tracing->last.cost_ns) -
			     tracing->allowed * (double)(now->now_ns - tracing->last.now_ns);
	tracing->last = *now;
	if (tracing->level_ns <= 0) {
		tracing->level_ns = 0;
		tracing->rise = *now;
	}
	if (tracing->level_ns > sb_governor_burst_ns(tracing->allowed))
		tracing->end = SB_TRACING_COST;
	return !tracing->end;
}

void sb_tracing_sample(struct sb_tracing *tracing)
{
	tracing->is_sampled = true;
	tracing->end = SB_TRACING_NOT_ENDED;
}

void sb_tracing_give_up(struct sb_tracing *tracing, enum sb_tracing_end why)
{
	tracing->end = why;
}

bool sb_tracing_saw_enough(const struct sb_tracing *tracing, const struct sb_tracing_seen *seen)
{
	const double traced = (double)(tracing->last.now_ns - tracing->first.now_ns);
	const double run = (double)seen->run_ns;
	const bool is_there = seen->call_bytes <= seen->page_bytes + PAGES_MIN;
	uint64_t nr = seen->nr_pieces;

	/* On a busy machine, a program may get so little time at first that each of its calls is
	 * traced for long. */
	if (traced >= MOST * run && is_there)
		return true;
	if (seen->nr_slices < SLICES_MIN)
		return false;
	if (traced >= MOST * run / 2 && is_there)
		return true;
	/* Those of both halves of the run are counted, and only the first half has pieces that
	 * leak. */
	if (seen->page_bytes < PAGES_MIN)
		nr += seen->nr_at_once / 2;
	return nr >= PIECES_MIN;
}

uint64_t sb_tracing_look_ns(const struct sb_tracing *tracing)
{
	return tracing->last.now_ns - tracing->first.now_ns < EARLY_NS ? LOOK_NS : LATER_LOOK_NS;
}

void sb_tracing_stats(const struct sb_tracing *tracing, struct sb_tracing_stats *ret_stats)
{
	const struct sb_slicer_reading *from =
		tracing->end == SB_TRACING_COST || tracing->is_sampled ? &tracing->rise
								       : &tracing->first;
	const double ns = (double)(tracing->last.now_ns - from->now_ns);
	const double hits = (double)(tracing->last.hits - from->hits);
	const double cost_ns = (double)(tracing->last.cost_ns - from->cost_ns);

	*ret_stats = (struct sb_tracing_stats){
		.is_on = true,
		.is_sampled = tracing->is_sampled,
		.end = tracing->end,
		.traced_ns = tracing->last.now_ns - tracing->first.now_ns,
		.hits_per_s = ns > 0 ? hits / ns * (double)SB_NS_PER_SEC : 0,
		.each_ns = hits > 0 ? cost_ns / hits : 0,
		.cost = ns > 0 ? cost_ns / ns : 0,
	};
}
