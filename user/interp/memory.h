/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading a process from outside, without stopping it (symbolizer/reader.h). Any thread. */
#ifndef SB_INTERP_MEMORY_H
#define SB_INTERP_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/*
 * What was read last, with what lies around it: fields of an object are read one by one, and each costs a system
 * call. For things that stay as they are, and for a moment.
 */
#define SB_MEMORY_PIECES      8u
#define SB_MEMORY_PIECE_BYTES 4096u
struct sb_memory_recent {
	uint32_t nr, next;
	struct {
		uint64_t addr;
		uint8_t bytes[SB_MEMORY_PIECE_BYTES];
	} piece[SB_MEMORY_PIECES];
};

struct sb_memory {
	uint32_t tgid;
	struct sb_memory_recent *recent; /* NULL: each read is one of the process */
	/* For tests: instead of a process. Return: 0 or -EFAULT. */
	int (*read)(void *arg, void *dst, size_t len, uint64_t addr);
	void *arg;
	/* How many reads there may still be, or NULL: then all of them fail. */
	uint64_t *nr_left;
};

/* All @len bytes, or nothing. Return: 0, -EFAULT, -ESRCH, -EPERM. */
int sb_memory_read(const struct sb_memory *memory, void *dst, size_t len, uint64_t addr);
/* Words; 0 and -EFAULT when they cannot be read. */
int sb_memory_u64(const struct sb_memory *memory, uint64_t addr, uint64_t *ret);
int sb_memory_u32(const struct sb_memory *memory, uint64_t addr, uint32_t *ret);
int sb_memory_u16(const struct sb_memory *memory, uint64_t addr, uint16_t *ret);
int sb_memory_u8(const struct sb_memory *memory, uint64_t addr, uint8_t *ret);
/* Append @len bytes to @str (len above @max: the first @max), control characters replaced.
 * Return: 0, -EFAULT, -ENOMEM. */
int sb_memory_text(const struct sb_memory *memory, uint64_t addr, size_t len, size_t max,
		   struct sb_str *str);
/* The same up to a NUL. */
int sb_memory_cstr(const struct sb_memory *memory, uint64_t addr, size_t max, struct sb_str *str);

#endif
