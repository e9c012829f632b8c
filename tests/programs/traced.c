// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls traced() N times (-1: a hundred times a second, forever), 70 of 100 from often() and 30
 * from seldom(), and comes as often to the USDT probe traced:turn. Its note and semaphore are
 * written by hand, as <sys/sdt.h> would. As often it calls named(), which returns its argument less
 * 10, and comes to the USDT probe
 * traced:places, whose arguments are in memory, a constant, and in a register. At the end it prints
 * the sum of the arguments with the name "even", and that of all results above 0.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NOTE(semaphore, name, args)                                     \
	".pushsection .note.stapsdt,\"?\",\"note\"\n"                   \
	".balign 4\n"                                                   \
	".4byte 992f-991f, 994f-993f, 3\n"                              \
	"991: .asciz \"stapsdt\"\n"                                     \
	"992: .balign 4\n"                                              \
	"993: .8byte 990b, 0, " semaphore "\n"                          \
	".asciz \"traced\"\n.asciz \"" name "\"\n.asciz \"" args "\"\n" \
	"994: .balign 4\n"                                              \
	".popsection\n"

/* The lower half of a register. */
#ifdef __aarch64__
#define LOW "%w"
#else
#define LOW "%k"
#endif

__attribute__((section(".probes"))) volatile unsigned short traced_turn_semaphore;
volatile long sink;

__attribute__((noipa)) void traced(long turn)
{
	sink += turn;
}

__attribute__((noipa)) void traced_too(long turn)
{
	sink -= turn;
}

__attribute__((noipa)) void probed(long turn)
{
	if (traced_turn_semaphore)
		__asm__ volatile("990: nop\n" NOTE("traced_turn_semaphore", "turn", "8@%%rdi")
				 :
				 : "r"(turn));
	sink++;
}

__attribute__((noipa)) void placed(long turn)
{
	volatile int less = (int)-turn;
	volatile unsigned char bytes[8] = { [3] = 200 };
	long i = 3;

	__asm__ volatile(
		"990: nop\n" NOTE("0", "places", "-4@%0 8@$-7 1@(%1,%2,1) -4@" LOW "3 8f@%%xmm0")
		:
		: "m"(less), "r"(bytes), "r"(i), "r"(turn));
	sink++;
}

__attribute__((noipa)) long named(const char *name, long turn)
{
	sink += *name;
	return turn - 10;
}

__attribute__((noipa)) void often(long turn)
{
	traced(turn);
	sink++;
}

__attribute__((noipa)) void seldom(long turn)
{
	traced(turn);
	sink++;
}

int main(int argc, char **argv)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	long nr = argc > 1 ? atol(argv[1]) : 1000, even = 0, returned = 0, i, less;

	/* Memory that was not touched yet cannot be read by a BPF program. */
	sink = *(volatile const char *)"even" + *(volatile const char *)"odd";
	for (i = 0; nr < 0 || i < nr; i++) {
		if (nr < 0)
			nanosleep(&pause, NULL);
		if (i % 10 < 7)
			often(i);
		else
			seldom(i);
		probed(i);
		placed(i);
		less = named(i % 2 ? "odd" : "even", i);
		even += i % 2 ? 0 : i;
		returned += less > 0 ? less : 0;
	}
	traced_too(0);
	fprintf(stderr, "even %ld\nreturned %ld\n", even, returned);
	return 0;
}
