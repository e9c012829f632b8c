// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any registers and any stack, walked by the tables of this very program, of its libraries and of
 * the vDSO. A word of the input becomes an address in code, an address on the stack, or remains.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "must.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/sb_sym.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STACK	     0x7ffd12345000ull
#define STACK_MAX    (64u << 10)
#define FRAMES_MAX   512u
#define MAPPINGS_MAX 64u
#define TIME_NS	     (UINT64_MAX - 1)

static struct sb_symbolizer *sym;
static struct code {
	uint64_t start, end;
} codes[MAPPINGS_MAX];
static size_t nr_codes;
static uint64_t stack[STACK_MAX / 8];

static int note_code(void *arg, const struct sb_maps_line *line)
{
	if (line->is_exec && nr_codes < MAPPINGS_MAX)
		codes[nr_codes++] = (struct code){ line->start, line->end };
	return 0;
}

static void setup(void)
{
	struct sb_symbolizer_opts opts = {};

	if (sym)
		return;
	must(!sb_symbolizer_new(&opts, &sym));
	must(!sb_procfs_maps((uint32_t)getpid(), note_code, NULL) && nr_codes);
}

/* The uppermost bits say what a word means. */
static uint64_t meaning(uint64_t word)
{
	const struct code *code = &codes[(word >> 48) % nr_codes];

	switch (word >> 62) {
	case 0:
		return code->start + word % (code->end - code->start);
	case 1:
		return STACK + word % (2 * STACK_MAX) - STACK_MAX / 2;
	case 2:
		return STACK + word % 4096 / 8 * 8;
	default:
		return word << 2 >> 2;
	}
}

static uint64_t take(const uint8_t **data, size_t *size)
{
	uint64_t word = 0;
	size_t len = *size < sizeof(word) ? *size : sizeof(word);

	memcpy(&word, *data, len);
	*data += len;
	*size -= len;
	return word;
}

static bool is_code(uint64_t addr)
{
	size_t i;

	for (i = 0; i < nr_codes; i++)
		if (addr >= codes[i].start && addr < codes[i].end)
			return true;
	return false;
}

static void check(const struct sb_sym_unwind *from, const uint64_t *ip, size_t nr, uint32_t status)
{
	size_t i;

	must(nr && nr <= FRAMES_MAX && ip[0] == from->pc);
	must(status < SB_STACK_STATUS_MAX && status != SB_STACK_NONE && status != SB_STACK_COMPAT &&
	     status != SB_STACK_NO_REGS && status != SB_STACK_NO_TABLE);
	must(status != SB_STACK_DEPTH || nr == FRAMES_MAX);
	for (i = 1; i < nr; i++) {
		uint64_t addr = ip[i] & ~SB_IP_MARKS;

		must((ip[i] & SB_IP_MARKS) != SB_IP_MARKS);
		must(!(ip[i] & SB_IP_BY_FP) || from->modes & SB_UNWIND_FP);
		must(!(ip[i] & SB_IP_HIDES) || ip[i] & SB_IP_BY_FP);
		/* The last one of a stack that is too deep is not looked up any more. */
		if (from->modes & SB_UNWIND_CFI && i + 1 < FRAMES_MAX)
			must(is_code(ip[i] & SB_IP_EXACT ? addr : addr - 1));
	}
	must(from->modes || nr == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sb_sym_unwind from = { .time_ns = TIME_NS, .stack = stack };
	uint64_t ip[FRAMES_MAX], again[FRAMES_MAX], how = take(&data, &size);
	size_t i, nr, nr_again;
	uint32_t status, status_again;

	setup();
	from.tgid = (uint32_t)getpid();
	from.modes = (uint32_t)how & (SB_UNWIND_CFI | SB_UNWIND_FP);
	from.pc = meaning(take(&data, &size));
	for (i = 0; i < SB_UNWIND_REGS; i++)
		from.regs[i] = meaning(take(&data, &size));
	if (how & 4)
		from.regs[7] = STACK + SB_RED_ZONE_BYTES;
	from.stack_addr = from.regs[7] - SB_RED_ZONE_BYTES;
	/* The input again and again, so that there is always something above. */
	for (i = 0; i < SB_ARRAY_SIZE(stack) && size; i++)
		stack[i] = meaning(take(&data, &size));
	nr = i;
	for (; i < SB_ARRAY_SIZE(stack); i++)
		stack[i] = nr ? stack[i - nr] : 0;
	from.stack_bytes = (how >> 8) % (sizeof(stack) + 1);
	must(!sb_symbolizer_unwind(sym, &from, ip, FRAMES_MAX, &nr, &status));
	check(&from, ip, nr, status);
	must(!sb_symbolizer_unwind(sym, &from, again, FRAMES_MAX, &nr_again, &status_again));
	must(nr == nr_again && status == status_again && !memcmp(ip, again, nr * sizeof(*ip)));
	return 0;
}
