/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One run of a view, or of several views at once: it loads the BPF programs, attaches them, and
 * collects what they count. The sequence of calls is
 *
 *	new (open, prepare, load) -> start (attach, enable) -> drain... -> stop -> drain -> free
 *
 * Between start and stop the caller drains about once a second, and when sb_session_poll_fd() is
 * readable. Who evicts stacks calls sb_session_pending() before each drain, and after it
 * sb_session_forget(). Beside that it calls hotplug(), slice() and govern(), and settle() before a
 * snapshot. Figures can be got from new to free.
 *
 * Thread: one thread makes all calls. "With opts->reason" means: on error the cause is in it, as
 * text; a text that it has already stays, so it is zeroed before. A negative errno without a name
 * is that of a system call or of libbpf. No pointer may be NULL unless a contract says so.
 * Descriptors that are returned belong to the session until it is freed. The session has threads of
 * its own: one reads the next batch from the kernel while the caller is busy with the last one
 * (collector.h), others serve the BPF side (procwatch.h, unwinder.h, interpwatch.h).
 */
#ifndef SB_CAPTURE_SESSION_H
#define SB_CAPTURE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/reason.h"
#include "bpf/abi/sb_abi.h"
#include "capture/batch.h"
#include "capture/drain.h"
#include "capture/goheap.h"
#include "capture/interpwatch.h"
#include "capture/procwatch.h"
#include "capture/resident.h"
#include "capture/slicer.h"
#include "capture/spans.h"
#include "capture/thinning.h"
#include "capture/tracing.h"
#include "capture/unwinder.h"
#include "views/view.h"

struct sb_interp;
struct sb_processes;
struct sb_session;
struct sb_symbolizer;

struct sb_comm_rule {
	char glob[SB_GLOB_POSITIONS_MAX + 1]; /* * and ? */
	uint32_t rule;			      /* SB_RULE_ALLOW or SB_RULE_DENY */
};

/* Which tasks to sample. Rules of all kinds are combined; a deny rule wins over every allow rule.
 * Without an allow rule all tasks are sampled that no rule denies; zeroed: all. */
struct sb_targets {
	SB_VEC(struct sb_pid_rule {
		uint32_t pid;  /* a tgid in `tgids`, a tid in `tids` */
		uint32_t rule; /* SB_RULE_* */
	})
	tgids, tids;
	struct sb_comm_rule comms[SB_RULES_MAX];
	struct sb_uid_rule uids[SB_RULES_MAX];
	struct sb_cgroup_rule {
		char *path; /* relative to the cgroup2 mount, or absolute; owned */
		uint32_t rule;
	} cgroups[SB_RULES_MAX];
	size_t nr_comms, nr_uids, nr_cgroups;
	bool follow_children; /* sample descendants of the allowed tgids, too */
};
/* Free the lists and paths, and zero the struct, which can be used again. */
void sb_targets_release(struct sb_targets *targets);

struct sb_session_opts {
	struct sb_views views;		  /* with view_opts.fallback: two, the second is by pages */
	struct sb_view_opts view_opts;	  /* for all views */
	const struct sb_targets *targets; /* borrowed, never NULL; without rules: all tasks */
	struct sb_symbolizer *symbolizer; /* borrowed; is told what happens to processes */
	struct sb_processes *processes;	  /* borrowed; is told which processes have ended */
	struct sb_interp
		*interp;     /* borrowed, with the same registry; NULL: no frames of interpreters */
	bool interp_lines;   /* ship positions in interpreter frames, too */
	bool labels;	     /* read labels of threads, too */
	const char *command; /* program that is about to run, as for execvp(3); NULL: none */
	uint32_t command_tgid;	  /* its process; not used without `command` */
	struct sb_parser *parser; /* borrowed: compiles unwind tables; NULL: this process does */
	uint32_t freq_hz;	  /* 0: view_opts.counter has a period, and is no clock */
	bool is_freq_asked;	  /* by the user: it is lowered only for its cost in BPF */
	const uint32_t *cpus;	  /* NULL: all CPUs, those that come online later included */
	size_t nr_cpus;
	uint32_t sides;			 /* SB_SIDE_* */
	uint32_t by;			 /* SB_BY_* */
	uint32_t unwind;		 /* SB_UNWIND_* */
	uint64_t unwind_bytes_max;	 /* memory for unwind tables; 0: a default */
	uint32_t depth_max;		 /* frames of a user stack; 0: SB_USTACK_DEPTH_MAX */
	uint32_t counts_max, stacks_max; /* map entries; 0: by the ticks of the run, or defaults */
	struct sb_reason
		*reason; /* borrowed: receives why a function of the session failed, or NULL */
	/* Batches are added up for the whole run, so each count of resident pages is what changed
	 * since the one before. */
	bool is_summed;
	/* A long run: the ring is smaller, without room for the burst of samples at the start, and
	 * less is read ahead (SB_DRAIN_EARLY_BYTES_LASTING). */
	bool is_lasting;
	double overhead_max; /* part of all CPUs (0.01) above which views are throttled; 0: none */
	/* No sample is taken later than this after the beginning, even if sb_session_stop() is
	 * called later, and maps have room for no more; 0: until it is called. */
	uint64_t time_ns;
};

/*
 * Open the BPF object, prepare it and load it. *ret_session is owned by the caller, who ends it
 * with sb_session_free(); it is untouched on error. What pointers in @opts point to must live as
 * long as the session; the struct itself is copied. Members have a default, or may be NULL, only
 * where struct sb_session_opts says so. Return: 0; -EPERM, -EACCES without privilege; -EOPNOTSUPP
 * when the kernel cannot do it; -ESRCH when a target does not exist; or another negative errno; all
 * with opts->reason.
 */
int sb_session_new(const struct sb_session_opts *opts, struct sb_session **ret_session);
/* Attach the programs and begin to sample; once. Waits until unwind tables and interpreters of the
 * targets are known, at most 0.5 s, with opts->command 2 s. Return: 0; or a negative errno, with
 * opts->reason, and then the session can only be freed. */
int sb_session_start(struct sb_session *session);
/* Return: the time at which sampling began (CLOCK_MONOTONIC). Valid after sb_session_start(). */
uint64_t sb_session_began_ns(const struct sb_session *session);

/* Return: a descriptor that is readable when sb_session_drain() should be called early. */
int sb_session_poll_fd(const struct sb_session *session);
/*
 * Collect all counts and stacks since the last drain, after the symbolizer was told what happened
 * to processes. *ret_batch is owned by the session and valid until the next drain. Return: 0; or a
 * negative errno, without opts->reason, and then *ret_batch is untouched, and what was collected is
 * lost; the caller ends the run.
 */
int sb_session_drain(struct sb_session *session, const struct sb_batch **ret_batch);
/* Return: a descriptor that is readable when sb_session_hotplug() should be called at once, and not
 * only once a second; -1: there is none. */
int sb_session_hotplug_fd(const struct sb_session *session);
/* Begin to sample CPUs that came online since the last call, and let go of those that went offline.
 * A CPU that cannot be sampled is counted. Return: 0; or a negative errno, with opts->reason, when
 * the list of CPUs cannot be read, and then the same CPUs are sampled as before. */
int sb_session_hotplug(struct sb_session *session);
/* Return: a descriptor that is readable when sb_session_slice() should be called; -1: never. */
int sb_session_slice_fd(const struct sb_session *session);
/* Attach or detach the programs of a view that is attached in slices of time (slicer.h), for which
 * it may wait some 40 ms; or look at the cost of one with a fallback (tracing.h), and detach it,
 * for which it waits up to 70 ms for each place before Linux 6.10, so that other calls come late.
 * Does nothing if the descriptor is not readable. Return: 0; or a negative errno, with opts->reason
 * unless it came from the timer: there will be no slice any more. */
int sb_session_slice(struct sb_session *session);
/*
 * Measure the cost of the run, and throttle the views if it is above overhead_max. Call it about
 * once a second, from sb_session_start() to sb_session_stop(). With view_opts.fallback it does
 * nothing while calls are traced: then sb_session_slice() decides by their cost.
 * @means: for each of opts->views, in their order, the sum of the weights so far, as they came in
 *	batches, divided by the number of samples; 0 when there was no sample yet. Looked at only
 *	while the view is not throttled; not kept. NULL, between these calls: throttle only if the
 *	cost has become a burst (governor.h)
 */
void sb_session_govern(struct sb_session *session, const uint64_t *means);
/* Before a snapshot: account for waits that are not over, up to now, and look at the pages that are
 * resident; the next drain has both. Does nothing for views without either. Return: 0; or a
 * negative errno, with opts->reason: some may have been accounted for, and the session goes on. */
int sb_session_settle(struct sb_session *session);
/*
 * Get the IDs of stacks that pending samples still reference. The array may contain zeros and
 * duplicates; it is owned by the session and valid until the next call. An ID that is missing from
 * it and from the next two batches can be evicted safely. Return: 0; or a negative errno, with
 * opts->reason, and then the array, which is set, is not complete: evict nothing by it.
 */
int sb_session_pending(struct sb_session *session, const struct sb_stack_id **ret_ids,
		       size_t *ret_nr);
/* Return: the index in opts->views of the view whose samples are in the batches: 0, but with
 * view_opts.fallback 1 after the run has changed over; final after the last drain, which may still
 * change it. Can be called from new to free. */
uint32_t sb_session_shown(const struct sb_session *session);
/* Return: a time (CLOCK_MONOTONIC) before which no held sample is that a later drain can return, so
 * that after a drain no more than what is older is forgotten (sb_symbolizer_forget()). Held are
 * samples in spans that are open, and pages whose process has ended. UINT64_MAX: none is held. */
uint64_t sb_session_held_since_ns(const struct sb_session *session);
/*
 * Make the BPF side ship evicted stacks and labels again when they are next seen, and drop samples
 * of unwanted objects where it can. @evicted is not kept. Return: 0; or a negative errno, without
 * opts->reason, when an object could not be marked. Objects come first, so no stack or label was
 * handled then: the caller ends the run, because the BPF side would never ship them again.
 */
int sb_session_forget(struct sb_session *session, const struct sb_batch_evicted *evicted);
/* End sampling and detach; once, after sb_session_start(). Drain once more after it, for what was
 * counted last. Return: 0; or a negative errno, with opts->reason, when waits that are not over,
 * resident pages or open spans could not be accounted for, or what was given back between slices
 * could not be estimated; it is detached then, too. */
int sb_session_stop(struct sb_session *session);
/* Detach what is still attached, end the threads, and free. Accepts NULL. */
void sb_session_free(struct sb_session *session);

/* Figures so far. Those "of the view" are of one view, the rest is of the run. */
struct sb_session_stats {
	int err; /* 0; or a negative errno: `stat` could not be read */
	uint64_t stat[SB_STAT_MAX];
	uint64_t nr_lost;	       /* of the view: lost samples of all causes */
	uint64_t nr_skipped_recursion; /* of the view: by the kernel, in another BPF program */
	uint64_t nr_sideband_records, nr_sideband_lost;
	uint64_t nr_sideband_skipped, nr_skipping;  /* skipped records, their processes: churn.h */
	uint64_t nr_skipped_seen, nr_skipping_seen; /* the same of processes with samples */
	char skipping[SB_SKIPPING_BYTES];	    /* the first of those */
	uint64_t nr_no_fd;	  /* new files that were not opened for lack of descriptors */
	uint64_t first_sample_ns; /* CLOCK_MONOTONIC, 0: none yet */
	uint32_t nr_cpus;	  /* that are sampled */
	uint32_t freq_hz;	  /* of opts */
	uint64_t nr_cpus_went, nr_cpus_came; /* went offline, came online during the run */
	uint64_t nr_cpus_refused;	     /* came online, but could not be sampled */
	uint64_t nr_asleep, nr_asleep_lost;  /* sleeping threads: all; those that ran meanwhile */
	uint64_t expected;		     /* of the view: sb_view.expected(); 0: not known */
	uint64_t probe_cost_ns;		     /* sb_probe_cost_ns(); 0: no view is of allocations */
	struct sb_interpwatch_stats interps; /* zero without interpreters */
	struct sb_unwinder_stats unwinder;   /* zero without SB_UNWIND_CFI */
	struct sb_drain_stats drain;
	struct sb_thinning_stats thinning; /* of the view */
	struct sb_slicer_stats slices;	   /* zero unless programs are attached in slices */
	struct sb_tracing_stats tracing;   /* zero without view_opts.fallback */
	struct sb_held_estimate estimate;  /* zero unless tracing.is_sampled */
	struct sb_spans_stats spans;	   /* zero without spans */
	struct sb_resident_stats resident; /* zero unless the view follows pages */
	struct sb_goheap_stats goheap;	   /* zero without view_opts.has_own_profiles */
};
/* Call @row for each line of sb_view.report() of the view with index @view in opts->views; never,
 * if the view has none. @view is not checked. @wall_ns: duration of the run. After stop and the
 * last drain the lines are of the whole run. The strings are valid during the call, in which @row
 * must not call functions of the session that change it. */
void sb_session_report(const struct sb_session *session, uint32_t view, uint64_t wall_ns,
		       void (*row)(const char *name, const char *value));
/* Get the figures; @view is the index of a view in opts->views, which is not checked. What cannot
 * be read of the BPF side is 0, and ret_stats->err is the negative errno. */
void sb_session_stats(const struct sb_session *session, uint32_t view,
		      struct sb_session_stats *ret_stats);

#endif
