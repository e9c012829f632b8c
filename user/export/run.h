/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Exports a store to one destination, period by period. The position is kept in a file (state.h),
 * so that an export that is stopped, killed or refused continues where it was. Called by the export
 * command. Not thread-safe: one thread, that of the store. Pointers are not NULL unless it says so.
 */
#ifndef SB_EXPORT_RUN_H
#define SB_EXPORT_RUN_H

#include "export/export.h"
#include "store/ask.h"

/* A period is sent when every kind has a newer block in the store, or this long after its end. */
#define SB_EXPORT_SETTLE_S    30
/* Give up after so many failures in a row, or if asked to wait longer. Not with is_follow. */
#define SB_EXPORT_TRIES_MAX   5u
#define SB_EXPORT_WAIT_MAX_S  60u
/* Time between two attempts; doubled after each failure. */
#define SB_EXPORT_WAIT_MIN_MS 250u

/* Everything is borrowed during sb_export_run(). */
struct sb_export_plan {
	struct sb_store *store;
	const char *to;		    /* "otlp:http://host:4318" */
	const char *what;	    /* the tags and the kind of the query, as text */
	struct sb_export_opts opts; /* its address and salt are set by sb_export_run() */
	struct sb_http_opts http;
	const struct sb_tag_rules *rules; /* NULL: all series */
	const char *kind;		  /* NULL: all kinds */
	const char *
		by; /* "a,b": tags that tell series apart; NULL: all but wide ones, kind->without */
	uint32_t every_s; /* length of a period, a multiple of 10 */
	bool is_follow;	  /* wait for new blocks */
	/*
	 * 0: continue at the saved position, or at the beginning of the store. Else, with
	 * is_follow: where to begin without a saved position. Else: begin here whatever was sent
	 * before, and save no position.
	 */
	int64_t from_s;
	int64_t to_s; /* 0: up to the end of the store */
	int dir_fd;   /* directory of the state files; not used if no position is saved */
	/* Report a sentence, valid during the call, to the user; @is_bad if something went
	 * wrong. */
	void (*say)(void *arg, bool is_bad, const char *sentence);
	/* Report how far it is; not NULL. Called whenever the position was saved: after a piece, a
	 * period, or a failed attempt, and when late blocks were found. @state is valid during the
	 * call. What is to be sent now ends at @to_s; 0: that is not known yet. */
	void (*progress)(void *arg, const struct sb_export_state *state, int64_t to_s);
	void *arg;
};

/**
 * sb_export_run() - export until everything is sent
 * @ret_state: how far it came; set also on error; there is nothing to free
 *
 * With is_follow it waits for more, until to_s or http.stop_fd ends it.
 *
 * Return: 0; -EINVAL if the address is not valid, -EAGAIN if several attempts to send have failed,
 * -EPERM if the destination refuses or more attempts are of no use: the reason of these three was
 * reported by say(), and all others are left to the caller. -ECANCELED if it was stopped; -EBUSY if
 * another process runs the same export; -EBADMSG if the file with the position is damaged; -E2BIG
 * if a profile or the number of files of the store is too large; -ELIBACC without libcurl; -ENOMEM;
 * other errors of I/O. After an error it may be called again, and continues at the saved position.
 */
int sb_export_run(const struct sb_export_plan *plan, struct sb_export_state *ret_state);

/*
 * Return: how long to wait after @nr_failures failures in a row, in ms: SB_EXPORT_WAIT_MIN_MS for
 * none or one, doubled for each after the first up to a minute, and at least @retry_after_s
 * seconds, which the destination asked for (0: it did not). Any thread.
 */
uint64_t sb_export_wait_ms(uint32_t nr_failures, uint32_t retry_after_s);

#endif
