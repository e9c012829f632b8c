// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A thread that works for cars, bikes and scooters, and says so.
 *
 *	cc -O2 -I ../../../include labels.c -o labels && ./labels &
 *	sudo stackbpf oncpu -p $! --label vehicle -t 5
 */
#define SB_LABELS_IMPLEMENTATION
#include "stackbpf-labels.h"

static volatile unsigned long sum;

__attribute__((noinline)) static void work(unsigned long n)
{
	while (n--)
		sum += n;
}

int main(void)
{
	for (;;) {
		sb_label_set("vehicle", "car");
		work(7000000);
		sb_label_set("vehicle", "bike");
		work(2000000);
		sb_label_set("vehicle", "scooter");
		work(1000000);
		sb_label_clear("vehicle");
	}
}
