// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * asked WHAT NR FILE: does one thing NR times in a function that is called like it, for the
 * commands of docs/events.md. NR is a multiple of 10.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const char *path;
static volatile long sink;

static void rest(long us)
{
	const struct timespec time = { .tv_nsec = us * 1000 };

	nanosleep(&time, NULL);
}

__attribute__((noipa)) void allocate(long nr)
{
	while (nr--) {
		char *volatile at = malloc(100);

		free(at);
	}
	sink++;
}

/* Nine of ten on one descriptor. */
__attribute__((noipa)) void store(long nr)
{
	static char page[4096];
	int often = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), seldom = dup(often);

	while (nr--)
		sink += write(nr % 10 ? often : seldom, page, sizeof(page));
	fsync(often);
}

/* Reads what store() left, page by page, without readahead. */
__attribute__((noipa)) void load(long nr)
{
	static char page[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	long i;

	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	for (i = 0; i < nr; i++)
		sink += pread(fd, page, sizeof(page), i * 4096);
	close(fd);
}

/* Each handler takes a moment, one of ten 5 ms. */
__attribute__((noipa)) void handle(long nr)
{
	rest(nr % 10 ? 10 : 5000);
}

__attribute__((noipa)) void loop(long nr)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd = eventfd(1, EFD_CLOEXEC), epoll = epoll_create1(EPOLL_CLOEXEC);

	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	while (nr-- && epoll_wait(epoll, &event, 1, -1) == 1)
		handle(nr);
	epoll_wait(epoll, &event, 1, -1);
}

__attribute__((noipa)) void *hold(void *nr)
{
	long left = (long)(intptr_t)nr;

	while (left--) {
		pthread_mutex_lock(&mutex);
		rest(500);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

__attribute__((noipa)) void share(long nr)
{
	pthread_t other;

	if (pthread_create(&other, NULL, hold, (void *)(intptr_t)nr))
		exit(1);
	hold((void *)(intptr_t)nr);
	pthread_join(other, NULL);
}

/* More threads than CPUs, as a rule, write to one file at a time, which has a lock in the
 * kernel. */
__attribute__((noipa)) void *append(void *nr)
{
	size_t nr_bytes = 1 << 20;
	char *bytes = calloc(1, nr_bytes);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	long left = (long)(intptr_t)nr;

	while (left--)
		sink += pwrite(fd, bytes, nr_bytes, 0);
	close(fd);
	free(bytes);
	return NULL;
}

__attribute__((noipa)) void contend(long nr)
{
	pthread_t others[8];
	int i;

	for (i = 0; i < 8; i++)
		if (pthread_create(&others[i], NULL, append, (void *)(intptr_t)nr))
			exit(1);
	for (i = 0; i < 8; i++)
		pthread_join(others[i], NULL);
}

__attribute__((noipa)) void compute(long nr)
{
	struct timespec from, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	do {
		sink++;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < nr);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(long nr);
	} all[] = { { "allocate", allocate }, { "store", store }, { "load", load },
		    { "loop", loop },	      { "share", share }, { "contend", contend },
		    { "compute", compute } };
	size_t i;

	if (argc != 4)
		return 2;
	path = argv[3];
	for (i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(argv[1], all[i].name))
			all[i].run(atol(argv[2]));
	return 0;
}
