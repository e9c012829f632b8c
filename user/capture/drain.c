// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/drain.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "capture/rawstack.h"
#include "views/skel.h"

#define NR_GENERATIONS 2
/* Keys read by one call. The kernel wants room for a whole bucket at least. */
#define READ_KEYS      4096u

/* Stacks and their frames, one after the other. */
struct stacks {
	SB_VEC(struct sb_batch_stack) at;
	SB_VEC(uint64_t) frames;
};

struct sb_drain {
	struct sampler_bpf *skel; /* borrowed */
	struct ring_buffer *ring;
	int generations[NR_GENERATIONS];
	unsigned int current;
	struct sb_sample_key *read_keys;
	struct sb_count *read_counts;
	/* What the batch of the last drain points to. */
	SB_VEC(struct sb_batch_count) counts;
	struct stacks stacks;
	struct stacks early; /* for the batch of the next one */
	SB_VEC(struct sb_batch_object) objects;
	SB_VEC(uint64_t) object_words; /* their data */
	struct sb_rawstacks raw;
	sb_vec_u32 *tgids; /* during a drain: where announced processes go */
};

static int add_stack(struct stacks *stacks, const struct sb_batch_stack *stack)
{
	uint32_t i;
	int err;

	for (i = 0; i < stack->nr_frames; i++) {
		err = sb_vec_push(&stacks->frames, stack->ip[i]);
		if (err)
			return err;
	}
	return sb_vec_push(&stacks->at, *stack);
}

int sb_drain_add(void *arg, const struct sb_batch_stack *stack)
{
	return add_stack(&((struct sb_drain *)arg)->stacks, stack);
}

int sb_drain_add_early(void *arg, const struct sb_batch_stack *stack)
{
	return add_stack(&((struct sb_drain *)arg)->early, stack);
}

static void clear_stacks(struct stacks *stacks)
{
	sb_vec_clear(&stacks->at);
	sb_vec_clear(&stacks->frames);
}

static void release_stacks(struct stacks *stacks)
{
	sb_vec_release(&stacks->at);
	sb_vec_release(&stacks->frames);
}

static void take_early(struct sb_drain *drain)
{
	struct stacks last = drain->stacks;

	drain->stacks = drain->early;
	drain->early = last;
	clear_stacks(&drain->early);
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
	return sb_drain_add(drain, &stack);
}

static int on_object(struct sb_drain *drain, const struct sb_event_object *event, size_t len)
{
	size_t at = drain->object_words.nr, nr_words;
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
	err = sb_vec_reserve(&drain->object_words, at + nr_words);
	if (!err)
		err = sb_vec_push(&drain->objects, object);
	if (err)
		return err;
	if (nr_words)
		drain->object_words.at[at + nr_words - 1] = 0;
	memcpy(drain->object_words.at + at, event + 1, event->nr_bytes);
	drain->object_words.nr += nr_words;
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
		return sb_rawstacks_add(&drain->raw, data, len);
	case SB_EVENT_OBJECT:
		return on_object(drain, data, len);
	case SB_EVENT_PROCESS:
		if (len < sizeof(struct sb_event_process))
			return -EBADMSG;
		return sb_vec_push(drain->tgids, ((const struct sb_event_process *)data)->tgid);
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

/* The first one is the BPF side's own, in force already; it had its size before load. */
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
	sb_vec_release(&drain->counts);
	release_stacks(&drain->stacks);
	release_stacks(&drain->early);
	sb_vec_release(&drain->objects);
	sb_vec_release(&drain->object_words);
	sb_rawstacks_release(&drain->raw);
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
		err = sb_vec_push(&drain->counts, (struct sb_batch_count){
							  .key = drain->read_keys[i],
							  .count = drain->read_counts[i],
						  });
		if (err)
			return err;
	}
	return 0;
}

/* Read and empty a generation that no program writes any more. */
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

static void point_objects_at_data(struct sb_drain *drain)
{
	size_t i, at = 0;

	for (i = 0; i < drain->objects.nr; i++) {
		drain->objects.at[i].data = drain->object_words.at + at;
		at += (drain->objects.at[i].nr_bytes + 7) / 8;
	}
}

/* The frames moved while they grew; only now do they stay where they are. */
static void point_stacks_at_frames(struct sb_drain *drain)
{
	size_t i, at = 0;

	for (i = 0; i < drain->stacks.at.nr; i++) {
		drain->stacks.at.at[i].ip = drain->stacks.frames.at + at;
		at += drain->stacks.at.at[i].nr_frames;
	}
}

int sb_drain_run(struct sb_drain *drain, sb_vec_u32 *tgids)
{
	int old = drain->generations[drain->current], err;

	sb_vec_clear(&drain->counts);
	take_early(drain);
	sb_vec_clear(&drain->objects);
	sb_vec_clear(&drain->object_words);
	sb_rawstacks_clear(&drain->raw);
	/* Returns when no program uses the old generation any more. */
	err = put_generation(drain, 1 - drain->current);
	if (err)
		return err;
	drain->skel->bss->nr_keys = 0;
	err = read_generation(drain, old);
	if (err)
		return err;
	/* Stacks after counts: a stack is shipped before the first count that names it. */
	drain->tgids = tgids;
	err = ring_buffer__consume(drain->ring);
	return err < 0 ? err : 0;
}

const struct sb_rawstacks *sb_drain_raw(const struct sb_drain *drain)
{
	return &drain->raw;
}

void sb_drain_batch(struct sb_drain *drain, struct sb_batch *ret_batch)
{
	point_stacks_at_frames(drain);
	point_objects_at_data(drain);
	*ret_batch = (struct sb_batch){
		.counts = drain->counts.at,
		.nr_counts = drain->counts.nr,
		.stacks = drain->stacks.at.at,
		.nr_stacks = drain->stacks.at.nr,
		.objects = drain->objects.at,
		.nr_objects = drain->objects.nr,
	};
}
