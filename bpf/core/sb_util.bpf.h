/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For every BPF file: numbers of errors, barriers for the optimizer, counters. Everything here may
 * be called from any program on any CPU. No pointer may be NULL, and none is kept.
 * Nothing here fails.
 */
#ifndef SB_UTIL_BPF_H
#define SB_UTIL_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/sb_abi.h"

#ifndef EEXIST
#define ENOENT	  2
#define E2BIG	  7
#define EAGAIN	  11
#define EFAULT	  14
#define EBUSY	  16
#define EEXIST	  17
#define EDEADLK	  35
#define ETIMEDOUT 110
#endif

/* <linux/sched.h> */
#define PF_IO_WORKER  0x00000010
#define PF_FORKNOEXEC 0x00000040
#define PF_KTHREAD    0x00200000

/*
 * Return: @hash, the hash of all words before, combined with @word. For IDs and for places in
 * tables. For the first word @hash is any constant, which may tell kinds of IDs apart. The result
 * may be 0; where that means "none", the caller sets a bit in it.
 */
static __always_inline __u64 sb_hash_word(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return hash ^ (hash >> 29);
}

/*
 * Make the compiler forget what it proved about @x, so that a check of its bound stays in the
 * code. Verifiers up to 6.1 lose the bound when clang folds the check away.
 */
#define sb_opaque(x) asm volatile("" : "+r"(x))

/*
 * Add @val to this CPU's counter @stat (enum sb_stat), atomically, because a program may interrupt
 * another one. User space adds up the CPUs. Global, so that the verifier examines it once and not
 * for each call. In core/stats.bpf.c. Return: 0, also if there is no such counter.
 */
int sb_stat_add(__u32 stat, __u64 val);

/* Return: whether @task, which need not be the current one, runs a program, which may have stacks
 * and labels; false for threads of the kernel, and for workers of io_uring, which have the memory
 * of a program and run none of its code. */
static __always_inline bool sb_has_user_side(const struct task_struct *task)
{
	return BPF_CORE_READ(task, mm) && !(task->flags & (PF_KTHREAD | PF_IO_WORKER));
}

/* Return: the position of the highest bit that is set; 0 for 0. */
static __always_inline __u32 sb_log2(__u64 value)
{
	__u32 log2 = 0, shift;

#pragma unroll
	for (shift = 32; shift; shift >>= 1) {
		if (value >> shift) {
			value >>= shift;
			log2 += shift;
		}
	}
	return log2;
}

#endif
