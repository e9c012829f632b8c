// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Moves known numbers of bytes through io_uring, by the system calls alone, each way in a function
 * of its own.
 *
 * uring DIR FILE: does so in DIR, an absolute path. FILE has as JSON, as filework.c, what moved by
 * which request, to or from which file, in how many requests, and how long they took. Status 77:
 * the kernel does not let us.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE  __attribute__((noinline))
#define NSEC	  1000000000ull
#define ITEMS_MAX 64
#define ENTRIES	  16
#define CHUNK	  10000
#define ROUNDS	  20
#define PAUSE_MS  30

struct item {
	const char *function, *call;
	char direction;
	char file[512];
	uint64_t bytes, calls, ns;
};

struct ring {
	int fd;
	unsigned int *sq_tail, *sq_mask, *sq_flags, *sq_array, *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
	unsigned int nr_queued;
};

static struct item items[ITEMS_MAX];
static int nr_items;
static char dir[256];
static char data[ENTRIES][CHUNK];

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC + (uint64_t)ts.tv_nsec;
}

static void need(int condition, const char *what)
{
	if (condition)
		return;
	perror(what);
	_exit(1);
}

static struct item *item_new(const char *function, const char *call, char direction, int fd)
{
	struct item *item = &items[nr_items++];
	char link[64];

	need(nr_items <= ITEMS_MAX, "too many items");
	item->function = function;
	item->call = call;
	item->direction = direction;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	need(readlink(link, item->file, sizeof(item->file) - 1) > 0, link);
	return item;
}

static int open_in(const char *name, int flags)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, flags | O_CLOEXEC, 0600);
	need(fd >= 0, path);
	return fd;
}

static void *map_ring(int fd, size_t size, off_t what)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, what);

	need(at != MAP_FAILED, "mmap");
	return at;
}

/* Return: whether there is such a ring here. */
static int ring_init(struct ring *ring, unsigned int flags)
{
	struct io_uring_params params = { .flags = flags, .sq_thread_idle = 1000 };
	char *sq, *cq;

	memset(ring, 0, sizeof(*ring));
	ring->fd = (int)syscall(__NR_io_uring_setup, ENTRIES, &params);
	if (ring->fd < 0)
		return 0;
	sq = map_ring(ring->fd, params.sq_off.array + ENTRIES * sizeof(unsigned int),
		      IORING_OFF_SQ_RING);
	cq = map_ring(ring->fd, params.cq_off.cqes + params.cq_entries * sizeof(*ring->cqes),
		      IORING_OFF_CQ_RING);
	ring->sqes = map_ring(ring->fd, ENTRIES * sizeof(*ring->sqes), IORING_OFF_SQES);
	ring->sq_tail = (unsigned int *)(sq + params.sq_off.tail);
	ring->sq_mask = (unsigned int *)(sq + params.sq_off.ring_mask);
	ring->sq_flags = (unsigned int *)(sq + params.sq_off.flags);
	ring->sq_array = (unsigned int *)(sq + params.sq_off.array);
	ring->cq_head = (unsigned int *)(cq + params.cq_off.head);
	ring->cq_tail = (unsigned int *)(cq + params.cq_off.tail);
	ring->cq_mask = (unsigned int *)(cq + params.cq_off.ring_mask);
	ring->cqes = (struct io_uring_cqe *)(cq + params.cq_off.cqes);
	return 1;
}

/* A request more, of which the item is told when it is done; NULL: nobody is. */
static struct io_uring_sqe *queue(struct ring *ring, int opcode, int fd, struct item *item)
{
	unsigned int tail = *ring->sq_tail, at = tail & *ring->sq_mask;
	struct io_uring_sqe *sqe = &ring->sqes[at];

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = (uint8_t)opcode;
	sqe->fd = fd;
	sqe->user_data = (uintptr_t)item;
	ring->sq_array[at] = at;
	__atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
	ring->nr_queued++;
	return sqe;
}

static struct io_uring_sqe *queue_bytes(struct ring *ring, int opcode, int fd, struct item *item)
{
	unsigned int at = *ring->sq_tail & *ring->sq_mask;
	struct io_uring_sqe *sqe = queue(ring, opcode, fd, item);

	sqe->addr = (uintptr_t)data[at];
	sqe->len = (uint32_t)(CHUNK - at * 7);
	if (opcode != IORING_OP_SEND && opcode != IORING_OP_RECV)
		sqe->off = (uint64_t)-1; /* where the file is */
	return sqe;
}

static int enter(struct ring *ring, unsigned int nr_submit, unsigned int nr_wait)
{
	unsigned int flags = IORING_ENTER_GETEVENTS;

	if (__atomic_load_n(ring->sq_flags, __ATOMIC_SEQ_CST) & IORING_SQ_NEED_WAKEUP)
		flags |= IORING_ENTER_SQ_WAKEUP;
	return (int)syscall(__NR_io_uring_enter, ring->fd, nr_submit, nr_wait, flags, NULL, 0);
}

static void reap(struct ring *ring)
{
	unsigned int head = *ring->cq_head;
	struct io_uring_cqe *cqe;
	struct item *item;

	for (; head != __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE); head++) {
		cqe = &ring->cqes[head & *ring->cq_mask];
		item = (struct item *)(uintptr_t)cqe->user_data;
		ring->nr_queued--;
		if (!item)
			continue;
		item->calls++;
		if (cqe->res > 0)
			item->bytes += (uint64_t)cqe->res;
	}
	__atomic_store_n(ring->cq_head, head, __ATOMIC_RELEASE);
}

/* All that was queued, to its end. */
static void run(struct ring *ring, struct item *timed)
{
	unsigned int nr = ring->nr_queued;
	uint64_t since_ns = now_ns();

	need(enter(ring, nr, nr) >= 0, "io_uring_enter");
	reap(ring);
	while (ring->nr_queued) {
		need(enter(ring, 0, 1) >= 0, "io_uring_enter");
		reap(ring);
	}
	if (timed)
		timed->ns += now_ns() - since_ns;
}

static void each_alone(struct ring *ring, int opcode, int fd, struct item *item, int flags)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		queue_bytes(ring, opcode, fd, item)->flags = (uint8_t)flags;
		run(ring, item);
	}
}

static NOINLINE void by_write(struct ring *ring)
{
	int fd = open_in("plain", O_CREAT | O_RDWR);

	each_alone(ring, IORING_OP_WRITE, fd, item_new(__func__, "uring_write", 'w', fd), 0);
	close(fd);
}

static NOINLINE void by_read(struct ring *ring)
{
	int fd = open_in("plain", O_RDONLY);

	each_alone(ring, IORING_OP_READ, fd, item_new(__func__, "uring_read", 'r', fd), 0);
	close(fd);
}

/* In a thread of the kernel's. */
static NOINLINE void by_worker(struct ring *ring)
{
	int fd = open_in("plain", O_RDONLY);

	each_alone(ring, IORING_OP_READ, fd, item_new(__func__, "uring_read", 'r', fd),
		   IOSQE_ASYNC);
	close(fd);
}

/* Many with one system call. */
static NOINLINE void by_batch(struct ring *ring)
{
	int fd = open_in("plain", O_RDONLY), i, n;
	struct item *item = item_new(__func__, "uring_read", 'r', fd);

	for (n = 0; n < ROUNDS; n++) {
		for (i = 0; i < ENTRIES; i++)
			queue_bytes(ring, IORING_OP_READ, fd, item)->off = (uint64_t)i * CHUNK;
		run(ring, item);
	}
	close(fd);
}

static NOINLINE void by_vectors(struct ring *ring)
{
	struct iovec parts[] = { { data[0], 100 }, { data[1], 77 } };
	int fd = open_in("vectors", O_CREAT | O_RDWR);
	struct item *in = item_new(__func__, "uring_readv", 'r', fd);
	struct item *out = item_new(__func__, "uring_writev", 'w', fd);
	struct io_uring_sqe *sqe = queue(ring, IORING_OP_WRITEV, fd, out);

	sqe->addr = (uintptr_t)parts;
	sqe->len = 2;
	run(ring, out);
	sqe = queue(ring, IORING_OP_READV, fd, in);
	sqe->addr = (uintptr_t)parts;
	sqe->len = 2;
	run(ring, in);
	close(fd);
}

/* Buffers and files that the ring knows by number. */
static NOINLINE void by_fixed(struct ring *ring)
{
	struct iovec buffer = { data, sizeof(data) };
	int fd = open_in("fixed", O_CREAT | O_RDWR);
	struct item *in = item_new(__func__, "uring_read_fixed", 'r', fd);
	struct item *out = item_new(__func__, "uring_write_fixed", 'w', fd);
	int i;

	need(!syscall(__NR_io_uring_register, ring->fd, IORING_REGISTER_BUFFERS, &buffer, 1),
	     "buffers");
	need(!syscall(__NR_io_uring_register, ring->fd, IORING_REGISTER_FILES, &fd, 1), "files");
	for (i = 0; i < ROUNDS; i++) {
		queue_bytes(ring, IORING_OP_WRITE_FIXED, 0, out)->flags = IOSQE_FIXED_FILE;
		run(ring, out);
	}
	close(fd); /* the ring has it */
	for (i = 0; i < ROUNDS; i++) {
		struct io_uring_sqe *sqe = queue_bytes(ring, IORING_OP_READ_FIXED, 0, in);

		sqe->flags = IOSQE_FIXED_FILE;
		sqe->off = 0;
		run(ring, in);
	}
}

/* One that has to wait for the next. */
static NOINLINE void by_socket(struct ring *ring)
{
	struct item *in, *out;
	int fd[2], i;

	need(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), "socketpair");
	in = item_new(__func__, "uring_recv", 'r', fd[0]);
	out = item_new(__func__, "uring_send", 'w', fd[1]);
	for (i = 0; i < ROUNDS; i++) {
		queue_bytes(ring, IORING_OP_RECV, fd[0], in);
		queue_bytes(ring, IORING_OP_SEND, fd[1], out);
		run(ring, in);
	}
	close(fd[0]);
	close(fd[1]);
}

static NOINLINE void by_message(struct ring *ring)
{
	struct iovec parts[] = { { data[0], 1000 }, { data[1], 234 } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	struct item *in, *out;
	int fd[2], i;

	need(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd), "socketpair");
	in = item_new(__func__, "uring_recvmsg", 'r', fd[0]);
	out = item_new(__func__, "uring_sendmsg", 'w', fd[1]);
	for (i = 0; i < ROUNDS; i++) {
		queue(ring, IORING_OP_SENDMSG, fd[1], out)->addr = (uintptr_t)&message;
		queue(ring, IORING_OP_RECVMSG, fd[0], in)->addr = (uintptr_t)&message;
		run(ring, in);
	}
	close(fd[0]);
	close(fd[1]);
}

static NOINLINE void by_splice(struct ring *ring)
{
	int fd = open_in("plain", O_RDONLY), ends[2];
	struct item *in, *out;
	struct io_uring_sqe *sqe;

	need(!pipe2(ends, O_CLOEXEC), "pipe2");
	in = item_new(__func__, "uring_splice", 'r', fd);
	out = item_new(__func__, "uring_splice", 'w', ends[1]);
	sqe = queue(ring, IORING_OP_SPLICE, ends[1], in);
	sqe->splice_fd_in = fd;
	sqe->splice_off_in = 0;
	sqe->off = (uint64_t)-1;
	sqe->len = 7777;
	run(ring, in);
	out->bytes = in->bytes;
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

/* What one opens the next one reads: when they are asked for, there is no such file yet. */
static NOINLINE void by_chain(struct ring *ring)
{
	int fd = open_in("plain", O_RDONLY), slot = -1, i;
	struct item *item = item_new(__func__, "uring_read", 'r', fd);
	struct io_uring_sqe *sqe;
	char path[512];

	close(fd);
	snprintf(path, sizeof(path), "%s/plain", dir);
	need(syscall(__NR_io_uring_register, ring->fd, IORING_UNREGISTER_FILES, NULL, 0) >= 0,
	     "files");
	need(!syscall(__NR_io_uring_register, ring->fd, IORING_REGISTER_FILES, &slot, 1), "slot");
	for (i = 0; i < ROUNDS; i++) {
		sqe = queue(ring, IORING_OP_OPENAT, AT_FDCWD, NULL);
		sqe->addr = (uintptr_t)path;
		sqe->open_flags = O_RDONLY;
		sqe->file_index = 1;
		sqe->flags = IOSQE_IO_LINK;
		queue_bytes(ring, IORING_OP_READ, 0, item)->flags = IOSQE_FIXED_FILE;
		run(ring, item);
	}
}

/* Nothing moves. */
static NOINLINE void by_failure(struct ring *ring)
{
	int fd = open_in("failure", O_CREAT | O_WRONLY);

	each_alone(ring, IORING_OP_READ, fd, item_new(__func__, "uring_read", 'r', fd), 0);
	close(fd);
}

static NOINLINE void by_fsync(struct ring *ring)
{
	int fd = open_in("plain", O_RDWR);
	struct item *item = item_new(__func__, "uring_fsync", 'n', fd);

	queue(ring, IORING_OP_FSYNC, fd, item);
	run(ring, item);
	close(fd);
}

static void *write_slowly(void *arg)
{
	struct pollfd nothing = { .fd = -1 };
	int i;

	for (i = 0; i < 3; i++) {
		poll(&nothing, 1, PAUSE_MS);
		need(write(*(int *)arg, "x", 1) == 1, "write");
	}
	return NULL;
}

/* Waits, as long as its clock says. */
static NOINLINE void by_waiting(struct ring *ring)
{
	struct item *item;
	pthread_t thread;
	int ends[2], i;

	need(!pipe2(ends, O_CLOEXEC), "pipe2");
	item = item_new(__func__, "uring_read", 'r', ends[0]);
	need(!pthread_create(&thread, NULL, write_slowly, &ends[1]), "thread");
	for (i = 0; i < 3; i++) {
		queue_bytes(ring, IORING_OP_READ, ends[0], item)->len = 1;
		run(ring, item);
	}
	pthread_join(thread, NULL);
	close(ends[0]);
	close(ends[1]);
}

/* The kernel's thread takes what is queued, without a system call of ours. */
static NOINLINE void by_poller(void)
{
	int fd = open_in("polled", O_CREAT | O_RDWR);
	struct ring ring;

	if (!ring_init(&ring, IORING_SETUP_SQPOLL)) {
		close(fd);
		return;
	}
	each_alone(&ring, IORING_OP_WRITE, fd, item_new(__func__, "uring_write", 'w', fd), 0);
	close(ring.fd);
	close(fd);
}

static int put_truth(const char *path)
{
	FILE *out = fopen(path, "we");
	int i;

	if (!out)
		return 1;
	fprintf(out, "{\"pid\": %d, \"items\": [", getpid());
	for (i = 0; i < nr_items; i++)
		fprintf(out,
			"%s\n{\"function\": \"%s\", \"call\": \"%s\", \"direction\": \"%c\", "
			"\"file\": \"%s\", \"bytes\": %" PRIu64 ", \"calls\": %" PRIu64
			", \"ns\": %" PRIu64 "}",
			i ? "," : "", items[i].function, items[i].call, items[i].direction,
			items[i].file, items[i].bytes, items[i].calls, items[i].ns);
	fprintf(out, "\n]}\n");
	return fclose(out) != 0;
}

int main(int argc, char **argv)
{
	static void (*const ways[])(struct ring *) = {
		by_waiting, by_write,	by_read,   by_worker, by_batch,	  by_vectors, by_fixed,
		by_socket,  by_message, by_splice, by_chain,  by_failure, by_fsync,
	};
	struct ring ring;
	size_t i;

	if (argc < 3)
		return 2;
	snprintf(dir, sizeof(dir), "%s", argv[1]);
	if (!ring_init(&ring, 0)) {
		fprintf(stderr, "io_uring_setup: %s\n", strerror(errno));
		return 77;
	}
	for (i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		ways[i](&ring);
	by_poller();
	return put_truth(argv[2]);
}
