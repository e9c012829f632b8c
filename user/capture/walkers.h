/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which walkers of interpreters the program of a session is loaded with. To verify them takes half
 * of a start, and a process mostly has one interpreter or none. So where all processes that are
 * sampled are given by process ID, their mappings are looked at first, and only the walkers of
 * runtimes that are in them are loaded. Where any process can be sampled, the names of the programs
 * that run decide. Another process waits, in case another runtime is found: it loads the program
 * again, with all walkers, and puts it in the place of the first one. Until then, the process that
 * has the runtime counts as not yet looked at (capture/interpwatch.h), and the walkers in the
 * kernel know nothing of it.
 *
 * Thread: the session's, but for sb_walkers_need(). No pointer may be NULL unless a contract says
 * so.
 */
#ifndef SB_CAPTURE_WALKERS_H
#define SB_CAPTURE_WALKERS_H

#include <stdbool.h>
#include <stdint.h>

struct sampler_bpf;
struct sb_session_opts;
struct sb_walkers;

/**
 * sb_walkers_choose() - find out which walkers a session needs at its start
 * @opts: those of the session
 *
 * Chooses all if the view of the session cannot replace its program. If the session samples only
 * processes that are given by process ID, 16 at most, it looks at their mappings
 * (sb_interp_look()); when one of them has not run for ten seconds, or cannot be looked at, or half
 * a second has passed, it chooses all, so it takes that and one look at most. If no process or
 * thread is given by its ID, there is no command, and the session is not lasting, it goes by the
 * names of all programs that run (sb_interp_guess()). In all other cases it chooses all.
 *
 * The caller sets cfg_interp_walkers to the result, and then loads the program. If the result is
 * not all walkers, sb_walkers_new() comes next, so that sb_walkers_need() can load the others.
 *
 * Return: bits 1 << enum sb_runtime_kind: those of sb_interp_wanted(), or fewer.
 */
uint32_t sb_walkers_choose(const struct sb_session_opts *opts);

/**
 * sb_walkers_new() - start the process that loads the program again
 * @opts: those of the session, with view_opts.is_replaceable
 * @skel: the loaded object; like @opts not kept, because the process has a copy
 * @has: from sb_walkers_choose()
 * @ret_walkers: owned by the caller; untouched on error
 *
 * Call it after load, before timers are attached: it also puts the program where timers find it.
 *
 * Return: 0; -ENOMEM; or a negative errno of bpf(2), socketpair(2) or fork(2): timers may find no
 * program, so the session is given up.
 */
int sb_walkers_new(const struct sb_session_opts *opts, struct sampler_bpf *skel, uint32_t has,
		   struct sb_walkers **ret_walkers);
/* End the process, after a load that is under way. Accepts NULL. */
void sb_walkers_free(struct sb_walkers *walkers);

/**
 * sb_walkers_need() - load what is missing for these runtimes
 * @walkers: NULL: all are loaded
 * @runtimes: bits 1 << enum sb_runtime_kind
 *
 * The first time that something is missing, all walkers are loaded, for which the caller waits,
 * some 50 ms. From its return on, timers take samples with all walkers.
 *
 * Thread: any, one for each @walkers.
 * Return: 0: they are there; -ECHILD when the process has died, or the negative errno for which the
 * kernel refused the program, which is warned of once; then those of the start are all there will
 * be, and each later call for others returns the same.
 */
int sb_walkers_need(struct sb_walkers *walkers, uint32_t runtimes);
/* Return: the walkers that are loaded, bits 1 << enum sb_runtime_kind. @walkers: NULL: all. Thread:
 * that of sb_walkers_need(). */
uint32_t sb_walkers_have(const struct sb_walkers *walkers);

#endif
