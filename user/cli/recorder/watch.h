/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a service manager is told, where one listens: sd_notify(3), sd_watchdog_enabled(3). That all is well it hears
 * only while each process of the recorder has come round in its loop: each writes when it did into memory that all
 * share, and the one that started them reads it.
 */
#ifndef SB_CLI_RECORDER_WATCH_H
#define SB_CLI_RECORDER_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/recorder/opts.h"

/* Those that are watched: the one that writes, those that sample. */
#define SB_WATCH_KEEPER	   0u
#define SB_WATCH_SAMPLER   1u /* the first */
#define SB_WATCH_PARTS_MAX (SB_WATCH_SAMPLER + SB_RECORDER_KINDS_MAX)

struct sb_watch {
	uint64_t
		period_ns; /* without a word for so long all are ended; 0: nobody asks, and nothing is done */
	uint64_t told_ns; /* CLOCK_MONOTONIC */
	bool is_stuck;	  /* has been said */
	uint64_t *beats;  /* shared; of each part, CLOCK_MONOTONIC */
};

/* To the manager, if there is one. */
void sb_watch_notify(const char *text);

/* Before the first fork. Return: 0 or a negative errno. */
int sb_watch_init(struct sb_watch *watch);
void sb_watch_release(struct sb_watch *watch);
/* In a part: what it forks is not to speak for it. */
void sb_watch_keep(const struct sb_watch *watch);

/* By a part: it goes on. */
void sb_watch_beat(const struct sb_watch *watch, size_t part);
/* How often it must say so at the least, for poll(); -1: it need not. */
int sb_watch_beat_ms(const struct sb_watch *watch);
bool sb_watch_is_stuck(const struct sb_watch *watch, size_t part);

/* Whether it is time to tell the manager. */
bool sb_watch_is_due(const struct sb_watch *watch);
/* Tell it that all is well; @stuck: that it is not, and who does not go on. */
void sb_watch_tell(struct sb_watch *watch, const char *stuck);

#endif
