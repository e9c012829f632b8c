/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A thread that serves what BPF programs ask for through a ring of their own, and what other threads
 * of ours wake it for. Internal to capture: the owner has a struct sb_server in its own state, zeroed
 * and then opened. Life: open, start, stop, release; stop and release may follow any failure.
 */
#ifndef SB_CAPTURE_SERVER_H
#define SB_CAPTURE_SERVER_H

#include <bpf/libbpf.h>
#include <pthread.h>
#include <stdbool.h>

struct sb_server {
	struct ring_buffer *ring; /* consumed by the owner, under whatever lock it has */
	bool is_open;
	int event_fd, epoll_fd;
	pthread_t thread;
	bool has_thread, is_ending;
};

/* The ring is the map @map_fd; @on_event is called for each record when it is consumed.
 * Return: 0 or a negative errno. */
int sb_server_open(struct sb_server *server, int map_fd, ring_buffer_sample_fn on_event, void *arg);
/* @run(@arg) loops over sb_server_wait() on a thread of its own. @name: 15 characters.
 * Return: 0 or a negative errno. */
int sb_server_start(struct sb_server *server, const char *name, void *(*run)(void *arg), void *arg);

/* The thread's: sleep until there is something in the ring, somebody wakes it, or @timeout_ms have
 * passed (-1: for ever). Return: false when it is to end. */
bool sb_server_wait(struct sb_server *server, int timeout_ms);
/* Return: whether it is to end: for loops that take long. Any thread. */
bool sb_server_is_ending(const struct sb_server *server);

/* Any thread; does not block. */
void sb_server_wake(struct sb_server *server);

/* Returns when the thread has ended; what it uses can be freed from then on. */
void sb_server_stop(struct sb_server *server);
void sb_server_release(struct sb_server *server);

#endif
