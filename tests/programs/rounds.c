// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Does a bit of everything, round by round, until it is killed: 70, 20 and 10 % of its CPU time in
 * three functions, sleep, a file read, a file written, a line to whoever reads its output. "rounds
 * IN OUT". There is one of these for each interpreter, with functions of the same names.
 */
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CHUNK	   100000u
#define FILE_BYTES (128u << 10)
#define PAGE_BYTES 4096u
#define OUT_MODE   0644

static volatile uint32_t sink;
static char buffer[FILE_BYTES];

__attribute__((noinline)) static void spin(uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		sink = i;
}

__attribute__((noinline)) static void seventy(void)
{
	spin(7 * CHUNK);
}

__attribute__((noinline)) static void twenty(void)
{
	spin(2 * CHUNK);
}

__attribute__((noinline)) static void ten(void)
{
	spin(CHUNK);
}

__attribute__((noinline)) static void nap(void)
{
	const struct timespec ts = { .tv_nsec = 20000000 };

	nanosleep(&ts, NULL);
}

__attribute__((noinline)) static void fetch(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	while (read(fd, buffer, sizeof(buffer)) > 0)
		;
	close(fd);
}

__attribute__((noinline)) static void touch(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *at = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	size_t i;

	if (at != MAP_FAILED) {
		for (i = 0; i < FILE_BYTES; i += PAGE_BYTES)
			sink = (uint32_t)at[i];
		munmap(at, FILE_BYTES);
	}
	close(fd);
}

__attribute__((noinline)) static void store(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, OUT_MODE);

	if (write(fd, buffer, PAGE_BYTES) > 0)
		fsync(fd);
	close(fd);
}

__attribute__((noinline)) static void tell(void)
{
	if (write(STDOUT_FILENO, "round\n", 6) < 0)
		_exit(1);
}

__attribute__((noinline)) static void round_of(char **argv)
{
	seventy();
	twenty();
	ten();
	nap();
	fetch(argv[1]);
	touch(argv[1]);
	store(argv[2]);
	tell();
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 1;
	for (;;)
		round_of(argv);
}
