/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For every BPF file: errno names, optimiser fences, counters. */
#ifndef SB_UTIL_BPF_H
#define SB_UTIL_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "sb_abi.h"

#ifndef EEXIST
#define ENOENT 2
#define E2BIG  7
#define EAGAIN 11
#define EFAULT 14
#define EBUSY  16
#define EEXIST 17
#endif

/* Make the compiler forget what it proved about @x, so that the bound stays visible to verifiers
 * up to 6.1, which lose it when clang folds the check away. */
#define sb_opaque(x) asm volatile("" : "+r"(x))

/* Add to one of our own counters. */
void sb_stat_add(__u32 stat, __u64 val);

#endif
