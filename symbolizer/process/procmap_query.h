/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ask the kernel for single mappings of a process: the ioctl PROCMAP_QUERY on /proc/PID/maps, Linux
 * 6.11 and newer (fs/proc/task_mmu.c). A process has 20 to 2,000 mappings of which few are code, so
 * this is much cheaper than reading the text. Called by the reader, the process that makes accesses
 * which may block. No pointer is NULL but @arg.
 */
#ifndef SB_PROCMAP_QUERY_H
#define SB_PROCMAP_QUERY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include "symbolizer/process/procfs.h"

/* As in linux/fs.h, which may be older than the running kernel. */
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
 * Call @fn for each executable mapping from address @from (0: all) on, and for each mapping that
 * directly follows anonymous executable memory (see sb_moved_text_feed()).
 * @fd: of /proc/PID/maps, borrowed
 * @is_behind: the mapping before @from was anonymous and executable; false with @from 0
 *
 * Return: 0, also when there are none, as in the midst of execve(2), when the process ends on the
 * way, or when @from is not 0 and it has ended; what @fn returned, if negative, which ends it;
 * -EFBIG (more mappings than a process can have); -ESRCH: the main thread has no memory any more,
 * or never had any, and @fn was not called; -ENOTSUP: @fn was not called, and the text must be read
 * instead. @line is valid during the call of @fn only. Thread: any.
 */
int sb_procmap_query_code(int fd, uint64_t from, bool is_behind,
			  int (*fn)(void *arg, const struct sb_maps_line *line), void *arg);

#endif
