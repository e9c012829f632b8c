// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

/* More than are open at the beginning. */
#define FDS_MAX	      4096
#define FIRST_FD      (STDERR_FILENO + 1)
#define CONTROL_BYTES CMSG_SPACE(SB_PEER_FDS_MAX * sizeof(int))

union control {
	char bytes[CONTROL_BYTES];
	struct cmsghdr align;
};

static int ignore_signals(void)
{
	static const int ignored[] = { SIGINT,	SIGTERM, SIGHUP,  SIGQUIT,
				       SIGUSR1, SIGUSR2, SIGPIPE, SIGXFSZ };
	struct sigaction action = { .sa_handler = SIG_IGN };
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(ignored); i++)
		if (sigaction(ignored[i], &action, NULL))
			return -errno;
	return 0;
}

int sb_peer_new(void (*run)(void *arg, int fd), void *arg, struct sb_peer *ret_peer)
{
	sigset_t all, before;
	int fds[2], err;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	/* On a busy machine, Ctrl-C can come before the child runs for the first time. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = fork();
	err = pid < 0 ? -errno : 0;
	if (!pid) {
		/* Our end, or it would never see us go. */
		close(fds[0]);
		err = ignore_signals();
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		if (!err)
			run(arg, fds[1]);
		_exit(0);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	close(fds[1]);
	if (err) {
		close(fds[0]);
		return err;
	}
	*ret_peer = (struct sb_peer){ .pid = pid, .fd = fds[0] };
	return 0;
}

void sb_peer_release(struct sb_peer *peer)
{
	if (!peer->pid)
		return;
	close(peer->fd);
	while (waitpid(peer->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*peer = (struct sb_peer){};
}

void sb_peer_kill(struct sb_peer *peer)
{
	if (peer->pid)
		kill(peer->pid, SIGKILL);
	sb_peer_release(peer);
}

int sb_peer_send(int fd, const void *message, size_t len, const int *fds, size_t nr_fds)
{
	struct iovec iov = { .iov_base = (void *)message, .iov_len = len };
	union control control = {};
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *rights;
	ssize_t nr_bytes;

	if (nr_fds > SB_PEER_FDS_MAX)
		return -EINVAL;
	if (nr_fds) {
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(nr_fds * sizeof(fd));
		rights = CMSG_FIRSTHDR(&header);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(nr_fds * sizeof(fd));
		memcpy(CMSG_DATA(rights), fds, nr_fds * sizeof(fd));
	}
	do
		nr_bytes = sendmsg(fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (nr_bytes < 0 && errno == EINTR);
	if (nr_bytes >= 0)
		return 0;
	return errno == EPIPE || errno == ECONNRESET ? -ECHILD : -errno;
}

/* What came, the first @fds_max of it; the rest is closed. Return: how many came. */
static size_t take_fds(struct msghdr *header, int *fds, size_t fds_max)
{
	struct cmsghdr *rights = CMSG_FIRSTHDR(header);
	size_t nr = 0, i;
	int fd;

	if (!rights || rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS)
		return 0;
	nr = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(fd);
	for (i = 0; i < nr; i++) {
		memcpy(&fd, CMSG_DATA(rights) + i * sizeof(fd), sizeof(fd));
		if (i < fds_max)
			fds[i] = fd;
		else
			close(fd);
	}
	return nr;
}

int sb_peer_receive(int fd, void *message, size_t len, int *ret_fds, size_t fds_max)
{
	struct iovec iov = { .iov_base = message, .iov_len = len };
	union control control;
	struct msghdr header = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t nr_bytes;
	size_t nr_fds, i;
	int err = 0;

	for (i = 0; i < fds_max; i++)
		ret_fds[i] = -1;
	do
		nr_bytes = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
	while (nr_bytes < 0 && errno == EINTR);
	if (nr_bytes < 0)
		return errno == ECONNRESET ? -ECHILD : -errno;
	nr_fds = take_fds(&header, ret_fds, fds_max);
	if (!nr_bytes)
		err = -ECHILD;
	else if ((size_t)nr_bytes != len || (header.msg_flags & MSG_TRUNC) || nr_fds > fds_max)
		err = -EPROTO;
	else if (header.msg_flags & MSG_CTRUNC)
		err = -EMFILE;
	for (i = 0; i < fds_max && err; i++) {
		sb_closep(&ret_fds[i]);
		ret_fds[i] = -1;
	}
	return err ? err : (int)nr_fds;
}

int sb_peer_keep_fds(int *fds, int nr)
{
	int i;

	/* First out of the way of each other. */
	for (i = 0; i < nr; i++) {
		fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FIRST_FD + nr);
		if (fds[i] < 0)
			return -errno;
	}
	for (i = 0; i < nr; i++) {
		if (dup3(fds[i], FIRST_FD + i, O_CLOEXEC) < 0)
			return -errno;
		fds[i] = FIRST_FD + i;
	}
	if (syscall(SYS_close_range, FIRST_FD + nr, ~0u, 0))
		/* A filter that does not know it: that of a service manager. */
		for (i = FIRST_FD + nr; i < sysconf(_SC_OPEN_MAX) && i < FDS_MAX; i++)
			(void)close(i);
	return 0;
}

int sb_peer_leave_terminal(void)
{
#ifndef SB_SANITIZED
	int fd, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return -errno;
	for (fd = 0; fd < FIRST_FD; fd++)
		if (dup2(null, fd) < 0)
			return -errno;
#endif
	return 0;
}
