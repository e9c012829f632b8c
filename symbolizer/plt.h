/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stubs of the procedure linkage table have no symbols. Each jumps through a slot of the global
 * offset table, and the relocation of that slot names the function: decoding the stub finds it,
 * whatever the linker's layout (.plt, .plt.sec, .plt.got). Internal.
 *
 * x86-64 and arm64. Source: the psABIs, sections on the procedure linkage table.
 */
#ifndef SB_PLT_H
#define SB_PLT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "elf_file.h"

struct sb_plt;

/* From the lowest to the highest address in sections with stubs; empty without any. */
void sb_plt_bounds(const struct sb_elf *elf, uint64_t *ret_start, uint64_t *ret_end);

/*
 * @elf: the binary itself, separate debug files have no stubs; a file has to outlive the stubs.
 * Return: 0, -ENODATA when there are none, -EBADMSG, -EFBIG, -ENOMEM, or of I/O.
 */
int sb_plt_new(const struct sb_elf *elf, struct sb_plt **ret_plt);
void sb_plt_free(struct sb_plt *plt);

struct sb_plt_stub {
	uint64_t start;
	uint64_t resolver; /* of an IFUNC, which has no name here; 0: there is a name */
	uint32_t idx;	   /* of sb_plt_name() */
};

/* Return: whether a stub covers @addr. */
bool sb_plt_find(const struct sb_plt *plt, uint64_t addr, struct sb_plt_stub *ret_stub);

/* Append the name of the function, without "@plt". Return: 0, or as sb_names_get(). */
int sb_plt_name(const struct sb_plt *plt, uint32_t idx, struct sb_str *name);

size_t sb_plt_bytes(const struct sb_plt *plt);

#endif
