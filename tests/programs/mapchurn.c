// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * "mapchurn NR FILE": NR executable mappings of FILE, of which one after the other is unmapped and
 * mapped again, as fast as it goes. SIGUSR1: from then on it only works, in quiet_work().
 */
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096
/* A prime: neighbours are not changed one after the other. */
#define STEP	   7919

static volatile sig_atomic_t is_quiet;
static volatile uint32_t sink;

static void on_signal(int sig)
{
	(void)sig;
	is_quiet = 1;
}

__attribute__((noinline)) static void quiet_work(void)
{
	uint32_t i;

	for (i = 0; i < 1000000; i++)
		sink = i;
}

static int map(char *at, int fd)
{
	return mmap(at, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) ==
	       MAP_FAILED;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	size_t nr = argc > 2 ? (size_t)atol(argv[1]) : 0, i;
	int fd = argc > 2 ? open(argv[2], O_RDONLY) : -1;
	char *base = mmap(NULL, (nr + 1) * PAGE_BYTES, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (!nr || fd < 0 || base == MAP_FAILED || sigaction(SIGUSR1, &action, NULL))
		return 1;
	for (i = 0; i < nr; i++)
		if (map(base + i * PAGE_BYTES, fd))
			return 1;
	puts("ready");
	fflush(stdout);
	for (i = 0; !is_quiet; i = (i + STEP) % nr) {
		munmap(base + i * PAGE_BYTES, PAGE_BYTES);
		if (map(base + i * PAGE_BYTES, fd))
			return 1;
	}
	for (;;)
		quiet_work();
}
