// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Does a known number of things, each of which is another one to who counts them.
 *
 *	burst MODE N [FILE]
 *
 * At each SIGUSR1 it does N of them and says how many it did, "did N"; before the first, "ready".
 *
 *	names	reads of one byte of FILE, each by a thread of another name
 *	paths	the same, each by another stack
 *	files	the same, each of another file: FILE, a folder, gets them
 *	sleeps	short sleeps, each by a thread of another name
 *	maps	executable mappings of FILE
 *	children children that live until the program ends
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE     __attribute__((noinline))
/* Two milliseconds of CPU time. */
#define CHILD_CLOCKS (CLOCKS_PER_SEC / 500)

static const char *path;
static int file = -1;
static volatile int sink;

static int read_one(int fd)
{
	char c;

	return pread(fd, &c, 1, 0) == 1;
}

static void rename_to(unsigned int i)
{
	char name[16];

	snprintf(name, sizeof(name), "b%u", i);
	prctl(PR_SET_NAME, name);
}

static NOINLINE int by_name(unsigned int i)
{
	rename_to(i);
	return read_one(file);
}

static int walk(unsigned int i, int depth);

static NOINLINE int left(unsigned int i, int depth)
{
	int did = walk(i >> 1, depth - 1);

	sink++;
	return did;
}

static NOINLINE int right(unsigned int i, int depth)
{
	int did = walk(i >> 1, depth - 1);

	sink--;
	return did;
}

static NOINLINE int walk(unsigned int i, int depth)
{
	int did = !depth ? read_one(file) : i & 1 ? right(i, depth) : left(i, depth);

	sink++;
	return did;
}

static NOINLINE int by_path(unsigned int i)
{
	return walk(i, 16);
}

static NOINLINE int by_file(unsigned int i)
{
	char name[4096];
	int fd, did;

	snprintf(name, sizeof(name), "%s/%u", path, i);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	did = fd >= 0 && !ftruncate(fd, 1) && read_one(fd);
	close(fd);
	return did;
}

static NOINLINE int by_sleep(unsigned int i)
{
	const struct timespec ts = { .tv_nsec = 1000 };

	rename_to(i);
	return !clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

static NOINLINE int by_map(unsigned int i)
{
	void *at = mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);

	return at != MAP_FAILED && !munmap(at, 1);
}

static NOINLINE int by_child(unsigned int i)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* A process that has done next to nothing since its fork is not asked for: it may
		 * exec. */
		while (clock() < CHILD_CLOCKS)
			;
		for (;;)
			pause();
	}
	return pid > 0;
}

static const struct {
	const char *name;
	int (*one)(unsigned int i);
} modes[] = {
	{ "names", by_name },	{ "paths", by_path }, { "files", by_file },
	{ "sleeps", by_sleep }, { "maps", by_map },   { "children", by_child },
};

static int serve(int (*one)(unsigned int i), unsigned int nr)
{
	unsigned int i, next = 0, did;
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	puts("ready");
	while (!fflush(stdout) && !sigwait(&set, &sig)) {
		for (i = 0, did = 0; i < nr; i++)
			did += (unsigned int)one(next++);
		printf("did %u\n", did);
	}
	return 1;
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc < 3)
		return 2;
	path = argv[3];
	if (path)
		file = open(path, O_RDONLY | O_CLOEXEC);
	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(modes[i].name, argv[1]))
			return serve(modes[i].one, (unsigned int)atoi(argv[2]));
	return 2;
}
