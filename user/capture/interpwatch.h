/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Serves the interpreter walkers in the kernel. Its thread looks at processes that they do not
 * know, publishes which interpreters there are (maps `interp_procs`, `interp_confs`), and reads the
 * names of frames as soon as a stack is seen for the first time, because the process may end right
 * after that. Functions without another word on it are called by the session's thread. No pointer
 * may be NULL unless a contract says so; what is not said to be borrowed is only used during the
 * call.
 *
 * Order: prepare() -> load -> new() -> expect(), settle() -> for each drain sb_interpwatch_drain(),
 * then sb_interpwatch_take_labels() -> free(). Of a thread that sleeps: walk() and labels(); when
 * it is known whether it slept all the time, keep() and keep_labels(); both before the drain.
 */
#ifndef SB_CAPTURE_INTERPWATCH_H
#define SB_CAPTURE_INTERPWATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/batch.h"
#include "interp/core/interp.h"

struct sampler_bpf;
struct sb_interpwatch;
struct sb_walkers;

/* Set the sizes of maps and the settings of an open BPF object, before load. @lines: ship positions
 * in frames, too; @labels: read labels of threads, too. Return: 0; or a negative errno of libbpf,
 * and then @skel is not to be loaded. */
int sb_interpwatch_prepare(struct sampler_bpf *skel, bool lines, bool labels);
/* Start the thread, after load and before sb_privileges_settle() (workers/privileges.h), because it
 * drops its own privileges. @skel, @processes (the same as in @interp), @interp and @walkers (NULL:
 * all are loaded) are borrowed until sb_interpwatch_free(), with which the caller ends *ret_watch.
 * A process that has a runtime whose walker is missing is published when sb_walkers_need() has
 * loaded that. Return: 0; -ENOMEM; or a negative errno of opening the ring or making the thread;
 * *ret_watch is untouched then. */
int sb_interpwatch_new(struct sampler_bpf *skel, struct sb_processes *processes,
		       struct sb_interp *interp, struct sb_walkers *walkers,
		       struct sb_interpwatch **ret_watch);
/* End the thread and free, when no other thread calls functions of @watch any more. Gives back its
 * references to address spaces, so the registry must still be there. Accepts NULL. */
void sb_interpwatch_free(struct sb_interpwatch *watch);

/*
 * Pass on a side-band record. @event: a record of the kind MMAP, EXEC, EXIT or LOST, of which what
 * is needed is copied; NULL: there are no more for now, so that the thread is woken if records wait
 * long enough. A process that is followed is looked at again, soon if it maps a file that may have
 * an interpreter; after LOST, which may stand for records of any process, all are, each once a
 * second at most. One call at a time, of any thread; does not block for long.
 */
struct sb_sideband;
void sb_interpwatch_tell(struct sb_interpwatch *watch, const struct sb_sideband *event);

/*
 * For the unwinder, which is asked for interpreters together with mappings. It calls follow(),
 * after which side-band records of the process count, then reads its mappings, then calls need()
 * with the result: @is_plain says that sb_interp_is_plain() is true for each file it maps. If so,
 * the process is published as one without interpreters, and is looked at only if it may have mapped
 * something since @since_ns (CLOCK_MONOTONIC); else it is looked at. That look uses the mappings
 * that the unwinder has read, if it began at @since_ns or later and they are still kept
 * (sb_interp_look_since()). So need() follows each follow(), with @is_plain false if the mappings
 * could not be read. Without memory, nothing happens, and the BPF side asks again. The watch's
 * thread stops following the process when it has ended or executes another program. Any thread;
 * does not block for long.
 */
void sb_interpwatch_follow(struct sb_interpwatch *watch, uint32_t tgid);
void sb_interpwatch_need(struct sb_interpwatch *watch, const struct sb_space_key *space,
			 uint64_t since_ns, bool is_plain);

/* Let the thread look at @tgid at once, because it is about to be sampled. Does not wait for it;
 * without memory, nothing happens. Any thread. */
void sb_interpwatch_expect(struct sb_interpwatch *watch, uint32_t tgid);
/* Wait until all processes of sb_interpwatch_expect() have been looked at, but no longer than
 * @until (CLOCK_MONOTONIC). */
struct timespec;
void sb_interpwatch_settle(struct sb_interpwatch *watch, const struct timespec *until);

/* Call @add for each stack that came since the last call, with the flag SB_STACK_INTERP: stack->ip
 * is an array of struct sb_interp_frame, valid during the call, and stack->nr_frames counts its
 * words, two for each frame. Names that the thread has not read yet are read on the way, from the
 * processes' memory. @add must not call functions of @watch, whose lock is held; it returns 0 to go
 * on. A stack for which it returns something else is lost, which is counted, and the BPF side ships
 * it again. Return: 0, also if @add returned -ENOMEM; what else it returned first; -ENOMEM. After
 * an error, too, @add was called for each stack. */
int sb_interpwatch_drain(struct sb_interpwatch *watch,
			 int (*add)(void *arg, const struct sb_batch_stack *stack), void *arg);

/* Get the label sets that came since the last call, each once, as sb_interpwatch_drain() has read
 * them from the ring. Return: how many; *ret, always set, belongs to the watch and is valid until
 * the next call; it may be NULL when there are none. Both become those of the drain's batch. */
size_t sb_interpwatch_take_labels(struct sb_interpwatch *watch, const struct sb_batch_labels **ret);

/*
 * For a thread that sleeps, as an iterator of the BPF side described it in @asleep. walk() walks
 * its interpreter stack from user space, by @pages (interp/core/pages.h); the result is in
 * walk->frame, nr_frames (0: none) and event.status; the caller allocates *@walk and need not
 * initialize it. A process that cannot be looked at, for lack of memory, too, gives no frames;
 * memory that @pages does not have is noted in it, and ends the walk. keep() then stores a copy of
 * the result as the stack that samples of the thread reference (asleep->istack), for the next
 * sb_interpwatch_drain(); @walk NULL: the thread did not sleep all the time, and the stack has no
 * frames. Return: 0, also when the stack is lost because too many wait, which is counted; -ENOMEM:
 * nothing was stored.
 */
struct sb_interp_walk;
struct sb_pages;
void sb_interpwatch_walk(struct sb_interpwatch *watch, const struct sb_asleep *asleep,
			 struct sb_pages *pages, struct sb_interp_walk *walk);
int sb_interpwatch_keep(struct sb_interpwatch *watch, const struct sb_asleep *asleep,
			const struct sb_interp_walk *walk);

/* For a thread that sleeps, too: labels() appends the values of its labels to @text, as in struct
 * sb_batch_labels; keep_labels() stores a copy of them for sb_interpwatch_take_labels(), by the ID
 * asleep->labels; without an ID (0) both do nothing. Pass an empty @text when the thread did not
 * sleep all the time. Return: 0, also when the set is lost because too many wait, which is counted;
 * -ENOMEM: labels() may have appended a part, keep_labels() stored nothing. */
int sb_interpwatch_labels(struct sb_interpwatch *watch, const struct sb_asleep *asleep,
			  struct sb_str *text);
int sb_interpwatch_keep_labels(struct sb_interpwatch *watch, const struct sb_asleep *asleep,
			       const struct sb_str *text);

struct sb_interpwatch_stats {
	uint64_t nr_refused; /* runtimes that found no room in the maps; side-band records lost */
	uint64_t nr_lost;    /* stacks lost for lack of memory */
	uint64_t nr_labels_lost; /* label sets lost for lack of memory */
};
/* Return: the ration that limits how much time goes into looking again at large processes, for the
 * governor, which may have that done less often (sb_thinning_add_ration()); the watch's thread uses
 * it meanwhile, so sb_ration_next_ns() is not for others. Never NULL; valid as long as @watch. */
struct sb_ration *sb_interpwatch_ration(struct sb_interpwatch *watch);

/* Get the figures so far. Any thread. */
void sb_interpwatch_stats(struct sb_interpwatch *watch, struct sb_interpwatch_stats *ret_stats);

#endif
