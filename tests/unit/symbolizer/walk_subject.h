/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What walk_oracle.c steps through: between subject_begin() and subject_end(). The oracle gets the
 * callers at the beginning from backtrace(3), in the registers of the breakpoint.
 */
#ifndef WALK_SUBJECT_H
#define WALK_SUBJECT_H

#include <execinfo.h>

#define SUBJECT_FRAMES_MAX 16
#define SUBJECT_END	   0x5ec0de /* first argument of the breakpoint at the end */

/* To be called by main(), which then is the first caller that is expected. */
static inline __attribute__((always_inline)) void subject_begin(void)
{
	static void *frames[SUBJECT_FRAMES_MAX];
	long nr = backtrace(frames, SUBJECT_FRAMES_MAX);

	/* The first one is main() itself, which goes on. */
	__asm__ volatile("int3" : : "D"(frames + 1), "S"(nr - 1) : "memory");
}

static inline __attribute__((always_inline)) void subject_end(void)
{
	__asm__ volatile("int3" : : "D"(SUBJECT_END), "S"(0) : "memory");
}

#endif
