/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A queue of side-band records for a thread that looks at processes. Most processes live for some
 * milliseconds only, so records that are not urgent wait until there are more; by then most of the
 * processes have ended and need no look. The caller passes the time, CLOCK_MONOTONIC. Any thread;
 * init and release by one, before and after all others. No pointer may be NULL.
 *
 * Order: init(); follow() before the process is read; put() for each record, and now and then
 * is_due(): if true, wake the thread, which calls take(); unfollow() when the process has ended;
 * release().
 */
#ifndef SB_CAPTURE_SIDEBAND_QUEUE_H
#define SB_CAPTURE_SIDEBAND_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "capture/sideband.h"

/* How long records wait that are not urgent. If a sample needs the process meanwhile, the BPF side
 * asks for it. */
#define SB_SIDEBAND_QUEUE_REST_NS (100 * 1000000ull)
/* Records in the queue. Others are dropped and counted. */
#define SB_SIDEBAND_QUEUE_MAX	  65536u

struct sb_process_event {
	uint32_t tgid;
	enum sb_sideband_kind kind; /* MMAP, EXEC, EXIT */
	uint64_t time_ns;	    /* of the record, CLOCK_MONOTONIC */
};
typedef SB_VEC(struct sb_process_event) sb_process_events;

struct sb_tgid_set;

struct sb_sideband_queue {
	struct sb_tgid_set *followed; /* atomic */
	pthread_mutex_t lock;	      /* protects everything below */
	sb_process_events events;     /* oldest first */
	uint64_t since_ns;	      /* time of the first one */
	bool is_urgent,
		is_told; /* is_told: sb_sideband_queue_is_due() has returned true for these */
	uint64_t nr_lost;
};

/* Make an empty queue in @queue, which may be uninitialized. Call sb_sideband_queue_release() even
 * if it fails; no other function then. Return: 0 or -ENOMEM. */
int sb_sideband_queue_init(struct sb_sideband_queue *queue);
/* Free it, when no other thread uses it any more. Accepts a queue whose init failed. */
void sb_sideband_queue_release(struct sb_sideband_queue *queue);

/* Choose the processes whose records are kept; at first none. Takes effect before it returns; does
 * not block. A number above the kernel's limit (2^22) is ignored. Records that are in the queue
 * already stay. sb_sideband_queue_follows() tells whether @tgid is chosen, which an ignored number
 * never is. */
void sb_sideband_queue_follow(struct sb_sideband_queue *queue, uint32_t tgid);
void sb_sideband_queue_unfollow(struct sb_sideband_queue *queue, uint32_t tgid);
bool sb_sideband_queue_follows(const struct sb_sideband_queue *queue, uint32_t tgid);

/* Append a copy of a record if its process is followed. A record of the same process and kind as
 * the last one in the queue only updates its time. @is_urgent: the queue is due at once. When the
 * queue is full, or without memory, the record is dropped and counted. */
void sb_sideband_queue_put(struct sb_sideband_queue *queue, const struct sb_process_event *event,
			   bool is_urgent);
/* Return: whether to wake the thread: the queue has an urgent record, or its first one is older
 * than SB_SIDEBAND_QUEUE_REST_NS. True once until the next take. */
bool sb_sideband_queue_is_due(struct sb_sideband_queue *queue, uint64_t now_ns);
/* Take all records, oldest first, if they are due, whether sb_sideband_queue_is_due() was asked or
 * not; else none. The caller ends the list with sb_vec_release(). */
sb_process_events sb_sideband_queue_take(struct sb_sideband_queue *queue, uint64_t now_ns);
/* Return: how many records were dropped so far, because the queue was full or memory was short. */
uint64_t sb_sideband_queue_nr_lost(struct sb_sideband_queue *queue);

#endif
