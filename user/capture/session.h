/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One run of a view, or of several at once, from open to the last drain:
 *
 *	new (open, prepare, load) -> start (attach, enable) -> drain... -> stop -> drain -> free
 *
 * One thread calls all of this; the side-band reader (procwatch) is a thread of the session's own.
 */
#ifndef SB_CAPTURE_SESSION_H
#define SB_CAPTURE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/num.h"
#include "capture/batch.h"
#include "capture/interpwatch.h"
#include "capture/thinning.h"
#include "capture/unwinder.h"
#include "sb_abi.h"
#include "views/view.h"

struct sb_interp;
struct sb_session;
struct sb_symbolizer;

struct sb_comm_rule {
	char glob[SB_GLOB_POSITIONS_MAX + 1]; /* * and ? */
	uint32_t rule;			      /* SB_RULE_ALLOW or SB_RULE_DENY */
};

/* Which tasks. Rules of all kinds add up; a deny rule wins over every allow rule. */
struct sb_targets {
	SB_VEC(struct sb_pid_rule {
		uint32_t pid;  /* a tgid in `tgids`, a tid in `tids` */
		uint32_t rule; /* SB_RULE_* */
	})
	tgids, tids;
	struct sb_comm_rule comms[SB_RULES_MAX];
	struct sb_uid_rule uids[SB_RULES_MAX];
	struct sb_cgroup_rule {
		char *path; /* below the cgroup2 mount, or a full path; owned */
		uint32_t rule;
	} cgroups[SB_RULES_MAX];
	size_t nr_comms, nr_uids, nr_cgroups;
	bool follow_children; /* of the allowed tgids, now and later */
};
void sb_targets_release(struct sb_targets *targets);

struct sb_session_opts {
	struct sb_views views;
	struct sb_view_opts view_opts; /* of all */
	const struct sb_targets *targets;
	struct sb_symbolizer *symbolizer; /* borrowed; is fed what happens to processes */
	struct sb_interp *interp;	  /* borrowed; NULL: no frames of interpreters */
	bool interp_lines;		  /* their positions are wanted */
	bool labels;			  /* and labels of threads */
	const char *command;		  /* about to be run, see sb_cmdfiles_find(); or NULL */
	uint32_t command_tgid;
	struct sb_parser *parser; /* borrowed: who compiles unwind tables; NULL: we do */
	uint32_t freq_hz;
	bool is_freq_asked;   /* see struct sb_thinning_opts */
	const char *event;    /* "cpu-clock" (default), "cycles" */
	const uint32_t *cpus; /* NULL: all, those that come online later too */
	size_t nr_cpus;
	uint32_t sides;			 /* SB_SIDE_* */
	uint32_t by;			 /* SB_BY_* */
	uint32_t unwind;		 /* SB_UNWIND_* */
	uint64_t unwind_bytes_max;	 /* of unwind tables; 0: a default */
	uint32_t depth_max;		 /* frames of a user stack; 0: SB_USTACK_DEPTH_MAX */
	uint32_t counts_max, stacks_max; /* entries; 0: defaults, for each view */
	bool is_lasting;     /* for so long that its first second is none to make room for */
	double overhead_max; /* of all CPUs, see capture/thinning.h; 0: no limit */
};

/*
 * Open, prepare, load. On failure the reason has been logged as one sentence.
 * Return: 0, -EPERM/-EACCES (privilege), -EOPNOTSUPP (kernel), -ESRCH (no such target), others.
 */
int sb_session_new(const struct sb_session_opts *opts, struct sb_session **ret_session);
int sb_session_start(struct sb_session *session);
/* Return: when the samples began (CLOCK_MONOTONIC); after sb_session_start(). */
uint64_t sb_session_began_ns(const struct sb_session *session);
/* Take no sample after @end_ns (CLOCK_MONOTONIC), even if sb_session_stop() comes later. */
void sb_session_end_at(struct sb_session *session, uint64_t end_ns);
/* Follow a process made after sb_session_new(), e.g. the command of -- CMD. */
int sb_session_follow(struct sb_session *session, uint32_t tgid, bool children);

/* Return: a descriptor that becomes readable when a drain is due early; owned by the session. */
int sb_session_poll_fd(const struct sb_session *session);
/* Collect what came since the last drain, and tell the symbolizer about processes first. */
int sb_session_drain(struct sb_session *session, const struct sb_batch **ret_batch);
/* Return: a descriptor that is readable when sb_session_hotplug() is due early, or -1; owned by the
 * session. */
int sb_session_hotplug_fd(const struct sb_session *session);
/* CPUs that came online since the last call, again or for the first time, are sampled from now on. */
int sb_session_hotplug(struct sb_session *session);
/*
 * Look what the run costs, and make it cheaper where that is more than overhead_max: once a second or so.
 * @means: of each view, the weight of a sample so far, 0: there is none yet.
 */
void sb_session_govern(struct sb_session *session, const uint64_t *means);
/* What is going on and would be accounted when it ends is accounted up to now: before a snapshot. On failure the
 * reason has been logged, here and by sb_session_stop(). */
int sb_session_settle(struct sb_session *session);
/* An object that no sample is wanted of: the BPF side leaves out what it can. */
int sb_session_unwant(struct sb_session *session, uint64_t object);
/* Stacks, zeros and doubles among them, that samples will name which have begun; valid until the next call. What is
 * not among them then, nor in the next two batches, is named by nobody that was not shipped it again. */
int sb_session_pending(struct sb_session *session, const struct sb_stack_id **ret_ids,
		       size_t *ret_nr);
/* Stacks that user space has forgotten are shipped again when they come again. */
void sb_session_forget_stacks(struct sb_session *session, const struct sb_stack_id *ids, size_t nr);
/* The same for sets of labels. */
void sb_session_forget_labels(struct sb_session *session, const uint64_t *ids, size_t nr);
int sb_session_stop(struct sb_session *session);
void sb_session_free(struct sb_session *session);

/* Figures so far; those marked are of one view, the rest is of the run. */
struct sb_session_stats {
	int err; /* the counters that follow could not be read: a negative errno */
	uint64_t stat[SB_STAT_MAX];
	uint64_t nr_lost; /* of the view: samples, all ways to lose one */
	uint64_t
		nr_skipped_recursion; /* of the view: samples skipped by the kernel inside another BPF program */
	uint64_t nr_sideband_records, nr_sideband_lost;
	uint64_t nr_no_fd;	  /* new files that were not opened for want of a descriptor */
	uint64_t nr_counts_lost;  /* counts whose stack never came */
	uint64_t first_sample_ns; /* CLOCK_MONOTONIC, 0: none yet */
	uint32_t nr_cpus;
	uint32_t freq_hz;
	uint64_t nr_cpus_went, nr_cpus_came; /* offline, online, in the run */
	uint64_t nr_cpus_refused;	     /* of those that came: could not be sampled */
	uint64_t nr_asleep, nr_asleep_lost; /* threads looked at while they slept; those that ran */
	uint64_t expected;		    /* of the view, see struct sb_view; 0: not known */
	struct sb_interpwatch_stats interps; /* zero without interpreters */
	struct sb_unwinder_stats unwinder;   /* zero without SB_UNWIND_CFI */
	struct sb_thinning_stats thinning;   /* of the view */
};
/* What the view of that number says about how it works here: calls @row for each line. */
void sb_session_report(const struct sb_session *session, uint32_t view,
		       void (*row)(const char *name, const char *value));
void sb_session_stats(const struct sb_session *session, uint32_t view,
		      struct sb_session_stats *ret_stats);

#endif
