/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a store can be sent to. The store is the queue: it is gone through by periods of equal length, each with
 * the kinds and series in it, and the place is kept (state.h). To add a destination: a file with a struct
 * sb_export_kind, and a row in table.c.
 *
 * What a destination makes of a period goes out in pieces, the same ones in the same order each time, so that
 * what was sent of a period before it failed is not sent again.
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

/* A request is sent when its body has grown to this; one more stack may be in it. */
#define SB_EXPORT_PIECE_BYTES (4u << 20)
/* Of a kind in a period; the rest is one series, whose tags are "(other)". */
#define SB_EXPORT_SERIES_MAX  10000u

struct sb_export_opts {
	const char *address; /* behind "scheme:" */
	enum sb_otlp_attrs attrs;
	/* Of this machine and this question: series with the same tags, but of others, are not the same. */
	uint64_t salt;
};

struct sb_export_series {
	const struct sb_tag *tags; /* sorted by key; those that it has */
	size_t nr_tags;
	const uint32_t *stacks; /* of the period's profile, heaviest first */
	size_t nr_stacks;
};
/* One kind in [begin_s, end_s). */
struct sb_export_period {
	int64_t begin_s, end_s;
	const struct sb_profile *profile; /* sealed; its first nr_skip frames are values of tags */
	size_t nr_skip;
	struct sb_measure measure;
	const struct sb_export_series *series; /* sorted by tags */
	size_t nr_series;
};

/* Split a sealed @profile, whose outermost frames are the values of @keys, by these. The profile and the keys are
 * borrowed. Return: 0, -ENOMEM. */
int sb_export_period_new(const struct sb_profile *profile, const char *const *keys, size_t nr_keys,
			 int64_t begin_s, int64_t end_s, struct sb_export_period **ret_period);
void sb_export_period_free(struct sb_export_period *period);
/* The frames of stack @i, root first, without values of tags. */
const uint32_t *sb_export_stack(const struct sb_export_period *period, uint32_t i, size_t *ret_nr,
				uint64_t *ret_weight);
/* Its tags, and @salt, as one number: which series it is. The same each time. */
uint64_t sb_export_series_hash(const struct sb_export_series *series, uint64_t salt);
/* The series as a profile of its own, sealed, with the facts of the period's. Return: 0, -ENOMEM, -E2BIG. */
int sb_export_series_profile(const struct sb_export_period *period,
			     const struct sb_export_series *series,
			     struct sb_profile **ret_profile);

/* The way to a destination, and what became of it. */
struct sb_export_link {
	struct sb_http *http; /* NULL: none is needed */
	struct sb_http_reply reply;
	struct sb_export_state *state;
	int (*save)(void *arg); /* the state; 0 or a negative errno */
	void *arg;
	uint64_t nr_pieces; /* of this period, so far */
	bool has_taken;	    /* it has taken something from us */
	uint32_t retry_after_s;
	struct sb_str why;   /* of the last failure, one sentence */
	struct sb_str notes; /* of what was refused: to be said once; emptied by who says it */
};

/* Whether the next piece of this period was sent before: then it is to be left out, and is counted. */
bool sb_export_is_sent(struct sb_export_link *link);
/*
 * Send the next piece. Return: 0: it is taken, or refused for good, counted and noted; -EAGAIN: to be tried again;
 * -EPERM: the other side will have nothing; for both link->why says it; -ECANCELED; -ENOMEM, others: of the state.
 */
int sb_export_post(struct sb_export_link *link, const struct sb_http_request *request);
/* A piece that went without HTTP. Return: 0 or a negative errno of the state. */
int sb_export_done(struct sb_export_link *link, uint64_t nr_bytes);
/* Ask something that is no piece. Return: 0: status 2xx; others as sb_export_post(). */
int sb_export_ask(struct sb_export_link *link, const struct sb_http_request *request);
/* @body through gzip. Return: 0 or -ENOMEM. */
int sb_export_pack(const struct sb_str *body, struct sb_str *ret_packed);

struct sb_export_kind {
	const char *scheme;  /* "otlp" */
	const char *example; /* "otlp:http://host:4318" */
	const char *summary;
	bool is_http;
	const char
		*without; /* tags that make no series if none are named: "cgroup,comm"; or NULL */
	/* Does not send anything yet. Return: 0; -EINVAL: the address is none, *ret_why is the end of a sentence;
	 * others. */
	int (*open)(const struct sb_export_opts *opts, void **ret_dest, const char **ret_why);
	/* Return: as sb_export_post(). */
	int (*send)(void *dest, struct sb_export_link *link, const struct sb_export_period *period);
	void (*close)(void *dest);
};

/* Return: the kind of "scheme:address" and where the address begins, or NULL. */
const struct sb_export_kind *sb_export_find(const char *to, const char **ret_address);
/* Return: the i-th row, or NULL past the end. */
const struct sb_export_kind *sb_export_at(size_t i);

/* "http://..." or "https://...", with a host. */
bool sb_export_is_url(const char *address);
/* Append @url without a slash at its end, up to '?' or '#'. Return: 0 or -ENOMEM. */
int sb_export_add_base(struct sb_str *out, const char *url);

#endif
