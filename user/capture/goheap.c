// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The list of buckets is read whole at each look, because nothing tells which of them have changed.
 * So the time between two looks is at least 100 times the CPU time that the last one took. When
 * there are LOOKS_MAX looks in memory, each second one is dropped, and later ones are as far apart
 * as those that remain. The first look is the base, and stays.
 */
#include "capture/goheap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/time.h"
#include "capture/drain.h"
#include "capture/resident.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/process/reader.h"

/* Odd, so that each second one is dropped without the newest. */
#define LOOKS_MAX    17u
#define LOOK_NS	     (SB_NS_PER_SEC / 2)
#define LOOK_TIMES   100u
/* See find_floating(). */
#define FLOATING_MAX 2.0

struct look {
	uint64_t time_ns;
	struct sb_go_look at;
};

struct process {
	struct sb_sample_key key; /* without a stack */
	struct sb_procfs_stat stat;
	enum sb_go_heap_state state;
	bool is_new; /* its base is that it holds nothing */
	bool is_source;
	struct sb_go_heap heap;
	struct look looks[LOOKS_MAX];
	size_t nr_looks;
	uint64_t next_ns, gap_ns; /* of the next look; between two, by their number */
	SB_VEC(struct said {
		uint64_t weight;
		uint64_t objects;
	})
	said; /* what counts had so far, by bucket */
};

struct sb_goheap {
	struct sb_goheap_opts opts;
	SB_VEC(struct process) processes;
	uint32_t nr_left_out;
	bool is_looking; /* counts are due */
};

int sb_goheap_new(const struct sb_goheap_opts *opts, struct sb_goheap **ret_goheap)
{
	struct sb_goheap *goheap = calloc(1, sizeof(*goheap));

	if (!goheap)
		return -ENOMEM;
	goheap->opts = *opts;
	*ret_goheap = goheap;
	return 0;
}

static void clear_process(struct process *process)
{
	size_t i;

	for (i = 0; i < LOOKS_MAX; i++)
		sb_vec_release(&process->looks[i].at.use);
	sb_go_heap_release(&process->heap);
	sb_vec_release(&process->said);
}

void sb_goheap_free(struct sb_goheap *goheap)
{
	size_t i;

	if (!goheap)
		return;
	for (i = 0; i < goheap->processes.nr; i++)
		clear_process(&goheap->processes.at[i]);
	sb_vec_release(&goheap->processes);
	free(goheap);
}

/* Name the process and its start as the BPF side would, as far as /proc tells. */
static struct sb_sample_key key_of(uint32_t tgid, const struct sb_procfs_stat *stat)
{
	sb_cleanup(sb_freep) char *comm = NULL;
	struct sb_sample_key key = {
		.tgid = tgid,
		.start_ns = stat->start_ticks * sb_tick_ns(),
	};

	if (!sb_procfs_comm(tgid, &comm))
		snprintf(key.comm, sizeof(key.comm), "%s", comm);
	return key;
}

static enum sb_go_heap_state state_of(int err)
{
	switch (err) {
	case 0:
		return SB_GO_HEAP_READ;
	case -ESRCH:
		return SB_GO_HEAP_ENDED;
	case -ELOOP:
	case -EBADMSG:
		return SB_GO_HEAP_UNKNOWN;
	case -E2BIG:
	case -ENOMEM:
		return SB_GO_HEAP_TOO_LARGE;
	default:
		return SB_GO_HEAP_UNREADABLE;
	}
}

_Static_assert(LOOKS_MAX % 2 == 1, "the newest look stays");

static void drop_each_second(struct process *process)
{
	struct look spare;
	size_t i, nr = 1;

	for (i = 2; i < process->nr_looks; i += 2, nr++) {
		spare = process->looks[nr];
		process->looks[nr] = process->looks[i];
		process->looks[i] = spare;
	}
	process->nr_looks = nr;
	process->gap_ns = (process->looks[nr - 1].time_ns - process->looks[0].time_ns) / (nr - 1);
}

static void take_look(struct process *process)
{
	const struct sb_memory memory = { .tgid = process->key.tgid };
	const uint64_t since_ns = sb_reader_thread_cpu_ns();
	struct look *look;
	uint64_t cost_ns;
	int err;

	if (process->nr_looks == LOOKS_MAX)
		drop_each_second(process);
	look = &process->looks[process->nr_looks];
	look->time_ns = sb_now_ns();
	err = sb_go_heap_look(&process->heap, &memory, &look->at);
	process->state = state_of(err);
	/* Until the rate is set there is nothing to see. */
	if (!err && !look->at.rate && process->nr_looks == process->is_new)
		process->state = SB_GO_HEAP_OFF;
	else if (!err)
		process->nr_looks++;
	/* It decreases if the reader was replaced. */
	cost_ns = sb_reader_thread_cpu_ns();
	cost_ns = cost_ns > since_ns ? cost_ns - since_ns : 0;
	process->next_ns =
		sb_now_ns() +
		(process->gap_ns > LOOK_TIMES * cost_ns ? process->gap_ns : LOOK_TIMES * cost_ns);
}

/* Begin with the program that the process runs now. */
static void begin(struct process *process)
{
	process->state = sb_go_heap_find(process->key.tgid, &process->heap.places);
	process->gap_ns = LOOK_NS;
	if (process->is_new) {
		process->looks[0].time_ns = sb_now_ns();
		process->nr_looks = 1;
	} else if (process->state == SB_GO_HEAP_READ) {
		take_look(process);
	}
}

int sb_goheap_expect(struct sb_goheap *goheap, uint32_t tgid, bool is_new)
{
	struct process process = {
		.is_new = is_new,
		.state = SB_GO_HEAP_NOT_GO,
		.heap.seed = goheap->opts.seed,
	};
	int err;

	if (goheap->processes.nr == SB_GOHEAP_PROCESSES_MAX) {
		goheap->nr_left_out++;
		return 0;
	}
	if (sb_procfs_stat(tgid, &process.stat))
		return 0;
	process.key = key_of(tgid, &process.stat);
	if (!is_new)
		begin(&process);
	if (!is_new && process.state == SB_GO_HEAP_NOT_GO)
		return 0;
	err = sb_vec_push(&goheap->processes, process);
	if (err)
		clear_process(&process);
	return err;
}

/* It has called execve(): what it holds now came in the run. */
static void begin_anew(struct process *process, const struct sb_procfs_stat *stat)
{
	const struct process anew = {
		.key = key_of(process->key.tgid, stat),
		.stat = *stat,
		.is_new = true,
		.heap.seed = process->heap.seed,
	};

	clear_process(process);
	*process = anew;
	begin(process);
}

static void look_at(struct process *process)
{
	struct sb_procfs_stat now;
	int err;

	if (process->state == SB_GO_HEAP_ENDED)
		return;
	err = sb_procfs_stat_of(process->key.tgid, process->stat.start_ticks, &now);
	if (err) {
		process->state = state_of(err);
		return;
	}
	if (now.stack_addr != process->stat.stack_addr) {
		if (process->is_source) {
			process->state = SB_GO_HEAP_ENDED;
			return;
		}
		begin_anew(process, &now);
	}
	/* A look that failed may succeed the next time. */
	if (process->heap.places.buckets)
		take_look(process);
}

static const struct look *last_look(const struct process *process)
{
	return &process->looks[process->nr_looks - 1];
}

/* Return: the collections from the first look to look @i. */
static uint64_t cycles_to(const struct process *process, size_t i)
{
	return (process->looks[i].at.cycle + SB_GO_HEAP_CYCLES - process->looks[0].at.cycle) %
	       SB_GO_HEAP_CYCLES;
}

/* Return: the first look, from @from on, that knows of a collection which ended after look @from;
 * nr_looks: none. */
static size_t after_cycle(const struct process *process, size_t from)
{
	size_t i = from;

	while (i < process->nr_looks && cycles_to(process, i) <= cycles_to(process, from))
		i++;
	return i;
}

/* Return: the last look of the first half of the run after which a collection has ended; 0: there
 * is none. */
static size_t half_of(const struct process *process)
{
	const uint64_t begin_ns = process->looks[0].time_ns;
	const uint64_t run_ns = last_look(process)->time_ns - begin_ns;
	size_t i = process->nr_looks - 1;

	/* Looks are a second apart or more: one a little behind the half is nearer. */
	while (i && (process->looks[i].time_ns - begin_ns > run_ns / 10 * 6 ||
		     after_cycle(process, i) == process->nr_looks))
		i--;
	return i;
}

/* A collection has to have ended since what is counted was allocated. */
static bool has_cycles(const struct process *process, bool is_of_growth)
{
	return is_of_growth ? half_of(process) : cycles_to(process, process->nr_looks - 1);
}

/* A process that is told by its profile stays so. */
static void decide(struct process *process, bool is_of_growth)
{
	if (process->state == SB_GO_HEAP_READ)
		process->is_source |= process->nr_looks > 1 && has_cycles(process, is_of_growth);
}

void sb_goheap_look(struct sb_goheap *goheap, struct sb_resident *resident)
{
	size_t i;

	for (i = 0; i < goheap->processes.nr; i++) {
		struct process *process = &goheap->processes.at[i];

		look_at(process);
		decide(process, goheap->opts.is_of_growth);
		/* Another program may have its ID then. */
		if (process->is_source && process->state != SB_GO_HEAP_ENDED)
			sb_resident_leave(resident, process->key.tgid, &process->key);
	}
	goheap->is_looking = true;
}

static struct sb_go_use use_at(const struct look *look, size_t bucket)
{
	return bucket < look->at.use.nr ? look->at.use.at[bucket] : (struct sb_go_use){};
}

/* What counts are made of. */
struct span {
	size_t half;	 /* what was allocated up to this look counts */
	size_t from;	 /* if it is in use at this look, the first after a collection, and later */
	bool has_half;	 /* false: all that came counts */
	double floating; /* see find_floating() */
};

/* What has become of the samples of a bucket. */
struct change {
	double part;  /* of those that came before the use was looked at: those that count */
	double grown; /* by so much, at the least */
	double freed; /* by each collection, on average */
};

static struct change change_of(const struct process *process, size_t bucket,
			       const struct span *span)
{
	const size_t last = process->nr_looks - 1;
	const struct sb_go_use first = use_at(&process->looks[0], bucket);
	const struct sb_go_use half = use_at(&process->looks[span->half], bucket);
	const struct sb_go_use from = use_at(&process->looks[span->from], bucket);
	const struct sb_go_use end = use_at(&process->looks[last], bucket);
	const double early = (double)half.allocated - (double)first.allocated;
	const double came =
		(double)(from.objects + from.freed) - (double)(first.objects + first.freed);
	const uint64_t nr_cycles = cycles_to(process, last) - cycles_to(process, span->half);
	uint64_t least = end.objects, now;
	size_t i;

	for (i = span->from; i < last; i++) {
		now = use_at(&process->looks[i], bucket).objects;
		least = now < least ? now : least;
	}
	return (struct change){
		.part = span->has_half && came > early ? early / came : 1,
		.grown = (double)least - (double)first.objects,
		.freed = nr_cycles ? ((double)end.freed - (double)half.freed) / (double)nr_cycles
				   : 0,
	};
}

/* Return: the bytes that @nr samples of a bucket stand for. */
static double weight_of(const struct process *process, size_t bucket, double nr)
{
	return sb_go_heap_bytes(nr, process->heap.buckets.at[bucket].size,
				last_look(process)->at.rate);
}

/* A ratio, and the bytes for which it is so. */
struct ratio {
	double ratio, bytes;
};

static int compare_ratios(const void *a, const void *b)
{
	const struct ratio *one = a, *other = b;

	return (one->ratio > other->ratio) - (one->ratio < other->ratio);
}

/* Return: the bytes in use at look @i. */
static double in_use_at(const struct process *process, size_t i)
{
	double bytes = 0;
	size_t bucket;

	for (bucket = 0; bucket < process->heap.buckets.nr; bucket++)
		bytes += weight_of(process, bucket,
				   (double)use_at(&process->looks[i], bucket).objects);
	return bytes;
}

/*
 * Floating garbage: what is allocated while the collector marks is in use when it is done, whether
 * or not something still refers to it, and the next collection frees it. So code that keeps nothing
 * has objects in use. The larger the heap is, the longer marking takes, and the more they are: such
 * code seems to leak when other code does.
 *
 * As a part of what one collection frees, this growth is about the same for all code that keeps
 * nothing, because it is that of the allocations during the marking, divided by those between two
 * collections. Code that keeps objects grows by more, and a cache that is full by less. So the part
 * is the lower quartile of all buckets, by the bytes that are freed. As the next collection frees
 * it, it is at most 1, and 2 because in a heap that grows this one can free more than those before;
 * of that, the part by which the heap has grown.
 *
 * Set span->floating. Return: 0; -ENOMEM.
 */
static int find_floating(const struct process *process, struct span *span)
{
	sb_cleanup(sb_freep) struct ratio *ratios =
		calloc(process->heap.buckets.nr + 1, sizeof(*ratios));
	const double before = in_use_at(process, 0), now = in_use_at(process, span->from);
	const double max = now > before ? FLOATING_MAX * (1 - before / now) : 0;
	double sum = 0;
	size_t i, nr = 0;

	if (!ratios)
		return -ENOMEM;
	for (i = 0; i < process->heap.buckets.nr; i++) {
		const struct change change = change_of(process, i, span);

		if (change.freed <= 0)
			continue;
		ratios[nr].ratio = change.grown > 0 ? change.grown / change.freed : 0;
		ratios[nr].bytes = weight_of(process, i, change.freed);
		sum += ratios[nr++].bytes;
	}
	qsort(ratios, nr, sizeof(*ratios), compare_ratios);
	for (i = 0, sum /= 4; i < nr && sum > ratios[i].bytes; i++)
		sum -= ratios[i].bytes;
	span->floating = i < nr && ratios[i].ratio < max ? ratios[i].ratio : max;
	return 0;
}

/* Stacks of processes are told apart, because their addresses have other meanings. */
static struct sb_stack_id id_of(const struct process *process, const uint64_t *frames, size_t nr)
{
	const uint64_t seed =
		process->heap.seed ^ process->key.start_ns ^ (uint64_t)process->key.tgid << 32;

	return (struct sb_stack_id){
		.lo = sb_hash(frames, nr * sizeof(*frames), seed) | 1,
		.hi = sb_hash(frames, nr * sizeof(*frames), ~seed),
	};
}

/* Return: whether the stack is as deep as Go writes them at most: 32 frames before Go 1.23, 128
 * before Go 1.26, and 130 since then. */
static bool may_be_cut(const struct sb_go_bucket *bucket)
{
	return bucket->nr == 32 || bucket->nr == 128 || bucket->nr == 130;
}

static int add_count(const struct process *process, size_t number, const struct said *change,
		     struct sb_drain *drain, uint32_t view)
{
	const struct sb_go_bucket *bucket = &process->heap.buckets.at[number];
	const uint64_t now_ns = last_look(process)->time_ns;
	/* Go writes a return address for each inlined call as well: tracebackPCs() of traceback.go,
	 * and gentraceback() before Go 1.21. */
	struct sb_batch_stack stack = {
		.status = may_be_cut(bucket) ? SB_STACK_DEPTH : SB_STACK_COMPLETE,
		.flags = SB_STACK_LEAF_RETURNS | SB_STACK_CALLS,
		.nr_frames = bucket->nr,
		.ip = process->heap.frames.at + bucket->first,
	};
	struct sb_batch_count count = {
		.key = process->key,
		.count = { .weight = change->weight,
			   .nr_samples = change->objects,
			   .first_ns = now_ns,
			   .last_ns = now_ns },
	};
	int err;

	stack.id = id_of(process, stack.ip, stack.nr_frames);
	count.key.ustack = stack.id;
	count.key.view = (uint8_t)view;
	err = sb_drain_add(drain, &stack);
	return err ? err : sb_drain_add_count(drain, &count);
}

static struct said said_of(const struct process *process, size_t bucket, const struct span *span)
{
	const struct change change = change_of(process, bucket, span);
	const double stays = (change.grown - span->floating * change.freed) * change.part;
	const uint64_t objects = stays > 0 ? (uint64_t)(stays + 0.5) : 0;
	const double weight = weight_of(process, bucket, (double)objects);

	/* The program can say anything. */
	return (struct said){ .objects = objects,
			      .weight = weight < 0x1p62 ? (uint64_t)weight : 0 };
}

static int add_counts(struct process *process, const struct sb_goheap_opts *opts,
		      struct sb_drain *drain, uint32_t view)
{
	struct span span = { .from = process->nr_looks - 1 };
	struct said now, *said;
	size_t i;
	int err = sb_vec_fit(&process->said, process->heap.buckets.nr, 0);

	if (opts->is_of_growth) {
		span.has_half = true;
		span.half = half_of(process);
		span.from = after_cycle(process, span.half);
		/* Only if looks were dropped since the process was found to have collections. */
		if (span.from == process->nr_looks)
			span.from = process->nr_looks - 1;
		err = err ?: find_floating(process, &span);
	}
	for (i = 0; i < process->heap.buckets.nr && !err; i++) {
		now = said_of(process, i, &span);
		said = &process->said.at[i];
		if (now.weight != said->weight)
			err = add_count(process, i,
					&(struct said){ now.weight - said->weight,
							now.objects - said->objects },
					drain, view);
		if (opts->is_summed)
			*said = now;
	}
	return err;
}

int sb_goheap_counts(struct sb_goheap *goheap, struct sb_drain *drain, uint32_t view)
{
	const uint64_t now_ns = sb_now_ns();
	size_t i;
	int err = 0;

	for (i = 0; i < goheap->processes.nr && !err; i++) {
		struct process *process = &goheap->processes.at[i];

		if (goheap->is_looking && process->is_source)
			err = add_counts(process, &goheap->opts, drain, view);
		else if (!goheap->is_looking && now_ns >= process->next_ns)
			look_at(process);
	}
	goheap->is_looking = false;
	return err;
}

void sb_goheap_stats(const struct sb_goheap *goheap, struct sb_goheap_stats *ret_stats)
{
	size_t i;

	*ret_stats = (struct sb_goheap_stats){ .nr_left_out = goheap->nr_left_out };
	for (i = 0; i < goheap->processes.nr; i++) {
		const struct process *process = &goheap->processes.at[i];
		struct sb_goheap_process *at = &ret_stats->at[ret_stats->nr];

		if (process->state == SB_GO_HEAP_NOT_GO)
			continue;
		at->tgid = process->key.tgid;
		memcpy(at->comm, process->key.comm, sizeof(at->comm));
		at->state = process->is_source			? SB_GO_HEAP_READ
			    : process->state == SB_GO_HEAP_READ ? SB_GO_HEAP_FEW_CYCLES
								: process->state;
		if (process->nr_looks) {
			at->rate = last_look(process)->at.rate;
			at->nr_cycles = cycles_to(process, process->nr_looks - 1);
			at->early_ns = process->looks[half_of(process)].time_ns -
				       process->looks[0].time_ns;
		}
		ret_stats->nr++;
	}
}
