// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Code whose functions all bear the mark of their file, NAME, and whose frames have SIZE bytes, so
 * that one file's rules are wrong for the other one. Without frame pointers, as:
 *
 *	-DLIBRARY		NAME_run(), for the one below
 *	-DLOADER		"FILE A FILE B": loads and unloads two libraries in turn, for ever
 *	neither			"NR OTHER SELF": works, then becomes OTHER, NR times in all
 *
 * Each turn adds a line "NAME NS" to the file that the environment variable TURNS names: how much CPU time it took.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE	__attribute__((noinline))
#define PASTE(a, b)	a##b
#define JOIN(a, b)	PASTE(a, b)
#define NAMED(function) JOIN(NAME, function)
#define TEXT(a)		#a
#define TEXT_OF(a)	TEXT(a)

static volatile unsigned int sink;

#ifdef LOADER
/* "LIBRARY NAME LIBRARY NAME": says "moved" and ends if they are not at the same address. */
int main(int argc, char **argv)
{
	void *at = NULL, *handle, *run;
	char name[64];
	int i;

	for (i = 0; argc > 4; i ^= 2) {
		handle = dlopen(argv[1 + i], RTLD_NOW);
		if (!handle)
			return 1;
		snprintf(name, sizeof(name), "%s_run", argv[2 + i]);
		run = dlsym(handle, name);
		if (!run || (at && run != at))
			return puts("moved");
		at = run;
		((void (*)(void))run)();
		dlclose(handle);
	}
	return 2;
}
#else
static NOINLINE void NAMED(_inner)(unsigned int nr)
{
	volatile char room[SIZE];
	unsigned int i;

	for (i = 0; i < nr; i++)
		room[i % SIZE] = (char)i;
	sink += (unsigned int)room[nr % SIZE];
}

static NOINLINE void NAMED(_middle)(unsigned int nr)
{
	volatile char room[SIZE / 2];

	room[nr % (SIZE / 2)] = 1;
	NAMED(_inner)(nr);
	sink += (unsigned int)room[nr % (SIZE / 2)];
}

static long long cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void account(long long ns)
{
	const char *path = getenv("TURNS");
	int fd = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	dprintf(fd, TEXT_OF(NAME) " %lld\n", ns);
	close(fd);
}

void NAMED(_run)(void);

__attribute__((noinline, aligned(256))) void NAMED(_run)(void)
{
	long long begin = cpu_ns();

	NAMED(_middle)(ROUNDS);
	account(cpu_ns() - begin);
}
#ifndef LIBRARY
int main(int argc, char **argv)
{
	char nr[16];

	if (argc < 4)
		return 2;
	NAMED(_run)();
	snprintf(nr, sizeof(nr), "%d", atoi(argv[1]) - 1);
	if (atoi(argv[1]) > 0)
		execl(argv[2], argv[2], nr, argv[3], argv[2], NULL);
	return 0;
}
#endif
#endif
