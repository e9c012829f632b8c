/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For core/unwind.bpf.c: lookups in the lists of mappings and the unwind tables that user space has
 * put into maps. Implemented in core/unwind_tables.bpf.c; runs in BPF programs, for the current
 * task, but for sb_unwind_mapped() of sb_unwind.bpf.h. @slot, and @s, its record: as there. No
 * pointer may be NULL.
 *
 * Order: sb_unwind_find_list() when a walk begins, then the others.
 */
#ifndef SB_UNWIND_TABLES_BPF_H
#define SB_UNWIND_TABLES_BPF_H

#include "bpf/core/sb_unwind.bpf.h"

/*
 * The list of mappings of the process in the record's key becomes the walk's (map.segs_word,
 * map.nr_segs, stack.list) if there is one and it is up to date, as map.exec_vm says, or is no
 * longer doubted. Otherwise nothing is set; the caller has set map.nr_segs to 0. Return: 0.
 */
int sb_unwind_find_list(struct sb_scratch *s, __u32 slot);
/* Return: the number of the list of the process in the record's key, whether it is up to date or
 * not; 0: none. */
__u32 sb_unwind_list_of(const struct sb_scratch *s);
/* Return: 1 if it is doubted that the list of this process is up to date, or there is none; 0: it
 * was read anew often enough, and was the same. */
int sb_unwind_is_list_doubtful(const struct sb_scratch *s);

/*
 * The rule for the address of the walk becomes the walk's (map.rule); its cfa is
 * SB_UW_CFA_FP_CHAIN where there is no rule. Return: 0; -ENOENT: the address lies in no mapping of
 * the list; -EAGAIN: the binary (map.bin) has no table yet.
 */
int sb_unwind_find_rule(__u32 slot);

#if defined(__TARGET_ARCH_x86)
/* Return: 1 if a word between the stack pointer and the frame pointer of the walk can be a return
 * address, so a frame may be hidden there; 0: not. */
int sb_unwind_hides(__u32 slot);
#else
#define sb_unwind_hides(slot) 0
#endif

#endif
