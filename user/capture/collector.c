// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/collector.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "capture/drain.h"
#include "capture/thread.h"
#include "workers/privileges.h"

/* The session's thread is woken by the same descriptor. If it has not drained after this time, it
 * is busy. With a quarter of the counts free, there is room for 800,000 new keys a second
 * meanwhile. */
#define GRACE_MS 10
/* When there was no room or no memory, it is tried again after this time. */
#define REST_MS	 100

struct sb_collector {
	struct sb_drain *drain;
	pthread_t thread;
	int quit_fd;
};

static bool must_quit(const struct sb_collector *collector, int timeout_ms)
{
	struct pollfd quit = { .fd = collector->quit_fd, .events = POLLIN };

	return poll(&quit, 1, timeout_ms) > 0;
}

static void *collect(void *arg)
{
	struct sb_collector *collector = arg;
	struct pollfd fds[] = {
		{ .fd = collector->quit_fd, .events = POLLIN },
		{ .fd = sb_drain_poll_fd(collector->drain), .events = POLLIN },
	};
	uint64_t nr_runs;
	int err = 0;

	sb_thread_hurry();
	sb_privileges_thread(SB_ROLE_TABLES);
	while (!err || err == -EAGAIN || err == -ENOMEM) {
		if (poll(fds, SB_ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return NULL;
		nr_runs = sb_drain_nr_runs(collector->drain);
		if (must_quit(collector, err ? REST_MS : GRACE_MS))
			return NULL;
		err = nr_runs == sb_drain_nr_runs(collector->drain)
			      ? sb_drain_collect(collector->drain)
			      : 0;
	}
	/* The session's thread will get the same error, and reports it. */
	sb_debug("the thread that reads samples early stops: errno %d", -err);
	return NULL;
}

int sb_collector_new(struct sb_drain *drain, struct sb_collector **ret_collector)
{
	struct sb_collector *collector = calloc(1, sizeof(*collector));
	int err;

	if (!collector)
		return -ENOMEM;
	collector->drain = drain;
	collector->quit_fd = eventfd(0, EFD_CLOEXEC);
	err = collector->quit_fd < 0 ? -errno : 0;
	if (!err)
		err = sb_thread_start("stackbpf-drain", collect, collector, &collector->thread);
	if (err) {
		sb_closep(&collector->quit_fd);
		free(collector);
		return err;
	}
	*ret_collector = collector;
	return 0;
}

void sb_collector_free(struct sb_collector *collector)
{
	const uint64_t one = 1;

	if (!collector)
		return;
	if (write(collector->quit_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(collector->thread, NULL);
	sb_closep(&collector->quit_fd);
	free(collector);
}
