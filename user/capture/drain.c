// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/drain.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/time.h"
#include "base/vec.h"
#include "capture/batch_builder.h"
#include "capture/resident.h"
#include "views/skel.h"

#define NR_GENERATIONS 2
/* Keys that one call reads. The kernel demands room for a whole hash bucket at least. */
#define READ_KEYS      4096u
/* A program has a batch of faults for less than a microsecond, unless its CPU is taken from it. */
#define BATCH_TRIES    1000000u

struct sb_drain {
	struct sampler_bpf *skel; /* borrowed */
	size_t early_bytes_max;
	struct ring_buffer *ring;
	int generations[NR_GENERATIONS];
	struct sb_fault_batch *batches; /* of the map of this name; NULL: no view has them */
	uint32_t nr_batches;
	struct sb_batch_builder taken; /* by the last sb_drain_run(): its caller's */
	uint64_t taken_ns;	       /* all faults before have been taken */
	pthread_mutex_t lock;	       /* of all that follows */
	struct sb_batch_builder next;  /* for the next one */
	uint64_t next_ns;	       /* as taken_ns */
	unsigned int current;
	bool is_unread; /* the generation that is not current was not read to its end */
	int early_err;	/* of a sb_drain_collect(), which the next sb_drain_run() returns */
	struct sb_sample_key *read_keys;
	struct sb_count *read_counts;
	uint64_t nr_runs; /* atomic */
	struct sb_drain_stats stats;
};

int sb_drain_add(void *arg, const struct sb_batch_stack *stack)
{
	return sb_batch_builder_add(&((struct sb_drain *)arg)->taken, stack);
}

int sb_drain_add_early(void *arg, const struct sb_batch_stack *stack)
{
	struct sb_drain *drain = arg;
	int err;

	pthread_mutex_lock(&drain->lock);
	err = sb_batch_builder_add(&drain->next, stack);
	pthread_mutex_unlock(&drain->lock);
	return err;
}

/* Count a record for which there was no memory, and let the BPF side ship it again. */
static void lose(struct sb_drain *drain, const void *record)
{
	const struct sb_event *event = record;

	drain->stats.nr_lost_records++;
	/* A key that is not in the map is no error. */
	if (event->kind == SB_EVENT_STACK)
		bpf_map_delete_elem(bpf_map__fd(drain->skel->maps.stacks_seen),
				    &((const struct sb_event_stack *)record)->id);
	else if (event->kind == SB_EVENT_OBJECT)
		bpf_map_delete_elem(bpf_map__fd(drain->skel->maps.objects_seen),
				    &((const struct sb_event_object *)record)->id);
	else if (event->kind == SB_EVENT_OWNER)
		bpf_map_delete_elem(bpf_map__fd(drain->skel->maps.memory_owners),
				    &((const struct sb_event_owner *)record)->id);
}

/* An error would leave the records behind this one in the ring, and their counts without stacks. */
static int on_event(void *arg, void *data, size_t len)
{
	struct sb_drain *drain = arg;
	int err = sb_batch_builder_record(&drain->next, data, len);

	if (err != -ENOMEM)
		return err;
	lose(drain, data);
	return 0;
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

static size_t batches_bytes(const struct sb_drain *drain)
{
	return drain->nr_batches * sizeof(*drain->batches);
}

static int map_batches(struct sb_drain *drain)
{
	const struct bpf_map *map = drain->skel->maps.memory_batches;
	void *at;

	/* A run that follows no pages does not have it. Its descriptor does not tell: since libbpf
	 * 1.4 it is that of an empty file, access to whose memory raises SIGBUS. */
	if (!bpf_map__autocreate(map))
		return 0;
	drain->nr_batches = bpf_map__max_entries(map);
	at = mmap(NULL, batches_bytes(drain), PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map),
		  0);
	if (at == MAP_FAILED)
		return -errno;
	drain->batches = at;
	return 0;
}

int sb_drain_new(struct sampler_bpf *skel, uint32_t counts_max, size_t early_bytes_max,
		 struct sb_drain **ret_drain)
{
	struct sb_drain *drain = calloc(1, sizeof(*drain));
	int err;

	if (!drain)
		return -ENOMEM;
	drain->skel = skel;
	drain->early_bytes_max = early_bytes_max;
	pthread_mutex_init(&drain->lock, NULL);
	drain->generations[0] = drain->generations[1] = -1;
	drain->read_keys = malloc(READ_KEYS * sizeof(*drain->read_keys));
	drain->read_counts = malloc(READ_KEYS * sizeof(*drain->read_counts));
	if (!drain->read_keys || !drain->read_counts) {
		sb_drain_free(drain);
		return -ENOMEM;
	}
	err = make_generations(drain, counts_max);
	if (!err)
		err = map_batches(drain);
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
	if (drain->batches)
		munmap(drain->batches, batches_bytes(drain));
	for (i = 0; i < NR_GENERATIONS; i++)
		if (drain->generations[i] >= 0)
			close(drain->generations[i]);
	free(drain->read_keys);
	free(drain->read_counts);
	sb_batch_builder_release(&drain->taken);
	sb_batch_builder_release(&drain->next);
	pthread_mutex_destroy(&drain->lock);
	free(drain);
}

int sb_drain_poll_fd(const struct sb_drain *drain)
{
	return ring_buffer__epoll_fd(drain->ring);
}

static void keep_counts(struct sb_drain *drain, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		drain->next.counts.at[drain->next.counts.nr++] = (struct sb_batch_count){
			.key = drain->read_keys[i],
			.count = drain->read_counts[i],
		};
}

/*
 * Read and empty the map of counts that no program writes any more. What is read is deleted from
 * the map, so there must be room for it before.
 */
static int read_generation(struct sb_drain *drain)
{
	int fd = drain->generations[1 - drain->current], err, ret;
	uint32_t batch, nr;
	void *from = NULL;

	do {
		err = sb_vec_reserve(&drain->next.counts, drain->next.counts.nr + READ_KEYS);
		if (err)
			return err;
		nr = READ_KEYS;
		ret = bpf_map_lookup_and_delete_batch(fd, from, &batch, drain->read_keys,
						      drain->read_counts, &nr, NULL);
		if (ret && ret != -ENOENT)
			return ret;
		keep_counts(drain, nr);
		from = &batch;
	} while (!ret);
	drain->is_unread = false;
	return 0;
}

static int take_batch(struct sb_drain *drain, struct sb_fault_batch *batch)
{
	uint32_t i;
	int err;

	for (i = 0; __atomic_exchange_n(&batch->is_busy, 1, __ATOMIC_ACQ_REL); i++)
		if (i == BATCH_TRIES)
			return 0; /* the next drain has it */
	err = sb_batch_builder_add_faults(&drain->next, batch->event.at, batch->nr);
	if (!err)
		batch->nr = 0;
	__atomic_store_n(&batch->is_busy, 0, __ATOMIC_RELEASE);
	return err;
}

/* Before the ring is read: faults that are shipped meanwhile are in it. */
static int take_batches(struct sb_drain *drain)
{
	uint32_t i;
	int err = 0;

	drain->next_ns = sb_now_ns();
	for (i = 0; i < drain->nr_batches && !err; i++)
		if (__atomic_load_n(&drain->batches[i].nr, __ATOMIC_RELAXED))
			err = take_batch(drain, &drain->batches[i]);
	return err;
}

/* Append all that the BPF side has to drain->next. Called with the lock held. */
static int collect(struct sb_drain *drain)
{
	int err = drain->is_unread ? read_generation(drain) : 0;

	if (err)
		return err;
	/* Returns when no program uses the old generation any more. */
	err = put_generation(drain, 1 - drain->current);
	if (err)
		return err;
	drain->is_unread = true;
	drain->skel->bss->nr_keys = 0;
	err = read_generation(drain);
	if (!err)
		err = take_batches(drain);
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
	if (sb_batch_builder_bytes(&drain->next) < drain->early_bytes_max) {
		err = collect(drain);
		/* After -ENOMEM everything that was not read is still in the maps. */
		if (err && err != -ENOMEM)
			drain->early_err = err;
		drain->stats.nr_early++;
	} else {
		drain->stats.nr_early_full++;
	}
	pthread_mutex_unlock(&drain->lock);
	return err;
}

int sb_drain_run(struct sb_drain *drain)
{
	struct sb_batch_builder last = drain->taken;
	int err;

	sb_batch_builder_clear(&last);
	pthread_mutex_lock(&drain->lock);
	err = drain->early_err ?: collect(drain);
	drain->early_err = 0;
	drain->taken = drain->next;
	drain->taken_ns = drain->next_ns;
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

int sb_drain_resident(struct sb_drain *drain, struct sb_resident *resident)
{
	struct sb_batch_builder *taken = &drain->taken;
	const struct sb_batch_count *counts;
	size_t i, nr;
	int err = sb_resident_add_owners(resident, taken->owners.at, taken->owners.nr);

	if (!err)
		err = sb_resident_add(resident, &taken->pages, drain->taken_ns);
	if (!err)
		err = sb_resident_counts(resident, &counts, &nr);
	for (i = 0; !err && i < nr; i++)
		err = sb_vec_push(&taken->counts, counts[i]);
	return err;
}

int sb_drain_add_count(struct sb_drain *drain, const struct sb_batch_count *count)
{
	return sb_vec_push(&drain->taken.counts, *count);
}

uint64_t sb_drain_weight(const struct sb_drain *drain, uint32_t view)
{
	const struct sb_batch_builder *taken = &drain->taken;
	uint64_t weight = 0;
	size_t i;

	for (i = 0; i < taken->counts.nr; i++)
		if (taken->counts.at[i].key.view == view)
			weight += taken->counts.at[i].count.weight;
	return weight;
}

void sb_drain_keep(struct sb_drain *drain, uint32_t view)
{
	struct sb_batch_builder *taken = &drain->taken;
	size_t i, nr = 0;

	for (i = 0; i < taken->counts.nr; i++)
		if (taken->counts.at[i].key.view == view)
			taken->counts.at[nr++] = taken->counts.at[i];
	taken->counts.nr = nr;
}

void sb_drain_batch(struct sb_drain *drain, struct sb_batch *ret_batch)
{
	sb_batch_builder_batch(&drain->taken, ret_batch);
}
