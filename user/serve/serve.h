/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Serves a store over HTTP: a web page, JSON for it and for others, profiles as files, metrics.
 * Read-only. Thread: the main thread of a process that has no other. No pointer may be NULL unless
 * a contract says so. Order: sb_serve_new(), sb_serve_run() once, sb_serve_free(); then the caller
 * closes the store.
 *
 * Processes:
 *	front	this process: connections, heads of requests, access control. A single-threaded
 *		event loop; it opens no file.
 *	worker	up to SB_SERVE_WORKERS processes, which sb_serve_run() forks when there is a
 *		question: they read the store, and write each answer to a file in memory that the
 *		front sends. They have no network, and limits of memory and time, so that a question
 *		or a damaged file harms only its own answer.
 *
 * Bounds: SB_SERVE_CONNS_MAX connections of SB_HTTP_HEAD_MAX bytes each, which is 16 MiB; beyond
 * that the slowest client is evicted. SB_SERVE_QUEUE_MAX questions are queued. Answers that are
 * being sent have SB_SERVE_BODIES_MAX bytes together. A question takes at most SB_SERVE_QUESTION_S,
 * and a worker SB_SERVE_WORKER_BYTES of memory.
 */
#ifndef SB_SERVE_SERVE_H
#define SB_SERVE_SERVE_H

#include <stddef.h>
#include <sys/types.h>

#define SB_SERVE_LISTEN	      "127.0.0.1:4040"
#define SB_SERVE_WORKERS      2u
#define SB_SERVE_CONNS_MAX    1024u
#define SB_SERVE_QUEUE_MAX    64u
#define SB_SERVE_QUESTION_S   10u
#define SB_SERVE_WORKER_BYTES (1ull << 30)
#define SB_SERVE_ANSWER_BYTES (256ull << 20)
#define SB_SERVE_BODIES_MAX   (512ull << 20)
/* Shorter tokens could be guessed. */
#define SB_SERVE_TOKEN_MIN    16u
#define SB_SERVE_TOKEN_MAX    256u

struct sb_serve_opts {
	const char *listen; /* "127.0.0.1:4040", "[::1]:0", "unix:PATH"; port 0: any free one */
	gid_t group;	    /* may connect to a Unix socket, mode 0660; used only by root */
	const char *token;  /* that requests must have; NULL: none */
	/* Further names of this machine that a Host header may have, besides known ones. */
	const char *const *hosts;
	size_t nr_hosts;
	const char *store_path; /* its directory: shown, and read for sizes and exports */
	struct sb_store *store; /* open for reading; used by workers only */
	/* Drop privileges that the front or a worker does not need; NULL: none. Return: 0 or a
	 * negative errno, after which sb_serve_run() returns, or the worker ends. */
	int (*confine_front)(void);
	int (*confine_worker)(void);
};

struct sb_serve;

/*
 * Make a server, owned by the caller, and listen. From here on the process blocks SIGINT and
 * SIGTERM, for sb_serve_run(), ignores SIGPIPE, and has its limit of open files raised. @opts and
 * everything in it is borrowed until sb_serve_free(). Return: 0; -EINVAL if the address is not
 * valid; -EADDRINUSE, -EADDRNOTAVAIL, -EACCES and others of bind(2); -ENOMEM; other negative errnos
 * of making descriptors. On error *ret_serve is untouched, and nothing listens; signals and limit
 * may be changed.
 */
int sb_serve_new(const struct sb_serve_opts *opts, struct sb_serve **ret_serve);
/* Return: "http://127.0.0.1:4040/", with the port that was bound, or "unix:PATH"; borrowed from the
 * server until sb_serve_free(). */
const char *sb_serve_url(const struct sb_serve *serve);
/*
 * Call confine_front(), which drops privileges, then serve until SIGINT or SIGTERM. sb_serve_new()
 * has blocked both; the signal stays pending, and the caller need not take it. A request for which
 * no worker can be forked gets status 503. Return: 0 after a signal; the negative errno of
 * confine_front() or epoll_wait(2). Then only sb_serve_free() is left.
 */
int sb_serve_run(struct sb_serve *serve);
/*
 * Kill the workers, close the listening socket and all connections, and free the server; NULL is
 * allowed. The file of a Unix socket stays: the next sb_serve_new() for this path removes it. What
 * sb_serve_new() did to signals stays, too, and the store stays open.
 */
void sb_serve_free(struct sb_serve *serve);

/* Who can connect to an address. */
enum sb_serve_reach {
	SB_SERVE_REACH_FILE,	/* a Unix socket: those whom its mode allows */
	SB_SERVE_REACH_MACHINE, /* loopback: every user of this machine */
	SB_SERVE_REACH_OTHERS,	/* other machines, too */
};
/* Return: the enum sb_serve_reach of @listen; -EINVAL if it is not a valid address. Any thread. */
int sb_serve_reach(const char *listen);
/* Check a token before it becomes opts.token. Return: 0; -EINVAL if it is shorter than
 * SB_SERVE_TOKEN_MIN, longer than SB_SERVE_TOKEN_MAX, or has other characters than letters, digits
 * and "-._~". Any thread. */
int sb_serve_check_token(const char *token);

#endif
