/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For core: what the last sample of a thread found in maps about its process, so that the next one
 * need not look it up: a lookup in a hash map touches five or six cache lines, which a timer of 99
 * Hz finds cold. Implemented in core/proc_cache.bpf.c, where it is said when a record counts. Runs
 * in BPF programs, for the current task. @slot: enum sb_scratch_slot of the calling program; only
 * SB_SCRATCH_TIMER has such records, which are private to this CPU.
 *
 * Order: sb_proc_cache_begin() for each sample, then sb_proc_cache_of() wherever something is
 * looked up: if its bit of `has` is set, the record has the answer; if not, look it up, store it,
 * and set the bit. Without a record, look it up. Pointers that are returned are borrowed and valid
 * until the program ends; none that is passed may be NULL.
 */
#ifndef SB_PROC_CACHE_BPF_H
#define SB_PROC_CACHE_BPF_H

#include "bpf/core/sb_stack.bpf.h"

/* Bits of sb_proc_cache.has: what of the record is set. */
enum {
	SB_PROC_CACHE_RULES = 1u << 0,	   /* rules */
	SB_PROC_CACHE_ANNOUNCED = 1u << 1, /* user space has been told of the process */
	SB_PROC_CACHE_INTERP = 1u << 2,	   /* interp */
	SB_PROC_CACHE_LIST = 1u << 3, /* exec_vm, segs_word and nr_segs: the list is up to date */
};

struct sb_proc_cache {
	__u64 thread_start_ns; /* with tid: the thread. CLOCK_BOOTTIME */
	__u64 start_ns;	       /* with tgid and exec_id: of struct sb_sample_key */
	__u32 tgid, tid, exec_id;
	__u32 epoch;   /* sb_unwind_epoch() when the record was begun */
	__u32 changes; /* of proc_changes[], before anything else was looked up */
	__u32 has;     /* SB_PROC_CACHE_* */
	__u32 rules;   /* SB_RULE_*, of the process's and the thread's ID */
	__u32 segs_word, nr_segs;
	__u32 reserved;
	__u64 exec_vm;
	struct sb_interp_proc interp;
};

/*
 * Begin a sample at capture.now_ns of the struct sb_scratch of @slot: find what is known of @task,
 * which is the current task, or overwrite the record in its place, possibly another thread's, with
 * one in which only the identity is set (`has` is 0). Return: the record; NULL: programs of this
 * slot have none.
 */
struct sb_proc_cache *sb_proc_cache_begin(__u32 slot, const struct task_struct *task);
/*
 * After sb_proc_cache_begin(), when the key in @s, the struct sb_scratch of @slot, has its tgid,
 * start_ns and exec_id. Return: what is known of the current task; NULL: programs of this slot have
 * no records, or this one is of another process.
 */
struct sb_proc_cache *sb_proc_cache_of(__u32 slot, const struct sb_scratch *s);
/* Call it after a program has changed what a map says about process @tgid: what was remembered of
 * it does not count any more (on arm64 possibly for up to 1 s, see core/proc_cache.bpf.c). Return:
 * 0. */
int sb_proc_cache_changed(__u32 tgid);
/* Return: a number that changes whenever what a map says about process @tgid changes; changes of
 * other processes may change it, too. @tgid need not be that of the current task. Read the number
 * before the maps: while it stays the same, what was found in them counts. */
__u32 sb_proc_changes(__u32 tgid);

#endif
