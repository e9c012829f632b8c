/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CONTRACT between the BPF side and user space for the view "memory": page faults, and which of
 * them are followed.
 *
 * A fault is its page and the ID of its owner; an owner is a sample key, which is shipped once
 * (struct sb_event_owner) through the ring `events`. Faults are collected by CPU (struct
 * sb_fault_batch), and go through the ring when a batch is full; user space takes those that are
 * not full, and puts all in order by their times. It has the table of pages. The functions here
 * only compute: any thread, any BPF program.
 */
#ifndef SB_ABI_MEMORY_H
#define SB_ABI_MEMORY_H

#include "bpf/abi/sb_abi.h"

/* Pages are followed by windows of so many bytes, aligned, because one fault in a mapped file
 * brings its neighbours within such a window (fault_around_bytes, mm/memory.c). */
#define SB_WINDOW_SHIFT	    16
/* At most one window in 2^SB_FOLLOW_SHIFT_MAX is followed. */
#define SB_FOLLOW_SHIFT_MAX 20u

struct sb_event_owner {
	struct sb_event hdr;
	__u64 id; /* a hash of the key, never 0 */
	struct sb_sample_key key;
};

/* Bits of sb_fault_record.where beside the address of the page. */
#define SB_FAULT_SHIFT	 0x1full     /* one window in 2^this was followed */
#define SB_FAULT_PRESENT (1ull << 5) /* the page was there: it was written to for the first time */
#define SB_FAULT_BITS	 0xfffull

struct sb_fault_record {
	__u64 owner; /* sb_event_owner.id */
	__u64 where;
	__u64 now_ns; /* CLOCK_MONOTONIC */
};

/* Faults in one record of the ring: a record for each would take longer than all else. */
#define SB_FAULTS_MAX 32u

/* @hdr.nr_bytes says how many there are. */
struct sb_event_faults {
	struct sb_event hdr;
	struct sb_fault_record at[SB_FAULTS_MAX];
};

/* The faults of a CPU that are not in the ring yet: an element of the map memory_batches. Who has
 * exchanged @is_busy for 1, and got 0, may use the rest until it exchanges it for 0. */
struct sb_fault_batch {
	__u32 is_busy;
	__u32 nr; /* of event.at */
	struct sb_event_faults event;
};

/* A process gets a mapping where none is now, or gives memory back: pages that it had there before
 * have gone. */
struct sb_event_mapped {
	struct sb_event hdr;
	__u64 addr, nr_bytes;
	__u64 from; /* mremap(2) moves the pages from here; 0: there are none yet */
	__u64 from_bytes;
	__u64 now_ns; /* CLOCK_MONOTONIC */
	__u32 tgid;
	__u32 reserved;
};

/* A process ends. */
struct sb_event_ended {
	struct sb_event hdr;
	__u64 start_ns; /* as in struct sb_sample_key */
	__u64 now_ns;
	__u64 peak_pages; /* the most that it had resident */
	__u32 tgid;
	__u32 reserved;
};

/* What is asked for: pages that are resident, those that came and went, those in swap, those that
 * are resident and came in the first half of the run. */
enum sb_memory_what {
	SB_MEMORY_HELD,
	SB_MEMORY_CHURN,
	SB_MEMORY_SWAPPED,
	SB_MEMORY_OLD,
	SB_MEMORY_WHAT_MAX,
};

/* Kinds of pages, bits 1 << these: user space only. */
enum sb_memory_kind {
	SB_MEMORY_ANON,	 /* of no file, and not of the two last ones */
	SB_MEMORY_FILE,	 /* of a file */
	SB_MEMORY_SHMEM, /* of memory that processes share: memfd, /dev/shm, System V, MAP_SHARED */
	SB_MEMORY_STACK, /* of no file, in the main thread's stack */
	SB_MEMORY_HEAP,	 /* of no file, in what brk(2) has made */
	SB_MEMORY_KIND_MAX,
};

/* sb_sample_key.op */
enum sb_memory_op {
	SB_MEMORY_OP_NONE,
	SB_MEMORY_OP_UNACCOUNTED, /* user space only: memory that no fault of the run has brought */
	SB_MEMORY_OP_ENDED,	  /* user space only: memory of a process that has ended */
	SB_MEMORY_OP_MAX,
};

/*
 * Return: a hash of the window of @addr, any address in it, in the address space of @tgid, for
 * sb_window_is_followed(); it may be 0. @seed: the same on both sides, sb_stack_seed(1), which
 * differs from run to run, so that no program can choose addresses that are followed, or not.
 * MurmurHash3's finalizer. Any thread, any BPF program.
 */
static inline __attribute__((always_inline)) __u64 sb_window_hash(__u64 seed, __u32 tgid,
								  __u64 addr)
{
	__u64 hash = seed ^ (addr >> SB_WINDOW_SHIFT) ^ ((__u64)tgid << 40);

	hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdull;
	hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53ull;
	return hash ^ hash >> 33;
}

/*
 * Return: 1 if a window with this hash (sb_window_hash()) is followed when one in 2^@shift is, else
 * 0. @shift: 0, for all, to SB_FOLLOW_SHIFT_MAX. What is followed at a shift is followed at any
 * lower one.
 */
static inline __attribute__((always_inline)) int sb_window_is_followed(__u64 hash, __u32 shift)
{
	return !(hash & ((1ull << (shift & 31)) - 1));
}

_Static_assert(sizeof(struct sb_event_owner) == 136, "layout is shared");
_Static_assert(sizeof(struct sb_event_faults) == 776, "layout is shared");
_Static_assert(sizeof(struct sb_fault_batch) == 784, "layout is shared");
_Static_assert(sizeof(struct sb_event_mapped) == 56, "layout is shared");
_Static_assert(sizeof(struct sb_event_ended) == 40, "layout is shared");

#endif
