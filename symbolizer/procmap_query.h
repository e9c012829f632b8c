/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Mappings of a process one at a time, by a question to its /proc/PID/maps: PROCMAP_QUERY of Linux 6.11 and
 * newer (fs/proc/task_mmu.c). A process has 20 to 2,000 mappings and few of them are code.
 */
#ifndef SB_PROCMAP_QUERY_H
#define SB_PROCMAP_QUERY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include "procfs.h"

/* As in linux/fs.h, which may be older than the kernel. */
struct sb_procmap_query {
	uint64_t size, query_flags, query_addr;
	uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset;
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	uint32_t vma_name_size, build_id_size;
	uint64_t vma_name_addr, build_id_addr;
};
#define SB_PROCMAP_QUERY _IOWR('f', 17, struct sb_procmap_query)

/*
 * Call @fn for each executable mapping from @from on, and for what lies just behind anonymous ones; @is_behind: @from
 * is behind one. @fd is of /proc/PID/maps. Return: 0 or what @fn said; -EFBIG; -ENOTSUP: nothing was handed over,
 * and the text must be read.
 */
int sb_procmap_query_code(int fd, uint64_t from, bool is_behind,
			  int (*fn)(void *arg, const struct sb_maps_line *line), void *arg);

#endif
