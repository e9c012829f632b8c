// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What other threads ask of the watch, and its beginning and end. */
#include "capture/interpwatch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/time.h"
#include "capture/interpwatch_priv.h"
#include "capture/thread.h"
#include "views/skel.h"

#define PROCS_MAX	16384u
#define EVENTS_BYTES	(1u << 20)
/* Label sets that the BPF side remembers as shipped: 2 MB. */
#define LABELS_SEEN_MAX 32768u

static void queue_event(struct sb_interpwatch *watch, const struct sb_sideband *event)
{
	const struct sb_process_event queued = { event->tgid, event->kind, event->time_ns };

	if (sb_sideband_queue_follows(&watch->queue, queued.tgid))
		sb_sideband_queue_put(
			&watch->queue, &queued,
			queued.kind == SB_SIDEBAND_MMAP &&
				!sb_interp_seems_plain(watch->interp, event->map.path));
}

void sb_interpwatch_tell(struct sb_interpwatch *watch, const struct sb_sideband *event)
{
	if (event && event->kind == SB_SIDEBAND_LOST) {
		if (event->time_ns > watch->lost_ns)
			__atomic_store_n(&watch->lost_ns, event->time_ns, __ATOMIC_RELAXED);
		sb_server_wake(&watch->server);
	} else if (event)
		queue_event(watch, event);
	else if (sb_sideband_queue_is_due(&watch->queue, sb_now_ns()))
		sb_server_wake(&watch->server);
}

int sb_interpwatch_request_locked(struct sb_interpwatch *watch, const struct sb_space_key *space,
				  uint64_t since_ns)
{
	const struct walkers_need need = { .space = *space, .since_ns = since_ns };

	return sb_vec_push(&watch->needs, need);
}

int sb_interpwatch_request(struct sb_interpwatch *watch, const struct sb_space_key *space,
			   uint64_t since_ns)
{
	int err;

	pthread_mutex_lock(&watch->ring_lock);
	err = sb_interpwatch_request_locked(watch, space, since_ns);
	if (!err && !space->start_ns)
		watch->nr_expected++;
	pthread_mutex_unlock(&watch->ring_lock);
	sb_server_wake(&watch->server);
	return err;
}

void sb_interpwatch_follow(struct sb_interpwatch *watch, uint32_t tgid)
{
	sb_sideband_queue_follow(&watch->queue, tgid);
}

void sb_interpwatch_need(struct sb_interpwatch *watch, const struct sb_space_key *space,
			 uint64_t since_ns, bool is_plain)
{
	const struct walkers_need native = { .space = *space, .since_ns = since_ns };
	bool is_kept = false;

	if (is_plain) {
		pthread_mutex_lock(&watch->ring_lock);
		is_kept = !sb_vec_push(&watch->native, native);
		pthread_mutex_unlock(&watch->ring_lock);
	}
	if (is_kept)
		sb_interpwatch_publish(watch, space, &(struct proc_walkers){});
	else
		sb_interpwatch_request(watch, space, since_ns);
}

void sb_interpwatch_expect(struct sb_interpwatch *watch, uint32_t tgid)
{
	sb_interpwatch_request(watch, &(struct sb_space_key){ .tgid = tgid }, UINT64_MAX);
}

void sb_interpwatch_settle(struct sb_interpwatch *watch, const struct timespec *until)
{
	pthread_mutex_lock(&watch->ring_lock);
	while (watch->nr_expected)
		if (pthread_cond_timedwait(&watch->is_looked_at, &watch->ring_lock, until))
			break;
	pthread_mutex_unlock(&watch->ring_lock);
}

struct sb_ration *sb_interpwatch_ration(struct sb_interpwatch *watch)
{
	return &watch->ration;
}

void sb_interpwatch_stats(struct sb_interpwatch *watch, struct sb_interpwatch_stats *ret_stats)
{
	ret_stats->nr_refused = __atomic_load_n(&watch->stats.nr_refused, __ATOMIC_RELAXED) +
				sb_sideband_queue_nr_lost(&watch->queue);
	ret_stats->nr_lost = __atomic_load_n(&watch->stats.nr_lost, __ATOMIC_RELAXED);
	ret_stats->nr_labels_lost = __atomic_load_n(&watch->stats.nr_labels_lost, __ATOMIC_RELAXED);
}

int sb_interpwatch_prepare(struct sampler_bpf *skel, bool lines, bool labels)
{
	int err = 0;

	skel->rodata->cfg_interp = true;
	skel->rodata->cfg_interp_lines = lines;
	skel->rodata->cfg_labels = labels;
	if (labels)
		err = bpf_map__set_max_entries(skel->maps.labels_seen, LABELS_SEEN_MAX);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.interp_procs, PROCS_MAX);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.interp_confs, SB_INTERP_CONFS_MAX);
	return err ? err : bpf_map__set_max_entries(skel->maps.interp_events, EVENTS_BYTES);
}

int sb_interpwatch_new(struct sampler_bpf *skel, struct sb_processes *processes,
		       struct sb_interp *interp, struct sb_walkers *walkers,
		       struct sb_interpwatch **ret_watch)
{
	struct sb_interpwatch *watch = calloc(1, sizeof(*watch));
	uint32_t i;
	int err;

	if (!watch)
		return -ENOMEM;
	err = sb_sideband_queue_init(&watch->queue);
	watch->skel = skel;
	watch->processes = processes;
	watch->interp = interp;
	watch->walkers = walkers;
	pthread_mutex_init(&watch->ring_lock, NULL);
	sb_cond_init(&watch->is_looked_at);
	for (i = 0; i < SB_INTERP_CONFS_MAX && !err; i++)
		err = sb_vec_push(&watch->free_confs, i);
	/* So that pushing to it later cannot fail. */
	if (!err)
		err = sb_vec_reserve(&watch->free_confs, 3 * SB_INTERP_CONFS_MAX);
	if (!err)
		err = sb_server_open(&watch->server, bpf_map__fd(skel->maps.interp_events),
				     sb_interpwatch_on_event, watch);
	if (!err)
		err = sb_server_start(&watch->server, "stackbpf-interp", sb_interpwatch_serve,
				      watch);
	if (err) {
		sb_interpwatch_free(watch);
		return err;
	}
	*ret_watch = watch;
	return 0;
}

static void release_labels(struct labels *labels)
{
	sb_vec_release(&labels->at);
	sb_str_release(&labels->texts);
}

void sb_interpwatch_free(struct sb_interpwatch *watch)
{
	size_t i;

	if (!watch)
		return;
	sb_server_stop(&watch->server);
	sb_server_release(&watch->server);
	for (i = 0; i < watch->procs.nr; i++) {
		sb_interpwatch_leave_slot(watch, watch->procs.at[i]);
		free(watch->procs.at[i]);
	}
	sb_vec_release(&watch->procs);
	sb_vec_release(&watch->free_confs);
	sb_vec_release(&watch->needs);
	sb_vec_release(&watch->native);
	sb_vec_release(&watch->waiting);
	sb_vec_release(&watch->words);
	release_labels(&watch->labels);
	release_labels(&watch->taken_labels);
	sb_sideband_queue_release(&watch->queue);
	pthread_mutex_destroy(&watch->ring_lock);
	pthread_cond_destroy(&watch->is_looked_at);
	free(watch);
}
