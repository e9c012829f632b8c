/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Follows what happens to processes, by perf side-band records (PERF_RECORD_MMAP2, COMM, FORK,
 * EXIT), with one ring for each CPU. Its thread reads them at once, because a new file must be
 * opened while its process lives. The session's thread collects the records at each drain.
 * Order: new() -> notify() -> drain() as often as the session drains -> free().
 *
 * Thread: that of the session, unless a contract names another one. No pointer may be NULL unless
 * a contract says so.
 */
#ifndef SB_CAPTURE_PROCWATCH_H
#define SB_CAPTURE_PROCWATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/num.h"

struct sb_processes;
struct sb_procwatch;
struct sb_symbolizer;

#define SB_SKIPPING_BYTES 64u

struct sb_procwatch_stats {
	uint64_t nr_records;
	uint64_t nr_lost;     /* records for which the kernel had no room, or we no memory */
	uint64_t nr_skipped;  /* records of mappings that were skipped: see churn.h */
	uint64_t nr_skipping; /* the processes of skipped records */
	/* The same of processes that were known to sb_procwatch_drain(), which have samples. */
	uint64_t nr_skipped_seen, nr_skipping_seen;
	char skipping[SB_SKIPPING_BYTES]; /* the first of those: "process 7 ('name')" */
	uint64_t nr_files;		  /* distinct files that were opened in time */
	uint64_t nr_no_fd;		  /* new files not opened for lack of descriptors */
	uint64_t nr_unopened; /* new files whose process had ended before they could be opened */
};

/* Open the rings of @cpus (numbers of CPUs; those that are offline are left out), and start the
 * thread, before sb_privileges_settle() (workers/privileges.h), because it drops its own
 * privileges. What happens after the return is recorded. @tgids: the processes whose records are
 * wanted; if it is empty, those of all. Records of other processes are dropped, and do not wake the
 * thread. Both lists are used during the call only. The caller ends *ret_watch with
 * sb_procwatch_free(). Return: 0; -ENOMEM; -EACCES without privilege; or another negative errno of
 * opening a ring or making the thread; *ret_watch is untouched then. */
int sb_procwatch_new(const sb_vec_u32 *cpus, const sb_vec_u32 *tgids,
		     struct sb_procwatch **ret_watch);
/* End the thread and free; records that were not drained are dropped. Accepts NULL. */
void sb_procwatch_free(struct sb_procwatch *watch);

/*
 * Call @tell as soon as it is known that a process ended, or that its executable mappings changed,
 * with a record of the kind LOST when records of any process are missing up to its time, and with
 * NULL when there are no more for now, at least every 100 ms, and every 20 ms for a second after
 * the last record of a wanted process. It is called on the watch's thread or on that of
 * sb_procwatch_drain() or sb_procwatch_drop_cpu(), one call at a time; it must not block, nor call
 * functions of @watch, whose lock is held. @event is valid during the call; of a skipped record it
 * has only the process and the time, with the path "". @arg is borrowed. @tell NULL: there are no
 * calls any more after the return. Another call replaces both.
 */
struct sb_sideband;
void sb_procwatch_notify(struct sb_procwatch *watch,
			 void (*tell)(void *arg, const struct sb_sideband *event), void *arg);

/* Open the ring of a CPU that came online and has none, which is not checked. Processes that it ran
 * before are looked at through /proc. Return: 0; -ENODEV when it is offline; -ENOMEM; or another
 * negative errno of perf_event_open(2) and mmap(2); nothing has changed then. */
int sb_procwatch_add_cpu(struct sb_procwatch *watch, uint32_t cpu);
/* Close the ring of a CPU that went offline, if it has one. What it has recorded is kept. */
void sb_procwatch_drop_cpu(struct sb_procwatch *watch, uint32_t cpu);

/* Tell @sym everything that was recorded since the last call, in order of time, and @processes
 * which have ended; neither is kept. On an error everything else is still told, so it need not be
 * repeated. Return: 0; -ENOMEM; or another error, the first that telling the symbolizer had. */
int sb_procwatch_drain(struct sb_procwatch *watch, struct sb_symbolizer *sym,
		       struct sb_processes *processes);

/* Get the figures so far. Any thread. */
void sb_procwatch_stats(struct sb_procwatch *watch, struct sb_procwatch_stats *ret_stats);

#endif
