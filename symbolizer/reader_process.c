// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The other processes: see reader.h. Each has one thread. The spawner makes no access to anything foreign, so
 * nothing can hold it: it must not wait for a reader, for one that waits for a FUSE server does not even end when
 * it is killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "reader_priv.h"

/* As threads that are waited for (capture/thread.c): they wait for this. */
#define NICE	    (-10)
#define READERS_MAX 64u

/* The reader. */

static void wait_for_request(struct sb_reader_area *area, uint32_t last)
{
	while (__atomic_load_n(&area->asked, __ATOMIC_ACQUIRE) == last)
		(void)syscall(SYS_futex, &area->asked, FUTEX_WAIT, last, NULL, NULL, 0);
}

static void answer(struct sb_reader_area *area, int socket_fd, uint32_t asked, int fd,
		   int original_fd)
{
	const int fds[] = { fd, original_fd };

	/* The descriptors first: who sees the answer finds them there. */
	if (fd >= 0) {
		if (sb_peer_send(socket_fd, &asked, sizeof(asked), fds, original_fd < 0 ? 1 : 2))
			area->answer.has_fd = false;
		close(fd);
	}
	__atomic_store_n(&area->answered, asked, __ATOMIC_RELEASE);
	(void)syscall(SYS_futex, &area->answered, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void read_all(struct sb_reader_area *area, int socket_fd)
{
	struct sb_reader_state state = { .entry_fd = -1, .original_fd = -1 };
	uint32_t asked = 0, number;
	int root_fd, fd;

	for (;;) {
		wait_for_request(area, asked);
		asked = __atomic_load_n(&area->asked, __ATOMIC_ACQUIRE);
		root_fd = -1;
		if (area->request.has_root_fd &&
		    sb_peer_receive(socket_fd, &number, sizeof(number), &root_fd, 1) < 0)
			return;
		fd = sb_reader_serve(area, &state, root_fd);
		answer(area, socket_fd, asked, fd, state.original_fd);
		sb_closep(&state.original_fd);
		state.original_fd = -1;
		sb_closep(&root_fd);
	}
}

struct born {
	const struct sb_reader_opts *opts;
	int area_fd, socket_fd;
};

static void read_for_caller(void *arg, int peer_fd)
{
	const struct born *born = arg;
	int fds[] = { born->socket_fd, born->area_fd };
	struct sb_reader_area *area;

	(void)peer_fd;
	(void)prctl(PR_SET_NAME, "stackbpf-read");
	if (sb_peer_keep_fds(fds, 2) || prctl(PR_SET_PDEATHSIG, SIGKILL))
		return;
	area = mmap(NULL, sizeof(*area), PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
	if (area == MAP_FAILED ||
	    (born->opts->confine_reader && born->opts->confine_reader(born->opts->arg)))
		return;
	close(fds[1]);
	read_all(area, fds[0]);
}

/* The spawner. */

struct spawner {
	const struct sb_reader_opts *opts;
	int fd;
	struct {
		struct sb_peer peer;
		bool is_abandoned;
	} readers[READERS_MAX];
	uint32_t nr_readers;
};

/* Those that have ended, and what is left of their sockets. Return: how many were abandoned and live on. */
static uint32_t reap(struct spawner *spawner)
{
	uint32_t nr_abandoned = 0, i;

	for (i = spawner->nr_readers; i--;) {
		if (waitpid(spawner->readers[i].peer.pid, NULL, WNOHANG)) {
			close(spawner->readers[i].peer.fd);
			spawner->readers[i] = spawner->readers[--spawner->nr_readers];
		} else {
			nr_abandoned += spawner->readers[i].is_abandoned;
		}
	}
	return nr_abandoned;
}

/* Sealed, so that nobody can cut it below those who have it mapped. */
static int make_area(void)
{
	int fd = memfd_create("stackbpf-reader", MFD_CLOEXEC | MFD_ALLOW_SEALING), err;

	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, sizeof(struct sb_reader_area)) &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int spawn(struct spawner *spawner, int *ret_fds)
{
	struct born born = { .opts = spawner->opts };
	int sockets[2], err;

	if (reap(spawner) >= SB_READER_ABANDONED_MAX || spawner->nr_readers == READERS_MAX)
		return -EAGAIN;
	ret_fds[0] = born.area_fd = make_area();
	if (born.area_fd < 0)
		return born.area_fd;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	ret_fds[1] = sockets[0];
	born.socket_fd = sockets[1];
	err = sb_peer_new(read_for_caller, &born, &spawner->readers[spawner->nr_readers].peer);
	close(sockets[1]);
	if (err)
		return err;
	spawner->readers[spawner->nr_readers].is_abandoned = false;
	return spawner->readers[spawner->nr_readers++].peer.pid;
}

static void on_spawn(struct spawner *spawner)
{
	struct sb_reader_spawn_answer said = {};
	int fds[2] = { -1, -1 }, pid = spawn(spawner, fds);

	said.err = pid < 0 ? pid : 0;
	said.pid = pid < 0 ? 0 : pid;
	/* Whoever has gone needs no answer. */
	(void)sb_peer_send(spawner->fd, &said, sizeof(said), fds, pid < 0 ? 0 : 2);
	sb_closep(&fds[0]);
	sb_closep(&fds[1]);
}

static void on_abandon(struct spawner *spawner, int pid)
{
	uint32_t i;

	for (i = 0; i < spawner->nr_readers; i++) {
		if (spawner->readers[i].peer.pid != pid)
			continue;
		spawner->readers[i].is_abandoned = true;
		(void)kill(pid, SIGKILL);
	}
}

static int begin(struct spawner *spawner)
{
	int err;

	(void)prctl(PR_SET_NAME, "stackbpf-spawn");
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	err = sb_peer_leave_terminal();
	if (!err)
		err = sb_peer_keep_fds(&spawner->fd, 1);
	/* A reader that cannot end is not to hold the directory that we were called in. */
	if (!err && chdir("/"))
		err = -errno;
	sb_lower_limit(RLIMIT_CORE, 0);
	if (!err && spawner->opts->confine_spawner)
		err = spawner->opts->confine_spawner(spawner->opts->arg);
	return err;
}

void sb_reader_spawner(void *arg, int fd)
{
	struct spawner *spawner = calloc(1, sizeof(*spawner));
	struct sb_reader_spawn_answer said = { .err = -ENOMEM };
	struct sb_reader_spawn_request request;
	uint32_t i;

	if (spawner) {
		spawner->opts = arg;
		spawner->fd = fd;
		said.err = begin(spawner);
		fd = spawner->fd;
	}
	if (sb_peer_send(fd, &said, sizeof(said), NULL, 0) || said.err)
		return;
	while (!sb_peer_receive(fd, &request, sizeof(request), NULL, 0)) {
		if (request.order == SB_READER_SPAWN)
			on_spawn(spawner);
		else
			on_abandon(spawner, request.pid);
	}
	for (i = 0; i < spawner->nr_readers; i++)
		(void)kill(spawner->readers[i].peer.pid, SIGKILL);
}
