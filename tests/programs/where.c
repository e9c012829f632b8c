// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Says where its functions are, one "NAME HEX" a line, and stays alive until its standard input
 * ends.
 *
 *	where			its own functions
 *	where dlopen FILE	also those of a library, "lib_one" and "lib_two"
 *	where jit		also generated code, which it tells in /tmp/perf-PID.map
 *	where move		a page of its text lies in anonymous memory
 *	where threads		the main thread has ended, another one lives
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE	  4096u

/* Pages of their own, so that the middle one can be moved alone. */
#define ON_A_PAGE __attribute__((noinline, aligned(4096)))

static volatile int sink;

void ON_A_PAGE before_moved(void);
void ON_A_PAGE moved(void);
void ON_A_PAGE after_moved(void);

void before_moved(void)
{
	sink = 1;
}

void moved(void)
{
	sink = 2;
}

void after_moved(void)
{
	sink = 3;
}

static __attribute__((noinline)) void local_function(void)
{
	sink = 4;
}

static void say(const char *name, const void *addr)
{
	printf("%s %lx\n", name, (unsigned long)(uintptr_t)addr);
}

#ifdef WHERE_STATIC
static int open_library(const char *path)
{
	return 1;
}
#else
static int open_library(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW);

	if (!lib)
		return 1;
	say("lib_one", dlsym(lib, "lib_one"));
	say("lib_two", dlsym(lib, "lib_two"));
	return 0;
}
#endif

/* Nothing of it is ever run. */
static int generate_code(void)
{
	char *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned long at = (unsigned long)(uintptr_t)code;
	char path[64];
	FILE *map;

	if (code == MAP_FAILED)
		return 1;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	if (!map)
		return 1;
	fprintf(map, "%lx 40 py::<module>:/tmp/a b.py\nthis is no line\n%lx 40 jit_two\n", at,
		at + 0x40);
	if (fclose(map))
		return 1;
	say("py::<module>:/tmp/a b.py", code);
	say("jit_two", code + 0x40);
	return 0;
}

static int move_text(void)
{
	char *page = (char *)(uintptr_t)moved;
	char *copy = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		return 1;
	memcpy(copy, page, PAGE);
	return mremap(copy, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, page) == MAP_FAILED;
}

static void *wait_for_end(void *arg)
{
	char c;

	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	exit(0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pthread_t thread;

	say("main", main);
	say("local_function", local_function);
	say("before_moved", before_moved);
	say("moved", moved);
	say("after_moved", after_moved);
	local_function();
	if (!strcmp(what, "dlopen") && open_library(argv[2]))
		return 1;
	if (!strcmp(what, "jit") && generate_code())
		return 1;
	if (!strcmp(what, "move") && move_text())
		return 1;
	if (!strcmp(what, "threads")) {
		if (pthread_create(&thread, NULL, wait_for_end, NULL))
			return 1;
		pthread_exit(NULL);
	}
	wait_for_end(NULL);
	return 0;
}
