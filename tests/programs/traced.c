// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls traced() N times, 70 of 100 from often() and 30 from seldom(), and comes as often to the USDT probe
 * traced:turn. Its note and semaphore are written by hand, as <sys/sdt.h> would.
 */
#include <stdlib.h>

#define NOTE                                                       \
	".pushsection .note.stapsdt,\"?\",\"note\"\n"              \
	".balign 4\n"                                              \
	".4byte 992f-991f, 994f-993f, 3\n"                         \
	"991: .asciz \"stapsdt\"\n"                                \
	"992: .balign 4\n"                                         \
	"993: .8byte 990b, 0, traced_turn_semaphore\n"             \
	".asciz \"traced\"\n.asciz \"turn\"\n.asciz \"8@%%rdi\"\n" \
	"994: .balign 4\n"                                         \
	".popsection\n"

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
		__asm__ volatile("990: nop\n" NOTE : : "r"(turn));
	sink++;
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
	long nr = argc > 1 ? atol(argv[1]) : 1000, i;

	for (i = 0; i < nr; i++) {
		if (i % 10 < 7)
			often(i);
		else
			seldom(i);
		probed(i);
	}
	traced_too(0);
	return 0;
}
