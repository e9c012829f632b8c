// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Moves known numbers of bytes, by every call that there is for it, each in a function of its own.
 *
 * filework DIR FILE [GROUP...]: does so in DIR, an absolute path, with all groups of the table
 * below, or those that are named. FILE has as JSON for each function and direction the call, the
 * file as readlink(2) of /proc/self/fd/N has it, the bytes, the number of calls, and how long they
 * took; and what /proc/self/io counted meanwhile. Faults are counted by getrusage(2).
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE     __attribute__((noinline))
#define NSEC	     1000000000ull
#define ITEMS_MAX    128
#define PAGE	     4096
#define PAGES	     300
#define DIRECT_CHUNK (64 * 1024)
#define ROUNDS	     100

struct item {
	const char *function, *call;
	char direction;
	char file[512];
	uint64_t bytes, calls, ns;
};

struct proc_io {
	uint64_t rchar, wchar, read_bytes, write_bytes, text_bytes;
};

static struct item items[ITEMS_MAX];
static int nr_items;
static char dir[256];
static _Alignas(PAGE) char data[1 << 20];

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
	int nr = __atomic_fetch_add(&nr_items, 1, __ATOMIC_RELAXED);
	struct item *item = &items[nr];
	char link[64];

	need(nr < ITEMS_MAX, "too many items");
	item->function = function;
	item->call = call;
	item->direction = direction;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	need(readlink(link, item->file, sizeof(item->file) - 1) > 0, "readlink");
	return item;
}

/* The value of the call; adds it up, and how long it took. */
#define COUNTED(item, expression)                                 \
	({                                                        \
		uint64_t since = now_ns();                        \
		ssize_t moved = (expression);                     \
                                                                  \
		(item)->ns += now_ns() - since;                   \
		(item)->calls++;                                  \
		(item)->bytes += moved > 0 ? (uint64_t)moved : 0; \
		moved;                                            \
	})

static int open_at(const char *name, int flags)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, flags | O_CLOEXEC, 0600);
	need(fd >= 0, path);
	return fd;
}

static void nap(long ms)
{
	struct timespec ts = { 0, ms * 1000000 };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

/* plain */

static NOINLINE void by_write(int fd)
{
	struct item *item = item_new(__func__, "write", 'w', fd);
	int i;

	for (i = 0; i < ROUNDS; i++)
		COUNTED(item, write(fd, data, 4097));
}

static NOINLINE void by_read(int fd)
{
	struct item *item = item_new(__func__, "read", 'r', fd);

	while (COUNTED(item, read(fd, data, 5000)) > 0)
		;
}

static NOINLINE void by_pwrite(int fd)
{
	struct item *item = item_new(__func__, "pwrite64", 'w', fd);
	int i;

	for (i = 0; i < ROUNDS; i++)
		COUNTED(item, pwrite(fd, data, 777, i * 1000));
}

static NOINLINE void by_pread(int fd)
{
	struct item *item = item_new(__func__, "pread64", 'r', fd);
	int i;

	for (i = 0; i < ROUNDS; i++)
		COUNTED(item, pread(fd, data, 333, i * 500));
}

static void plain(void)
{
	int fd = open_at("plain", O_RDWR | O_CREAT | O_TRUNC);

	by_write(fd);
	lseek(fd, 0, SEEK_SET);
	by_read(fd);
	close(fd);
	fd = open_at("positions", O_RDWR | O_CREAT | O_TRUNC);
	by_pwrite(fd);
	by_pread(fd);
	close(fd);
}

/* vectors */

static const struct iovec vector[] = { { data, 10 }, { data + 100, 2000 }, { data + 5000, 3 } };

static NOINLINE void by_writev(int fd)
{
	struct item *item = item_new(__func__, "writev", 'w', fd);
	int i;

	for (i = 0; i < ROUNDS; i++)
		COUNTED(item, writev(fd, vector, 3));
}

static NOINLINE void by_readv(int fd)
{
	struct item *item = item_new(__func__, "readv", 'r', fd);

	while (COUNTED(item, readv(fd, vector, 2)) > 0)
		;
}

static NOINLINE void by_pwritev(int fd)
{
	struct item *item = item_new(__func__, "pwritev", 'w', fd);
	int i;

	for (i = 0; i < ROUNDS; i++)
		COUNTED(item, pwritev(fd, vector, 2, i * 3000));
}

static NOINLINE void by_preadv(int fd)
{
	struct item *item = item_new(__func__, "preadv", 'r', fd);
	int i;

	for (i = 0; i < ROUNDS; i++)
		COUNTED(item, preadv(fd, vector, 3, i * 2500));
}

static NOINLINE void by_pwritev2(int fd)
{
	struct item *item = item_new(__func__, "pwritev2", 'w', fd);
	int i;

	for (i = 0; i < ROUNDS; i++)
		COUNTED(item, pwritev2(fd, vector, 3, i * 4000, 0));
}

static NOINLINE void by_preadv2(int fd)
{
	struct item *item = item_new(__func__, "preadv2", 'r', fd);
	int i;

	for (i = 0; i < ROUNDS; i++)
		COUNTED(item, preadv2(fd, vector, 2, i * 1000, 0));
}

static void vectors(void)
{
	int fd = open_at("vector", O_RDWR | O_CREAT | O_TRUNC);

	by_writev(fd);
	lseek(fd, 0, SEEK_SET);
	by_readv(fd);
	by_pwritev(fd);
	by_preadv(fd);
	by_pwritev2(fd);
	by_preadv2(fd);
	close(fd);
}

/* copies: the kernel moves bytes from one file to another one; both sides are items. */

static NOINLINE void by_sendfile(int in, int out)
{
	struct item *from = item_new(__func__, "sendfile64", 'r', in);
	struct item *to = item_new(__func__, "sendfile64", 'w', out);

	while (COUNTED(from, sendfile(out, in, NULL, 50000)) > 0)
		;
	to->bytes = from->bytes;
	to->calls = from->calls;
}

static NOINLINE void by_copy_file_range(int in, int out)
{
	struct item *from = item_new(__func__, "copy_file_range", 'r', in);
	struct item *to = item_new(__func__, "copy_file_range", 'w', out);

	while (COUNTED(from, copy_file_range(in, NULL, out, NULL, 30000, 0)) > 0)
		;
	to->bytes = from->bytes;
	to->calls = from->calls;
}

static NOINLINE ssize_t by_splice_in(struct item *from, struct item *to, int in, int out)
{
	ssize_t n = COUNTED(from, splice(in, NULL, out, NULL, 20000, 0));

	to->bytes += n > 0 ? (uint64_t)n : 0;
	to->calls++;
	return n;
}

static NOINLINE ssize_t by_splice_out(struct item *from, struct item *to, int in, int out,
				      size_t size)
{
	ssize_t n = COUNTED(from, splice(in, NULL, out, NULL, size, 0));

	to->bytes += n > 0 ? (uint64_t)n : 0;
	to->calls++;
	return n;
}

static void splice_all(int in, int out)
{
	struct item *item[4];
	int pipe_fds[2];
	ssize_t n, m;

	need(!pipe2(pipe_fds, O_CLOEXEC), "pipe2");
	item[0] = item_new("by_splice_in", "splice", 'r', in);
	item[1] = item_new("by_splice_in", "splice", 'w', pipe_fds[1]);
	item[2] = item_new("by_splice_out", "splice", 'r', pipe_fds[0]);
	item[3] = item_new("by_splice_out", "splice", 'w', out);
	while ((n = by_splice_in(item[0], item[1], in, pipe_fds[1])) > 0)
		for (; n > 0; n -= m) {
			m = by_splice_out(item[2], item[3], pipe_fds[0], out, (size_t)n);
			need(m > 0, "splice");
		}
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

static NOINLINE void to_source(int fd)
{
	struct item *item = item_new(__func__, "write", 'w', fd);

	need(COUNTED(item, write(fd, data, 700001)) == 700001, "write");
}

static void copies(void)
{
	int in = open_at("source", O_RDWR | O_CREAT | O_TRUNC), out;

	to_source(in);
	lseek(in, 0, SEEK_SET);
	out = open_at("sent", O_WRONLY | O_CREAT | O_TRUNC);
	by_sendfile(in, out);
	close(out);
	lseek(in, 0, SEEK_SET);
	out = open_at("copied", O_WRONLY | O_CREAT | O_TRUNC);
	by_copy_file_range(in, out);
	close(out);
	lseek(in, 0, SEEK_SET);
	out = open_at("spliced", O_WRONLY | O_CREAT | O_TRUNC);
	splice_all(in, out);
	close(out);
	close(in);
}

/* direct */

static NOINLINE void by_direct_write(int fd)
{
	struct item *item = item_new(__func__, "write", 'w', fd);
	int i;

	for (i = 0; i < 16; i++)
		COUNTED(item, write(fd, data, DIRECT_CHUNK));
}

static NOINLINE void by_direct_read(int fd)
{
	struct item *item = item_new(__func__, "read", 'r', fd);

	while (COUNTED(item, read(fd, data, DIRECT_CHUNK)) > 0)
		;
}

static void direct(void)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/direct", dir);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT | O_CLOEXEC, 0600);
	if (fd < 0)
		return; /* not every file system can */
	by_direct_write(fd);
	lseek(fd, 0, SEEK_SET);
	by_direct_read(fd);
	close(fd);
}

/* mapped: one fault for each page, because a shared page is mapped at the first write to it,
 * alone. */

static NOINLINE void by_fault(int fd, char *pages)
{
	struct item *item = item_new(__func__, "fault", 'w', fd);
	struct rusage before, after;
	int i;

	getrusage(RUSAGE_THREAD, &before);
	for (i = 0; i < PAGES; i++)
		((volatile char *)pages)[i * PAGE] = 1;
	getrusage(RUSAGE_THREAD, &after);
	item->calls =
		(uint64_t)(after.ru_minflt - before.ru_minflt + after.ru_majflt - before.ru_majflt);
	item->bytes = item->calls * PAGE;
}

static void mapped(void)
{
	int fd = open_at("mapped", O_RDWR | O_CREAT | O_TRUNC);
	char *pages;

	need(!ftruncate(fd, PAGES * PAGE), "ftruncate");
	pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	need(pages != MAP_FAILED, "mmap");
	madvise(pages, PAGES * PAGE, MADV_NOHUGEPAGE);
	by_fault(fd, pages);
	munmap(pages, PAGES * PAGE);
	close(fd);
}

/* names: of files that were removed, renamed, or are deep down. */

static NOINLINE void to_deleted(int fd)
{
	struct item *item = item_new(__func__, "write", 'w', fd);

	COUNTED(item, write(fd, data, 1234));
}

static NOINLINE void to_renamed(int fd)
{
	struct item *item = item_new(__func__, "write", 'w', fd);

	COUNTED(item, write(fd, data, 2345));
}

static NOINLINE void to_deep(int fd)
{
	struct item *item = item_new(__func__, "write", 'w', fd);

	COUNTED(item, write(fd, data, 3456));
}

static NOINLINE void to_odd(int fd)
{
	struct item *item = item_new(__func__, "write", 'w', fd);

	COUNTED(item, write(fd, data, 4567));
}

static void names(void)
{
	char path[512], other[512];
	int fd = open_at("deleted", O_WRONLY | O_CREAT), i;
	size_t length;

	snprintf(path, sizeof(path), "%s/deleted", dir);
	need(!unlink(path), "unlink");
	to_deleted(fd);
	close(fd);

	fd = open_at("before", O_WRONLY | O_CREAT);
	snprintf(path, sizeof(path), "%s/before", dir);
	snprintf(other, sizeof(other), "%s/renamed", dir);
	need(!rename(path, other), "rename");
	to_renamed(fd);
	close(fd);

	length = (size_t)snprintf(path, sizeof(path), "%s", dir);
	for (i = 0; i < 10; i++) {
		length += (size_t)snprintf(path + length, sizeof(path) - length, "/level%d", i);
		mkdir(path, 0700);
	}
	snprintf(path + length, sizeof(path) - length, "/deep");
	fd = open_at(path + strlen(dir) + 1, O_WRONLY | O_CREAT);
	to_deep(fd);
	close(fd);
	fd = open_at("odd name", O_WRONLY | O_CREAT);
	to_odd(fd);
	close(fd);
}

/* pipes */

static NOINLINE void pipe_write(int fd)
{
	struct item *item = item_new(__func__, "write", 'w', fd);
	int i;

	for (i = 0; i < 10; i++)
		COUNTED(item, write(fd, data, 999));
}

static NOINLINE void pipe_read(int fd)
{
	struct item *item = item_new(__func__, "read", 'r', fd);

	while (COUNTED(item, read(fd, data, 2000)) > 0)
		;
}

static NOINLINE void event_write(int fd)
{
	struct item *item = item_new(__func__, "write", 'w', fd);
	uint64_t one = 1;

	COUNTED(item, write(fd, &one, sizeof(one)));
}

static NOINLINE void event_read(int fd)
{
	struct item *item = item_new(__func__, "read", 'r', fd);
	uint64_t value;

	COUNTED(item, read(fd, &value, sizeof(value)));
}

static void pipes(void)
{
	int fds[2], fd;

	need(!pipe2(fds, O_CLOEXEC), "pipe2");
	pipe_write(fds[1]);
	close(fds[1]);
	pipe_read(fds[0]);
	close(fds[0]);
	fd = eventfd(0, EFD_CLOEXEC);
	event_write(fd);
	event_read(fd);
	close(fd);
}

/* sockets */

static NOINLINE void unix_write(int fd)
{
	struct item *item = item_new(__func__, "write", 'w', fd);

	COUNTED(item, write(fd, data, 5555));
}

static NOINLINE void unix_read(int fd)
{
	struct item *item = item_new(__func__, "read", 'r', fd);

	COUNTED(item, read(fd, data, sizeof(data)));
}

static NOINLINE void tcp_sendto(int fd)
{
	struct item *item = item_new(__func__, "sendto", 'w', fd);
	int i;

	for (i = 0; i < 10; i++)
		COUNTED(item, send(fd, data, 1111, 0));
}

static NOINLINE void tcp_recvfrom(int fd)
{
	struct item *item = item_new(__func__, "recvfrom", 'r', fd);

	while (item->bytes < 11110 && COUNTED(item, recv(fd, data, 700, 0)) > 0)
		;
}

static NOINLINE void tcp_sendmsg(int fd)
{
	struct item *item = item_new(__func__, "sendmsg", 'w', fd);
	struct msghdr message = { .msg_iov = (struct iovec *)vector, .msg_iovlen = 3 };

	COUNTED(item, sendmsg(fd, &message, 0));
}

static NOINLINE void tcp_recvmsg(int fd)
{
	struct item *item = item_new(__func__, "recvmsg", 'r', fd);
	struct iovec all = { data, sizeof(data) };
	struct msghdr message = { .msg_iov = &all, .msg_iovlen = 1 };

	while (item->bytes < 2013 && COUNTED(item, recvmsg(fd, &message, 0)) > 0)
		;
}

static NOINLINE void udp_sendto(int fd)
{
	struct item *item = item_new(__func__, "sendto", 'w', fd);

	COUNTED(item, send(fd, data, 1200, 0));
}

static NOINLINE void udp_recvfrom(int fd)
{
	struct item *item = item_new(__func__, "recvfrom", 'r', fd);

	COUNTED(item, recv(fd, data, sizeof(data), 0));
}

/* A connected pair over the loopback device. */
static void connect_pair(int type, int ret_fds[2])
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(at);
	int server = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	need(!bind(server, (struct sockaddr *)&at, sizeof(at)), "bind");
	need(!getsockname(server, (struct sockaddr *)&at, &size), "getsockname");
	need(type == SOCK_DGRAM || !listen(server, 1), "listen");
	ret_fds[0] = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	need(!connect(ret_fds[0], (struct sockaddr *)&at, size), "connect");
	ret_fds[1] = type == SOCK_DGRAM ? server : accept4(server, NULL, NULL, SOCK_CLOEXEC);
	need(ret_fds[1] >= 0, "accept4");
	if (type != SOCK_DGRAM)
		close(server);
}

static void sockets(void)
{
	int fds[2];

	need(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), "socketpair");
	unix_write(fds[0]);
	unix_read(fds[1]);
	close(fds[0]);
	close(fds[1]);
	connect_pair(SOCK_STREAM, fds);
	tcp_sendto(fds[0]);
	tcp_recvfrom(fds[1]);
	tcp_sendmsg(fds[1]);
	tcp_recvmsg(fds[0]);
	close(fds[0]);
	close(fds[1]);
	connect_pair(SOCK_DGRAM, fds);
	udp_sendto(fds[0]);
	udp_recvfrom(fds[1]);
	close(fds[0]);
	close(fds[1]);
}

/* slow: what the reader waits for is written with delays. */

static NOINLINE void fifo_write(int fd)
{
	struct item *item = item_new(__func__, "write", 'w', fd);
	int i;

	for (i = 0; i < 20; i++) {
		nap(i % 2 ? 30 : 60);
		COUNTED(item, write(fd, data, 100));
	}
}

static void *slow_writer(void *arg)
{
	int fd = open_at("fifo", O_WRONLY);

	fifo_write(fd);
	close(fd);
	return NULL;
}

static NOINLINE void fifo_read(int fd)
{
	struct item *item = item_new(__func__, "read", 'r', fd);

	while (COUNTED(item, read(fd, data, 1000)) > 0)
		;
}

static void slow(void)
{
	pthread_t thread;
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/fifo", dir);
	unlink(path);
	need(!mkfifo(path, 0600), "mkfifo");
	need(!pthread_create(&thread, NULL, slow_writer, NULL), "pthread_create");
	fd = open_at("fifo", O_RDONLY);
	fifo_read(fd);
	close(fd);
	pthread_join(thread, NULL);
}

/* disk: what reaches the device, and comes from there. */

static NOINLINE void by_fsync(int fd)
{
	struct item *item = item_new(__func__, "fsync", 'w', fd);

	COUNTED(item, fsync(fd));
}

static NOINLINE void by_fdatasync(int fd)
{
	struct item *item = item_new(__func__, "fdatasync", 'w', fd);

	COUNTED(item, fdatasync(fd));
}

static NOINLINE void to_disk(int fd)
{
	struct item *item = item_new(__func__, "write", 'w', fd);
	int i;

	for (i = 0; i < 4; i++)
		COUNTED(item, write(fd, data, sizeof(data)));
}

static NOINLINE void to_disk_again(int fd)
{
	struct item *item = item_new(__func__, "write", 'w', fd);

	COUNTED(item, write(fd, data, 10));
}

static NOINLINE void from_disk(int fd)
{
	struct item *item = item_new(__func__, "read", 'r', fd);

	while (COUNTED(item, read(fd, data, 100000)) > 0)
		;
}

static void disk(void)
{
	int fd = open_at("disk", O_RDWR | O_CREAT | O_TRUNC);

	to_disk(fd);
	by_fsync(fd);
	to_disk_again(fd);
	by_fdatasync(fd);
	need(!posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), "posix_fadvise");
	lseek(fd, 0, SEEK_SET);
	from_disk(fd);
	close(fd);
}

/* directory */

static NOINLINE void by_getdents(int fd)
{
	struct item *item = item_new(__func__, "getdents64", 'r', fd);

	while (COUNTED(item, syscall(SYS_getdents64, fd, data, sizeof(data))) > 0)
		;
}

static void directory(void)
{
	int fd = open_at(".", O_RDONLY | O_DIRECTORY);

	by_getdents(fd);
	close(fd);
}

static const struct {
	const char *name;
	void (*work)(void);
} groups[] = {
	{ "slow", slow }, /* first: it gives those who look the time to get ready */
	{ "plain", plain },	    { "vectors", vectors }, { "copies", copies },
	{ "direct", direct },	    { "mapped", mapped },   { "names", names },
	{ "pipes", pipes },	    { "sockets", sockets }, { "disk", disk },
	{ "directory", directory },
};

static struct proc_io read_proc_io(void)
{
	int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
	struct proc_io io = { 0 };
	char text[512] = "";
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (n > 0 && sscanf(text,
			    "rchar: %" SCNu64 " wchar: %" SCNu64
			    " syscr: %*u syscw: %*u read_bytes: %" SCNu64 " write_bytes: %" SCNu64,
			    &io.rchar, &io.wchar, &io.read_bytes, &io.write_bytes) == 4)
		io.text_bytes = (uint64_t)n;
	if (fd >= 0)
		close(fd);
	return io;
}

static int put_truth(const char *path, struct proc_io before, struct proc_io after)
{
	FILE *out = fopen(path, "we");
	int i;

	if (!out)
		return 1;
	fprintf(out, "{\"pid\": %d, \"rchar\": %" PRIu64 ", \"wchar\": %" PRIu64, getpid(),
		after.rchar - before.rchar - before.text_bytes, after.wchar - before.wchar);
	fprintf(out, ", \"read_bytes\": %" PRIu64 ", \"write_bytes\": %" PRIu64 ", \"items\": [",
		after.read_bytes - before.read_bytes, after.write_bytes - before.write_bytes);
	for (i = 0; i < nr_items; i++)
		fprintf(out,
			"%s\n{\"function\": \"%s\", \"call\": \"%s\", \"direction\": \"%c\", \"file\": \"%s\", "
			"\"bytes\": %" PRIu64 ", \"calls\": %" PRIu64 ", \"ns\": %" PRIu64 "}",
			i ? "," : "", items[i].function, items[i].call, items[i].direction,
			items[i].file, items[i].bytes, items[i].calls, items[i].ns);
	fprintf(out, "\n]}\n");
	return fclose(out) != 0;
}

static int is_wanted(const char *name, int nr, char **names)
{
	int i;

	for (i = 0; i < nr; i++)
		if (!strcmp(names[i], name))
			return 1;
	return !nr;
}

int main(int argc, char **argv)
{
	struct proc_io before;
	size_t i;

	if (argc < 3)
		return 2;
	snprintf(dir, sizeof(dir), "%s", argv[1]);
	memset(data, 'x', sizeof(data));
	before = read_proc_io();
	for (i = 0; i < sizeof(groups) / sizeof(*groups); i++)
		if (is_wanted(groups[i].name, argc - 3, argv + 3))
			groups[i].work();
	return put_truth(argv[2], before, read_proc_io());
}
