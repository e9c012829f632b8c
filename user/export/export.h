/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Destinations that a store can be exported to. The store itself is the queue: run.c walks through
 * it in periods of equal length, each with the kinds and series in it, and keeps its position
 * (state.h). To add a destination, write a file with a struct sb_export_kind and add a row to
 * table.c.
 *
 * A destination sends a period in pieces: the same pieces in the same order each time, so that
 * those that were sent before a failure are not sent again. A piece is what one request carries.
 *
 * Order: open(); for each kind in each period, sb_export_period_new(), send(),
 * sb_export_period_free(); close(). send() asks sb_export_is_sent() for each piece, and calls
 * sb_export_post(), or what else sends it and then sb_export_done(), if it was not. It returns the
 * first error; after -EAGAIN and, unless the export is to end, -EPERM the caller waits and sends
 * the whole period again. Not thread-safe: one thread for each export. Pointers are not NULL unless
 * it says so.
 */
#ifndef SB_EXPORT_EXPORT_H
#define SB_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/http.h"
#include "export/state.h"
#include "model/profile.h"
#include "output/measure.h"
#include "output/otlp.h"
#include "store/tags.h"

/* A request is sent when its body has reached this size; one more stack may be in it. */
#define SB_EXPORT_PIECE_BYTES (4u << 20)
/* Series of a kind in a period. The others become one series whose tags are "(other)". */
#define SB_EXPORT_SERIES_MAX  10000u

struct sb_export_opts {
	const char *address; /* what follows "scheme:" */
	enum sb_otlp_attrs attrs;
	/*
	 * Hash of this machine and query: equal tags from other machines or queries are other
	 * series.
	 */
	uint64_t salt;
};

struct sb_export_series {
	const struct sb_tag *tags; /* sorted by key, without those that have no value */
	size_t nr_tags;
	const uint32_t *stacks; /* for sb_export_row(); heaviest first */
	size_t nr_stacks;
};
/* One kind in [begin_s, end_s), seconds since the epoch. */
struct sb_export_period {
	int64_t begin_s, end_s;
	const struct sb_profile *profile; /* sealed; the first nr_skip frames are tags' values */
	size_t nr_skip;
	struct sb_measure measure;	       /* what its weights mean */
	const struct sb_export_series *series; /* sorted by tags */
	size_t nr_series;
};

/**
 * sb_export_period_new() - split a profile into series
 * @profile: sealed, from a query whose `by` are @keys, so that the first frames of each stack are
 *	their values; borrowed until sb_export_period_free()
 * @keys: @nr_keys names of tags, whose order the tags of a series keep, so the caller sorts them;
 *	borrowed as long; none makes one series without tags
 * @begin_s, @end_s: the query's range, seconds since the epoch, end exclusive
 * @ret_period: owned by the caller; untouched on error
 *
 * Return: 0; -EBADMSG if a stack has fewer frames than there are keys; -ENOMEM.
 */
int sb_export_period_new(const struct sb_profile *profile, const char *const *keys, size_t nr_keys,
			 int64_t begin_s, int64_t end_s, struct sb_export_period **ret_period);
/* Free a period, not its profile; NULL is allowed. */
void sb_export_period_free(struct sb_export_period *period);
/* Return: the row of period->profile with index @i, an element of sb_export_series.stacks, which is
 * not checked, without the frames of tags' values; its frames are borrowed from the profile, which
 * outlives the period. */
struct sb_row sb_export_row(const struct sb_export_period *period, uint32_t i);
/* Return: a hash of the tags and @salt (sb_export_opts) that identifies the series; the same in
 * every run. */
uint64_t sb_export_series_hash(const struct sb_export_series *series, uint64_t salt);
/*
 * Make a sealed profile of one series, with the period's metadata and the tags; it borrows nothing.
 * Return: 0 and *ret_profile, owned by the caller; -ENOMEM; -E2BIG if it has more frames or names
 * than a profile can have; on error it is untouched.
 */
int sb_export_series_profile(const struct sb_export_period *period,
			     const struct sb_export_series *series,
			     struct sb_profile **ret_profile);

/* The connection to a destination, and what became of the last request. Whoever makes one sets
 * http, state, save and arg, and zeroes the rest; it releases reply, why and notes. nr_pieces is
 * set to 0 for each attempt at a period. */
struct sb_export_link {
	struct sb_http *http; /* NULL if the destination needs none */
	struct sb_http_reply reply;
	struct sb_export_state *state;
	int (*save)(void *arg); /* write the state to disk; 0 or a negative errno */
	void *arg;
	uint64_t nr_pieces;	/* of this period, so far */
	bool has_taken;		/* the destination has accepted something in this run */
	uint32_t retry_after_s; /* set with -EAGAIN; 0: the destination did not say */
	struct sb_str why;	/* of the last failure: one sentence */
	struct sb_str notes;	/* what was refused, for the user; whoever reports it clears it */
};

/*
 * Ask before each piece is sent. Return: whether it was sent before, in an earlier attempt or an
 * earlier run. Then it is counted as done, and the caller goes on to the next piece.
 */
bool sb_export_is_sent(struct sb_export_link *link);
/*
 * Send the next piece by link->http; @request is borrowed for the call. Return: 0 if it was
 * accepted (status 2xx), or refused for good (400, 413, 415, 422), which is counted and noted in
 * link->notes; -EAGAIN to try again later (408, 425, 429, 5xx, or no reply); -EPERM if the
 * destination refuses everything: any other status, a bad address or certificate, or a refusal
 * before the destination has accepted anything in this run; link->why explains both, until the next
 * failure; -ECANCELED if http.stop_fd became readable; after these three the piece is not counted
 * as sent; -ENOMEM, and it may or may not be counted; other errors of saving the state: the piece
 * counts as sent in this run, but the next run may send it again.
 */
int sb_export_post(struct sb_export_link *link, const struct sb_http_request *request);
/* Count a piece of @nr_bytes that was sent without HTTP, and save the state. Return: what
 * link->save() returned: 0 or a negative errno; the piece is counted in any case. */
int sb_export_done(struct sb_export_link *link, uint64_t nr_bytes);
/* Send a request that is not a piece, and is not counted. The reply is in link->reply until the
 * next one. Return: 0 for a status 2xx; -EPERM if it is refused; -EAGAIN to try again later (408,
 * 425, 429, 5xx, or no reply); -ECANCELED if http.stop_fd became readable; -ENOMEM. link->why
 * explains the first two errors. */
int sb_export_ask(struct sb_export_link *link, const struct sb_http_request *request);

/* One kind of destination. */
struct sb_export_kind {
	const char *scheme;  /* "otlp" */
	const char *example; /* "otlp:http://host:4318" */
	const char *summary;
	bool is_http;	     /* a piece is a request; otherwise it is a file */
	const char *without; /* tags left out unless the user names them: "cgroup,comm"; or NULL */
	/*
	 * Parse the address; sends nothing yet. @opts is borrowed for the call. *ret_dest is ended
	 * by close(), and untouched on error. Return: 0; -EINVAL if the address is not valid, and
	 * *ret_why, a constant, ends the sentence "the destination '...' "; -ENOMEM.
	 */
	int (*open)(const struct sb_export_opts *opts, void **ret_dest, const char **ret_why);
	/* Send all pieces of a period that were not sent yet. Return: as sb_export_post(). */
	int (*send)(void *dest, struct sb_export_link *link, const struct sb_export_period *period);
	void (*close)(void *dest);
};

/*
 * Find the kind of @to, "scheme:address", by what precedes the first ':'. Return: it, a constant,
 * and *ret_address, which points into @to; NULL if there is none, and *ret_address is untouched.
 */
const struct sb_export_kind *sb_export_find(const char *to, const char **ret_address);
/* Return: row @i of the table, from 0, a constant; NULL past the end. Any thread. */
const struct sb_export_kind *sb_export_at(size_t i);

/*
 * Return: whether @address is "http://..." or "https://..." with something where the host is, and
 * has no spaces and control characters; nothing else of it is checked. Any thread.
 */
bool sb_export_is_url(const char *address);
/* Append @url up to '?' or '#', without slashes at its end, to @out. Return: 0; -ENOMEM, and
 * nothing is appended. */
int sb_export_add_base(struct sb_str *out, const char *url);

#endif
