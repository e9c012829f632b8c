/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A thread that serves requests of BPF programs, which come through a ring buffer of their own, and
 * requests of other threads. Internal to capture. A module that needs one embeds a zeroed struct
 * sb_server and calls sb_server_open(), _start(), _stop() and _release() in this order. The last
 * two may also be called after any of the others has failed, and again. One thread calls these
 * four. No pointer may be NULL but @arg.
 */
#ifndef SB_CAPTURE_SERVER_H
#define SB_CAPTURE_SERVER_H

#include <bpf/libbpf.h>
#include <pthread.h>
#include <stdbool.h>

struct sb_server {
	struct ring_buffer *ring; /* consumed by the owner, under its own lock */
	bool is_open;
	int event_fd, epoll_fd;
	pthread_t thread;
	bool has_thread, is_ending;
};

/* Open the ring buffer map @map_fd, which stays the caller's. @on_event is called with @arg for
 * each record when the owner consumes the ring (ring_buffer__consume()), on the thread that does.
 * Return: 0; or a negative errno of making a descriptor or the ring: sb_server_release() frees what
 * was made. */
int sb_server_open(struct sb_server *server, int map_fd, ring_buffer_sample_fn on_event, void *arg);
/*
 * Start the thread, which calls @run(@arg): a loop over sb_server_wait(), until that returns false.
 * @run must first call sb_privileges_thread() (workers/privileges.h). @name: at most 15 characters,
 * copied. Return: 0; or a negative errno of pthread_create(3), mostly -EAGAIN, and then there is no
 * thread.
 */
int sb_server_start(struct sb_server *server, const char *name, void *(*run)(void *arg), void *arg);

/* Called by the server's thread: sleep until the ring has records, sb_server_wake() is called, or
 * @timeout_ms have passed (-1: no limit). Return: true for all of these, which it does not tell
 * apart, so look at everything; false when the thread is to end, also because it cannot wait any
 * more. */
bool sb_server_wait(struct sb_server *server, int timeout_ms);
/* Return: whether the thread is to end. For long loops. Any thread. */
bool sb_server_is_ending(const struct sb_server *server);

/* Wake the thread; between sb_server_open() and sb_server_release() only. Any thread; does not
 * block. */
void sb_server_wake(struct sb_server *server);

/* End the thread, if there is one, and wait for it. What it uses can be freed after that. */
void sb_server_stop(struct sb_server *server);
/* Close the ring and the descriptors, and zero the struct. */
void sb_server_release(struct sb_server *server);

#endif
