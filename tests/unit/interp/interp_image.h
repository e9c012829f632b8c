/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The memory of a process, made by hand: BYTES of it from BASE on, which the test defines
 * before. */
#ifndef SB_UNIT_INTERP_IMAGE_H
#define SB_UNIT_INTERP_IMAGE_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "interp/core/runtimes.h"

static uint8_t image[BYTES];
static uint32_t used;

static int read_image(void *arg, void *dst, size_t len, uint64_t addr)
{
	(void)arg;
	if (addr < BASE || addr >= BASE + BYTES || len > BASE + BYTES - addr)
		return -EFAULT;
	memcpy(dst, image + (addr - BASE), len);
	return 0;
}

static struct sb_memory memory = { .read = read_image };

/* Room for an object, at a multiple of 32. */
static uint64_t make(uint32_t len)
{
	uint64_t addr = BASE + used;

	used += (len + 31) & ~31u;
	assert_true(used <= BYTES);
	return addr;
}

static void put(uint64_t addr, const void *from, size_t len)
{
	memcpy(image + (addr - BASE), from, len);
}

static void put64(uint64_t addr, uint64_t val)
{
	put(addr, &val, sizeof(val));
}

static void put32(uint64_t addr, uint32_t val)
{
	put(addr, &val, sizeof(val));
}

#endif
