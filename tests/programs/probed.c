// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls of functions whose returns are probed. "probed work" computes in the innermost one, "probed
 * wait" sleeps there, both again and again. "probed long" reads a line and then sleeps for long.
 * "probed return" does nothing but return. The chains, each of which is entered from main():
 *
 *	outer -> middle -> inner -> leaf		inner is probed
 *	outer_recursive -> recurse x 3 -> leaf		recurse is probed: three pending at once
 *	outer_jump -> jump_over -> inner -> leaf	inner is called after a longjmp() out of inner
 */
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define CHUNK	 300000u
#define SLEEP_NS 2000000
#define LONG_S	 600

static volatile uint32_t sink;
static struct timespec delay;
static jmp_buf out;

__attribute__((noinline)) void leaf(void)
{
	uint32_t i;

	if (delay.tv_sec || delay.tv_nsec)
		nanosleep(&delay, NULL);
	else
		for (i = 0; i < CHUNK; i++)
			sink = i;
	sink = 0;
}

/* The store behind each call keeps it from being a jump. */
__attribute__((noinline)) void inner(int jumps)
{
	if (jumps)
		longjmp(out, 1);
	leaf();
	sink = 1;
}

__attribute__((noinline)) void middle(void)
{
	inner(0);
	sink = 2;
}

__attribute__((noinline)) void outer(void)
{
	middle();
	sink = 3;
}

__attribute__((noinline)) void recurse(int levels)
{
	if (levels > 1)
		recurse(levels - 1);
	else
		leaf();
	sink = levels;
}

__attribute__((noinline)) void outer_recursive(void)
{
	recurse(3);
	sink = 4;
}

__attribute__((noinline)) void jump_over(void)
{
	if (!setjmp(out))
		inner(1);
	inner(0);
	sink = 5;
}

__attribute__((noinline)) void outer_jump(void)
{
	jump_over();
	sink = 6;
}

__attribute__((noinline)) void empty(void)
{
	sink = 7;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "work";

	if (!strcmp(mode, "wait"))
		delay.tv_nsec = SLEEP_NS;
	if (!strcmp(mode, "long"))
		delay.tv_sec = LONG_S;
	puts("ready");
	fflush(stdout);
	if (!strcmp(mode, "long"))
		getchar();
	while (!strcmp(mode, "return"))
		empty();
	for (;;) {
		outer();
		outer_recursive();
		outer_jump();
	}
}
