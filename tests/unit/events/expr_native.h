/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The evaluator of expressions, compiled for the host. All memory that it may read is
 * registered. */
#ifndef EXPR_NATIVE_H
#define EXPR_NATIVE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Pieces of memory, by the address under which the evaluator knows them. */
struct expr_memory {
	struct expr_piece {
		uint64_t addr;
		const void *bytes;
		size_t len;
		int is_user;
	} piece[3];
};

/* Return: how many of @len bytes at @addr can be read; *@ret is where they are. */
static inline size_t expr_find(const struct expr_memory *memory, uint64_t addr, uint64_t len,
			       int is_user, const void **ret)
{
	const struct expr_piece *piece;

	for (piece = memory->piece; piece < memory->piece + 3; piece++) {
		if (piece->is_user != is_user || addr < piece->addr ||
		    addr - piece->addr >= piece->len)
			continue;
		*ret = (const char *)piece->bytes + (addr - piece->addr);
		addr = piece->len - (addr - piece->addr);
		return addr < len ? addr : len;
	}
	return 0;
}

static inline int expr_read(const struct expr_memory *memory, void *dst, uint64_t len,
			    uint64_t addr)
{
	const void *from = NULL;

	memset(dst, 0, len);
	if (expr_find(memory, addr, len, 0, &from) < len)
		return -1;
	if (len)
		memcpy(dst, from, len);
	return 0;
}

/* As bpf_probe_read_kernel_str(). */
static inline long expr_read_str(const struct expr_memory *memory, void *dst, uint64_t len,
				 uint64_t addr, int is_user)
{
	const void *found = NULL;
	const char *from;
	size_t nr, i;

	memset(dst, 0, len);
	if (!len)
		return 0;
	nr = expr_find(memory, addr, len, is_user, &found);
	from = found;
	for (i = 0; i < nr && i < len - 1 && from[i]; i++)
		((char *)dst)[i] = from[i];
	if (i == nr && i < len - 1) { /* the memory ends before the string does */
		memset(dst, 0, len);
		return -1;
	}
	return (long)i + 1;
}

#define SB_EXPR_READ(mem, dst, len, addr)	   expr_read(mem, dst, len, addr)
#define SB_EXPR_READ_STR(mem, dst, len, addr)	   expr_read_str(mem, dst, len, addr, 0)
#define SB_EXPR_READ_USER_STR(mem, dst, len, addr) expr_read_str(mem, dst, len, addr, 1)
#include "bpf/step/sb_expr_step.h"

/* Return: the number of instructions that were executed. */
static inline unsigned int expr_run(struct sb_expr_run *run, const struct sb_expr *expr,
				    struct expr_memory *memory)
{
	unsigned int i;

	sb_expr_begin(run);
	for (i = 0; i < SB_EXPR_INSNS_MAX && sb_expr_step(run, expr, memory); i++)
		;
	return i;
}

#endif
