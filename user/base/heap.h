/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How malloc() gets memory from the kernel, and when it gives memory back. A process that runs for
 * months should keep little of what it frees. A process that ends soon should spend little time on
 * page faults.
 */
#ifndef SB_BASE_HEAP_H
#define SB_BASE_HEAP_H

/*
 * For a process that ends within seconds: malloc() asks for transparent huge pages, and keeps what
 * is freed. Child processes inherit this, but each page that both have is copied when one of them
 * writes to it, so each process calls it for itself after fork(). Where the kernel has no huge
 * pages, or a limit of memory is in the way, memory comes in small pages as before.
 * Thread: the main one, before there are others.
 */
void sb_heap_for_short_life(void);

#endif
