// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/sideband_queue.h"

#include <errno.h>
#include <stdlib.h>

/* The kernel's PID_MAX_LIMIT. */
#define TGIDS_MAX (4u << 20)

/* One bit for each process. */
struct sb_tgid_set {
	uint64_t bits[TGIDS_MAX / 64];
};

int sb_sideband_queue_init(struct sb_sideband_queue *queue)
{
	*queue = (struct sb_sideband_queue){};
	pthread_mutex_init(&queue->lock, NULL);
	queue->followed = calloc(1, sizeof(*queue->followed));
	return queue->followed ? 0 : -ENOMEM;
}

void sb_sideband_queue_release(struct sb_sideband_queue *queue)
{
	free(queue->followed);
	sb_vec_release(&queue->events);
	pthread_mutex_destroy(&queue->lock);
}

void sb_sideband_queue_follow(struct sb_sideband_queue *queue, uint32_t tgid)
{
	if (tgid < TGIDS_MAX)
		__atomic_fetch_or(&queue->followed->bits[tgid / 64], 1ull << tgid % 64,
				  __ATOMIC_SEQ_CST);
}

void sb_sideband_queue_unfollow(struct sb_sideband_queue *queue, uint32_t tgid)
{
	if (tgid < TGIDS_MAX)
		__atomic_fetch_and(&queue->followed->bits[tgid / 64], ~(1ull << tgid % 64),
				   __ATOMIC_SEQ_CST);
}

bool sb_sideband_queue_follows(const struct sb_sideband_queue *queue, uint32_t tgid)
{
	return tgid < TGIDS_MAX &&
	       __atomic_load_n(&queue->followed->bits[tgid / 64], __ATOMIC_SEQ_CST) >> tgid % 64 &
		       1;
}

static void keep(struct sb_sideband_queue *queue, const struct sb_process_event *event)
{
	struct sb_process_event *last =
		queue->events.nr ? &queue->events.at[queue->events.nr - 1] : NULL;

	/* A program that begins maps half a dozen in a row. */
	if (last && last->tgid == event->tgid && last->kind == event->kind) {
		last->time_ns = event->time_ns;
		return;
	}
	if (!last)
		queue->since_ns = event->time_ns;
	if (queue->events.nr >= SB_SIDEBAND_QUEUE_MAX || sb_vec_push(&queue->events, *event))
		queue->nr_lost++;
}

void sb_sideband_queue_put(struct sb_sideband_queue *queue, const struct sb_process_event *event,
			   bool is_urgent)
{
	if (!sb_sideband_queue_follows(queue, event->tgid))
		return;
	pthread_mutex_lock(&queue->lock);
	keep(queue, event);
	queue->is_urgent |= is_urgent;
	pthread_mutex_unlock(&queue->lock);
}

static bool are_due(const struct sb_sideband_queue *queue, uint64_t now_ns)
{
	return queue->events.nr &&
	       (queue->is_urgent || now_ns >= queue->since_ns + SB_SIDEBAND_QUEUE_REST_NS);
}

bool sb_sideband_queue_is_due(struct sb_sideband_queue *queue, uint64_t now_ns)
{
	bool is_new;

	pthread_mutex_lock(&queue->lock);
	is_new = !queue->is_told && are_due(queue, now_ns);
	queue->is_told |= is_new;
	pthread_mutex_unlock(&queue->lock);
	return is_new;
}

sb_process_events sb_sideband_queue_take(struct sb_sideband_queue *queue, uint64_t now_ns)
{
	sb_process_events taken = {};

	pthread_mutex_lock(&queue->lock);
	if (are_due(queue, now_ns)) {
		taken = queue->events;
		queue->events = (sb_process_events){};
		queue->is_urgent = queue->is_told = false;
	}
	pthread_mutex_unlock(&queue->lock);
	return taken;
}

uint64_t sb_sideband_queue_nr_lost(struct sb_sideband_queue *queue)
{
	uint64_t nr;

	pthread_mutex_lock(&queue->lock);
	nr = queue->nr_lost;
	pthread_mutex_unlock(&queue->lock);
	return nr;
}
