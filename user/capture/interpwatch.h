/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Serves the walkers of interpreters in the kernel: a thread of its own looks at processes that they
 * do not know, tells them what they must know of the interpreters there (maps `interp_procs`,
 * `interp_confs`), and reads the names of frames at the moment when a stack is seen for the first
 * time, because its process may end the moment after.
 */
#ifndef SB_CAPTURE_INTERPWATCH_H
#define SB_CAPTURE_INTERPWATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/batch.h"
#include "interp/interp.h"

struct sampler_bpf;
struct sb_interpwatch;

/* Before load: how big the maps are. Return: 0 or a negative errno. */
int sb_interpwatch_prepare(struct sampler_bpf *skel, bool lines, bool labels);
/* After load; starts the thread. @interp is borrowed. Return: 0 or a negative errno. */
int sb_interpwatch_new(struct sampler_bpf *skel, struct sb_interp *interp,
		       struct sb_interpwatch **ret_watch);
void sb_interpwatch_free(struct sb_interpwatch *watch);

/*
 * What side-band records say of a process, or NULL: that was all for now. It is looked at again, soon if it maps
 * what may have an interpreter. Any thread; does not block for long.
 */
struct sb_sideband;
void sb_interpwatch_tell(struct sb_interpwatch *watch, const struct sb_sideband *event);

/*
 * A process was asked for elsewhere. follow(): its news are ours from here on. Then need(): its mappings were read
 * since, and by sb_interp_is_plain() of each there is no interpreter in it; or it is to be looked at. Any thread;
 * does not block for long.
 */
void sb_interpwatch_follow(struct sb_interpwatch *watch, uint32_t tgid);
void sb_interpwatch_need(struct sb_interpwatch *watch, const struct sb_interp_space *space,
			 bool is_plain);

/* @tgid is about to be sampled: look at it at once. */
void sb_interpwatch_expect(struct sb_interpwatch *watch, uint32_t tgid);
/* Wait until all that are expected have been looked at, but not beyond @until (CLOCK_MONOTONIC). */
struct timespec;
void sb_interpwatch_settle(struct sb_interpwatch *watch, const struct timespec *until);

/* Hand the stacks that came since the last call to @add; their words are struct sb_interp_frame.
 * Names are read on the way, where the thread has not been here before us. Return: 0, -ENOMEM, or
 * what @add said. */
int sb_interpwatch_drain(struct sb_interpwatch *watch,
			 int (*add)(void *arg, const struct sb_batch_stack *stack), void *arg);

/* After it: sets of labels that came since the last call. Return: how many; they are valid until the next. */
size_t sb_interpwatch_take_labels(struct sb_interpwatch *watch, const struct sb_batch_labels **ret);

/*
 * A thread that sleeps: walk it from here; its process may be new to us. walk->nr_frames says what
 * was found. Then, when it is known whether the thread has slept all the time: keep the result as the
 * stack that its samples name, NULL: it has not. Return: 0 or -ENOMEM.
 */
struct sb_interp_walk;
void sb_interpwatch_walk(struct sb_interpwatch *watch, const struct sb_asleep *asleep,
			 struct sb_interp_walk *walk);
int sb_interpwatch_keep(struct sb_interpwatch *watch, const struct sb_asleep *asleep,
			const struct sb_interp_walk *walk);

/* The same for its labels: what they say, for which @text is empty on both occasions if there are none, or if
 * it has not slept. Return: 0 or -ENOMEM. */
int sb_interpwatch_labels(struct sb_interpwatch *watch, const struct sb_asleep *asleep,
			  struct sb_str *text);
int sb_interpwatch_keep_labels(struct sb_interpwatch *watch, const struct sb_asleep *asleep,
			       const struct sb_str *text);

struct sb_interpwatch_stats {
	uint64_t nr_refused;	 /* runtimes in processes at a bound */
	uint64_t nr_lost;	 /* stacks: no memory for more */
	uint64_t nr_labels_lost; /* the same of sets of labels */
};
void sb_interpwatch_stats(struct sb_interpwatch *watch, struct sb_interpwatch_stats *ret_stats);

#endif
