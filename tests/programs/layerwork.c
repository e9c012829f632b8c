// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Makes files dirty, and reads them, in ways that reach the layers below the system call.
 *
 * layerwork written DIR: three files in DIR, by write(2), through a mapping, and by O_DIRECT; then
 * everything is written back.
 * layerwork read FILE NR: reads NR pages of FILE, here and there, with read-ahead switched off.
 * layerwork ways FILE NR: reads its first page NR times, by two ways in turn, which differ in
 * nothing but the caller of the caller; the page is dropped from the cache each time. layerwork map
 * FILE NR: touches NR pages of FILE, which is mapped, one after the other; says how many page
 * faults getrusage(2) has counted meanwhile.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define MIB	 (1 << 20)
#define PAGE	 4096

static _Alignas(PAGE) char data[MIB];
static volatile char sink;

static void need(int condition, const char *what)
{
	if (condition)
		return;
	perror(what);
	_exit(1);
}

static NOINLINE void by_write(int fd)
{
	int i;

	for (i = 0; i < 8; i++)
		need(write(fd, data, MIB) == MIB, "write");
}

static NOINLINE void by_mapping(int fd)
{
	char *pages;
	int i;

	need(!ftruncate(fd, 4 * MIB), "ftruncate");
	pages = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	need(pages != MAP_FAILED, "mmap");
	for (i = 0; i < 4 * MIB; i += PAGE)
		pages[i] = 1;
	munmap(pages, 4 * MIB);
}

static NOINLINE void by_direct(int fd)
{
	int i;

	for (i = 0; i < 4; i++)
		need(write(fd, data, MIB) == MIB, "write, O_DIRECT");
	for (i = 0; i < 4; i++)
		need(pread(fd, data, MIB, (off_t)i * MIB) == MIB, "pread, O_DIRECT");
}

static void written(const char *dir)
{
	static const struct {
		const char *name;
		int flags;
		void (*work)(int fd);
	} files[] = { { "written", 0, by_write },
		      { "mapped", 0, by_mapping },
		      { "direct", O_DIRECT, by_direct } };
	char path[512];
	size_t i;
	int fd;

	memset(data, 1, sizeof(data));
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i].name);
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | files[i].flags, 0600);
		need(fd >= 0, path);
		files[i].work(fd);
		close(fd);
	}
	sync();
}

static NOINLINE void by_read(int fd, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		need(pread(fd, data, PAGE, (off_t)i * 3 * PAGE) == PAGE, "pread");
}

/* The return address to the way lies beyond what is on top of the stack. */
static NOINLINE void by_helper(int fd)
{
	char buffer[2 * PAGE];

	memset(buffer, 1, sizeof(buffer));
	need(pread(fd, buffer, PAGE, 0) == PAGE, "pread");
	sink = buffer[0];
}

static NOINLINE void one_way(int fd)
{
	by_helper(fd);
}

static NOINLINE void other_way(int fd)
{
	by_helper(fd);
}

static void ways(int fd, int nr)
{
	int i;

	for (i = 0; i < nr; i++) {
		need(!posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), "posix_fadvise");
		if (i % 2)
			other_way(fd);
		else
			one_way(fd);
	}
}

static NOINLINE void by_touch(const char *pages, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		sink = pages[(size_t)i * PAGE];
}

static uint64_t nr_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)usage.ru_minflt + (uint64_t)usage.ru_majflt;
}

static void map(int fd, int nr)
{
	char *pages = mmap(NULL, (size_t)nr * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	uint64_t before;

	need(pages != MAP_FAILED, "mmap");
	madvise(pages, (size_t)nr * PAGE, MADV_RANDOM);
	sink = 1; /* a fault of its own, the first time */
	before = nr_faults();
	by_touch(pages, nr);
	fprintf(stderr, "faults %llu\n", (unsigned long long)(nr_faults() - before));
}

int main(int argc, char **argv)
{
	int fd;

	if (argc == 3 && !strcmp(argv[1], "written")) {
		written(argv[2]);
		return 0;
	}
	need(argc == 4, "arguments");
	fd = open(argv[2], O_RDONLY | O_CLOEXEC);
	need(fd >= 0, argv[2]);
	if (!strcmp(argv[1], "map")) {
		map(fd, atoi(argv[3]));
		return 0;
	}
	need(!posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), "posix_fadvise");
	if (!strcmp(argv[1], "ways"))
		ways(fd, atoi(argv[3]));
	else
		by_read(fd, atoi(argv[3]));
	return 0;
}
