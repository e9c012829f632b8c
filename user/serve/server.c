// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The front: a single-threaded event loop over all connections, workers and signals. A connection
 * goes from READING to SENDING, by way of ASKING if a worker must answer (pool.c). Every state has
 * a deadline; when there are too many connections, the slowest one is evicted.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/time.h"
#include "serve/server_priv.h"

/* To read a head, from the connection's begin or from the last reply on. */
#define READ_S	   15
/* To answer a question, with the time in the queue. */
#define ASK_S	   30
/* To send an answer, plus the time that it takes at this many bytes a second. */
#define SEND_S	   30
#define SEND_RATE  (32u << 10)
#define DRAIN_S	   1
#define TICK_MS	   1000
/* Replies to one connection before others have their turn. */
#define ROUNDS_MAX 32

/* Identity of events; connections follow. */
enum { ID_LISTEN, ID_SIGNAL, ID_WORKERS };
#define ID_CONNS   (ID_WORKERS + SB_SERVE_WORKERS)
#define EVENTS_MAX 64

static uint64_t in_s(uint64_t seconds)
{
	return sb_now_ns() + seconds * SB_NS_PER_SEC;
}

static uint32_t id_of(const struct sb_serve *serve, const struct sb_conn *conn)
{
	return ID_CONNS + (uint32_t)(conn - serve->conns);
}

/* Connections. */

static void drop(struct sb_serve *serve, struct sb_conn *conn)
{
	if (conn->state == SB_CONN_ASKING)
		sb_pool_forget(serve, conn);
	if (conn->body_fd >= 0)
		serve->nr_body_bytes -= conn->body_len;
	/*
	 * A worker that has just been forked still has a copy of the descriptor, so epoll would go
	 * on to report events, for the connection that has this slot by then.
	 */
	(void)epoll_ctl(serve->epoll_fd, EPOLL_CTL_DEL, conn->fd, NULL);
	sb_conn_release(conn);
	serve->counts.nr_conns--;
}

static void want(struct sb_serve *serve, struct sb_conn *conn, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u32 = id_of(serve, conn) };

	if (conn->events == events)
		return;
	conn->events = events;
	if (epoll_ctl(serve->epoll_fd, EPOLL_CTL_MOD, conn->fd, &event))
		drop(serve, conn);
}

/* The reply is in conn->head and its body. @err: it could not be made. */
static void begin_reply(struct sb_serve *serve, struct sb_conn *conn, int err)
{
	if (err) {
		drop(serve, conn);
		return;
	}
	serve->counts.nr_replies[conn->status / 100]++;
	serve->counts.nr_sent_bytes += conn->has_no_body ? 0 : conn->body_len;
	conn->state = SB_CONN_SENDING;
	conn->deadline_ns = in_s(SEND_S + conn->body_len / SEND_RATE);
}

void sb_serve_refuse(struct sb_serve *serve, struct sb_conn *conn, int status, const char *why)
{
	begin_reply(serve, conn, sb_reply_error(conn, status, why));
}

/* Drop the queued questions whose clients are gone: epoll may not have reported them yet. */
static void drop_gone(struct sb_serve *serve)
{
	struct sb_conn *conn, *next;

	for (conn = serve->first; conn; conn = next) {
		struct pollfd state = { .fd = conn->fd, .events = POLLRDHUP };

		next = conn->next;
		if (poll(&state, 1, 0) > 0)
			drop(serve, conn);
	}
}

static int ask(struct sb_serve *serve, struct sb_conn *conn, const struct sb_http_request *request,
	       int route)
{
	int err;

	if (serve->nr_queued >= SB_SERVE_QUEUE_MAX)
		drop_gone(serve);
	if (serve->nr_queued >= SB_SERVE_QUEUE_MAX) {
		serve->counts.nr_refused++;
		sb_serve_refuse(serve, conn, 503, "too many requests are waiting; try again");
		return 0;
	}
	sb_str_clear(&conn->query);
	err = sb_str_addn(&conn->query, request->query.len ? request->query.s : "",
			  request->query.len);
	if (err)
		return err;
	conn->route = (uint32_t)route;
	conn->accepts_gzip = sb_http_list_has(request->accept_encoding, "gzip");
	conn->is_asked_again = false;
	conn->state = SB_CONN_ASKING;
	conn->deadline_ns = in_s(ASK_S);
	sb_pool_add(serve, conn);
	return 0;
}

/* Return: 0 or -ENOMEM. */
static int route(struct sb_serve *serve, struct sb_conn *conn,
		 const struct sb_http_request *request)
{
	const char *why = NULL;
	int status = sb_access_check_host(&serve->access, request, &why), row;
	size_t i;

	if (!status && sb_http_text_is(request->path, "/healthz")) {
		begin_reply(serve, conn, sb_reply_health(conn));
		return 0;
	}
	if (!status && serve->access.token && sb_http_text_is(request->path, "/") &&
	    sb_access_query_has_token(&serve->access, request->query)) {
		begin_reply(serve, conn, sb_reply_cookie(conn, &serve->access));
		return 0;
	}
	if (!status)
		status = sb_access_check(&serve->access, request, &why);
	serve->counts.nr_unknown += status == 401;
	if (status) {
		sb_serve_refuse(serve, conn, status, why);
		return 0;
	}
	for (i = 0; i < SB_SERVE_NR_ASSETS; i++) {
		if (!sb_http_text_is(request->path, serve->assets[i].path))
			continue;
		begin_reply(serve, conn, sb_reply_asset(conn, request, &serve->assets[i]));
		return 0;
	}
	row = sb_route_find(request->path);
	if (row >= 0)
		return ask(serve, conn, request, row);
	sb_serve_refuse(serve, conn, 404, "there is nothing at this address; the page is at '/'");
	return 0;
}

static const char *reason_of(int status)
{
	switch (status) {
	case 405:
		return "only GET and HEAD are supported";
	case 413:
		return "a request must have no body";
	case 414:
		return "the address is longer than 8 KiB";
	case 431:
		return "the header of the request is longer than 16 KiB, or has more than "
		       "100 lines";
	case 505:
		return "only HTTP/1.1 and HTTP/1.0 are supported";
	default:
		return "this is not a valid HTTP request (RFC 9112)";
	}
}

static void handle(struct sb_serve *serve, struct sb_conn *conn)
{
	struct sb_http_request request;
	int status = sb_http_parse(conn->in.s, conn->head_len, &request);

	conn->closes = status || !request.keeps;
	conn->has_no_body = request.is_head;
	if (status)
		sb_serve_refuse(serve, conn, status, reason_of(status));
	else if (route(serve, conn, &request))
		drop(serve, conn);
}

static void read_on(struct sb_serve *serve, struct sb_conn *conn)
{
	int ret = sb_conn_read(conn);

	if (ret == 1) {
		handle(serve, conn);
	} else if (ret == -EMSGSIZE) {
		conn->closes = true;
		conn->has_no_body = false;
		sb_serve_refuse(serve, conn, 431, reason_of(431));
	} else if (ret) {
		drop(serve, conn);
	} else {
		want(serve, conn, EPOLLIN);
	}
}

/* A reply has been sent. */
static void end_reply(struct sb_serve *serve, struct sb_conn *conn)
{
	if (conn->body_fd >= 0)
		serve->nr_body_bytes -= conn->body_len;
	if (conn->closes) {
		(void)shutdown(conn->fd, SHUT_WR);
		sb_closep(&conn->body_fd);
		conn->body_fd = -1;
		conn->state = SB_CONN_DRAINING;
		conn->deadline_ns = in_s(DRAIN_S);
		want(serve, conn, EPOLLIN);
		return;
	}
	sb_conn_next(conn);
	conn->state = SB_CONN_READING;
	conn->deadline_ns = in_s(READ_S);
}

static void send_on(struct sb_serve *serve, struct sb_conn *conn)
{
	int ret = sb_conn_send(conn);

	if (ret == 1)
		end_reply(serve, conn);
	else if (ret)
		drop(serve, conn);
	else
		want(serve, conn, EPOLLOUT);
}

/* Read or send as much as possible now. */
void sb_serve_go_on(struct sb_serve *serve, struct sb_conn *conn)
{
	int rounds;

	for (rounds = 0; rounds < ROUNDS_MAX; rounds++) {
		if (conn->state == SB_CONN_READING) {
			read_on(serve, conn);
			if (conn->state == SB_CONN_READING)
				return;
		} else if (conn->state == SB_CONN_SENDING) {
			send_on(serve, conn);
			if (conn->state == SB_CONN_SENDING)
				return;
		} else {
			break;
		}
	}
	if (conn->state == SB_CONN_ASKING)
		want(serve, conn, EPOLLRDHUP);
	else if (conn->state == SB_CONN_DRAINING && sb_conn_drain(conn))
		drop(serve, conn);
	else if (conn->state == SB_CONN_READING || conn->state == SB_CONN_SENDING)
		want(serve, conn, EPOLLIN | EPOLLOUT);
}

static void on_conn(struct sb_serve *serve, struct sb_conn *conn, uint32_t events)
{
	if (conn->state == SB_CONN_FREE)
		return;
	/* The client is gone: nobody waits for the answer. */
	if (conn->state == SB_CONN_ASKING && events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		drop(serve, conn);
	else
		sb_serve_go_on(serve, conn);
}

/*
 * The connection to evict: the one that takes longest to send a request; else the one that takes
 * longest to take its reply. Questions that are being answered stay.
 */
static struct sb_conn *find_slowest(struct sb_serve *serve)
{
	struct sb_conn *slowest = NULL, *conn;
	bool reads, is_better;

	for (conn = serve->conns; conn < serve->conns + serve->nr_conns_max; conn++) {
		if (conn->state == SB_CONN_FREE || conn->state == SB_CONN_ASKING)
			continue;
		reads = conn->state == SB_CONN_READING || conn->state == SB_CONN_DRAINING;
		is_better = !slowest || (reads && slowest->state == SB_CONN_SENDING) ||
			    (reads == (slowest->state != SB_CONN_SENDING) &&
			     conn->deadline_ns < slowest->deadline_ns);
		if (is_better)
			slowest = conn;
	}
	return slowest;
}

static bool evict(struct sb_serve *serve)
{
	struct sb_conn *slowest = find_slowest(serve);

	if (!slowest)
		return false;
	serve->counts.nr_evicted++;
	drop(serve, slowest);
	return true;
}

static struct sb_conn *find_free(struct sb_serve *serve)
{
	struct sb_conn *conn;

	for (conn = serve->conns; conn < serve->conns + serve->nr_conns_max; conn++)
		if (conn->state == SB_CONN_FREE)
			return conn;
	return NULL;
}

static void take(struct sb_serve *serve, int fd)
{
	struct sb_conn *conn = find_free(serve);
	struct epoll_event event = { .events = EPOLLIN };

	if (!conn && evict(serve))
		conn = find_free(serve);
	if (!conn) {
		serve->counts.nr_evicted++;
		close(fd);
		return;
	}
	sb_conn_init(conn, fd, in_s(READ_S));
	serve->counts.nr_conns++;
	conn->events = event.events;
	event.data.u32 = id_of(serve, conn);
	if (epoll_ctl(serve->epoll_fd, EPOLL_CTL_ADD, fd, &event))
		drop(serve, conn);
}

static void on_listen(struct sb_serve *serve)
{
	int fd, rounds;

	for (rounds = 0; rounds < EVENTS_MAX; rounds++) {
		fd = accept4(serve->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			take(serve, fd);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			/* The new connection is reported again at once, so an old one has to go. */
			(void)evict(serve);
		else
			return;
	}
}

static void expire(struct sb_serve *serve, struct sb_conn *conn)
{
	switch (conn->state) {
	case SB_CONN_READING:
		serve->counts.nr_late += conn->in.len > 0;
		if (!conn->in.len) {
			drop(serve, conn);
			return;
		}
		conn->closes = true;
		conn->has_no_body = false;
		sb_serve_refuse(serve, conn, 408, "the request took too long to arrive");
		break;
	case SB_CONN_ASKING:
		sb_pool_forget(serve, conn);
		serve->counts.nr_refused++;
		sb_serve_refuse(serve, conn, 503,
				"too many requests were waiting before this one; try again");
		break;
	case SB_CONN_SENDING:
		serve->counts.nr_late++;
		drop(serve, conn);
		return;
	default:
		drop(serve, conn);
		return;
	}
	if (conn->state != SB_CONN_FREE)
		sb_serve_go_on(serve, conn);
}

static void expire_all(struct sb_serve *serve)
{
	uint64_t now_ns = sb_now_ns();
	struct sb_conn *conn;

	if (now_ns < serve->next_expiry_ns)
		return;
	serve->next_expiry_ns = now_ns + TICK_MS * SB_NS_PER_MS;
	for (conn = serve->conns; conn < serve->conns + serve->nr_conns_max; conn++)
		if (conn->state != SB_CONN_FREE && conn->deadline_ns <= now_ns)
			expire(serve, conn);
	sb_pool_expire(serve, now_ns);
}

/* An answer: see worker.h. */
void sb_serve_answer(struct sb_serve *serve, struct sb_conn *conn, struct sb_answer *answer, int fd)
{
	const struct sb_route *row = sb_route_at(conn->route);
	struct sb_reply reply = { .status = 200, .type = row->type };
	struct sb_conn *slowest;
	struct stat st;

	answer->error[sizeof(answer->error) - 1] = '\0';
	answer->file_name[sizeof(answer->file_name) - 1] = '\0';
	if (fd < 0 || answer->status != 200 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		sb_closep(&fd);
		sb_serve_refuse(
			serve, conn,
			answer->status >= 400 && answer->status < 600 ? answer->status : 500,
			answer->error[0] ? answer->error : "the answer was lost; try again");
		return;
	}
	reply.len = (uint64_t)st.st_size;
	reply.is_gzip = answer->is_gzip;
	/* It becomes part of a head, so accept only characters that we would use. */
	if (answer->file_name[0])
		reply.file_name =
			strspn(answer->file_name, SB_FILE_NAME_CHARS) == strlen(answer->file_name)
				? answer->file_name
				: "profile";
	conn->body_fd = fd;
	conn->body = NULL;
	serve->nr_body_bytes += reply.len;
	begin_reply(serve, conn, sb_reply_head(conn, &reply));
	while (serve->nr_body_bytes > SB_SERVE_BODIES_MAX) {
		slowest = find_slowest(serve);
		if (!slowest || slowest == conn)
			break;
		serve->counts.nr_evicted++;
		drop(serve, slowest);
	}
}

/* The loop. */

static int wait_ms(const struct sb_serve *serve)
{
	return serve->counts.nr_conns || sb_pool_is_busy(serve) ? TICK_MS : -1;
}

int sb_serve_run(struct sb_serve *serve)
{
	struct epoll_event events[EVENTS_MAX];
	bool has_new = false;
	int nr, i, err;

	err = serve->opts->confine_front ? serve->opts->confine_front() : 0;
	if (err)
		return err;
	for (;;) {
		nr = epoll_wait(serve->epoll_fd, events, EVENTS_MAX, wait_ms(serve));
		if (nr < 0 && errno != EINTR)
			return -errno;
		has_new = false;
		for (i = 0; i < nr; i++) {
			uint32_t id = events[i].data.u32;

			if (id == ID_SIGNAL)
				return 0;
			if (id == ID_LISTEN)
				has_new = true;
			else if (id < ID_CONNS)
				sb_pool_on_worker(serve, id - ID_WORKERS);
			else
				on_conn(serve, &serve->conns[id - ID_CONNS], events[i].events);
		}
		/* Last, so that no event of this round is taken for one of a new connection. */
		if (has_new)
			on_listen(serve);
		expire_all(serve);
		sb_pool_go_on(serve);
	}
}

static int watch(struct sb_serve *serve, int fd, uint32_t id)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = id };

	return epoll_ctl(serve->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int sb_serve_watch_worker(struct sb_serve *serve, size_t i)
{
	return watch(serve, serve->seats[i].peer.fd, ID_WORKERS + (uint32_t)i);
}

/* Remove a socket that nobody listens on any more; leave one that is in use. */
static void remove_stale(const union sb_address *address)
{
	sb_cleanup(sb_closep) int fd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (lstat(address->path.sun_path, &st) || !S_ISSOCK(st.st_mode) || fd < 0)
		return;
	if (connect(fd, &address->any, sizeof(address->path)) && errno == ECONNREFUSED)
		(void)unlink(address->path.sun_path);
}

/*
 * Create the socket with its mode, 0660, and its group: to change them afterwards by name could hit
 * another file.
 */
static int bind_path(int fd, const union sb_address *address, gid_t group)
{
	gid_t before = getegid();
	mode_t mask;
	int err;

	remove_stale(address);
	if (geteuid() == 0 && setegid(group))
		return -errno;
	mask = umask(0117);
	err = bind(fd, &address->any, sizeof(address->path)) ? -errno : 0;
	(void)umask(mask);
	if (geteuid() == 0 && setegid(before) && !err)
		err = -errno;
	return err;
}

static int bind_port(int fd, const union sb_address *address)
{
	const int on = 1;

	/* Accepted connections inherit TCP_NODELAY. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ||
	    bind(fd, &address->any, sb_address_len(address)))
		return -errno;
	return 0;
}

/* Set the URL, and the name of the cookie: another server on this machine has another port. */
static void name_it(struct sb_serve *serve, const union sb_address *address)
{
	char host[INET6_ADDRSTRLEN];
	unsigned int port = 0;

	if (address->any.sa_family == AF_UNIX) {
		snprintf(serve->url, sizeof(serve->url), "%s", serve->opts->listen);
	} else if (address->any.sa_family == AF_INET) {
		port = ntohs(address->v4.sin_port);
		snprintf(serve->url, sizeof(serve->url), "http://%s:%u/",
			 inet_ntop(AF_INET, &address->v4.sin_addr, host, sizeof(host)), port);
	} else {
		port = ntohs(address->v6.sin6_port);
		snprintf(serve->url, sizeof(serve->url), "http://[%s]:%u/",
			 inet_ntop(AF_INET6, &address->v6.sin6_addr, host, sizeof(host)), port);
	}
	snprintf(serve->access.cookie, sizeof(serve->access.cookie), "stackbpf-%u", port);
}

static int start_listening(struct sb_serve *serve)
{
	union sb_address address;
	socklen_t len;
	int fd, err = sb_address_parse(serve->opts->listen, &address);

	if (err)
		return err;
	fd = serve->listen_fd =
		socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	err = address.any.sa_family == AF_UNIX ? bind_path(fd, &address, serve->opts->group)
					       : bind_port(fd, &address);
	len = sb_address_len(&address);
	if (!err && (listen(fd, SOMAXCONN) || getsockname(fd, &address.any, &len)))
		err = -errno;
	if (err)
		return err;
	name_it(serve, &address);
	return watch(serve, fd, ID_LISTEN);
}

static int take_signals(struct sb_serve *serve)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	/* sendfile(2) has no flag to avoid SIGPIPE. */
	if (sigaction(SIGPIPE, &ignore, NULL) || sigprocmask(SIG_BLOCK, &signals, NULL))
		return -errno;
	serve->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	return serve->signal_fd < 0 ? -errno : watch(serve, serve->signal_fd, ID_SIGNAL);
}

/* Each connection may have an answer open, too. */
static size_t conns_max(void)
{
	struct rlimit limit = { .rlim_cur = 1024 };
	size_t nr;

	sb_raise_nofile();
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	nr = limit.rlim_cur > 128 ? (size_t)(limit.rlim_cur - 64) / 2 : 32;
	return nr < SB_SERVE_CONNS_MAX ? nr : SB_SERVE_CONNS_MAX;
}

static int init(struct sb_serve *serve, const struct sb_serve_opts *opts)
{
	size_t i;
	int err;

	serve->opts = opts;
	serve->listen_fd = serve->signal_fd = -1;
	serve->nr_conns_max = conns_max();
	serve->conns = calloc(serve->nr_conns_max, sizeof(*serve->conns));
	serve->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (serve->epoll_fd < 0)
		return -errno;
	if (!serve->conns)
		return -ENOMEM;
	for (i = 0; i < serve->nr_conns_max; i++)
		serve->conns[i] = (struct sb_conn){ .fd = -1, .body_fd = -1 };
	serve->access.token = opts->token;
	serve->access.hosts = opts->hosts;
	serve->access.nr_hosts = opts->nr_hosts;
	(void)gethostname(serve->access.host_name, sizeof(serve->access.host_name) - 1);
	serve->counts.start_s = sb_real_us() / 1000000;
	err = sb_assets_init(serve->assets);
	if (!err)
		err = start_listening(serve);
	return err ? err : take_signals(serve);
}

int sb_serve_new(const struct sb_serve_opts *opts, struct sb_serve **ret_serve)
{
	struct sb_serve *serve = calloc(1, sizeof(*serve));
	int err = serve ? init(serve, opts) : -ENOMEM;

	if (err) {
		sb_serve_free(serve);
		return err;
	}
	*ret_serve = serve;
	return 0;
}

void sb_serve_close_all(struct sb_serve *serve)
{
	size_t i;

	for (i = 0; i < serve->nr_conns_max && serve->conns; i++)
		sb_conn_release(&serve->conns[i]);
	sb_closep(&serve->listen_fd);
	sb_closep(&serve->signal_fd);
	sb_closep(&serve->epoll_fd);
}

void sb_serve_free(struct sb_serve *serve)
{
	if (!serve)
		return;
	sb_pool_release(serve);
	sb_serve_close_all(serve);
	sb_assets_release(serve->assets);
	free(serve->conns);
	free(serve);
}

const char *sb_serve_url(const struct sb_serve *serve)
{
	return serve->url;
}
