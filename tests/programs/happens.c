// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * happens NR: makes what presets of "trace" count, each in a function of its own, and prints per
 * line its name and how often it happened, by its own count or by getrusage(2). NR is even.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static long page;
static volatile long sink;

static void handle(int sig)
{
	sink += sig;
}

static struct rusage used(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage;
}

static char *fresh_pages(long nr)
{
	char *at = mmap(NULL, (size_t)(nr * page), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		exit(1);
	madvise(at, (size_t)(nr * page), MADV_NOHUGEPAGE);
	return at;
}

__attribute__((noipa)) void touch(long nr, char *at)
{
	long i;

	for (i = 0; i < nr; i++)
		at[i * page] = 1;
	sink++;
}

/* Memory that is touched for the first time by the kernel. */
__attribute__((noipa)) void fill(long nr, char *at)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	if (read(fd, at, (size_t)(nr * page)) != nr * page)
		exit(1);
	close(fd);
}

__attribute__((noipa)) void ask(long nr)
{
	while (nr--)
		sink += getppid();
}

__attribute__((noipa)) void fail(long nr)
{
	while (nr--)
		sink += close(-1);
}

__attribute__((noipa)) void notify(long nr)
{
	const struct sigaction action = { .sa_handler = handle };

	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGRTMIN + 3, &action, NULL);
	while (nr--)
		kill(getpid(), nr % 2 ? SIGUSR1 : SIGRTMIN + 3);
}

__attribute__((noipa)) void nap(long nr)
{
	const struct timespec moment = { .tv_nsec = 1000 };

	while (nr--)
		nanosleep(&moment, NULL);
	sink++;
}

int main(int argc, char **argv)
{
	long nr = argc > 1 ? atol(argv[1]) : 1000;
	struct rusage before, after;
	char *at;

	page = sysconf(_SC_PAGESIZE);
	at = fresh_pages(nr);
	before = used();
	touch(nr, at);
	after = used();
	printf("touch %ld\n", after.ru_minflt - before.ru_minflt);
	at = fresh_pages(nr);
	before = used();
	fill(nr, at);
	after = used();
	printf("fill %ld\n", after.ru_minflt - before.ru_minflt);
	ask(nr);
	fail(nr);
	notify(nr);
	before = used();
	nap(nr);
	after = used();
	printf("nap %ld\n", after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw);
	return 0;
}
