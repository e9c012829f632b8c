// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program of another name that has CPython in it: embed_python [late|told] LIBPYTHON SCRIPT
 * [ARG...]. late: not before it has run for a while, 0.3 s, in late(); told: in told(), until there
 * is something to read on stdin.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static __attribute__((noinline)) void late(void)
{
	while (clock() < CLOCKS_PER_SEC * 3 / 10)
		;
}

static __attribute__((noinline)) void told(void)
{
	struct pollfd in = { .events = POLLIN };

	while (!poll(&in, 1, 0))
		;
}

int main(int argc, char **argv)
{
	void *lib;

	if (argc > 1 && (!strcmp(argv[1], "late") || !strcmp(argv[1], "told"))) {
		*argv[1] == 'l' ? late() : told();
		argc--;
		argv++;
	}
	lib = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
	int (*run)(int argc, char **argv) = NULL;

	if (lib)
		*(void **)&run = dlsym(lib, "Py_BytesMain");
	if (!run) {
		fprintf(stderr, "%s: %s\n", argv[0], lib ? "no Py_BytesMain()" : "no library");
		return 1;
	}
	return run(argc - 1, argv + 1);
}
