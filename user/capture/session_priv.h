/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state of a session. session_new.c makes it, session.c runs it, session_cpus.c has its timers,
 * and session_slices.c attaches probes for a part of the time only. Internal to session*.c. Thread:
 * the session's. No pointer is NULL. */
#ifndef SB_CAPTURE_SESSION_PRIV_H
#define SB_CAPTURE_SESSION_PRIV_H

#include "base/num.h"
#include "capture/asleep.h"
#include "capture/goheap.h"
#include "capture/resident.h"
#include "capture/session.h"
#include "capture/slicer.h"
#include "capture/spans.h"
#include "capture/thinning.h"
#include "capture/tracing.h"
#include "capture/unwinder.h"
#include "events/probe.h"
#include "views/view.h"

/* The view whose programs are attached in slices of time, or until they cost too much. */
struct sb_slices {
	const struct sb_view *view; /* NULL: there is none, or it has ended */
	struct sb_slicer slicer;
	struct sb_tracing tracing; /* with view_opts.fallback */
	sb_vec_link links;	   /* none between slices */
	uint64_t own_ns;	   /* CPU time for attaching and detaching */
	/* A view of memory that is held: a slice is the first part of a window, in the rest of
	 * which only what gives memory back is attached. */
	bool is_following;	     /* it is this rest now */
	uint64_t window_ns;	     /* when the window began; 0: there is none */
	uint64_t began_cost_ns;	     /* what was spent until it began */
	double rest_cost_ns;	     /* what its rest may cost */
	uint64_t rest_began_cost_ns; /* what was spent until the rest began */
	struct sb_held_windows windows;
	struct sb_held_estimate estimate; /* at the end of the run */
	int fd; /* timer: the slice ends, or begins; the next look at a tracing; -1 */
};

struct sb_session {
	struct sb_session_opts opts; /* a copy; pointers in it are borrowed */
	/* Of a command alone: a borrowed copy, to which opts.view_opts.probes points. */
	struct sb_probes probes;
	struct sampler_bpf *skel;
	struct sb_kname_asker *kname; /* NULL: names of the kernel are read from a file */
	struct sb_drain *drain;
	struct sb_collector *collector;
	struct sb_procwatch *procwatch;
	struct sb_interpwatch *interps; /* NULL: no frames of interpreters */
	uint32_t walkers_at_start;	/* bits 1 << enum sb_runtime_kind */
	struct sb_walkers *walkers;	/* NULL: there will be no others */
	struct sb_unwinder *unwinder;	/* NULL: no unwind tables */
	struct sb_unwinder_interps unwinder_interps;
	struct bpf_program *timer, *begin, *settle; /* each of one of the views, or NULL */
	bool begins_with_timer;			    /* `timer` and `begin` are of the same view */
	sb_vec_link links;
	int links_root; /* from sb_links_prepare() */
	sb_vec_link timers;
	sb_vec_u32 timer_cpus;	      /* the CPU of each of `timers` */
	struct sb_resident *resident; /* NULL: no view follows pages */
	struct sb_goheap *goheap;     /* NULL: no target keeps a profile of its own heap */
	struct sb_spans *spans;	      /* NULL: samples are not restricted to spans */
	struct sb_thinning thinning;
	struct sb_slices slices;
	uint64_t trap_ns; /* sb_trap_ns(); 0: no allocations are looked at */
	struct sb_asleep_stacks asleep;
	sb_vec_u32 cpus;	/* that are sampled */
	sb_vec_u32 online_cpus; /* at the last look; they have perf events of the session */
	int hotplug_fd;		/* from sb_hotplug_open(); -1: there is none */
	uint64_t nr_cpus_went, nr_cpus_came, nr_cpus_refused;
	uint64_t nr_left_out; /* descendants of targets at the start, for lack of room */
	sb_vec_stack_id pending;
	uint64_t began_ns;
	uint64_t *stats; /* buffer for reading the counters of each CPU, allocated in advance */
	/* With view_opts.fallback: what each of the two views has when it has ended, in bytes. */
	uint64_t weights[2];
	bool has_ended;
	struct sb_batch batch;
};

/* Attach the timer program, if a view has one, to a timer on each sampled CPU that is online. The
 * BPF object was loaded before; called once, by sb_session_start(), which fails with its error.
 * Return: 0, also if no view has one; -ENODEV: a CPU that the user asked for is not online; or
 * another negative errno of perf_event_open(2) or attaching; with the cause in opts.reason. Timers
 * attached before remain in `timers`, and are closed with the session. */
int sb_session_attach_timers(struct sb_session *session);

/* Add each counter, summed over all CPUs, to its element of the SB_STAT_MAX elements at @stat. The
 * counter SB_STAT_FAULTS_NS is also added to stat[SB_STAT_RUN_NS], which so has the time of all
 * programs. Return: 0; or a negative errno of bpf(2), and the elements are unchanged. */
int sb_session_sum_stats(const struct sb_session *session, uint64_t *stat);

/* session_slices.c: after load, find the view that is attached in slices or until it costs too
 * much, if there is one, and make its timer, which is closed with the session. Return: 0; or a
 * negative errno of timerfd_create(2), and then the session can only be freed. */
int sb_session_prepare_slices(struct sb_session *session);
/* Return: whether @view is attached in slices, or until it costs too much; after its prepare(). */
bool sb_session_is_sliced(const struct sb_session *session, const struct sb_view *view);
/*
 * Attach the programs of the view that sb_session_prepare_slices() has found, if it found one, and
 * begin the first slice, or begin to look at what calls cost. Return: 0; or a negative errno of
 * attaching, of reading the counters or of setting the timer, with the cause in opts.reason: the
 * session can only be freed then.
 */
int sb_session_begin_slices(struct sb_session *session);
/* At the end of the run, before the view settles: remove from what is held what was probably given
 * back between slices. Does nothing if calls were not traced in slices. Return: 0; or a negative
 * errno, with the cause in opts.reason. */
int sb_session_survive(struct sb_session *session);
/* End the last slice of the view that is attached in slices, if there is one: what is attached
 * becomes part of `links`, or is detached here if there is no memory for that. Cannot fail. */
void sb_session_end_slices(struct sb_session *session);

#endif
