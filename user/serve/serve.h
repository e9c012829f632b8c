/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A store over HTTP: a page, JSON for it and for others, files of profiles, metrics. Nothing is changed by it.
 *
 * Who is who:
 *	front	this process: connections, heads of requests, who may ask. It opens no file.
 *	worker	processes that it forks, SB_SERVE_WORKERS: they read the store and write answers, each into a
 *		file in memory that the front sends. They have no network. What a question or a damaged file
 *		makes of them is over when they are: they have limits of memory and time.
 *
 * Bounds: SB_SERVE_CONNS_MAX connections of SB_HTTP_HEAD_MAX bytes each, so 16 MiB; when there are more, the
 * one that is slowest to ask makes room. SB_SERVE_QUEUE_MAX questions wait. Answers that are being sent are
 * SB_SERVE_BODIES_MAX together. A question takes SB_SERVE_QUESTION_S at most, and a worker
 * SB_SERVE_WORKER_BYTES of memory besides what it maps of the store.
 */
#ifndef SB_SERVE_SERVE_H
#define SB_SERVE_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"
#include "store/store.h"

#define SB_SERVE_LISTEN	      "127.0.0.1:4040"
#define SB_SERVE_WORKERS      2u
#define SB_SERVE_CONNS_MAX    1024u
#define SB_SERVE_QUEUE_MAX    64u
#define SB_SERVE_QUESTION_S   10u
#define SB_SERVE_WORKER_BYTES (1ull << 30)
#define SB_SERVE_ANSWER_BYTES (256ull << 20)
#define SB_SERVE_BODIES_MAX   (512ull << 20)
/* Shorter ones can be guessed. */
#define SB_SERVE_TOKEN_MIN    16u
#define SB_SERVE_TOKEN_MAX    256u

struct sb_serve_opts {
	const char *listen; /* "127.0.0.1:4040", "[::1]:0", "unix:PATH"; port 0: one that is free */
	gid_t group; /* who may connect to a Unix socket, besides the user: mode 0660; as root only */
	const char *token; /* who asks must know it; NULL: nobody need to */
	const char *const *
		hosts; /* names of this machine that may be in Host, besides those that are known */
	size_t nr_hosts;
	const char *store_path;
	struct sb_store *store; /* to read; the workers' */
	/* Lay down what front and workers do not need; NULL: nothing. Return: 0 or a negative errno. */
	int (*confine_front)(void);
	int (*confine_worker)(void);
};

struct sb_serve;

/*
 * Listen. SIGINT and SIGTERM are blocked from here on, for sb_serve_run(). @opts and what it points to is
 * borrowed. Return: 0; -EINVAL: no address; -EADDRINUSE, -EADDRNOTAVAIL, -EACCES, ...; -ENOMEM.
 */
int sb_serve_new(const struct sb_serve_opts *opts, struct sb_serve **ret_serve);
/* Return: "http://127.0.0.1:4040/" or "unix:PATH", valid until the end. */
const char *sb_serve_url(const struct sb_serve *serve);
/* Answer until SIGINT or SIGTERM. Return: 0, or a negative errno: it cannot go on. */
int sb_serve_run(struct sb_serve *serve);
void sb_serve_free(struct sb_serve *serve);

/* Who can connect to an address. */
enum sb_serve_reach {
	SB_SERVE_REACH_FILE,	/* a Unix socket: whom its mode lets in */
	SB_SERVE_REACH_MACHINE, /* loopback: every user of this machine */
	SB_SERVE_REACH_OTHERS,	/* other machines, too */
};
/* Return: enum sb_serve_reach of @listen; -EINVAL: it is no address, or a path that is too long. */
int sb_serve_reach(const char *listen);
/* Return: 0, -EINVAL: too short, too long, or of other characters than RFC 6750 has for tokens. */
int sb_serve_check_token(const char *token);

#endif
