/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `stackbpf record`: records profiles continuously into a store (store/store.h). The recorder
 * process starts the others and waits: the store writer, which alone writes the store, and
 * samplers, each of which records kinds that can be recorded together. Pointers are not NULL unless
 * it says so. What callbacks get is valid during the call.
 */
#ifndef SB_RECORDER_RECORDER_H
#define SB_RECORDER_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/reason.h"
#include "run/run.h"
#include "store/kind.h"
#include "store/level.h"
#include "views/view.h"

#define SB_RECORDER_KINDS_MAX 8
#define SB_RECORDER_TAGS_MAX  16
#define SB_RECORDER_STORE     "/var/lib/stackbpf"

/* Figures of the store writer, and of the recorder process, which counts the restarts. */
struct sb_recorder_stats {
	uint64_t nr_blocks, nr_bytes; /* written; bytes as received */
	uint64_t nr_dropped;	  /* blocks that could not be written, beyond those that are kept */
	uint64_t nr_refused;	  /* messages that were no valid blocks */
	uint64_t nr_other_series; /* series in "(other)": too many values of a tag in a day */
	uint64_t own_ns;	  /* CPU time of the store writer */
	uint64_t nr_restarts;	  /* of samplers */
	bool has_made_store;	  /* the directory did not exist before */
};

/* What the user is told while it records. Each kind names the members that it sets; a sampler has
 * the names of its kinds, "oncpu,offcpu". */
struct sb_recorder_event {
	enum sb_recorder_event_kind {
		/* In the recorder process. */
		SB_RECORDER_BEGAN,	     /* store: all samplers sample */
		SB_RECORDER_SAMPLER_EXITED,  /* sampler, status, nr: seconds until its restart */
		SB_RECORDER_SAMPLER_TOO_BIG, /* sampler, nr: MB; a new one replaces it */
		SB_RECORDER_SAMPLER_NOT_STARTED, /* sampler, err */
		SB_RECORDER_STUCK, /* sampler, NULL: the store writer; the manager is not told */
		SB_RECORDER_WRITER_DIED, /* store: so all stops */
		SB_RECORDER_ENDED,	 /* store, stats */
		/* In a sampler. */
		SB_RECORDER_SAMPLER_BEGINS, /* sampler: the first one that this process tells */
		SB_RECORDER_BLOCKS_DROPPED, /* the store writer does not keep up; once */
		/* In the store writer; the first three are told once until they are over. */
		SB_RECORDER_NOT_EXPIRED, /* store, err */
		SB_RECORDER_NOT_SYNCED,	 /* store, err */
		SB_RECORDER_NOT_WRITTEN, /* store, err, nr: MB of blocks that are kept meanwhile */
		SB_RECORDER_WRITTEN,	 /* store, nr: blocks lost since the one above */
		SB_RECORDER_REFUSED, /* sampler: it sent an invalid block and is not heard any more */
	} kind;
	const char *store, *sampler;
	int err, status;
	uint64_t nr;
	const struct sb_recorder_stats *stats;
};

/* A kind of profile that is recorded. */
struct sb_recorder_kind {
	const struct sb_view *view;
	char name[SB_KIND_BYTES]; /* of the view, or "trace:ssl", "oncpu:slow" with a definition */
	char unit[SB_UNIT_BYTES]; /* ""; of a view that takes events: the unit of the definition */
	const void *definition;	  /* for find_events(); NULL: none */
	/* The definition, if it says what holds for all samples of a sampler: kinds with different
	 * ones get samplers of their own. NULL: it does not. */
	const void *apart;
};

/* The store and its settings. What samplers do is in their struct sb_run_config. Strings are
 * borrowed. */
struct sb_recorder_config {
	const char *store; /* NULL: SB_RECORDER_STORE */
	struct sb_recorder_kind kinds[SB_RECORDER_KINDS_MAX];
	size_t nr_kinds; /* one at least */
	struct sb_recorder_tag {
		char *key, *value;    /* owned by the caller */
	} tags[SB_RECORDER_TAGS_MAX]; /* added to all samples */
	size_t nr_tags;
	uint64_t keep_s[SB_STORE_LEVELS]; /* retention, where has_keep is set; 0: for ever */
	bool has_keep[SB_STORE_LEVELS];	  /* not set: the default of the level */
	uint64_t bytes_max;		  /* of the store; 0: no limit */
	uint32_t no_sync;		  /* do not wait for the disk after each block */
	bool by_thread;
	const char *const *labels; /* keys, borrowed: those of the run */
	size_t nr_labels;
	/* Called in each sampler process when its run has ended, to tell the user. Return: its exit
	 * status. */
	int (*report)(const struct sb_run *run, enum sb_run_status status);
	/*
	 * Called in each sampler process before its run, for kinds with a definition and for those
	 * of allocations; NULL if there are none: set its events or spans in @view_opts. It is done
	 * there because a sampler may start long after the recorder, when libraries have been
	 * replaced. Return: 0; a negative errno with @reason, and the sampler does not run.
	 */
	int (*find_events)(const struct sb_recorder_kind *kind, struct sb_view_opts *view_opts,
			   struct sb_reason *reason, void *arg);
	void *arg; /* for find_events() */
	/* Called in each process, to tell the user. NULL: nobody is told. */
	void (*tell)(const struct sb_recorder_event *event);
};

#define sb_recorder_tell(config, ...)                                               \
	do {                                                                        \
		if ((config)->tell)                                                 \
			(config)->tell(&(struct sb_recorder_event){ __VA_ARGS__ }); \
	} while (0)

/**
 * sb_recorder_run() - record until the time is up, a signal comes, or the store writer dies
 * @config: borrowed; with one kind at least, and SB_RECORDER_KINDS_MAX at most: not checked
 * @run: what samplers do; modified: their views, `modules` and symbol_bytes_max are set here, and
 *	other members that are 0 get defaults for long runs
 * @reason: zeroed by the caller; why the recorder process failed, if it did, for the caller to tell
 *
 * Forks, and does not return in the child processes. Blocks SIGINT, SIGTERM, SIGHUP and SIGUSR1,
 * and leaves them blocked: the first three end the recording, SIGHUP unless it is ignored, the last
 * one has all samplers send their blocks now.
 *
 * Thread: the main thread, while there is no other one.
 * Return: an exit status: enum sb_run_status; SB_RUN_FAILED also if blocks could not be written;
 * that of the first sampler that failed, or 128 + the signal that killed it, and then the sampler
 * has told the user why.
 */
int sb_recorder_run(const struct sb_recorder_config *config, struct sb_run_config *run,
		    struct sb_reason *reason);

#endif
