/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What happens to processes while we sample: perf side-band records (perf_event_open(2),
 * PERF_RECORD_MMAP2, COMM, FORK, EXIT), one ring per CPU. A thread of its own reads them, because
 * a new file must be opened while its process lives; the owner collects them at each drain.
 */
#ifndef SB_CAPTURE_PROCWATCH_H
#define SB_CAPTURE_PROCWATCH_H

#include <stddef.h>
#include <stdint.h>

struct sb_procwatch;
struct sb_symbolizer;

struct sb_procwatch_stats {
	uint64_t nr_records;
	uint64_t nr_lost;     /* records the kernel had no room for, or we no memory */
	uint64_t nr_files;    /* distinct files opened in time */
	uint64_t nr_no_fd;    /* new files for which there was no descriptor */
	uint64_t nr_unopened; /* new files whose process was gone before we could open them */
};

/* Records flow from the return on. Return: 0 or a negative errno; -EACCES without privilege. */
int sb_procwatch_new(const uint32_t *cpus, size_t nr_cpus, struct sb_procwatch **ret_watch);
void sb_procwatch_free(struct sb_procwatch *watch);

/*
 * Call @tell for each process whose executable mappings change, or that ends, as soon as that is known, and
 * with NULL when that was all for now, every 20 ms at least; on the reader's thread or on that of
 * sb_procwatch_drain(), one at a time. It must not block. NULL: no more calls, from the return on.
 */
struct sb_sideband;
void sb_procwatch_notify(struct sb_procwatch *watch,
			 void (*tell)(void *arg, const struct sb_sideband *event), void *arg);

/* A CPU came online. What processes did there before is made up for from /proc. */
int sb_procwatch_add_cpu(struct sb_procwatch *watch, uint32_t cpu);
/* It went offline, and its events with it; what they had recorded is kept. */
void sb_procwatch_drop_cpu(struct sb_procwatch *watch, uint32_t cpu);

/* Tell @sym everything that was recorded until now, in the order of time. 0 or -ENOMEM. */
int sb_procwatch_drain(struct sb_procwatch *watch, struct sb_symbolizer *sym);

void sb_procwatch_stats(struct sb_procwatch *watch, struct sb_procwatch_stats *ret_stats);

#endif
