/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process of our own at the other end of a socket: forked, no other program; messages with
 * descriptors between the two. It takes no signals that a terminal or a service manager sends to all
 * of us: what becomes of it is said by us, and it ends when our end of the socket does.
 */
#ifndef SB_BASE_PEER_H
#define SB_BASE_PEER_H

#include <stddef.h>
#include <sys/types.h>

struct sb_peer {
	pid_t pid; /* 0: there is none */
	int fd;	   /* ours; keeps the borders of messages (SOCK_SEQPACKET) */
};

/* Fork. In the new process @run(@arg, its end) is called, and then it is over; it is to return when
 * sb_peer_receive() says -ECHILD. Where we have threads, only this one lives on in it.
 * Return: 0 or a negative errno. */
int sb_peer_new(void (*run)(void *arg, int fd), void *arg, struct sb_peer *ret_peer);
/* Close our end and wait for its end. */
void sb_peer_release(struct sb_peer *peer);
/* The same, and do not leave it to the process when that is. */
void sb_peer_kill(struct sb_peer *peer);

/* In the new process. Keep the @nr descriptors @fds, which become numbers from 3 on, and nothing else above 2.
 * Return: 0 or a negative errno. */
int sb_peer_keep_fds(int *fds, int nr);
/* Standard input, output and error become /dev/null, but below a sanitizer, which writes there.
 * Return: 0 or a negative errno. */
int sb_peer_leave_terminal(void);

#define SB_PEER_FDS_MAX 2

/* Either end; does not wait. The caller keeps @fds. Return: 0; -ECHILD: the other end is closed; -EAGAIN: it
 * does not take what it was sent before; or a negative errno. */
int sb_peer_send(int fd, const void *message, size_t len, const int *fds, size_t nr_fds);
/*
 * Waits for a message of exactly @len bytes with up to @fds_max descriptors, which are the caller's;
 * the rest of @ret_fds is -1. Return: how many they are; -ECHILD: the other end is closed; -EPROTO: the
 * message is of another size; -EMFILE: there is no room for its descriptors; or a negative errno.
 */
int sb_peer_receive(int fd, void *message, size_t len, int *ret_fds, size_t fds_max);

#endif
