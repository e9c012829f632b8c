/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decides which samples in spans count (--in, --slower-than). Counts of spans of which it is not
 * known yet whether they are slow are held, from one drain to the next. How the BPF side tells
 * what became of a span is in bpf/core/span.bpf.c.
 *
 * Order: load -> new() -> judge() after each drain, with end() before the last one -> free().
 *
 * Thread: the session's, also for sb_spans_stats(); any for sb_span_bucket_ns() and
 * sb_spans_percentile_ns(). Internal to capture, but for the figures. No pointer may be NULL unless
 * a contract says so.
 */
#ifndef SB_CAPTURE_SPANS_H
#define SB_CAPTURE_SPANS_H

#include <stdint.h>

#include "bpf/abi/sb_abi_span.h"
#include "capture/batch.h"
#include "views/view.h"

struct sampler_bpf;
struct sb_spans;

/* Counts that are held at a time: 20 MB. */
#define SB_SPANS_HELD_MAX ((size_t)131072)

struct sb_spans_stats {
	uint64_t nr_ended;
	uint64_t sum_ns;	      /* of all that ended */
	uint64_t nr_open;	      /* at the end of the run */
	uint64_t nr_open_slow;	      /* of these, slow already */
	uint64_t nr_samples_fast;     /* dropped: their spans were not slow */
	uint64_t nr_samples_open;     /* dropped at the end: their spans had not been slow so far */
	uint64_t nr_samples_full;     /* lost: beyond SB_SPANS_HELD_MAX */
	uint64_t nr[SB_SPAN_BUCKETS]; /* that ended, by duration */
};

/* Make it. @skel is borrowed until sb_spans_free(), with which the caller ends *ret_spans.
 * @slower_than_ns: samples of spans that do not last as long are dropped; 0: all count, and there
 * are only figures. Return: 0; -ENOMEM: *ret_spans is untouched. */
int sb_spans_new(struct sampler_bpf *skel, uint64_t slower_than_ns, struct sb_spans **ret_spans);
/* Free it with the counts that are held. Accepts NULL. */
void sb_spans_free(struct sb_spans *spans);

/*
 * Replace the counts of a batch, which were just read from the BPF side, by those that count: those
 * of slow spans, held ones included, and those of no span. Those of open spans are held, and those
 * of other spans are dropped. The new counts belong to @spans and are valid until the next call.
 * When all count (slower_than_ns 0), the batch is left as it is.
 * Return: 0; -ENOMEM; or a negative errno of reading the BPF side's maps: the batch is changed all
 * the same, and counts may be missing from it and from those that are held.
 */
int sb_spans_judge(struct sb_spans *spans, struct sb_batch *batch);
/* Note which threads are in their spans at the end of the run; once, while the programs are still
 * loaded. Each sb_spans_judge() from now on holds nothing: what has not been slow until now does
 * not count. Return: 0; -ENOMEM; or a negative errno of running an iterator or reading a map: the
 * run is not taken to be over then. */
int sb_spans_end(struct sb_spans *spans);

/* Append to @ids the IDs of the stacks that held counts reference; some are zero, or there twice.
 * Return: 0; -ENOMEM, and some may be missing. */
int sb_spans_pending(const struct sb_spans *spans, sb_vec_stack_id *ids);
/* Return: the time of the oldest sample that is held (CLOCK_MONOTONIC); UINT64_MAX: there is
 * none. */
uint64_t sb_spans_oldest_ns(const struct sb_spans *spans);
/* Get the figures so far. What cannot be read is 0. */
void sb_spans_stats(const struct sb_spans *spans, struct sb_spans_stats *ret_stats);

/* Return: the shortest duration, in ns, that is counted in @bucket, an index of sb_spans_stats.nr
 * or the one behind the last, which is not checked. Any thread. */
uint64_t sb_span_bucket_ns(uint32_t bucket);
/* Return: a duration that the part @part (0 to 1) of the spans that ended did not exceed, to an
 * eighth: the upper end of the bucket in which it lies; 0 if none ended. Any thread. */
uint64_t sb_spans_percentile_ns(const struct sb_spans_stats *stats, double part);

#endif
