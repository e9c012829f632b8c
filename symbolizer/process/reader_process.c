// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The spawner and the readers: see reader.h. A reader has one thread. The spawner accesses nothing
 * foreign, so nothing can block it. It must not wait for a reader, because one that waits for a
 * FUSE server does not end even when it is killed.
 *
 * The spawner cannot call kill(2), because whoever takes it over could end all processes of its
 * user. Each reader is forked by a thread of its own in the spawner, its holder, and asks the
 * kernel for SIGKILL when that thread ends (PR_SET_PDEATHSIG). To kill a reader, its holder is
 * ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
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
#include "symbolizer/process/reader_priv.h"

/*
 * The priority of threads that others wait for (capture/thread.c), because they wait for this one.
 */
#define NICE	    (-10)
#define READERS_MAX 64u
/* Stack of a holder, and of its reader, which has some paths of 4 KiB on it. */
#define STACK_BYTES (256u << 10)

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

	/*
	 * The descriptors are sent first, so that they are there when the caller sees the answer.
	 */
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

	(void)prctl(PR_SET_NAME, "stackbpf-read");
	/* From now on the reader ends with its holder. The message tells the holder so. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || sb_peer_send(peer_fd, "", 1, NULL, 0) ||
	    sb_peer_keep_fds(fds, 2))
		return;
	area = mmap(NULL, sizeof(*area), PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
	if (area == MAP_FAILED ||
	    (born->opts->confine_reader && born->opts->confine_reader(born->opts->arg)))
		return;
	close(fds[1]);
	read_all(area, fds[0]);
}

/* The spawner. */

/* A reader, and the thread with which it ends. */
struct holder {
	struct born born;
	struct sb_peer peer;
	int err; /* of making the reader */
	sem_t is_made, is_over;
	pthread_t thread;
	bool is_abandoned;
};

struct spawner {
	const struct sb_reader_opts *opts;
	int fd;
	struct holder *readers[READERS_MAX];
	uint32_t nr_readers;
};

static void *hold(void *arg)
{
	struct holder *holder = arg;

	holder->err = sb_peer_new(read_for_caller, &holder->born, &holder->peer);
	sem_post(&holder->is_made);
	while (sem_wait(&holder->is_over))
		; /* by a signal */
	return NULL;
}

/* End a holder; this kills its reader, and nobody waits for the reader's end. */
static void free_holder(struct holder *holder)
{
	sem_post(&holder->is_over);
	pthread_join(holder->thread, NULL);
	if (!holder->err)
		close(holder->peer.fd);
	free(holder);
}

/* Return: 0 or a negative errno. */
static int start_holder(struct holder *holder)
{
	pthread_attr_t attr;
	int err;

	if (sem_init(&holder->is_made, 0, 0) || sem_init(&holder->is_over, 0, 0))
		return -errno;
	err = pthread_attr_init(&attr);
	if (err)
		return -err;
	err = pthread_attr_setstacksize(&attr, STACK_BYTES);
	if (!err)
		err = pthread_create(&holder->thread, &attr, hold, holder);
	pthread_attr_destroy(&attr);
	return -err;
}

/* Make a holder and its reader. Return: 0 or a negative errno. */
static int new_holder(const struct born *born, struct holder **ret_holder)
{
	struct holder *holder = calloc(1, sizeof(*holder));
	char ready;
	int err;

	if (!holder)
		return -ENOMEM;
	holder->born = *born;
	err = start_holder(holder);
	if (err) {
		free(holder);
		return err;
	}
	while (sem_wait(&holder->is_made))
		;
	err = holder->err;
	if (!err)
		err = sb_peer_receive(holder->peer.fd, &ready, sizeof(ready), NULL, 0);
	if (err) {
		free_holder(holder);
		return err;
	}
	*ret_holder = holder;
	return 0;
}

/* Free readers that have ended. Return: how many were abandoned and are still alive. */
static uint32_t reap(struct spawner *spawner)
{
	uint32_t nr_abandoned = 0, i;

	for (i = spawner->nr_readers; i--;) {
		if (waitpid(spawner->readers[i]->peer.pid, NULL, WNOHANG)) {
			free_holder(spawner->readers[i]);
			spawner->readers[i] = spawner->readers[--spawner->nr_readers];
		} else {
			nr_abandoned += spawner->readers[i]->is_abandoned;
		}
	}
	return nr_abandoned;
}

/* The memory is sealed, so that nobody can shrink it under those who have it mapped. */
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
	err = new_holder(&born, &spawner->readers[spawner->nr_readers]);
	close(sockets[1]);
	return err ? err : spawner->readers[spawner->nr_readers++]->peer.pid;
}

static void on_abandon(struct spawner *spawner, int pid)
{
	uint32_t i;

	for (i = 0; i < spawner->nr_readers; i++) {
		if (spawner->readers[i]->peer.pid != pid)
			continue;
		spawner->readers[i]->is_abandoned = true;
		sem_post(&spawner->readers[i]->is_over);
	}
}

static void on_spawn(struct spawner *spawner)
{
	struct sb_reader_spawn_answer said = {};
	int fds[2] = { -1, -1 }, pid = spawn(spawner, fds);

	said.err = pid < 0 ? pid : 0;
	said.pid = pid < 0 ? 0 : pid;
	if (!said.err)
		said.err = sb_peer_send(spawner->fd, &said, sizeof(said), fds, 2);
	/*
	 * The kernel refuses to send descriptors (ETOOMANYREFS) while messages of this user that
	 * nobody has received yet hold more than RLIMIT_NOFILE of them. The caller waits for an
	 * answer nevertheless. If the caller has ended, it needs none.
	 */
	if (said.err) {
		if (said.pid)
			on_abandon(spawner, said.pid);
		(void)sb_peer_send(spawner->fd, &said, sizeof(said), NULL, 0);
	}
	sb_closep(&fds[0]);
	sb_closep(&fds[1]);
}

static int begin(struct spawner *spawner)
{
	int err;

	(void)prctl(PR_SET_NAME, "stackbpf-spawn");
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	err = sb_peer_leave_terminal();
	if (!err)
		err = sb_peer_keep_fds(&spawner->fd, 1);
	/* A reader that cannot end must not keep the user's working directory busy. */
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
	/* The process exits, which ends all holders and their readers. */
}
