// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "interp/core/memory.h"

#include <errno.h>
#include <string.h>

#include "base/utf8.h"
#include "symbolizer/process/reader.h"

/* A page is the least that can be there or not. */
#define PAGE_BYTES 4096u

static int read_now(const struct sb_memory *memory, void *dst, size_t len, uint64_t addr)
{
	struct sb_memory_recent *recent = memory->recent;
	ssize_t nr_bytes;

	if (recent && recent->has_ended)
		return -ESRCH;
	if (memory->nr_left && !*memory->nr_left)
		return -EFAULT;
	if (memory->nr_left)
		--*memory->nr_left;
	if (memory->read)
		return memory->read(memory->arg, dst, len, addr);
	nr_bytes = sb_reader_memory(memory->tgid, addr, dst, len);
	if (recent)
		recent->has_ended = nr_bytes == -ESRCH;
	if (nr_bytes < 0)
		return nr_bytes == -ESRCH || nr_bytes == -EPERM ? (int)nr_bytes : -EFAULT;
	return (size_t)nr_bytes == len ? 0 : -EFAULT;
}

void sb_memory_forget(const struct sb_memory *memory)
{
	if (memory->recent)
		memory->recent->nr = memory->recent->next = 0;
}

/* Find the cached page at @addr, or read it. Return: NULL: it cannot be read. */
static const uint8_t *piece_of(const struct sb_memory *memory, uint64_t addr)
{
	struct sb_memory_recent *recent = memory->recent;
	uint32_t i;

	for (i = 0; i < recent->nr; i++)
		if (recent->piece[i].addr == addr)
			return recent->piece[i].bytes;
	i = recent->nr < SB_MEMORY_PIECES ? recent->nr : recent->next++ % SB_MEMORY_PIECES;
	recent->piece[i].addr = UINT64_MAX;
	if (read_now(memory, recent->piece[i].bytes, SB_MEMORY_PIECE_BYTES, addr))
		return NULL;
	recent->piece[i].addr = addr;
	recent->nr += i == recent->nr;
	return recent->piece[i].bytes;
}

int sb_memory_read(const struct sb_memory *memory, void *dst, size_t len, uint64_t addr)
{
	uint64_t from = addr % SB_MEMORY_PIECE_BYTES, nr = SB_MEMORY_PIECE_BYTES - from;
	const uint8_t *first, *second;

	if (!memory->recent || len > SB_MEMORY_PIECE_BYTES)
		return read_now(memory, dst, len, addr);
	nr = nr < len ? nr : len;
	first = piece_of(memory, addr - from);
	if (first)
		memcpy(dst, first + from, nr);
	second = first && nr < len ? piece_of(memory, addr + nr) : NULL;
	if (second)
		memcpy((uint8_t *)dst + nr, second, len - nr);
	return first && (nr == len || second) ? 0 : read_now(memory, dst, len, addr);
}

int sb_memory_read_again(const struct sb_memory *memory, void *dst, size_t len, uint64_t addr)
{
	struct sb_memory direct = *memory;

	direct.recent = NULL;
	if (direct.read_again)
		direct.read = direct.read_again;
	return sb_memory_read(&direct, dst, len, addr);
}

void sb_memory_want(const struct sb_memory *memory, uint64_t addr)
{
	if (memory->want)
		memory->want(memory->arg, addr);
}

void sb_memory_want_target(const struct sb_memory *memory, uint64_t addr)
{
	if (memory->want_target)
		memory->want_target(memory->arg, addr);
}

#define DEFINE_READ(bits)                                                                         \
	int sb_memory_u##bits(const struct sb_memory *memory, uint64_t addr, uint##bits##_t *ret) \
	{                                                                                         \
		uint##bits##_t val;                                                               \
		int err = sb_memory_read(memory, &val, sizeof(val), addr);                        \
                                                                                                  \
		*ret = err ? 0 : val;                                                             \
		return err;                                                                       \
	}

DEFINE_READ(64)
DEFINE_READ(32)
DEFINE_READ(16)
DEFINE_READ(8)

int sb_memory_text(const struct sb_memory *memory, uint64_t addr, size_t len, size_t max,
		   struct sb_str *str)
{
	const size_t first = str->len;
	char piece[256];
	int err = 0;

	if (len > max)
		len = max;
	while (len && !err) {
		size_t nr = len < sizeof(piece) ? len : sizeof(piece);

		err = sb_memory_read(memory, piece, nr, addr);
		if (err)
			break;
		err = sb_str_addn(str, piece, nr);
		addr += nr;
		len -= nr;
	}
	/* At the end, because a character can begin in one piece and end in the next. */
	if (str->len > first)
		sb_replace_controls(str->s + first, str->len - first);
	return err;
}

int sb_memory_cstr(const struct sb_memory *memory, uint64_t addr, size_t max, struct sb_str *str)
{
	const size_t first = str->len;
	char piece[256];
	int err = 0;

	while (max && !err) {
		size_t nr = PAGE_BYTES - addr % PAGE_BYTES, len;

		nr = nr < sizeof(piece) ? nr : sizeof(piece);
		nr = nr < max ? nr : max;
		err = sb_memory_read(memory, piece, nr, addr);
		if (err)
			break;
		len = strnlen(piece, nr);
		err = sb_str_addn(str, piece, len);
		if (len < nr)
			break;
		addr += nr;
		max -= nr;
	}
	if (str->len > first)
		sb_replace_controls(str->s + first, str->len - first);
	return err;
}
