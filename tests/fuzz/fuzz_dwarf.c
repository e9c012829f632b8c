// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* An ELF file with DWARF: it is its own dwz file, too, and is asked all over its code. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "symbolizer/dwarf/dwarf_image.h"
#include "symbolizer/dwarf/sb_dwarf.h"
#include "symbolizer/elf/budget.h"

#define NR_ADDRS   97
#define FRAMES_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t length(const char *s)
{
	return s ? strlen(s) : 0;
}

static void look_up(struct sb_dwarf *dwarf, uint64_t addr)
{
	struct sb_dwarf_frame frames[FRAMES_MAX];
	size_t i, nr, max = 1 + addr % FRAMES_MAX, len = 0;

	if (sb_dwarf_lookup(dwarf, addr, frames, max, &nr) || nr > max)
		abort();
	for (i = 0; i < nr; i++) {
		len += length(frames[i].name) + length(frames[i].linkage_name) +
		       length(frames[i].file);
		if (frames[i].is_inlined != (i + 1 < nr))
			abort();
	}
	if (len > 64u << 20)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sb_cleanup(sb_closep) int fd = memfd_create("dwarf", MFD_CLOEXEC);
	struct sb_dwarf_image image = {};
	struct sb_budget budget;
	struct sb_dwarf *dwarf;
	uint64_t i;

	sb_budget_init(&budget, NULL, 0, "fuzz");
	if (fd < 0 || sb_write_all(fd, data, size))
		abort();
	if (sb_dwarf_image_read(fd, false, size & 1, &budget, &image))
		return 0;
	if (!sb_dwarf_new(fd, fd, size & 1, &budget, &dwarf)) {
		uint64_t step = (image.exec_hi - image.exec_lo) / NR_ADDRS + 1;

		for (i = 0; i < NR_ADDRS; i++)
			look_up(dwarf, image.exec_lo + i * step);
		if (!sb_dwarf_bytes(dwarf))
			abort();
		sb_dwarf_free(dwarf);
	}
	sb_dwarf_image_release(&image);
	return 0;
}
