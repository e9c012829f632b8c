// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* "deep N": spins at the end of N calls of one function. */
#include <stdlib.h>

static volatile unsigned long sink = 1;

__attribute__((noinline)) static void descend(int n)
{
	if (n > 0)
		descend(n - 1);
	else
		while (sink)
			sink |= 2;
	sink = 0; /* something to come back for, so that the call is no jump */
}

int main(int argc, char **argv)
{
	descend(argc > 1 ? atoi(argv[1]) : 10);
	return 0;
}
