/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that sleep while an iterator of a view looks at them: their user stacks are read from the
 * outside, which no program in the kernel can do before 5.18. Internal to capture.
 */
#ifndef SB_CAPTURE_ASLEEP_H
#define SB_CAPTURE_ASLEEP_H

#include <stddef.h>
#include <stdint.h>

#include "capture/rawstack.h"

struct bpf_program;

struct sb_interpwatch;

struct sb_asleep_stacks {
	struct sb_interpwatch *interps; /* borrowed; NULL: no frames of interpreters */
	struct sb_rawstacks raw;	/* pieces of stack, to be unwound at the next drain */
	/* There are many: unwind `raw`, and clear it. Return: 0 or a negative errno. */
	int (*unwind)(void *arg);
	void *arg;	      /* of it, and of found() below */
	uint64_t nr, nr_lost; /* threads; of them: ran, ended or closed to us meanwhile */
};

/*
 * Run the iterator over all tasks; for each struct sb_asleep that it writes, read a piece of the
 * thread's stack, and make sure that it has not run since. A stack that could not be had is kept
 * as its leaf, with a status that says so. @found, if not NULL, is called in between: the iterator is
 * through, and nothing was read yet; then it is run twice, for those it could not take at first. Return: 0 or a negative errno.
 */
int sb_asleep_run(struct sb_asleep_stacks *asleep, const struct bpf_program *prog,
		  void (*found)(void *arg));
void sb_asleep_release(struct sb_asleep_stacks *asleep);

#endif
