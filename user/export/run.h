/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A store, period by period, to one destination. The place is kept in a file (state.h): whoever is stopped, killed
 * or refused goes on where it was. Not thread-safe.
 */
#ifndef SB_EXPORT_RUN_H
#define SB_EXPORT_RUN_H

#include "export/export.h"
#include "store/ask.h"

/* A period is sent when something newer of each kind is in the store, or so long after its end. */
#define SB_EXPORT_SETTLE_S    30
/* Without is_follow: failures in a row, and the longest wait that is asked of us, before we give up. */
#define SB_EXPORT_TRIES_MAX   5u
#define SB_EXPORT_WAIT_MAX_S  60u
/* Attempts are so far apart, doubled each time. */
#define SB_EXPORT_WAIT_MIN_MS 250u

struct sb_export_plan {
	struct sb_store *store;
	const char *to;	  /* "otlp:http://host:4318" */
	const char *what; /* tags and kind that were asked for, as text */
	struct sb_export_opts opts;
	struct sb_http_opts http;
	const struct sb_tag_rules *rules;
	const char *kind; /* NULL: all */
	const char *
		by; /* tags that make a series, by commas; NULL: all but wide ones and kind->without */
	uint32_t every_s; /* a multiple of 10 */
	bool is_follow;
	/*
	 * 0: from where the last one ended, or the beginning of the store. Otherwise, with is_follow, where to
	 * begin if there was none; without it, this time, whatever was sent before, and no place is kept.
	 */
	int64_t from_s;
	int64_t to_s; /* 0: all there is */
	int dir_fd;   /* where the place is kept */
	/* Something that a person should know: a sentence. @is_bad: it went wrong. */
	void (*say)(void *arg, bool is_bad, const char *sentence);
	void *arg;
};

/*
 * Until all is sent, or stopped, or it cannot go on. *ret_state is how far it came, in any case.
 * Return: 0; -ECANCELED: stopped; -EBUSY: another one sends the same to the same; -EINVAL: the address is none;
 * -ELIBACC: no libcurl; -EAGAIN, -EPERM: the destination does not take it, all of which was said; others of the
 * store and of I/O.
 */
int sb_export_run(const struct sb_export_plan *plan, struct sb_export_state *ret_state);

/* How long to wait after so many failures in a row, in ms: doubled up to a minute; at least what was asked. */
uint64_t sb_export_wait_ms(uint32_t nr_failures, uint32_t retry_after_s);

#endif
