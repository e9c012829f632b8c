// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/unwinder.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/num.h"
#include "base/time.h"
#include "bpf/abi/sb_abi_unwind.h"
#include "capture/server.h"
#include "capture/sideband_queue.h"
#include "capture/thread.h"
#include "capture/uwpool.h"
#include "capture/uwprocs.h"
#include "capture/uwtables.h"
#include "capture/uwtouch.h"
#include "views/skel.h"
#include "workers/privileges.h"

#define BINS_BYTES (SB_UW_BINS_MAX * sizeof(struct sb_uw_bin))
/* Requests that are taken from the ring at a time, and requests for tables that may wait: more than
 * the ring holds. */
#define NEEDS_MAX  8192u

/* A file that is about to be mapped. */
struct wanted_file {
	int fd; /* -1: the vDSO */
	uint32_t tgid;
};

typedef SB_VEC(struct sb_uw_need_event) need_list;

struct sb_unwinder {
	struct sampler_bpf *skel; /* borrowed */
	struct sb_uwpool *pool;
	int pool_fd;		       /* of the map `uw_pool` */
	struct sb_parser_seat *parser; /* borrowed, or NULL */
	pthread_t grower;
	bool has_grower;
	struct sb_uw_bin *bins;
	struct sb_uwtables *tables;
	struct sb_uwprocs *procs;
	struct sb_uwtouch *touch;
	struct sb_server server;
	struct sb_sideband_queue queue; /* of processes whose lists are published, or about to be */

	/* Used by the thread only. */
	need_list needs, first_needs;		     /* first_tgid's are the latter */
	SB_VEC(struct sb_uw_need_event) bins_needed; /* oldest first */
	SB_VEC(struct rereading {
		uint32_t tgid;
		uint64_t when_ns;
	})
	rereadings;
	uint64_t nr_needs, nr_refused;

	/* Accessed by all threads, atomically. */
	const struct sb_unwinder_interps *interps; /* borrowed; NULL: not yet */
	uint32_t first_tgid;			   /* it goes before others; 0: none */

	pthread_mutex_t lock; /* of everything below */
	sb_vec_u32 expected_tgids;
	SB_VEC(struct wanted_file) expected_files; /* descriptors are owned */
	uint32_t nr_expected;			   /* in the lists, or being served */
	pthread_cond_t is_served;
	struct sb_unwinder_stats stats;
};

static bool is_plain(void *arg, const struct stat *st)
{
	const struct sb_unwinder *unwinder = arg;
	const struct sb_unwinder_interps *interps =
		__atomic_load_n(&unwinder->interps, __ATOMIC_ACQUIRE);

	return interps && interps->is_plain(interps->arg, st);
}

/* Access to the maps of the BPF side. */

/* Return: the descriptor of a new part of the pool, the caller's; a negative errno. */
static int make_part(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY, "uw_part", sizeof(uint32_t),
			      SB_UW_CHUNK_WORDS * sizeof(uint32_t), SB_UW_PART_CHUNKS, &opts);
}

static int add_part(void *arg, uint32_t idx, void *at)
{
	struct sb_unwinder *unwinder = arg;
	sb_cleanup(sb_closep) int fd = make_part();

	if (fd < 0)
		return fd;
	if (mmap(at, SB_UWPOOL_PART_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
	    MAP_FAILED)
		return -errno;
	return bpf_map_update_elem(unwinder->pool_fd, &idx, &fd, BPF_ANY) ? -errno : 0;
}

static int publish(void *arg, uint32_t tgid, const struct sb_uw_proc *proc, bool is_same)
{
	struct sb_unwinder *unwinder = arg;
	int fd = bpf_map__fd(unwinder->skel->maps.uw_procs);
	struct sb_uw_proc shown = *proc, before;

	/* A list that the walk doubted, but that is unchanged, is doubted less often from now
	 * on. */
	if (is_same && !bpf_map_lookup_elem(fd, &tgid, &before))
		shown.nr_confirmed = before.nr_confirmed + 1;
	if (bpf_map_update_elem(fd, &tgid, &shown, BPF_ANY))
		return -errno;
	sb_skel_changed(unwinder->skel, tgid);
	return 0;
}

static void unpublish(void *arg, uint32_t tgid)
{
	struct sb_unwinder *unwinder = arg;

	/* A key that is not in the map is no error. */
	bpf_map_delete_elem(bpf_map__fd(unwinder->skel->maps.uw_procs), &tgid);
	sb_skel_changed(unwinder->skel, tgid);
	sb_sideband_queue_unfollow(&unwinder->queue, tgid);
}

/* Requests. */

static bool goes_first(const struct sb_unwinder *unwinder, uint32_t tgid)
{
	return tgid == __atomic_load_n(&unwinder->first_tgid, __ATOMIC_RELAXED);
}

static int on_need(void *arg, void *data, size_t len)
{
	struct sb_unwinder *unwinder = arg;
	const struct sb_uw_need_event *need = data;
	int err = -EBADMSG;

	if (len >= sizeof(*need) && unwinder->needs.nr + unwinder->first_needs.nr < NEEDS_MAX)
		err = goes_first(unwinder, need->tgid) ? sb_vec_push(&unwinder->first_needs, *need)
						       : sb_vec_push(&unwinder->needs, *need);
	unwinder->nr_refused += err != 0; /* it is asked for again */
	return 0;
}

static void need_bin(struct sb_unwinder *unwinder, const struct sb_uw_need_event *need)
{
	if (unwinder->bins_needed.nr >= NEEDS_MAX || sb_vec_push(&unwinder->bins_needed, *need))
		unwinder->nr_refused++;
}

static void reread_later(struct sb_unwinder *unwinder, uint32_t tgid, uint64_t when_ns)
{
	struct rereading rereading = { .tgid = tgid, .when_ns = when_ns };
	size_t i;

	for (i = 0; i < unwinder->rereadings.nr; i++)
		if (unwinder->rereadings.at[i].tgid == tgid)
			return;
	if (sb_vec_push(&unwinder->rereadings, rereading))
		unwinder->nr_refused++;
}

static void reread(struct sb_unwinder *unwinder, uint32_t tgid)
{
	uint64_t when_ns;

	if (sb_uwprocs_reread(unwinder->procs, tgid, &when_ns) == -EAGAIN)
		reread_later(unwinder, tgid, when_ns);
}

static void serve_proc(struct sb_unwinder *unwinder, const struct sb_uw_need_event *need)
{
	struct sb_uw_need_event bin = *need;
	int err;

	/* Before its mappings are read, so that changes that come during it are not missed. */
	sb_sideband_queue_follow(&unwinder->queue, need->tgid);
	err = sb_uwprocs_need(unwinder->procs, need);
	if (err == -EAGAIN)
		reread(unwinder, need->tgid);
	else if (err)
		sb_debug("no mappings of process %u: %s", need->tgid, strerror(-err));
	if (!sb_uwprocs_has(unwinder->procs, need->tgid))
		sb_sideband_queue_unfollow(&unwinder->queue, need->tgid);
	else if (sb_uwprocs_bin_at(unwinder->procs, need->tgid, need->addr, &bin.bin))
		need_bin(unwinder, &bin);
}

/*
 * Serve a request for the interpreters of a process. From its mappings it is known for most
 * processes that there are none. They are read after the process is followed, so that no change is
 * missed.
 */
static void serve_interps(struct sb_unwinder *unwinder, const struct sb_uw_need_event *need)
{
	const struct sb_unwinder_interps *interps =
		__atomic_load_n(&unwinder->interps, __ATOMIC_ACQUIRE);
	uint64_t since_ns;
	bool is_plain;

	if (!interps)
		return;
	interps->follow(interps->arg, need->tgid);
	since_ns = sb_now_ns();
	serve_proc(unwinder, need);
	is_plain = sb_uwprocs_is_read_since(unwinder->procs, need->tgid, since_ns) &&
		   sb_uwprocs_is_plain(unwinder->procs, need);
	interps->need(interps->arg, need, since_ns, is_plain);
}

static void serve(struct sb_unwinder *unwinder, const struct sb_uw_need_event *need)
{
	unwinder->nr_needs++;
	switch (need->need) {
	case SB_UW_NEED_PROC:
		serve_proc(unwinder, need);
		break;
	case SB_UW_NEED_BIN:
		need_bin(unwinder, need);
		break;
	case SB_UW_NEED_TOUCH:
		if (sb_uwtouch_ask(unwinder->touch, need->tgid, need->addr))
			unwinder->nr_refused++;
		break;
	case SB_UW_NEED_INTERP:
		serve_interps(unwinder, need);
		break;
	}
}

/* Return: how many requests were served: one that asks for interpreters and the next for mappings
 * are served as one. */
static size_t serve_next(struct sb_unwinder *unwinder, const struct sb_uw_need_event *need,
			 size_t nr)
{
	struct sb_uw_need_event both = need[0];

	if (nr < 2 || need[0].need != SB_UW_NEED_INTERP || need[1].need != SB_UW_NEED_PROC ||
	    need[0].tgid != need[1].tgid || need[0].exec_id != need[1].exec_id) {
		serve(unwinder, need);
		return 1;
	}
	both.addr = need[1].addr;
	serve(unwinder, &both);
	return 2;
}

/* The ring is read again after each request, so that one that goes first waits for one other at
 * most. */
static void serve_needs(struct sb_unwinder *unwinder)
{
	size_t next_first = 0, next = 0;

	do {
		ring_buffer__consume(unwinder->server.ring);
		if (next_first < unwinder->first_needs.nr)
			next_first += serve_next(unwinder, &unwinder->first_needs.at[next_first],
						 unwinder->first_needs.nr - next_first);
		else if (next < unwinder->needs.nr)
			next += serve_next(unwinder, &unwinder->needs.at[next],
					   unwinder->needs.nr - next);
		else
			break;
	} while (!sb_server_is_ending(&unwinder->server));
	unwinder->first_needs.nr = unwinder->needs.nr = 0;
}

/* Compiling takes long. Meanwhile the BPF side asks interpwatch.c about interpreters directly. */
static void set_busy(struct sb_unwinder *unwinder, bool is_busy)
{
	__atomic_store_n(&unwinder->skel->bss->uw_is_busy, is_busy, __ATOMIC_SEQ_CST);
}

/* Choose the smallest missing table, so that a large one keeps few requests waiting. */
static size_t choose_bin(struct sb_unwinder *unwinder)
{
	uint64_t best_bytes = UINT64_MAX;
	size_t i, kept = 0, best = 0;

	for (i = 0; i < unwinder->bins_needed.nr; i++) {
		const struct sb_uw_need_event need = unwinder->bins_needed.at[i];
		uint64_t nr_bytes = sb_uwtables_file_bytes(unwinder->tables, need.bin);

		if (!sb_uwtables_is_absent(unwinder->tables, need.bin))
			continue;
		if (goes_first(unwinder, need.tgid))
			nr_bytes = 0;
		if (nr_bytes < best_bytes) {
			best_bytes = nr_bytes;
			best = kept;
		}
		unwinder->bins_needed.at[kept++] = need;
	}
	unwinder->bins_needed.nr = kept;
	return best;
}

/* Build one table only: it may take tens of milliseconds, and requests for processes should not
 * wait so long. Return: whether there are more. */
static bool serve_bin(struct sb_unwinder *unwinder)
{
	size_t i = choose_bin(unwinder);

	if (!unwinder->bins_needed.nr)
		return false;
	set_busy(unwinder, true);
	sb_uwprocs_need_bin(unwinder->procs, &unwinder->bins_needed.at[i]);
	set_busy(unwinder, false);
	memmove(&unwinder->bins_needed.at[i], &unwinder->bins_needed.at[i + 1],
		(--unwinder->bins_needed.nr - i) * sizeof(unwinder->bins_needed.at[0]));
	return unwinder->bins_needed.nr > 0;
}

/* Return: whether the run has ended: it takes no more samples, so nobody will use new tables. */
static bool has_run_ended(const struct sb_unwinder *unwinder)
{
	uint64_t end_ns = __atomic_load_n(&unwinder->skel->bss->end_ns, __ATOMIC_RELAXED);

	return end_ns && sb_now_ns() > end_ns;
}

/* Drop the list of a program that has ended. The BPF side asks for the next one, or for threads
 * that continue. */
static void forget_old(struct sb_unwinder *unwinder, const struct sb_process_event *event)
{
	if (!sb_uwprocs_is_read_since(unwinder->procs, event->tgid, event->time_ns))
		sb_uwprocs_forget(unwinder->procs, event->tgid);
}

static void serve_events(struct sb_unwinder *unwinder)
{
	sb_process_events list = sb_sideband_queue_take(&unwinder->queue, sb_now_ns());
	size_t i;

	for (i = 0; i < list.nr; i++)
		if (list.at[i].kind != SB_SIDEBAND_MMAP)
			forget_old(unwinder, &list.at[i]);
	for (i = 0; i < list.nr && !sb_server_is_ending(&unwinder->server); i++) {
		const struct sb_process_event *event = &list.at[i];

		if (event->kind == SB_SIDEBAND_MMAP &&
		    !sb_uwprocs_is_read_since(unwinder->procs, event->tgid, event->time_ns))
			reread(unwinder, event->tgid);
	}
	sb_vec_release(&list);
}

/* Read the processes again whose pause is over. Return: ms until the next one is due, or -1. */
static int serve_rereadings(struct sb_unwinder *unwinder)
{
	uint64_t now_ns = sb_now_ns(), next_ns = UINT64_MAX, when_ns;
	size_t i, kept = 0;

	for (i = 0; i < unwinder->rereadings.nr; i++) {
		struct rereading rereading = unwinder->rereadings.at[i];

		if (rereading.when_ns <= now_ns) {
			if (sb_uwprocs_reread(unwinder->procs, rereading.tgid, &when_ns) != -EAGAIN)
				continue;
			rereading.when_ns = when_ns;
		}
		if (rereading.when_ns < next_ns)
			next_ns = rereading.when_ns;
		unwinder->rereadings.at[kept++] = rereading;
	}
	unwinder->rereadings.nr = kept;
	if (!kept)
		return -1;
	return next_ns > now_ns ? (int)((next_ns - now_ns) / SB_NS_PER_MS) + 1 : 0;
}

static void note_served(struct sb_unwinder *unwinder)
{
	pthread_mutex_lock(&unwinder->lock);
	unwinder->nr_expected--;
	pthread_cond_signal(&unwinder->is_served);
	pthread_mutex_unlock(&unwinder->lock);
}

static void serve_expected(struct sb_unwinder *unwinder)
{
	__typeof__(unwinder->expected_files) files;
	sb_vec_u32 tgids;
	size_t i;

	pthread_mutex_lock(&unwinder->lock);
	tgids = unwinder->expected_tgids;
	unwinder->expected_tgids = (sb_vec_u32){};
	set_busy(unwinder, tgids.nr || unwinder->expected_files.nr);
	files = unwinder->expected_files;
	memset(&unwinder->expected_files, 0, sizeof(unwinder->expected_files));
	pthread_mutex_unlock(&unwinder->lock);
	for (i = 0; i < tgids.nr && !sb_server_is_ending(&unwinder->server); i++) {
		serve_proc(unwinder, &(struct sb_uw_need_event){ .tgid = tgids.at[i] });
		sb_uwprocs_build_all(unwinder->procs, tgids.at[i]);
		note_served(unwinder);
	}
	for (i = 0; i < files.nr; i++) {
		if (!sb_server_is_ending(&unwinder->server))
			sb_uwtables_build_early(unwinder->tables, files.at[i].fd, files.at[i].tgid);
		sb_closep(&files.at[i].fd);
		note_served(unwinder);
	}
	set_busy(unwinder, false);
	sb_vec_release(&files);
	sb_vec_release(&tgids);
}

static void note_stats(struct sb_unwinder *unwinder)
{
	struct sb_uwtables_stats tables;
	struct sb_uwprocs_stats procs;
	struct sb_uwpool_stats pool;

	sb_uwpool_stats(unwinder->pool, &pool);
	sb_uwtables_stats(unwinder->tables, &tables);
	sb_uwprocs_stats(unwinder->procs, &procs);
	pthread_mutex_lock(&unwinder->lock);
	unwinder->stats = (struct sb_unwinder_stats){
		.nr_pool_bytes = pool.nr_bytes,
		.nr_pool_bytes_peak = pool.nr_bytes_peak,
		.nr_pool_bytes_max = pool.nr_bytes_max,
		.nr_tables = tables.nr_tables,
		.nr_tables_built = tables.nr_built,
		.nr_tables_failed = tables.nr_failed,
		.nr_evictions = tables.nr_evictions,
		.nr_rows = tables.nr_rows,
		.build_ns = tables.build_ns,
		.nr_processes = procs.nr_processes,
		.nr_refused = procs.nr_refused + tables.nr_refused + unwinder->nr_refused +
			      sb_sideband_queue_nr_lost(&unwinder->queue),
		.nr_needs = unwinder->nr_needs,
	};
	pthread_mutex_unlock(&unwinder->lock);
}

/*
 * Adding a part to the map takes longer than all else, 10 ms to a second, because the kernel waits
 * for an RCU grace period (synchronize_rcu() in maybe_wait_bpf_programs()). So the first part is
 * added while the kernel verifies the programs.
 */
static void *grow(void *arg)
{
	struct sb_unwinder *unwinder = arg;

	sb_thread_hurry();
	sb_privileges_thread(SB_ROLE_TABLES);
	sb_uwpool_grow(unwinder->pool);
	return NULL;
}

static void wait_for_grower(struct sb_unwinder *unwinder)
{
	if (unwinder->has_grower)
		pthread_join(unwinder->grower, NULL);
	unwinder->has_grower = false;
}

static void *serve_all(void *arg)
{
	struct sb_unwinder *unwinder = arg;
	int timeout_ms = -1;

	sb_thread_hurry();
	sb_privileges_thread(SB_ROLE_TABLES);
	wait_for_grower(unwinder);
	while (sb_server_wait(&unwinder->server, timeout_ms)) {
		serve_events(unwinder);
		serve_needs(unwinder);
		serve_expected(unwinder);
		timeout_ms = serve_rereadings(unwinder);
		if (!has_run_ended(unwinder) && serve_bin(unwinder))
			timeout_ms = 0;
		note_stats(unwinder);
	}
	return NULL;
}

/* Construction and destruction. */

/* Make the map of maps, as the walker declares it. */
static int make_pool_map(struct sb_unwinder *unwinder, uint32_t nr_parts)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);
	sb_cleanup(sb_closep) int like = make_part();

	if (like < 0)
		return like;
	opts.inner_map_fd = (uint32_t)like;
	unwinder->pool_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "uw_pool", sizeof(uint32_t),
					   sizeof(uint32_t), nr_parts, &opts);
	return unwinder->pool_fd < 0 ? unwinder->pool_fd : 0;
}

static int make_pool(struct sb_unwinder *unwinder, uint64_t bytes_max)
{
	const struct sb_uwpool_opts pool = {
		.bytes_max = bytes_max,
		.add_part = add_part,
		.arg = unwinder,
	};
	int err = make_pool_map(unwinder, sb_uwpool_nr_parts(bytes_max));

	if (!err)
		err = sb_uwpool_new(&pool, &unwinder->pool);
	if (!err)
		err = sb_thread_start("stackbpf-pool", grow, unwinder, &unwinder->grower);
	unwinder->has_grower = !err;
	return err;
}

static int make_tables(struct sb_unwinder *unwinder, struct sb_processes *processes)
{
	struct sb_uwtables_opts tables = {
		.nr_bins_max = SB_UW_BINS_MAX,
		.pool = unwinder->pool,
		.parser = unwinder->parser,
	};
	struct sb_uwprocs_opts procs = {
		.processes = processes,
		.nr_procs_max = SB_UW_PROCS_MAX,
		.pool = unwinder->pool,
		.publish = publish,
		.unpublish = unpublish,
		.is_plain = is_plain,
		.arg = unwinder,
	};
	void *bins;
	int err;

	bins = mmap(NULL, BINS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		    bpf_map__fd(unwinder->skel->maps.uw_bins), 0);
	if (bins == MAP_FAILED)
		return -errno;
	unwinder->bins = tables.bins = bins;
	err = sb_uwtables_new(&tables, &unwinder->tables);
	if (err)
		return err;
	procs.tables = unwinder->tables;
	return sb_uwprocs_new(&procs, &unwinder->procs);
}

int sb_unwinder_new(uint64_t pool_bytes_max, struct sb_parser_seat *parser,
		    struct sb_unwinder **ret_unwinder)
{
	struct sb_unwinder *unwinder = calloc(1, sizeof(*unwinder));
	int err;

	if (!unwinder)
		return -ENOMEM;
	unwinder->pool_fd = -1;
	unwinder->parser = parser;
	pthread_mutex_init(&unwinder->lock, NULL);
	sb_cond_init(&unwinder->is_served);
	err = sb_sideband_queue_init(&unwinder->queue);
	if (!err)
		err = make_pool(unwinder,
				pool_bytes_max ? pool_bytes_max : SB_UNWINDER_POOL_BYTES_DEFAULT);
	if (err) {
		sb_unwinder_free(unwinder);
		return err;
	}
	*ret_unwinder = unwinder;
	return 0;
}

int sb_unwinder_prepare(const struct sb_unwinder *unwinder, struct sampler_bpf *skel)
{
	int err = bpf_program__set_autoload(skel->progs.proc_mapped, true);

	return err ? err : bpf_map__reuse_fd(skel->maps.uw_pool, unwinder->pool_fd);
}

int sb_unwinder_start(struct sb_unwinder *unwinder, struct sampler_bpf *skel,
		      struct sb_processes *processes)
{
	int err;

	unwinder->skel = skel;
	err = make_tables(unwinder, processes);
	if (!err)
		err = sb_server_open(&unwinder->server, bpf_map__fd(skel->maps.uw_needs), on_need,
				     unwinder);
	if (!err)
		err = sb_uwtouch_new(&unwinder->touch);
	if (err)
		return err;
	note_stats(unwinder);
	return sb_server_start(&unwinder->server, "stackbpf-unwind", serve_all, unwinder);
}

void sb_unwinder_free(struct sb_unwinder *unwinder)
{
	size_t i;

	if (!unwinder)
		return;
	sb_server_stop(&unwinder->server);
	wait_for_grower(unwinder);
	sb_server_release(&unwinder->server);
	sb_uwtouch_free(unwinder->touch);
	sb_uwprocs_free(unwinder->procs);
	sb_uwtables_free(unwinder->tables);
	sb_uwpool_free(unwinder->pool);
	sb_closep(&unwinder->pool_fd);
	if (unwinder->bins)
		munmap(unwinder->bins, BINS_BYTES);
	sb_vec_release(&unwinder->needs);
	sb_vec_release(&unwinder->first_needs);
	sb_vec_release(&unwinder->bins_needed);
	sb_vec_release(&unwinder->rereadings);
	sb_sideband_queue_release(&unwinder->queue);
	sb_vec_release(&unwinder->expected_tgids);
	for (i = 0; i < unwinder->expected_files.nr; i++)
		sb_closep(&unwinder->expected_files.at[i].fd);
	sb_vec_release(&unwinder->expected_files);
	pthread_cond_destroy(&unwinder->is_served);
	pthread_mutex_destroy(&unwinder->lock);
	free(unwinder);
}

void sb_unwinder_serve_interps(struct sb_unwinder *unwinder,
			       const struct sb_unwinder_interps *interps)
{
	__atomic_store_n(&unwinder->interps, interps, __ATOMIC_RELEASE);
}

void sb_unwinder_expect(struct sb_unwinder *unwinder, uint32_t tgid)
{
	pthread_mutex_lock(&unwinder->lock);
	/* If there is no memory, it is served when the BPF side asks. */
	if (!sb_vec_push(&unwinder->expected_tgids, tgid))
		unwinder->nr_expected++;
	pthread_mutex_unlock(&unwinder->lock);
	sb_server_wake(&unwinder->server);
}

void sb_unwinder_first(struct sb_unwinder *unwinder, uint32_t tgid)
{
	__atomic_store_n(&unwinder->first_tgid, tgid, __ATOMIC_RELAXED);
}

void sb_unwinder_expect_file(struct sb_unwinder *unwinder, int fd, uint32_t tgid)
{
	const struct wanted_file file = { .fd = fd, .tgid = tgid };
	bool is_kept;

	pthread_mutex_lock(&unwinder->lock);
	is_kept = !sb_vec_push(&unwinder->expected_files, file);
	unwinder->nr_expected += is_kept;
	pthread_mutex_unlock(&unwinder->lock);
	if (!is_kept)
		sb_closep(&fd);
	sb_server_wake(&unwinder->server);
}

void sb_unwinder_settle(struct sb_unwinder *unwinder, const struct timespec *until)
{
	pthread_mutex_lock(&unwinder->lock);
	while (unwinder->nr_expected)
		if (pthread_cond_timedwait(&unwinder->is_served, &unwinder->lock, until))
			break;
	pthread_mutex_unlock(&unwinder->lock);
}

void sb_unwinder_tell(struct sb_unwinder *unwinder, const struct sb_sideband *event)
{
	if (event)
		sb_sideband_queue_put(
			&unwinder->queue,
			&(struct sb_process_event){ event->tgid, event->kind, event->time_ns },
			event->kind == SB_SIDEBAND_MMAP && goes_first(unwinder, event->tgid));
	else if (sb_sideband_queue_is_due(&unwinder->queue, sb_now_ns()))
		sb_server_wake(&unwinder->server);
}

struct sb_ration *sb_unwinder_ration(struct sb_unwinder *unwinder)
{
	return sb_uwprocs_ration(unwinder->procs);
}

void sb_unwinder_stats(struct sb_unwinder *unwinder, struct sb_unwinder_stats *ret_stats)
{
	pthread_mutex_lock(&unwinder->lock);
	*ret_stats = unwinder->stats;
	pthread_mutex_unlock(&unwinder->lock);
	ret_stats->nr_touched = sb_uwtouch_nr_touched(unwinder->touch);
}
