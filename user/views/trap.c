// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a trap at a user function takes on this machine: a function of our own is probed, without a
 * program, and called. */
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/time.h"
#include "views/views.h"

/* Where the kernel has no probes, or none can be placed in our executable: as measured on one
 * machine (docs/performance.md). */
#define TRAP_NS	   850u
#define NR_BATCHES 9
#define NR_CALLS   25

/* It begins as most functions do that are hooked: with an instruction that the kernel emulates
 * where it can. */
void sb_trap_site(void);
#if defined(__x86_64__)
#define TRAP_SITE "push %rbp\n\tpop %rbp\n\tret\n"
#elif defined(__aarch64__)
#define TRAP_SITE "stp x29, x30, [sp, #-16]!\n\tldp x29, x30, [sp], #16\n\tret\n"
#endif
__asm__(".pushsection .text\n"
	".hidden sb_trap_site\n"
	".globl sb_trap_site\n"
	".type sb_trap_site, %function\n"
	"sb_trap_site:\n\t" TRAP_SITE ".size sb_trap_site, . - sb_trap_site\n"
	".popsection\n");

/* dl_iterate_phdr(3): set the offset at *@arg, if the first object, the executable, has the
 * function. */
static int find_offset(struct dl_phdr_info *info, size_t size, void *arg)
{
	const uintptr_t site = (uintptr_t)sb_trap_site - info->dlpi_addr;
	uint64_t *offset = arg;
	int i;

	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];

		if (phdr->p_type == PT_LOAD && site - phdr->p_vaddr < phdr->p_memsz)
			*offset = site - phdr->p_vaddr + phdr->p_offset;
	}
	return 1;
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Return: CPU time of a call in ns, the median of the batches. */
static uint64_t call(void)
{
	uint64_t ns[NR_BATCHES];
	int i, nr;

	for (i = 0; i < NR_BATCHES; i++) {
		ns[i] = sb_thread_time_ns();
		for (nr = 0; nr < NR_CALLS; nr++)
			sb_trap_site();
		ns[i] = (sb_thread_time_ns() - ns[i]) / NR_CALLS;
	}
	qsort(ns, NR_BATCHES, sizeof(ns[0]), compare);
	return ns[NR_BATCHES / 2];
}

uint64_t sb_trap_ns(void)
{
	struct sb_probe probe = { .kind = SB_PROBE_USER, .link = "/proc/self/exe" };
	uint64_t ns;
	int fd;

	probe.path = probe.link;
	(void)dl_iterate_phdr(find_offset, &probe.offset);
	fd = probe.offset ? sb_probe_open(&probe, 0, -1) : -1;
	if (fd < 0)
		return TRAP_NS;
	ns = call();
	close(fd);
	return ns;
}
