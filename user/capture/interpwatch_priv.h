/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of what serves the interpreter walkers. interpwatch_procs.c is its thread, which looks
 * at processes; interpwatch_stacks.c keeps stacks and labels for the drain; interpwatch.c starts
 * and ends both. Internal to interpwatch*.c. No pointer may be NULL unless a contract says so, and
 * none is kept.
 */
#ifndef SB_CAPTURE_INTERPWATCH_PRIV_H
#define SB_CAPTURE_INTERPWATCH_PRIV_H

#include <pthread.h>

#include "base/ration.h"
#include "base/str.h"
#include "base/vec.h"
#include "capture/interpwatch.h"
#include "capture/server.h"
#include "capture/sideband_queue.h"

/* A process that the walkers know, in the slot of its address space. */
struct proc_walkers {
	struct sb_space *space; /* a reference */
	size_t at;		/* in procs */
	uint32_t nr_confs;
	uint32_t conf_at[SB_INTERP_PER_PROC];
	uint32_t hook;	   /* as in struct sb_interp_proc */
	uint32_t labels;   /* the same */
	uint64_t look_ns;  /* when to look at it again; 0: no need */
	uint64_t again_ns; /* the time from one look to the next, while something has not begun */
	uint64_t looked_ns;
	uint64_t rest_ns;    /* the time to the next look, if it maps code */
	uint64_t cost_ns;    /* of the last look, in CPU time */
	uint64_t next_ns;    /* no look before that: the last ones took so much of our time */
	uint64_t read_ns;    /* the last look used mappings that were read then or later */
	uint64_t changed_ns; /* if is_changed: time of the last record since */
	bool is_changed;
};

/* A look that was asked for, or that is not needed. */
struct walkers_need {
	struct sb_space_key space;
	uint64_t since_ns; /* mappings that were read then or later are new enough */
};

/* A stack that waits for the drain. */
struct waiting {
	struct sb_stack_id id;
	struct sb_space_key space;
	uint32_t status, nr_frames;
	size_t first; /* in words */
	bool is_single;
};

/* Label sets, and their texts one after the other. */
struct labels {
	SB_VEC(struct sb_batch_labels) at;
	struct sb_str texts;
};

/* Size of a table by tgid: more than the number of processes that start while a request waits. */
#define SB_INTERPWATCH_MISSED_MAX 1024u

struct sb_interpwatch {
	struct sampler_bpf *skel;	/* borrowed */
	struct sb_processes *processes; /* borrowed */
	struct sb_interp *interp;	/* borrowed */
	struct sb_walkers *walkers;	/* borrowed; NULL: all are loaded */
	struct sb_server server;

	/* Used by the thread only. */
	SB_VEC(struct proc_walkers *) procs; /* in no order */
	struct sb_ration ration;
	SB_VEC(uint32_t)
	free_confs; /* first in, first out: what was given back last rests longest */
	size_t next_free;
	/* By the tgid modulo the size: the last time at which a process was dropped, or at which a
	 * side-band record came for a process that is not in procs. Mappings that were read before
	 * that are too old for a look. */
	uint64_t missed_ns[SB_INTERPWATCH_MISSED_MAX];
	uint64_t served_lost_ns; /* the last value of lost_ns that was served */

	uint64_t lost_ns; /* up to then side-band records are missing; atomic */

	pthread_mutex_t ring_lock; /* of reading the ring, and of what comes from it */
	SB_VEC(struct walkers_need) needs;
	SB_VEC(struct walkers_need) native; /* known to have nothing, and published */
	SB_VEC(struct waiting) waiting;
	SB_VEC(uint64_t) words;
	struct labels labels;
	uint32_t nr_expected; /* asked for by sb_interpwatch_expect(), and not yet looked at */
	pthread_cond_t is_looked_at;
	size_t nr_named;	    /* of waiting: those before are named, or being named */
	struct labels taken_labels; /* the drain's: what it was given last */

	struct sb_sideband_queue queue; /* of procs */
	struct sb_interpwatch_stats stats;
};

/* interpwatch.c */

/*
 * Request a look at the process @space, which is copied; start_ns 0: it is expected, and counted in
 * nr_expected until it was looked at. If it fails, the BPF side asks for the process again later.
 * @since_ns: mappings that were read then or later are new enough; UINT64_MAX: they are read anew
 *
 * Thread: any, without ring_lock, which it takes. Return: 0; -ENOMEM: nothing is requested.
 */
int sb_interpwatch_request(struct sb_interpwatch *watch, const struct sb_space_key *space,
			   uint64_t since_ns);
/* Request a look at the process @space as sb_interpwatch_request() does, for a caller that holds
 * ring_lock; it is not counted in nr_expected, and the thread is not woken. Thread: any. Return: 0;
 * -ENOMEM: nothing is requested. */
int sb_interpwatch_request_locked(struct sb_interpwatch *watch, const struct sb_space_key *space,
				  uint64_t since_ns);

/* interpwatch_procs.c */

/* The thread: serves the ring and side-band records until the server is stopped. @arg: the watch.
 * Return: NULL. */
void *sb_interpwatch_serve(void *arg);
/*
 * Tell the walkers which configurations the address space @key has: those of @proc, which is not
 * kept, and of which conf_at, nr_confs, hook and labels are used; a zeroed one has none. The caller
 * has written the configurations to the map interp_confs before. A failure is only logged, because
 * the walkers ask for a process that is missing. Thread: any; it takes no lock and needs none.
 */
void sb_interpwatch_publish(struct sb_interpwatch *watch, const struct sb_space_key *key,
			    const struct proc_walkers *proc);
/* If @proc is in the slot of an address space, empty that, and give back the reference. @proc stays
 * the caller's. Thread: the watch's, or any after that has ended. */
void sb_interpwatch_leave_slot(struct sb_interpwatch *watch, struct proc_walkers *proc);

/* interpwatch_stacks.c */

/*
 * Take a record of the ring; for libbpf. @arg: the watch, whose ring_lock the caller holds. A stack
 * or a set of labels for which there is no memory is counted as lost. @data, @len bytes, is copied.
 * Return: 0; -EBADMSG: its size is wrong, and it is ignored.
 */
int sb_interpwatch_on_event(void *arg, void *data, size_t len);
/*
 * Take the next stack whose names nobody has read, and those of the same address space that follow
 * it directly: the caller reads the names. Their frames are copied to @ret_frames, which has room
 * for SB_INTERP_FRAMES_MAX, because their memory may be reallocated. Thread: any; it takes
 * ring_lock, which the caller must not hold. Return: false if there is none; then *@ret_nr is 0 and
 * the others are untouched.
 */
bool sb_interpwatch_take_unnamed(struct sb_interpwatch *watch, struct sb_space_key *ret_space,
				 struct sb_interp_frame *ret_frames, size_t *ret_nr);

#endif
