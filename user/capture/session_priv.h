/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between the stages of a session: session_new.c makes it, session.c runs it, session_cpus.c has its timers. */
#ifndef SB_CAPTURE_SESSION_PRIV_H
#define SB_CAPTURE_SESSION_PRIV_H

#include "base/num.h"
#include "capture/asleep.h"
#include "capture/session.h"
#include "capture/thinning.h"
#include "capture/unwinder.h"
#include "views/view.h"

struct sb_session {
	struct sb_session_opts opts; /* pointers in it are borrowed from the caller */
	struct sampler_bpf *skel;
	struct sb_drain *drain;
	struct sb_procwatch *procwatch;
	struct sb_interpwatch *interps; /* NULL: not asked for */
	struct sb_unwinder *unwinder;	/* NULL without unwind tables */
	struct sb_unwinder_interps unwinder_interps;
	struct bpf_program *timer, *begin, *settle; /* of one of the views; NULL: none has one */
	bool begins_with_timer;			    /* timer and begin are of the same one */
	sb_vec_link links;
	int links_root; /* see capture/detach.h */
	sb_vec_link timers;
	sb_vec_u32 timer_cpus; /* of each of `timers` */
	struct sb_thinning thinning;
	struct sb_asleep_stacks asleep;
	sb_vec_u32 cpus;	/* that we sample */
	sb_vec_u32 online_cpus; /* when last looked at; with events of ours */
	int hotplug_fd;		/* -1: not to be had; then the list of CPUs has to do */
	uint64_t nr_cpus_went, nr_cpus_came, nr_cpus_refused;
	sb_vec_u32 new_tgids; /* to be seeded */
	sb_vec_stack_id pending;
	uint64_t began_ns;
	uint64_t *stats; /* of each CPU: room for reading them, so that it is there at the end */
	struct sb_batch batch;
};

/* A timer of the view, if it has one, on each CPU that is sampled. Return: 0 or a negative errno, logged. */
int sb_session_attach_timers(struct sb_session *session);

#endif
