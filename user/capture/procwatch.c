// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/procwatch.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/index.h"
#include "base/num.h"
#include "base/search.h"
#include "base/time.h"
#include "base/utf8.h"
#include "capture/churn.h"
#include "capture/perf_event.h"
#include "capture/sideband.h"
#include "capture/thread.h"
#include "process/process.h"
#include "symbolizer/process/procfs.h"
#include "workers/privileges.h"

/* TASK_COMM_LEN and a newline; some kernel threads have longer names. */
/* All rings together. Each CPU gets an equal share, rounded to a power of two within these bounds.
 * A record of a mapping is about 150 bytes, an exec about seven records. */
#define RINGS_BYTES_MAX (64u << 20)
#define RING_BYTES_MAX	(512u << 10)
#define RING_BYTES_MIN	(64u << 10)
/* Records that may wait for the next drain: about 100 MB. Others are lost, and counted. */
#define QUEUE_MAX	500000u
/* How many of these may have an open file. Others are opened by path later, if that still leads to
 * the file. */
#define OPEN_MAX	16384u
/* Files that are remembered as opened. Others are opened again for each process. */
#define FILES_MAX	65536u
/* How often the reader looks without being woken: few records are then waiting, but a file of
 * theirs must be opened while its process lives. Where one program begins others do, so it looks
 * more often until nothing has come for LIVELY_NS. A look costs 10 us on an idle machine, and 70 on
 * a busy one, where it is most of what the reader costs. */
#define LOOK_MS		100
#define LOOK_LIVELY_MS	20
#define LIVELY_NS	SB_NS_PER_SEC
/* If only the records of some processes are wanted, those of all others must not wake the reader.
 * The kernel cannot tell them apart, so it wakes the reader when a ring is filled to this part. */
#define RING_WAKE_PART	4
/* A pause after each wake-up, because records come in bursts. A program that begins wakes the
 * reader by its first mappings; those that follow are read after the pause, and their files must be
 * opened while the process lives. When a round had more than BURST_RECORDS, the ring may fill up
 * soon. */
#define REST_MS		20
#define REST_BURST_MS	5
#define BURST_RECORDS	32

/* Processes whose end was seen last. An end that is not remembered costs an access. */
#define ENDED_MAX	256u

/* The identity of a file: its build ID, or device and inode. */
struct file_key {
	uint8_t build_id[SB_BUILD_ID_MAX];
	uint32_t maj, min;
	uint32_t reserved; /* they are compared as bytes */
	uint64_t ino, ino_generation;
};
_Static_assert(sizeof(struct file_key) == SB_BUILD_ID_MAX + 28, "no padding");

typedef SB_VEC(struct sb_churn_skip) skip_list;

struct sb_procwatch {
	pthread_t thread;
	bool has_thread;
	int epoll_fd, quit_fd;

	pthread_mutex_t lock; /* of everything below */
	SB_VEC(struct sb_perf_ring) rings;
	sb_vec_u32 cpus; /* of each of `rings` */
	size_t ring_bytes;
	sb_vec_u32 tgids;   /* sorted; only their records are wanted; empty: those of all */
	uint64_t newest_ns; /* of the newest record that says something about a process */
	bool tells_lost;    /* the rings do, and not only by their next record */
	SB_VEC(struct sb_sideband) queue; /* map.path and map.fd are owned */
	struct ended {
		uint64_t time_ns;
		uint32_t tgid;
	} ended[ENDED_MAX]; /* by tgid % ENDED_MAX */
	uint64_t lost_ns;   /* when there was no room in it; 0: there was */
	SB_VEC(struct file_key) files;
	struct sb_index files_index;
	uint64_t nr_open, open_max; /* descriptors in the queue */
	struct sb_churn churn;
	uint32_t named_tgid; /* whose name is in stats.skipping; 0: none */
	struct sb_procwatch_stats stats;
	void (*tell)(void *arg, const struct sb_sideband *event);
	void *tell_arg;
};

static struct file_key file_key_of(const struct sb_sym_mmap *map)
{
	struct file_key key;

	memset(&key, 0, sizeof(key));
	memcpy(key.build_id, map->build_id, map->build_id_bytes);
	if (!map->build_id_bytes) {
		key.maj = map->maj;
		key.min = map->min;
		key.ino = map->ino;
		key.ino_generation = map->ino_generation;
	}
	return key;
}

static bool is_known_file(const struct sb_procwatch *watch, const struct file_key *key,
			  uint64_t hash)
{
	sb_index_each(it, &watch->files_index, hash)
		if (!memcmp(&watch->files.at[it.id], key, sizeof(*key)))
			return true;
	return false;
}

/*
 * Return: whether the process has ended since: so have most that run for a few milliseconds, when
 * the records of their mappings are read. A file cannot be opened by way of such a process.
 */
static bool has_ended(const struct sb_procwatch *watch, const struct sb_sym_mmap *map)
{
	const struct ended *ended = &watch->ended[map->tgid % ENDED_MAX];

	return ended->tgid == map->tgid && ended->time_ns >= map->time_ns;
}

/* Open a file that is seen for the first time, before its process may end. */
static void pin_file(struct sb_procwatch *watch, struct sb_sym_mmap *map)
{
	struct file_key key = file_key_of(map);
	uint64_t hash = sb_hash(&key, sizeof(key), 0);
	int fd;

	if (map->path[0] != '/' || !strncmp(map->path, "//", 2))
		return; /* [vdso], //anon */
	if (is_known_file(watch, &key, hash))
		return;
	if (watch->nr_open >= watch->open_max) {
		watch->stats.nr_no_fd++;
		return;
	}
	fd = has_ended(watch, map)
		     ? -ESRCH
		     : sb_procfs_open_mapped(map->tgid, map->addr, map->addr + map->len);
	map->fd = fd < 0 ? -1 : fd;
	if (fd == -EMFILE || fd == -ENFILE)
		watch->stats.nr_no_fd++;
	else if (map->fd < 0)
		watch->stats.nr_unopened++;
	if (map->fd < 0)
		return;
	watch->nr_open++;
	watch->stats.nr_files++;
	if (watch->files.nr >= FILES_MAX || sb_vec_push(&watch->files, key))
		return; /* it will be opened again, which is only slower */
	if (sb_index_add(&watch->files_index, hash, (uint32_t)watch->files.nr - 1))
		watch->files.nr--;
}

/* Tell that records of any process may be missing. */
static void tell_lost(struct sb_procwatch *watch, uint64_t time_ns)
{
	const struct sb_sideband lost = {
		.kind = SB_SIDEBAND_LOST,
		.time_ns = time_ns,
		.map.fd = -1,
	};

	if (watch->tell)
		watch->tell(watch->tell_arg, &lost);
}

/* Treat them like records that the kernel lost: living processes are read again. */
static void lose(struct sb_procwatch *watch, const struct sb_sideband *event)
{
	watch->stats.nr_lost++;
	if (event->time_ns > watch->lost_ns)
		watch->lost_ns = event->time_ns;
}

/* Read the name of a process while it lives. */
static void name_skipping(struct sb_procwatch *watch, uint32_t tgid)
{
	sb_cleanup(sb_freep) char *comm = NULL;
	char *name = watch->stats.skipping;

	(void)sb_procfs_comm(tgid, &comm);
	snprintf(name, SB_SKIPPING_BYTES, "process %u ('%s')", tgid, comm ? comm : "");
	sb_replace_controls(name, strlen(name));
	watch->named_tgid = tgid;
}

/*
 * Apply the rate limit of a process. If a record is skipped, the process is noted, and told once in
 * each round. Return: whether the record was skipped.
 */
static bool skip(struct sb_procwatch *watch, const struct perf_event_header *record)
{
	struct sb_sideband event = { .kind = SB_SIDEBAND_MMAP, .map = { .fd = -1, .path = "" } };

	if (!sb_sideband_is_mmap(record, &event.tgid, &event.time_ns))
		return false;
	switch (sb_churn_judge(&watch->churn, event.tgid, event.time_ns)) {
	case SB_CHURN_TAKE:
		return false;
	case SB_CHURN_SKIP:
		break;
	case SB_CHURN_SKIP_FIRST:
		/* It may have ended when it is known whether it has samples. */
		if (!watch->named_tgid)
			name_skipping(watch, event.tgid);
		if (watch->tell)
			watch->tell(watch->tell_arg, &event);
		break;
	case SB_CHURN_LOST:
		lose(watch, &event);
		tell_lost(watch, event.time_ns);
		break;
	}
	return true;
}

static bool is_wanted(const struct sb_procwatch *watch, const struct perf_event_header *record)
{
	const sb_vec_u32 *tgids = &watch->tgids;
	uint32_t tgid;
	size_t i;

	if (!tgids->nr || !sb_sideband_tgid(record, &tgid))
		return true;
	i = sb_bisect(tgids->nr, at, tgids->at[at] < tgid);
	return i < tgids->nr && tgids->at[i] == tgid;
}

static int on_record(void *arg, const struct perf_event_header *record)
{
	struct sb_procwatch *watch = arg;
	struct sb_sideband event;
	int ret;

	watch->stats.nr_records++;
	if (!is_wanted(watch, record) || skip(watch, record))
		return 0;
	ret = sb_sideband_decode(record, &event);
	if (ret <= 0) {
		if (ret)
			watch->stats.nr_lost++;
		return 0;
	}
	if (event.time_ns > watch->newest_ns)
		watch->newest_ns = event.time_ns;
	if (event.kind == SB_SIDEBAND_LOST)
		watch->stats.nr_lost += watch->tells_lost ? 0 : event.nr_lost;
	else if (event.kind != SB_SIDEBAND_FORK && watch->tell)
		watch->tell(watch->tell_arg, &event);
	if (watch->queue.nr >= QUEUE_MAX) {
		lose(watch, &event);
		return 0;
	}
	if (event.kind == SB_SIDEBAND_EXIT)
		watch->ended[event.tgid % ENDED_MAX] = (struct ended){ event.time_ns, event.tgid };
	if (event.kind == SB_SIDEBAND_MMAP)
		event.map.path = strdup(event.map.path);
	if ((event.kind == SB_SIDEBAND_MMAP && !event.map.path) ||
	    sb_vec_push(&watch->queue, event)) {
		free((char *)event.map.path);
		lose(watch, &event);
	}
	return 0;
}

static void count_lost(struct sb_procwatch *watch, struct sb_perf_ring *ring)
{
	uint64_t nr;

	if (sb_perf_ring_lost(ring, &nr))
		nr = 1; /* it is a guess, but not nothing */
	watch->stats.nr_lost += nr;
	if (!nr)
		return;
	watch->lost_ns = sb_now_ns();
	tell_lost(watch, watch->lost_ns);
}

static void collect(struct sb_procwatch *watch)
{
	size_t i, first = watch->queue.nr;

	for (i = 0; i < watch->rings.nr; i++) {
		struct sb_perf_ring *ring = &watch->rings.at[i];

		/* It fails only if the ring is corrupt, and then its records are lost. */
		if (sb_perf_ring_read(ring, on_record, watch))
			watch->stats.nr_lost++;
		if (ring->was_full && watch->tells_lost)
			count_lost(watch, ring);
	}
	for (i = first; i < watch->queue.nr; i++)
		if (watch->queue.at[i].kind == SB_SIDEBAND_MMAP)
			pin_file(watch, &watch->queue.at[i].map);
	if (watch->tell)
		watch->tell(watch->tell_arg, NULL);
	sb_churn_round(&watch->churn);
}

/* @nr_before: how many records there were at the last look; it is brought up to date. *ret_nr_came:
 * how many came since, also those that a drain took. Return: how long to wait for the next look. */
static int look(struct sb_procwatch *watch, uint64_t *nr_before, uint64_t *ret_nr_came)
{
	uint64_t newest_ns;

	pthread_mutex_lock(&watch->lock);
	collect(watch);
	*ret_nr_came = watch->stats.nr_records - *nr_before;
	*nr_before = watch->stats.nr_records;
	newest_ns = watch->newest_ns;
	pthread_mutex_unlock(&watch->lock);
	return sb_now_ns() < newest_ns + LIVELY_NS ? LOOK_LIVELY_MS : LOOK_MS;
}

static void *reader(void *arg)
{
	struct sb_procwatch *watch = arg;
	struct pollfd quit = { .fd = watch->quit_fd, .events = POLLIN };
	struct epoll_event event;
	uint64_t nr_records = 0, nr_came;
	int wait_ms = LOOK_MS;

	sb_thread_hurry();
	sb_privileges_thread(SB_ROLE_READER);
	for (;;) {
		int nr = epoll_wait(watch->epoll_fd, &event, 1, wait_ms);

		if (nr < 0 && errno != EINTR)
			return NULL;
		if (nr > 0 && event.data.fd == watch->quit_fd)
			return NULL;
		wait_ms = look(watch, &nr_records, &nr_came);
		if (nr <= 0)
			continue;
		if (poll(&quit, 1, nr_came > BURST_RECORDS ? REST_BURST_MS : REST_MS) > 0)
			return NULL;
		wait_ms = 0; /* what came in the pause need not have waked it */
	}
}

static size_t ring_bytes_for(size_t nr_cpus)
{
	size_t nr_bytes = RING_BYTES_MAX;

	while (nr_bytes > RING_BYTES_MIN && nr_bytes * nr_cpus > RINGS_BYTES_MAX)
		nr_bytes /= 2;
	return nr_bytes;
}

static int add_cpu(struct sb_procwatch *watch, uint32_t cpu)
{
	struct perf_event_attr attr;
	struct sb_perf_ring ring;
	struct epoll_event event = { .events = EPOLLIN };
	int fd, err;

	sb_sideband_attr(&attr);
	if (watch->tgids.nr)
		attr.wakeup_watermark = (uint32_t)(watch->ring_bytes / RING_WAKE_PART);
	fd = sb_perf_open_telling_lost(&attr, (int)cpu, &watch->tells_lost);
	if (fd < 0)
		return fd;
	err = sb_perf_ring_init(&ring, fd, watch->ring_bytes);
	if (err)
		return err;
	event.data.fd = fd;
	if (epoll_ctl(watch->epoll_fd, EPOLL_CTL_ADD, fd, &event))
		err = -errno;
	if (!err)
		err = sb_vec_reserve(&watch->cpus, watch->rings.nr + 1);
	if (!err)
		err = sb_vec_push(&watch->rings, ring);
	if (err)
		sb_perf_ring_release(&ring);
	else
		watch->cpus.at[watch->cpus.nr++] = cpu;
	return err;
}

int sb_procwatch_add_cpu(struct sb_procwatch *watch, uint32_t cpu)
{
	int err;

	pthread_mutex_lock(&watch->lock);
	err = add_cpu(watch, cpu);
	if (!err) {
		const struct sb_sideband missed = {
			.kind = SB_SIDEBAND_LOST,
			.time_ns = sb_now_ns(),
			.map.fd = -1,
		};

		if (sb_vec_push(&watch->queue, missed))
			watch->stats.nr_lost++;
		tell_lost(watch, missed.time_ns);
	}
	pthread_mutex_unlock(&watch->lock);
	return err;
}

void sb_procwatch_drop_cpu(struct sb_procwatch *watch, uint32_t cpu)
{
	size_t i;

	pthread_mutex_lock(&watch->lock);
	collect(watch);
	for (i = 0; i < watch->cpus.nr; i++) {
		if (watch->cpus.at[i] != cpu)
			continue;
		sb_perf_ring_release(&watch->rings.at[i]);
		watch->rings.at[i] = watch->rings.at[--watch->rings.nr];
		watch->cpus.at[i] = watch->cpus.at[--watch->cpus.nr];
		break;
	}
	pthread_mutex_unlock(&watch->lock);
}

void sb_procwatch_notify(struct sb_procwatch *watch,
			 void (*tell)(void *arg, const struct sb_sideband *event), void *arg)
{
	pthread_mutex_lock(&watch->lock);
	watch->tell = tell;
	watch->tell_arg = arg;
	pthread_mutex_unlock(&watch->lock);
}

static int start_thread(struct sb_procwatch *watch)
{
	struct epoll_event event = { .events = EPOLLIN };
	int err;

	event.data.fd = watch->quit_fd;
	if (epoll_ctl(watch->epoll_fd, EPOLL_CTL_ADD, watch->quit_fd, &event))
		return -errno;
	err = sb_thread_start("stackbpf-watch", reader, watch, &watch->thread);
	if (err)
		return err;
	watch->has_thread = true;
	return 0;
}

/* How many files may be open here, a quarter of all descriptors. The symbolizer, to which they go,
 * takes half. */
static uint64_t open_max(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return OPEN_MAX;
	return limit.rlim_cur / 4 < OPEN_MAX ? limit.rlim_cur / 4 : OPEN_MAX;
}

static uint32_t uid_of(uint32_t tgid)
{
	struct sb_procfs_ids ids;

	return sb_procfs_ids(tgid, &ids) ? SB_CHURN_NOBODY : ids.euid;
}

static int by_number(const void *a, const void *b)
{
	return sb_compare(*(const uint32_t *)a, *(const uint32_t *)b);
}

static int want(struct sb_procwatch *watch, const sb_vec_u32 *tgids)
{
	size_t i;
	int err = 0;

	for (i = 0; i < tgids->nr && !err; i++)
		err = sb_vec_push(&watch->tgids, tgids->at[i]);
	sb_vec_sort(&watch->tgids, by_number);
	return err;
}

int sb_procwatch_new(const sb_vec_u32 *cpus, const sb_vec_u32 *tgids,
		     struct sb_procwatch **ret_watch)
{
	struct sb_procwatch *watch = calloc(1, sizeof(*watch));
	size_t i;
	int err;

	if (!watch)
		return -ENOMEM;
	pthread_mutex_init(&watch->lock, NULL);
	watch->churn.uid_of = uid_of;
	watch->open_max = open_max();
	watch->ring_bytes = ring_bytes_for(cpus->nr);
	watch->quit_fd = eventfd(0, EFD_CLOEXEC);
	watch->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	err = watch->quit_fd < 0 || watch->epoll_fd < 0 ? -errno : want(watch, tgids);
	for (i = 0; i < cpus->nr && !err; i++) {
		err = add_cpu(watch, cpus->at[i]);
		if (err == -ENODEV)
			err = 0; /* went offline meanwhile */
	}
	if (!err)
		err = start_thread(watch);
	if (err) {
		sb_procwatch_free(watch);
		return err;
	}
	*ret_watch = watch;
	return 0;
}

static void clear_queue(struct sb_procwatch *watch)
{
	size_t i;

	for (i = 0; i < watch->queue.nr; i++) {
		struct sb_sideband *event = &watch->queue.at[i];

		if (event->kind != SB_SIDEBAND_MMAP)
			continue;
		free((char *)event->map.path);
		if (event->map.fd >= 0)
			close(event->map.fd);
	}
	sb_vec_release(&watch->queue);
}

void sb_procwatch_free(struct sb_procwatch *watch)
{
	const uint64_t one = 1;
	size_t i;

	if (!watch)
		return;
	if (watch->has_thread && write(watch->quit_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(watch->thread, NULL);
	for (i = 0; i < watch->rings.nr; i++)
		sb_perf_ring_release(&watch->rings.at[i]);
	sb_vec_release(&watch->rings);
	sb_vec_release(&watch->cpus);
	sb_vec_release(&watch->tgids);
	clear_queue(watch);
	sb_vec_release(&watch->files);
	sb_index_release(&watch->files_index);
	sb_churn_release(&watch->churn);
	if (watch->epoll_fd >= 0)
		close(watch->epoll_fd);
	if (watch->quit_fd >= 0)
		close(watch->quit_fd);
	pthread_mutex_destroy(&watch->lock);
	free(watch);
}

static int by_time(const void *a, const void *b)
{
	const struct sb_sideband *left = a, *right = b;

	return sb_compare(left->time_ns, right->time_ns);
}

static int apply(struct sb_sideband *event, struct sb_symbolizer *sym,
		 struct sb_processes *processes)
{
	int err;

	switch (event->kind) {
	case SB_SIDEBAND_MMAP:
		err = sb_symbolizer_mmap(sym, &event->map);
		event->map.fd = -1; /* taken over, whatever came of it */
		return err;
	case SB_SIDEBAND_FORK:
		return sb_symbolizer_fork(sym, event->time_ns, event->tgid, event->parent_tgid);
	case SB_SIDEBAND_EXEC:
		sb_processes_exec(processes, event->tgid, event->time_ns);
		return sb_symbolizer_exec(sym, event->time_ns, event->tgid);
	case SB_SIDEBAND_EXIT:
		sb_processes_exit(processes, event->tgid, event->time_ns);
		return sb_symbolizer_exit(sym, event->time_ns, event->tgid);
	case SB_SIDEBAND_LOST:
		return sb_symbolizer_lost(sym, event->time_ns);
	}
	return 0;
}

struct taking {
	struct sb_procwatch *watch;
	struct sb_processes *processes;
	skip_list skips;
};

static int keep_skip(void *arg, struct sb_churn_skip *skip)
{
	struct taking *taking = arg;
	struct sb_procwatch *watch = taking->watch;

	/* What others map is nothing to a run that has no samples of them. */
	if (sb_processes_knows(taking->processes, skip->tgid)) {
		if (!watch->stats.nr_skipping_seen && watch->named_tgid != skip->tgid)
			name_skipping(watch, skip->tgid);
		watch->stats.nr_skipping_seen += !skip->is_seen;
		watch->stats.nr_skipped_seen += skip->nr;
		skip->is_seen = true;
	}
	return sb_vec_push(&taking->skips, *skip);
}

int sb_procwatch_drain(struct sb_procwatch *watch, struct sb_symbolizer *sym,
		       struct sb_processes *processes)
{
	struct taking taking = { .watch = watch, .processes = processes };
	__typeof__(watch->queue) queue;
	uint64_t lost_ns;
	size_t i;
	int err, ret;

	pthread_mutex_lock(&watch->lock);
	collect(watch);
	ret = sb_churn_take(&watch->churn, keep_skip, &taking);
	queue = watch->queue;
	memset(&watch->queue, 0, sizeof(watch->queue));
	watch->nr_open = 0;
	lost_ns = watch->lost_ns;
	watch->lost_ns = 0;
	pthread_mutex_unlock(&watch->lock);

	/* The records of one ring are in order, but those of different rings are not. */
	if (queue.nr)
		qsort(queue.at, queue.nr, sizeof(queue.at[0]), by_time);
	for (i = 0; i < queue.nr; i++) {
		err = apply(&queue.at[i], sym, processes);
		if (err && !ret)
			ret = err;
		if (queue.at[i].kind == SB_SIDEBAND_MMAP)
			free((char *)queue.at[i].map.path);
	}
	sb_vec_release(&queue);
	for (i = 0; i < taking.skips.nr; i++) {
		const struct sb_churn_skip *skip = &taking.skips.at[i];

		err = sb_symbolizer_skipped(sym, &(struct sb_sym_skip){
							 .tgid = skip->tgid,
							 .first_ns = skip->first_ns,
							 .last_ns = skip->last_ns,
						 });
		if (err && !ret)
			ret = err;
	}
	sb_vec_release(&taking.skips);
	err = lost_ns ? sb_symbolizer_lost(sym, lost_ns) : 0;
	return ret ? ret : err;
}

void sb_procwatch_stats(struct sb_procwatch *watch, struct sb_procwatch_stats *ret_stats)
{
	pthread_mutex_lock(&watch->lock);
	*ret_stats = watch->stats;
	ret_stats->nr_skipped = watch->churn.nr_skipped;
	ret_stats->nr_skipping = watch->churn.nr_procs;
	pthread_mutex_unlock(&watch->lock);
}
