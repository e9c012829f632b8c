// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"

/* How often to look whether a FIFO has a reader: it is the other process that opens, and it must be
 * there for what comes next. */
#define FIFO_LOOK_MS 20

struct sb_writer {
	pid_t pid;
	int fd;
};

enum op { OPEN, COMMIT, DISCARD };

struct request {
	uint32_t op, i;
};

/* Its descriptor comes with the answer to OPEN. */
struct answer {
	int32_t err;
};

union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

/* The other process. */

static int peer_fd; /* of the one thread there is */

static int send_answer(int err, int fd)
{
	struct answer answer = { .err = err };
	struct iovec iov = { .iov_base = &answer, .iov_len = sizeof(answer) };
	union control control = {};
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *header;

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	}
	return sendmsg(peer_fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

struct slot {
	struct sb_output_file *file;
	bool is_direct; /* a device, a FIFO: there is no name to give */
};

/* Return: a descriptor, -ENXIO for a FIFO without a reader, or -ENOENT where a file is to be made. */
static int open_direct(const char *path)
{
	struct stat st;
	int fd;

	if (lstat(path, &st) || S_ISREG(st.st_mode) || S_ISLNK(st.st_mode) || S_ISDIR(st.st_mode))
		return -ENOENT;
	fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	/* Only the opening was not to wait. */
	if (fcntl(fd, F_SETFL, 0)) {
		close(fd);
		return -EIO;
	}
	return fd;
}

static void drop(struct slot *slot)
{
	sb_output_file_free(sb_take(slot->file));
	slot->is_direct = false;
}

static int serve_open(const char *path, struct slot *slot)
{
	int err, fd;

	drop(slot);
	fd = open_direct(path);
	if (fd >= 0) {
		slot->is_direct = true;
		err = send_answer(0, fd);
		close(fd);
		return err;
	}
	err = fd == -ENOENT ? sb_output_file_new(path, &slot->file) : fd;
	return send_answer(err, err ? -1 : fileno(sb_output_file_stream(slot->file)));
}

static int serve(enum op op, const char *path, struct slot *slot)
{
	int err = 0;

	if (op == OPEN)
		return serve_open(path, slot);
	if (op == COMMIT && !slot->is_direct)
		err = slot->file ? sb_output_file_commit(slot->file) : -EBADF;
	drop(slot);
	return send_answer(err, -1);
}

static void serve_all(const char *const *paths, size_t nr, struct slot *slots)
{
	struct request request;
	ssize_t nr_bytes;

	for (;;) {
		nr_bytes = read(peer_fd, &request, sizeof(request));
		if (nr_bytes < 0 && errno == EINTR)
			continue;
		if (nr_bytes != sizeof(request) || request.i >= nr)
			return;
		if (serve(request.op, paths[request.i], &slots[request.i]))
			return;
	}
}

/* Signals are for the process that samples: it says what becomes of the files. */
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

static _Noreturn void be_writer(const char *const *paths, size_t nr, int fd)
{
	struct slot *slots = calloc(nr, sizeof(slots[0]));
	size_t i;

	(void)prctl(PR_SET_NAME, "stackbpf-write");
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	peer_fd = fd;
	if (slots && !ignore_signals()) {
		serve_all(paths, nr, slots);
		for (i = 0; i < nr; i++)
			drop(&slots[i]);
	}
	_exit(0);
}

/* Our side. */

int sb_writer_new(const char *const *paths, size_t nr, struct sb_writer **ret_writer)
{
	struct sb_writer *writer = calloc(1, sizeof(*writer));
	int fds[2], err;

	if (!writer)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds)) {
		err = -errno;
		free(writer);
		return err;
	}
	writer->fd = fds[0];
	writer->pid = fork();
	err = writer->pid < 0 ? -errno : 0;
	if (!writer->pid) {
		/* Our end, or it would never see us go. */
		close(fds[0]);
		be_writer(paths, nr, fds[1]);
	}
	close(fds[1]);
	if (err) {
		close(fds[0]);
		free(writer);
		return err;
	}
	*ret_writer = writer;
	return 0;
}

/* @ret_fd: NULL where none comes. */
static int ask(struct sb_writer *writer, enum op op, size_t i, int *ret_fd)
{
	const struct request request = { .op = op, .i = (uint32_t)i };
	struct answer answer;
	struct iovec iov = { .iov_base = &answer, .iov_len = sizeof(answer) };
	union control control;
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header;
	ssize_t nr_bytes;

	if (send(writer->fd, &request, sizeof(request), MSG_NOSIGNAL) != sizeof(request))
		return -ECHILD;
	do
		nr_bytes = recvmsg(writer->fd, &message, MSG_CMSG_CLOEXEC);
	while (nr_bytes < 0 && errno == EINTR);
	if (nr_bytes != sizeof(answer))
		return -ECHILD;
	header = CMSG_FIRSTHDR(&message);
	if (answer.err || !ret_fd)
		return answer.err;
	if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int)))
		return -EMFILE; /* the one reason why the kernel leaves it out */
	memcpy(ret_fd, CMSG_DATA(header), sizeof(*ret_fd));
	return 0;
}

int sb_writer_open(struct sb_writer *writer, size_t i)
{
	int fd = -1, err;

	while ((err = ask(writer, OPEN, i, &fd)) == -ENXIO)
		if (poll(NULL, 0, FIFO_LOOK_MS) < 0)
			return -errno;
	return err ? err : fd;
}

int sb_writer_commit(struct sb_writer *writer, size_t i)
{
	return ask(writer, COMMIT, i, NULL);
}

void sb_writer_discard(struct sb_writer *writer, size_t i)
{
	/* What fails now is its end, and then nothing is left. */
	(void)ask(writer, DISCARD, i, NULL);
}

void sb_writer_free(struct sb_writer *writer)
{
	if (!writer)
		return;
	close(writer->fd);
	while (waitpid(writer->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(writer);
}
