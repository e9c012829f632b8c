// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/drain.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "capture/rawstack.h"
#include "views/skel.h"

#define NR_GENERATIONS 2
/* Keys that one call reads. The kernel demands room for a whole hash bucket at least. */
#define READ_KEYS      4096u

/* What was read from the BPF side, and will become a batch. */
struct intake {
	SB_VEC(struct sb_batch_count) counts;
	SB_VEC(struct sb_batch_stack) stacks;
	SB_VEC(uint64_t) frames; /* theirs, one after the other */
	SB_VEC(struct sb_batch_object) objects;
	SB_VEC(uint64_t) object_words; /* their data */
	struct sb_rawstacks raw;
	sb_vec_u32 tgids; /* of processes that were announced */
};

struct sb_drain {
	struct sampler_bpf *skel; /* borrowed */
	struct ring_buffer *ring;
	int generations[NR_GENERATIONS];
	struct intake taken;  /* by the last sb_drain_run(): its caller's */
	pthread_mutex_t lock; /* of all that follows */
	struct intake next;   /* for the next one */
	unsigned int current;
	struct sb_sample_key *read_keys;
	struct sb_count *read_counts;
	uint64_t nr_runs; /* atomic */
	struct sb_drain_stats stats;
};

static int add_stack(struct intake *to, const struct sb_batch_stack *stack)
{
	uint32_t i;
	int err;

	for (i = 0; i < stack->nr_frames; i++) {
		err = sb_vec_push(&to->frames, stack->ip[i]);
		if (err)
			return err;
	}
	return sb_vec_push(&to->stacks, *stack);
}

int sb_drain_add(void *arg, const struct sb_batch_stack *stack)
{
	return add_stack(&((struct sb_drain *)arg)->taken, stack);
}

int sb_drain_add_early(void *arg, const struct sb_batch_stack *stack)
{
	struct sb_drain *drain = arg;
	int err;

	pthread_mutex_lock(&drain->lock);
	err = add_stack(&drain->next, stack);
	pthread_mutex_unlock(&drain->lock);
	return err;
}

static void clear(struct intake *intake)
{
	sb_vec_clear(&intake->counts);
	sb_vec_clear(&intake->stacks);
	sb_vec_clear(&intake->frames);
	sb_vec_clear(&intake->objects);
	sb_vec_clear(&intake->object_words);
	sb_rawstacks_clear(&intake->raw);
	intake->tgids.nr = 0;
}

static void release(struct intake *intake)
{
	sb_vec_release(&intake->counts);
	sb_vec_release(&intake->stacks);
	sb_vec_release(&intake->frames);
	sb_vec_release(&intake->objects);
	sb_vec_release(&intake->object_words);
	sb_rawstacks_release(&intake->raw);
	sb_vec_release(&intake->tgids);
}

static size_t nr_bytes(const struct intake *intake)
{
	return intake->counts.nr * sizeof(*intake->counts.at) +
	       intake->stacks.nr * sizeof(*intake->stacks.at) +
	       intake->frames.nr * sizeof(*intake->frames.at) +
	       intake->objects.nr * sizeof(*intake->objects.at) +
	       intake->object_words.nr * sizeof(*intake->object_words.at) + intake->raw.bytes.nr;
}

static int on_stack(struct sb_drain *drain, const struct sb_event_stack *event, size_t len)
{
	const struct sb_batch_stack stack = {
		.id = event->id,
		.status = event->status,
		.flags = event->flags,
		.list = event->list,
		.nr_frames = event->nr_frames,
		.ip = (const uint64_t *)(event + 1),
	};

	if (len < sizeof(*event) || (len - sizeof(*event)) / sizeof(*stack.ip) < event->nr_frames)
		return -EBADMSG;
	return add_stack(&drain->next, &stack);
}

static int on_object(struct intake *to, const struct sb_event_object *event, size_t len)
{
	size_t at = to->object_words.nr, nr_words;
	struct sb_batch_object object;
	int err;

	if (len < sizeof(*event) || len - sizeof(*event) < event->nr_bytes)
		return -EBADMSG;
	object = (struct sb_batch_object){
		.id = event->id,
		.kind = event->kind,
		.nr_bytes = event->nr_bytes,
	};
	nr_words = (event->nr_bytes + 7) / 8;
	err = sb_vec_reserve(&to->object_words, at + nr_words);
	if (!err)
		err = sb_vec_push(&to->objects, object);
	if (err)
		return err;
	if (nr_words)
		to->object_words.at[at + nr_words - 1] = 0;
	memcpy(to->object_words.at + at, event + 1, event->nr_bytes);
	to->object_words.nr += nr_words;
	return 0;
}

static int on_event(void *arg, void *data, size_t len)
{
	const struct sb_event *event = data;
	struct sb_drain *drain = arg;

	if (len < sizeof(*event))
		return -EBADMSG;
	switch (event->kind) {
	case SB_EVENT_STACK:
		return on_stack(drain, data, len);
	case SB_EVENT_RAW:
		return sb_rawstacks_add(&drain->next.raw, data, len);
	case SB_EVENT_OBJECT:
		return on_object(&drain->next, data, len);
	case SB_EVENT_PROCESS:
		if (len < sizeof(struct sb_event_process))
			return -EBADMSG;
		return sb_vec_push(&drain->next.tgids,
				   ((const struct sb_event_process *)data)->tgid);
	case SB_EVENT_COUNTS_NUDGE:
		return 0; /* it did its work by waking us */
	default:
		return -EBADMSG;
	}
}

static int put_generation(struct sb_drain *drain, unsigned int which)
{
	const uint32_t zero = 0;
	int outer = bpf_map__fd(drain->skel->maps.counts);

	if (bpf_map_update_elem(outer, &zero, &drain->generations[which], BPF_ANY))
		return -errno;
	drain->current = which;
	return 0;
}

/* The first map is the BPF side's own, which it uses already; its size was set before load. */
static int make_generations(struct sb_drain *drain, uint32_t counts_max)
{
	drain->generations[0] =
		fcntl(bpf_map__fd(drain->skel->maps.counts_first), F_DUPFD_CLOEXEC, 0);
	if (drain->generations[0] < 0)
		return -errno;
	drain->generations[1] =
		bpf_map_create(BPF_MAP_TYPE_HASH, "counts_second", sizeof(struct sb_sample_key),
			       sizeof(struct sb_count), counts_max, NULL);
	return drain->generations[1] < 0 ? drain->generations[1] : 0;
}

int sb_drain_new(struct sampler_bpf *skel, uint32_t counts_max, struct sb_drain **ret_drain)
{
	struct sb_drain *drain = calloc(1, sizeof(*drain));
	int err;

	if (!drain)
		return -ENOMEM;
	drain->skel = skel;
	pthread_mutex_init(&drain->lock, NULL);
	drain->generations[0] = drain->generations[1] = -1;
	drain->read_keys = malloc(READ_KEYS * sizeof(*drain->read_keys));
	drain->read_counts = malloc(READ_KEYS * sizeof(*drain->read_counts));
	if (!drain->read_keys || !drain->read_counts) {
		sb_drain_free(drain);
		return -ENOMEM;
	}
	err = make_generations(drain, counts_max);
	if (err) {
		sb_drain_free(drain);
		return err;
	}
	drain->ring = ring_buffer__new(bpf_map__fd(skel->maps.events), on_event, drain, NULL);
	if (!drain->ring) {
		err = -errno;
		sb_drain_free(drain);
		return err;
	}
	*ret_drain = drain;
	return 0;
}

void sb_drain_free(struct sb_drain *drain)
{
	int i;

	if (!drain)
		return;
	ring_buffer__free(drain->ring);
	for (i = 0; i < NR_GENERATIONS; i++)
		if (drain->generations[i] >= 0)
			close(drain->generations[i]);
	free(drain->read_keys);
	free(drain->read_counts);
	release(&drain->taken);
	release(&drain->next);
	pthread_mutex_destroy(&drain->lock);
	free(drain);
}

int sb_drain_poll_fd(const struct sb_drain *drain)
{
	return ring_buffer__epoll_fd(drain->ring);
}

static int keep_counts(struct sb_drain *drain, uint32_t nr)
{
	uint32_t i;
	int err;

	for (i = 0; i < nr; i++) {
		err = sb_vec_push(&drain->next.counts, (struct sb_batch_count){
							       .key = drain->read_keys[i],
							       .count = drain->read_counts[i],
						       });
		if (err)
			return err;
	}
	return 0;
}

/* Read and empty a map of counts that no program writes any more. */
static int read_generation(struct sb_drain *drain, int fd)
{
	uint32_t batch, nr;
	void *from = NULL;
	int err, ret;

	do {
		nr = READ_KEYS;
		ret = bpf_map_lookup_and_delete_batch(fd, from, &batch, drain->read_keys,
						      drain->read_counts, &nr, NULL);
		if (ret && ret != -ENOENT)
			return ret;
		err = keep_counts(drain, nr);
		if (err)
			return err;
		from = &batch;
	} while (!ret);
	return 0;
}

static void point_objects_at_data(struct intake *intake)
{
	size_t i, at = 0;

	for (i = 0; i < intake->objects.nr; i++) {
		intake->objects.at[i].data = intake->object_words.at + at;
		at += (intake->objects.at[i].nr_bytes + 7) / 8;
	}
}

/* `frames` was reallocated while it grew, so pointers into it are set at the end. */
static void point_stacks_at_frames(struct intake *intake)
{
	size_t i, at = 0;

	for (i = 0; i < intake->stacks.nr; i++) {
		intake->stacks.at[i].ip = intake->frames.at + at;
		at += intake->stacks.at[i].nr_frames;
	}
}

/* Append all that the BPF side has to drain->next. Called with the lock held. */
static int collect(struct sb_drain *drain)
{
	int old = drain->generations[drain->current], err;

	/* Returns when no program uses the old generation any more. */
	err = put_generation(drain, 1 - drain->current);
	if (err)
		return err;
	drain->skel->bss->nr_keys = 0;
	err = read_generation(drain, old);
	if (err)
		return err;
	/* Stacks are read after counts, because a stack is shipped before the first count that
	 * references it. */
	err = ring_buffer__consume(drain->ring);
	return err < 0 ? err : 0;
}

int sb_drain_collect(struct sb_drain *drain)
{
	int err = -EAGAIN;

	pthread_mutex_lock(&drain->lock);
	if (nr_bytes(&drain->next) < SB_DRAIN_EARLY_BYTES_MAX) {
		err = collect(drain);
		drain->stats.nr_early++;
	} else {
		drain->stats.nr_early_full++;
	}
	pthread_mutex_unlock(&drain->lock);
	return err;
}

int sb_drain_run(struct sb_drain *drain)
{
	struct intake last = drain->taken;
	int err;

	clear(&last);
	pthread_mutex_lock(&drain->lock);
	err = collect(drain);
	drain->taken = drain->next;
	drain->next = last;
	pthread_mutex_unlock(&drain->lock);
	__atomic_fetch_add(&drain->nr_runs, 1, __ATOMIC_RELAXED);
	return err;
}

uint64_t sb_drain_nr_runs(const struct sb_drain *drain)
{
	return __atomic_load_n(&drain->nr_runs, __ATOMIC_RELAXED);
}

void sb_drain_stats(struct sb_drain *drain, struct sb_drain_stats *ret_stats)
{
	pthread_mutex_lock(&drain->lock);
	*ret_stats = drain->stats;
	pthread_mutex_unlock(&drain->lock);
}

const struct sb_rawstacks *sb_drain_raw(const struct sb_drain *drain)
{
	return &drain->taken.raw;
}

const uint32_t *sb_drain_processes(const struct sb_drain *drain, size_t *ret_nr)
{
	*ret_nr = drain->taken.tgids.nr;
	return drain->taken.tgids.at;
}

void sb_drain_batch(struct sb_drain *drain, struct sb_batch *ret_batch)
{
	struct intake *taken = &drain->taken;

	point_stacks_at_frames(taken);
	point_objects_at_data(taken);
	*ret_batch = (struct sb_batch){
		.counts = taken->counts.at,
		.nr_counts = taken->counts.nr,
		.stacks = taken->stacks.at,
		.nr_stacks = taken->stacks.nr,
		.objects = taken->objects.at,
		.nr_objects = taken->objects.nr,
	};
}
