/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * User stacks of threads that sleep while an iterator of a view looks at them. User space reads a
 * piece of the stack, because BPF programs cannot do so before Linux 5.18, and checks that the
 * thread has not run meanwhile. Internal to capture; the session's thread.
 */
#ifndef SB_CAPTURE_ASLEEP_H
#define SB_CAPTURE_ASLEEP_H

#include <stdint.h>

#include "capture/rawstack.h"

struct bpf_program;

struct sb_interpwatch;

struct sb_asleep_stacks {
	struct sb_interpwatch *interps; /* borrowed; NULL: no frames of interpreters */
	struct sb_rawstacks raw;	/* pieces of stack that wait to be unwound */
	/* Called when `raw` has 16 MiB: unwind and clear it. Return: 0 or a negative errno, which
	 * ends the run. NULL: it is not called. */
	int (*unwind)(void *arg);
	void *arg; /* for unwind() and for found() below */
	/* Threads of all runs so far; of these, those that ran, ended or could not be read. */
	uint64_t nr, nr_lost;
};

/*
 * Run the loaded iterator @prog over all tasks. The caller has set `interps`, `unwind` and `arg` of
 * @asleep, and zeroed the rest before the first run; sums and `raw` grow from run to run. For each
 * struct sb_asleep that it writes, append a piece of the thread's stack to asleep->raw. Of a thread
 * that has run since, or cannot be read, only the leaf is kept, with a status that says so. What is
 * in asleep->raw at the end is the caller's to unwind. With asleep->interps, stacks of interpreters
 * and labels are read, too, and left for sb_interpwatch_drain() and sb_interpwatch_take_labels().
 * @found: called once with asleep->arg, after the iterator has ended and before stacks are read, to
 *	let the view go on: reading takes long. The iterator then runs twice before it, the second
 *	time for tasks for which it could make no state the first time. NULL: it runs once
 *
 * Return: 0; -ENOMEM; a negative errno of running the iterator; or what asleep->unwind() returned.
 * What was appended remains. @found was not called if the iterator failed.
 */
int sb_asleep_run(struct sb_asleep_stacks *asleep, const struct bpf_program *prog,
		  void (*found)(void *arg));
/* Free asleep->raw, which is empty then, so that @asleep can be used again; what is borrowed stays.
 * Accepts a zeroed struct, and may be called again. */
void sb_asleep_release(struct sb_asleep_stacks *asleep);

#endif
