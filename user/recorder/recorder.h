/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `stackbpf record`: records profiles continuously into a store (store/store.h). Which processes
 * there are, and who starts whom, is described in recorder.c.
 */
#ifndef SB_RECORDER_RECORDER_H
#define SB_RECORDER_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "run/run.h"
#include "store/level.h"
#include "views/view.h"

#define SB_RECORDER_KINDS_MAX 8
#define SB_RECORDER_TAGS_MAX  16
#define SB_RECORDER_STORE     "/var/lib/stackbpf"

/* The store and its settings. What samplers do is in their struct sb_run_config. Strings are
 * borrowed. */
struct sb_recorder_config {
	const char *store; /* NULL: SB_RECORDER_STORE */
	const struct sb_view *kinds[SB_RECORDER_KINDS_MAX];
	size_t nr_kinds; /* 0: the default view only */
	struct sb_recorder_tag {
		char *key, *value;    /* owned by the caller */
	} tags[SB_RECORDER_TAGS_MAX]; /* added to all samples */
	size_t nr_tags;
	uint64_t keep_s[SB_STORE_LEVELS]; /* retention, where has_keep is set; 0: for ever */
	bool has_keep[SB_STORE_LEVELS];	  /* not set: the default of the level */
	uint64_t bytes_max;		  /* of the store; 0: no limit */
	uint32_t no_sync;		  /* see struct sb_store_opts */
	bool by_thread;
	const char *const *labels; /* keys, borrowed: those of the run */
	size_t nr_labels;
	/* Called in each sampler process when its run has ended, to tell the user. Return: its exit
	 * status. */
	int (*report)(const struct sb_run *run, enum sb_run_status status);
};

/**
 * sb_recorder_run() - record until the time is up, a signal comes, or the store writer dies
 * @config: borrowed
 * @run: what samplers do; its views are set here, and members that are 0 get defaults for long runs
 *
 * Forks, and does not return in the child processes. Takes over SIGINT, SIGTERM, SIGHUP and
 * SIGUSR1.
 *
 * Thread: the main thread, while there is no other one.
 * Return: an exit status: enum sb_run_status, that of the first sampler that failed, or 128 + the
 * signal that killed it. The reason was logged.
 */
int sb_recorder_run(const struct sb_recorder_config *config, struct sb_run_config *run);

#endif
