/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which code brought the memory that is resident: the user half of the view "memory". It takes the
 * page faults that the BPF side ships, remembers who brought each page last (pagetab.h): its owner,
 * a sample key with its stacks. It asks the kernel which pages are there: when it first sees a
 * process, and at each sb_resident_look(). From that it makes counts, as if the BPF side had
 * counted them, whose weight is in bytes.
 *
 * Reading a process can take long or fail (symbolizer/process/reader.h). A process that cannot be
 * read is left out of the sums, which is counted.
 *
 * Address spaces are in a table of its own and not in the registry (process/process.h), for three
 * reasons. The registry tells how a process is now, but faults and mappings are taken in the order
 * in which they happened, up to a second later: when the registry knows already that a process runs
 * another program or has ended, the address space whose pages they are would be the wrong one. A
 * target that is expected has no key in the registry, since /proc tells its start in ticks, and not
 * how often it has called execve(2). And the table is needed in any case: a page names its space by
 * a number of 18 bits, without a lookup, until no stack and no count refers to that space.
 *
 * Order: load -> new() -> expect() -> for each drain add_owners(), add(), counts(); look() before
 * the drain that is to count what is held -> free(). After -ENOMEM the session ends the run.
 *
 * Internal to capture, but for the figures. Thread: the session's. No pointer may be NULL unless a
 * contract says so.
 */
#ifndef SB_CAPTURE_RESIDENT_H
#define SB_CAPTURE_RESIDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "bpf/abi/sb_abi_memory.h"
#include "capture/batch.h"
#include "views/view.h"

struct sampler_bpf;
struct sb_resident;

/* Pages that are followed exactly: 4 GiB, in 20 MiB at most. Beyond it, one window of pages in 2^n
 * is. */
#define SB_RESIDENT_PAGES_MAX  (1u << 20)
/* Distinct stacks of faults, whose keys take 160 bytes each. */
#define SB_RESIDENT_OWNERS_MAX (1u << 16)
/* Processes. */
#define SB_RESIDENT_SPACES_MAX (1u << 15)

/* What happens to pages beside faults. */
struct sb_page_event {
	uint32_t kind; /* SB_EVENT_MAPPED, SB_EVENT_ENDED: as these records of the ring */
	uint32_t tgid;
	uint64_t now_ns;
	union {
		struct {
			uint64_t addr, nr_bytes, from, from_bytes;
		};
		struct {
			uint64_t start_ns, peak_pages;
		};
	};
};

/* What came from the BPF side. There can be a million faults, so they are not made larger than they
 * came. */
struct sb_page_records {
	SB_VEC(struct sb_fault_record) faults;
	SB_VEC(struct sb_page_event) events;
};

/* Remove the faults and the events. Memory is kept for reuse, as by sb_vec_clear(), until
 * sb_page_records_release(). For records that nobody takes: sb_resident_add() empties them itself.
 */
void sb_page_records_clear(struct sb_page_records *records);
/* Free the memory; the records are empty then, as they are when zeroed. */
void sb_page_records_release(struct sb_page_records *records);

struct sb_resident_opts {
	struct sampler_bpf *skel; /* loaded; borrowed until sb_resident_free() */
	uint32_t what;		  /* enum sb_memory_what: what the counts are */
	uint32_t kinds;		  /* bits 1 << enum sb_memory_kind, only these; 0: all */
	/* The profile is of the whole run: a count is what changed since the last one, modulo
	 * 2^64. */
	bool is_summed;
	/* Weigh what is held by the time since the last look, in byte-seconds. */
	bool is_of_time;
	/* What a process held at its end is a count, too, once, with SB_MEMORY_OP_ENDED. */
	bool counts_ended;
	/* Calls are traced as well, and may be the result in place of pages. So what processes held
	 * at their end is counted only after a look. */
	bool is_fallback;
	size_t pages_max; /* 0: SB_RESIDENT_PAGES_MAX */
};

/* Make it; @opts is copied. The caller ends *ret_resident with sb_resident_free(). Return: 0;
 * -ENOMEM: *ret_resident is untouched. */
int sb_resident_new(const struct sb_resident_opts *opts, struct sb_resident **ret_resident);
/* Free it, and the counts that sb_resident_counts() gave. Accepts NULL. */
void sb_resident_free(struct sb_resident *resident);

/* Look at a process before it has a fault; once for each. Return: 0, also if it cannot be read or
 * there is no room for it; -ENOMEM: not all of its pages are known to have been there before. */
int sb_resident_expect(struct sb_resident *resident, uint32_t tgid);

/* Take owners, before their faults. The array is not kept; it may be NULL when it is empty. Return:
 * 0, also if there is no room for one, whose faults are then counted in nr_unowned; -ENOMEM: the
 * rest was not taken. */
int sb_resident_add_owners(struct sb_resident *resident, const struct sb_event_owner *owners,
			   size_t nr);
/*
 * Take faults and events, which are put in the order of their times; then look at processes that
 * are new. @records is changed, and empty afterwards. @until_ns: all records before this time are
 * among these, or were given before; those from there on wait for the next call. Return: 0;
 * -ENOMEM: some may have been lost.
 */
int sb_resident_add(struct sb_resident *resident, struct sb_page_records *records,
		    uint64_t until_ns);

/* Look at the pages of all processes, while faults are still shipped. After the next
 * sb_resident_add(), which has to have all faults up to now, sb_resident_counts() adds them up.
 * Return: 0; -ENOMEM: the remaining processes were not looked at. */
int sb_resident_look(struct sb_resident *resident);
/*
 * Get the counts since the last call: one of weight 0 for each owner that has had its first fault,
 * so that its stacks get their names early; after sb_resident_look(), what is held; and what came
 * and went, if that is asked for. When many processes have ended, what they held is counted without
 * a look. Counts belong to @resident and are valid until the next call; *ret_counts may be NULL
 * when there are none; both are always set. Return: 0; -ENOMEM: counts are missing.
 */
int sb_resident_counts(struct sb_resident *resident, const struct sb_batch_count **ret_counts,
		       size_t *ret_nr);

/* Another source tells what this process holds: from now on its pages count in the figures of the
 * run, and get no counts of their own. If opts->is_summed, the counts of the next look subtract
 * what earlier ones had said. @key: start_ns and exec_id are set to those of the process, if it has
 * had a page fault. */
void sb_resident_leave(struct sb_resident *resident, uint32_t tgid, struct sb_sample_key *key);

/* Append the IDs of stacks that later counts can reference; some are zero, or there twice. Return:
 * 0; -ENOMEM, and some may be missing. */
int sb_resident_pending(const struct sb_resident *resident, sb_vec_stack_id *ids);

/* Return: the earliest time (CLOCK_MONOTONIC) that a later count of a process which has ended can
 * have, or of any process if what came and went is asked for: that of its owner's last fault.
 * UINT64_MAX: there is none. */
uint64_t sb_resident_oldest_ns(const struct sb_resident *resident);

/* A process at the last look; numbers are of bytes. */
#define SB_RESIDENT_TOP_MAX 5u
struct sb_resident_process {
	uint32_t tgid;
	char comm[SB_COMM_LEN];
	/* Rss of smaps_rollup, or of the pages that were seen, if it had faults or gave back memory
	 * meanwhile; of some kinds only, what of it is of them. */
	uint64_t rss;
	uint64_t before, held, unaccounted, swapped;
	uint64_t along; /* of `held`: came with the fault of another page */
};
struct sb_resident_stats {
	struct sb_resident_process sum;			     /* of all; tgid is 0 */
	struct sb_resident_process top[SB_RESIDENT_TOP_MAX]; /* those that hold most */
	uint64_t nr_processes, nr_ended;		     /* looked at; ended in the run */
	uint64_t ended, ended_peak; /* bytes: held by those at their end; of those, the most each
				       had resident */
	uint64_t nr_replaced;	    /* programs: their processes run another one (execve(2)) */
	uint64_t nr_left_out;	    /* could not be read */
	/* With kinds: bytes that are resident in mappings that were not read. There, shared memory
	 * counts as a file's, heap and stack count as anonymous memory. */
	uint64_t unsorted;
	uint64_t churn;	     /* bytes that came and went, so far */
	uint64_t nr_faults;  /* that were followed */
	uint64_t nr_unowned; /* faults whose owner is not known, or for which there was no room */
	/* New and moved mappings that the table of pages does not take into account, because
	 * processes mapped or moved too many addresses between two drains. An upper bound: whether
	 * pages at these addresses are known was not looked at. */
	uint64_t nr_not_moved;
	uint32_t shift;	   /* one window of pages in 2^shift was followed, at the worst */
	uint64_t nr_pages; /* in the table */
};
/* Get the figures: those of the processes are of the last look for which there were counts, 0
 * before the first one. */
void sb_resident_stats(const struct sb_resident *resident, struct sb_resident_stats *ret_stats);

#endif
