// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/server.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "capture/thread.h"

static int watch_fd(const struct sb_server *server, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int sb_server_open(struct sb_server *server, int map_fd, ring_buffer_sample_fn on_event, void *arg)
{
	int err;

	server->is_open = true;
	server->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = server->event_fd < 0 ? -errno : 0;
	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!err && server->epoll_fd < 0)
		err = -errno;
	if (err)
		return err;
	server->ring = ring_buffer__new(map_fd, on_event, arg, NULL);
	if (!server->ring)
		return -errno;
	err = watch_fd(server, server->event_fd);
	return err ? err : watch_fd(server, ring_buffer__epoll_fd(server->ring));
}

int sb_server_start(struct sb_server *server, const char *name, void *(*run)(void *arg), void *arg)
{
	int err = sb_thread_start(name, run, arg, &server->thread);

	server->has_thread = !err;
	return err;
}

bool sb_server_is_ending(const struct sb_server *server)
{
	return __atomic_load_n(&server->is_ending, __ATOMIC_RELAXED);
}

bool sb_server_wait(struct sb_server *server, int timeout_ms)
{
	struct epoll_event events[2];
	uint64_t nr;

	if (sb_server_is_ending(server))
		return false;
	if (epoll_wait(server->epoll_fd, events, 2, timeout_ms) < 0 && errno != EINTR)
		return false;
	/* Only to make it unreadable again. */
	if (read(server->event_fd, &nr, sizeof(nr)) < 0 && errno != EAGAIN)
		return false;
	return !sb_server_is_ending(server);
}

void sb_server_wake(struct sb_server *server)
{
	const uint64_t one = 1;

	/* It fails only when it has been woken 2^64 times and not looked. */
	if (write(server->event_fd, &one, sizeof(one)) < 0)
		sb_debug("cannot wake a thread of stackbpf: %s", strerror(errno));
}

void sb_server_stop(struct sb_server *server)
{
	if (!server->has_thread)
		return;
	__atomic_store_n(&server->is_ending, true, __ATOMIC_RELAXED);
	sb_server_wake(server);
	pthread_join(server->thread, NULL);
	server->has_thread = false;
}

void sb_server_release(struct sb_server *server)
{
	if (!server->is_open)
		return;
	ring_buffer__free(server->ring);
	if (server->event_fd >= 0)
		close(server->event_fd);
	if (server->epoll_fd >= 0)
		close(server->epoll_fd);
	memset(server, 0, sizeof(*server));
}
