/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Talks to a service manager, if there is one: sd_notify(3), sd_watchdog_enabled(3). The manager is
 * told that all is well only while each process of the recorder goes round its loop. Each process
 * writes the time of its last round to shared memory, and the recorder process reads it. Order: the
 * recorder process calls sb_watch_init(), and sb_watch_beat() for each part that it starts; the
 * part calls sb_watch_keep(), and sb_watch_beat() in each round; in each round of its own the
 * recorder process calls, if sb_watch_is_due(), sb_watch_is_stuck() for all parts and
 * sb_watch_tell(); at last sb_watch_release(). Any process of the recorder, one thread in each.
 * @part: an index below SB_WATCH_PARTS_MAX, which is not checked. Pointers are not NULL unless it
 * says so.
 */
#ifndef SB_RECORDER_WATCHDOG_H
#define SB_RECORDER_WATCHDOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recorder/recorder.h"

/* The watched processes ("parts"): the store writer, then the samplers. */
#define SB_WATCH_WRITER	   0u
#define SB_WATCH_SAMPLER   1u /* the first */
#define SB_WATCH_PARTS_MAX (SB_WATCH_SAMPLER + SB_RECORDER_KINDS_MAX)

struct sb_watch {
	uint64_t
		period_ns; /* how often the manager must hear from us; 0: no watchdog, all functions do nothing */
	uint64_t told_ns; /* when it was told last (CLOCK_MONOTONIC) */
	bool is_stuck;	  /* it was told that a part is stuck */
	uint64_t *beats;  /* shared: the time of each part's last round (CLOCK_MONOTONIC) */
};

/* Send a message such as "READY=1" to the manager, if there is one, with or without a watchdog.
 * @text is not kept. Errors are ignored. */
void sb_watch_notify(const char *text);

/* Read the manager's settings and make the shared memory, before the first fork. @watch is
 * overwritten; it is ended by sb_watch_release(), which does no harm after an error. Return: 0,
 * also if there is no manager; the errno of mmap(2), negative, and then there is no watchdog, and
 * the caller gives up: a manager that waits for news would kill the service. */
int sb_watch_init(struct sb_watch *watch);
/* Unmap the shared memory in this process, if there is any, and zero @watch, which then means that
 * there is no watchdog. A zeroed one is allowed. */
void sb_watch_release(struct sb_watch *watch);
/* Called in a part, after it was forked: processes that it forks do not get the shared memory. */
void sb_watch_keep(const struct sb_watch *watch);

/* Called by a part in each round of its loop: write the time to shared memory, from where the
 * recorder process knows that the part is not stuck. Does nothing without a watchdog. */
void sb_watch_beat(const struct sb_watch *watch, size_t part);
/* Return: after how many ms at the latest a part must call sb_watch_beat(), for poll(); -1: it need
 * not. */
int sb_watch_beat_ms(const struct sb_watch *watch);
/* Return: whether a part has not called sb_watch_beat() for more than half of the period, and 3 s
 * at least; true if it never did; false without a watchdog. */
bool sb_watch_is_stuck(const struct sb_watch *watch, size_t part);

/* Return: whether it is time to call sb_watch_tell(). */
bool sb_watch_is_due(const struct sb_watch *watch);
/* Called only when sb_watch_is_due() says so, which without a watchdog it never does: tell the
 * manager that all is well (@stuck NULL), or once that the part with the name @stuck, which is not
 * kept, is stuck. Then the manager, which hears no more that all is well, ends the service and
 * starts it anew. Return: whether it was told now that @stuck is, and the caller logs it; false if
 * it was told before, and for NULL. */
bool sb_watch_tell(struct sb_watch *watch, const char *stuck);

#endif
