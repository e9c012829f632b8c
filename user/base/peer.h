/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A child process that runs a function of this program and talks to its parent over a socket, by
 * messages that can carry file descriptors. It ignores the signals that a terminal or a service
 * manager sends to the whole process group: it ends when the parent closes its end of the socket.
 *
 * Order: in the parent sb_peer_new(), sb_peer_send() and sb_peer_receive() on peer.fd, and
 * sb_peer_release() or sb_peer_kill(), also when a call returned -ECHILD. In the child, at the
 * beginning of @run, sb_peer_keep_fds() and sb_peer_leave_terminal(), if it needs them; then it
 * receives and sends on its end until -ECHILD.
 *
 * No pointer is NULL unless its contract says so. Thread: any, one at a time for each peer and each
 * socket.
 */
#ifndef SB_BASE_PEER_H
#define SB_BASE_PEER_H

#include <stddef.h>
#include <sys/types.h>

struct sb_peer {
	pid_t pid; /* 0: there is none */
	/* The parent's end of the socket (SOCK_SEQPACKET, which preserves message boundaries). */
	int fd;
};

/*
 * Fork a child that calls @run(@arg, its end of the socket) and exits when that returns, with
 * _exit(0). @run has to return when sb_peer_receive() returns -ECHILD. @arg may be NULL; the child
 * has a copy of what it points to, as of all memory and descriptors. Of the parent's threads only
 * the calling one exists in the child.
 * Return: 0, with @ret_peer overwritten, for the caller to release; or a negative errno of
 * socketpair(2) or fork(2), and then it is untouched.
 */
int sb_peer_new(void (*run)(void *arg, int fd), void *arg, struct sb_peer *ret_peer);
/* Close the parent's end of the socket, wait until the child has exited, however long that takes,
 * and zero @peer, which sb_peer_new() can fill in again. Does nothing without a child (pid 0). */
void sb_peer_release(struct sb_peer *peer);
/* Kill the child with SIGKILL, then do what sb_peer_release() does. */
void sb_peer_kill(struct sb_peer *peer);

/*
 * For the child: renumber the @nr descriptors in @fds to 3, 4, ..., in the order of the array, and
 * store the new numbers there; close all others above 2, so that the child's end of the socket has
 * to be among them. All are close-on-exec then.
 * Return: 0; or a negative errno of fcntl(2) or dup3(2), when some may have been renumbered: the
 * child has to exit.
 */
int sb_peer_keep_fds(int *fds, int nr);
/*
 * For the child: replace standard input, output and error by /dev/null. With a sanitizer, which
 * reports there, nothing is done. Return: 0; or a negative errno of open(2) or dup2(2): the child
 * has to exit.
 */
int sb_peer_leave_terminal(void);

#define SB_PEER_FDS_MAX 2

/*
 * Send one message of @len bytes, at least 1, without blocking. @fd: either end of the socket;
 * @fds: descriptors to send with it, NULL if @nr_fds is 0, which the caller keeps.
 * Return: 0; -EINVAL for more than SB_PEER_FDS_MAX descriptors; -ECHILD when the other end is
 * closed; -EAGAIN when the socket's buffer is full: try again later; or another negative errno of
 * sendmsg(2). Nothing was sent on error.
 */
int sb_peer_send(int fd, const void *message, size_t len, const int *fds, size_t nr_fds);
/*
 * Block until a message arrives at @fd, which has to have exactly @len bytes and up to @fds_max
 * descriptors. The caller owns those stored in @ret_fds (NULL if @fds_max is 0), which are
 * close-on-exec; unused entries are -1.
 * Return: the number of descriptors; -ECHILD when the other end is closed; -EPROTO when the message
 * has another size or more descriptors; -EMFILE when there is no room for its descriptors; or
 * another negative errno of recvmsg(2). After an error no descriptor is left open, all of @ret_fds
 * are -1, and @message is undefined; with -EPROTO and -EMFILE the message is lost, and the next one
 * can be received.
 */
int sb_peer_receive(int fd, void *message, size_t len, int *ret_fds, size_t fds_max);

#endif
