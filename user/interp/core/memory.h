/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading the memory of another process, which is not stopped for it (symbolizer/process/reader.h).
 * For the runtimes, and through interp/core/step.h for the walkers. Any thread; one thread at a
 * time for a struct sb_memory with `recent` or `nr_left`. No pointer is NULL but its members, which
 * the caller has set. There is nothing to free, and after an error reading goes on. Control
 * characters are replaced by '?'. -ESRCH: the process has ended; -EPERM: we may not read it;
 * -EFAULT: all other failures, also when the process blocks the access, or nr_left is 0.
 */
#ifndef SB_INTERP_MEMORY_H
#define SB_INTERP_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/*
 * A cache of the pages that were read last. Fields of an object are read one by one, and each read
 * costs a system call. Use it for one task only (a name, say) and for data that does not change
 * meanwhile. Zeroed it is empty. When a read finds that the process has ended, all later ones fail
 * without asking again.
 */
#define SB_MEMORY_PIECES      8u
#define SB_MEMORY_PIECE_BYTES 4096u
struct sb_memory_recent {
	bool has_ended; /* a read returned -ESRCH */
	uint32_t nr, next;
	struct {
		uint64_t addr;
		uint8_t bytes[SB_MEMORY_PIECE_BYTES];
	} piece[SB_MEMORY_PIECES];
};

struct sb_memory {
	uint32_t tgid;
	struct sb_memory_recent *recent; /* borrowed; NULL: no cache */
	/* Replaces reading from the process, for tests and overlays; gets @arg, and reads all @len
	 * bytes. Return: 0 or -EFAULT. NULL: the process is read. */
	int (*read)(void *arg, void *dst, size_t len, uint64_t addr);
	/* The same for sb_memory_read_again(). NULL: @read, which keeps nothing. */
	int (*read_again)(void *arg, void *dst, size_t len, uint64_t addr);
	/* For sb_memory_want(). NULL: nothing is read ahead. */
	void (*want)(void *arg, uint64_t addr);
	/* The same for sb_memory_want_target(). */
	void (*want_target)(void *arg, uint64_t addr);
	void *arg;
	/* Borrowed: how many reads are left; at 0 all fail with -EFAULT. NULL: no limit. */
	uint64_t *nr_left;
};

/* Drop the pages in @memory->recent, if there are any, before something that has changed meanwhile
 * is read once more. */
void sb_memory_forget(const struct sb_memory *memory);

/* Read @len bytes. Return: 0 when all were read; -ESRCH, -EPERM or -EFAULT, and then @dst may be
 * partly overwritten. */
int sb_memory_read(const struct sb_memory *memory, void *dst, size_t len, uint64_t addr);
/* Read @len bytes, but not from what is kept of earlier reads: to find out whether they have
 * changed since. Nothing is kept of them. Return: 0 when all were read; -ESRCH, -EPERM or -EFAULT,
 * and then @dst may be partly overwritten. */
int sb_memory_read_again(const struct sb_memory *memory, void *dst, size_t len, uint64_t addr);
/* Say that what begins at @addr will be read if the reads before it succeed, so that it can be read
 * together with other pages (interp/core/pages.h). It need not be readable. */
void sb_memory_want(const struct sb_memory *memory, uint64_t addr);
/* Say the same of what the pointer at @addr points to, without having read the pointer. */
void sb_memory_want_target(const struct sb_memory *memory, uint64_t addr);
/* Read one number of as many bits as the name of the function says, in this machine's byte order.
 * Return: 0; -ESRCH, -EPERM or -EFAULT, and *ret is 0. */
int sb_memory_u64(const struct sb_memory *memory, uint64_t addr, uint64_t *ret);
int sb_memory_u32(const struct sb_memory *memory, uint64_t addr, uint32_t *ret);
int sb_memory_u16(const struct sb_memory *memory, uint64_t addr, uint16_t *ret);
int sb_memory_u8(const struct sb_memory *memory, uint64_t addr, uint8_t *ret);
/* Append @len bytes, but at most @max of them, to @str, with control characters replaced; nothing
 * tells that @max has cut it. On error, what was read before it stays appended. Return: 0; -ENOMEM;
 * -ESRCH, -EPERM or -EFAULT. */
int sb_memory_text(const struct sb_memory *memory, uint64_t addr, size_t len, size_t max,
		   struct sb_str *str);
/* Append the bytes up to a NUL, but at most @max, to @str, with control characters replaced;
 * without a NUL in them it is cut, which is no error. Return: 0; -ENOMEM; -ESRCH, -EPERM or
 * -EFAULT; what was read before an error stays appended. */
int sb_memory_cstr(const struct sb_memory *memory, uint64_t addr, size_t max, struct sb_str *str);

#endif
