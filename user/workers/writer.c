// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "workers/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/peer.h"

/* How often to look whether a FIFO has a reader: it is the other process that opens, and it must be
 * there for what comes next. */
#define FIFO_LOOK_MS 20

struct sb_writer {
	struct sb_peer peer;
	const char *const *paths; /* while it is forked */
	int (*confine)(void);
	size_t nr;
};

enum op { OPEN, COMMIT, DISCARD };

struct request {
	uint32_t op, i;
};

/* Its descriptor comes with the answer to OPEN. */
struct answer {
	int32_t err;
};

/* The other process. */

static int peer_fd; /* of the one thread there is */

static int send_answer(int err, int fd)
{
	const struct answer answer = { .err = err };

	return sb_peer_send(peer_fd, &answer, sizeof(answer), &fd, fd >= 0);
}

struct slot {
	struct sb_output_file *file;
	bool is_direct; /* a device, a FIFO: there is no name to give */
};

/* Return: a descriptor, -ENXIO for a FIFO without a reader, or -ENOENT where a file is to be
 * made. */
static int open_direct(const char *path)
{
	int fd = sb_output_open_special(path, O_NONBLOCK);

	if (fd < 0)
		return fd;
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

static void serve_all(const struct sb_writer *writer, struct slot *slots)
{
	struct request request;

	while (!sb_peer_receive(peer_fd, &request, sizeof(request), NULL, 0)) {
		if (request.i >= writer->nr ||
		    serve(request.op, writer->paths[request.i], &slots[request.i]))
			return;
	}
}

static void be_writer(void *arg, int fd)
{
	const struct sb_writer *writer = arg;
	struct slot *slots = calloc(writer->nr, sizeof(slots[0]));
	size_t i;

	(void)prctl(PR_SET_NAME, "stackbpf-write");
	peer_fd = fd;
	if (!slots || (writer->confine && writer->confine()))
		return;
	serve_all(writer, slots);
	for (i = 0; i < writer->nr; i++)
		drop(&slots[i]);
}

/* Our side. */

int sb_writer_new(const char *const *paths, size_t nr, int (*confine)(void),
		  struct sb_writer **ret_writer)
{
	struct sb_writer *writer = calloc(1, sizeof(*writer));
	int err;

	if (!writer)
		return -ENOMEM;
	*writer = (struct sb_writer){ .paths = paths, .nr = nr, .confine = confine };
	err = sb_peer_new(be_writer, writer, &writer->peer);
	if (err) {
		free(writer);
		return err;
	}
	writer->paths = NULL; /* the caller's again */
	*ret_writer = writer;
	return 0;
}

/* @ret_fd: NULL where none comes. */
static int ask(struct sb_writer *writer, enum op op, size_t i, int *ret_fd)
{
	const struct request request = { .op = op, .i = (uint32_t)i };
	struct answer answer;
	int err, fd = -1;

	if (sb_peer_send(writer->peer.fd, &request, sizeof(request), NULL, 0))
		return -ECHILD;
	err = sb_peer_receive(writer->peer.fd, &answer, sizeof(answer), &fd, 1);
	if (err < 0)
		return err == -EMFILE ? err : -ECHILD;
	if (answer.err || !ret_fd) {
		sb_closep(&fd);
		return answer.err;
	}
	*ret_fd = fd;
	return fd < 0 ? -EMFILE : 0; /* the one reason why the kernel leaves it out */
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
	sb_peer_release(&writer->peer);
	free(writer);
}
