// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/symbols/vdso.h"

#include <sys/auxv.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbolizer/process/procfs.h"

#define VSYSCALL_START 0xffffffffff600000ull
#define VSYSCALL_STEP  0x400u

struct span {
	uint64_t start, len;
};

static int find_span(void *arg, const struct sb_maps_line *line)
{
	struct span *span = arg;

	if (line->start <= span->start && span->start < line->end)
		span->len = line->end - span->start;
	return 0;
}

const void *sb_vdso_own(size_t *ret_len)
{
	/* It stays where it is, and every process that comes is asked whether it has the same. */
	static size_t len;
	struct span span = { .start = getauxval(AT_SYSINFO_EHDR) };

	if (!span.start)
		return NULL;
	*ret_len = __atomic_load_n(&len, __ATOMIC_RELAXED);
	if (!*ret_len) {
		if (sb_procfs_maps((uint32_t)getpid(), find_span, &span) || !span.len)
			return NULL;
		*ret_len = span.len;
		__atomic_store_n(&len, *ret_len, __ATOMIC_RELAXED);
	}
	return (const void *)(uintptr_t)span.start;
}

const char *sb_vsyscall_name(uint64_t addr, uint64_t *ret_start)
{
	static const char *const names[] = { "gettimeofday", "time", "getcpu" };
	uint64_t at = addr - VSYSCALL_START;

	if (at >= SB_ARRAY_SIZE(names) * VSYSCALL_STEP)
		return NULL;
	*ret_start = addr - at % VSYSCALL_STEP;
	return names[at / VSYSCALL_STEP];
}
