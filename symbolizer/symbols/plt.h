/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names for stubs of the procedure linkage table, which have no symbols. Each stub jumps through a
 * slot of the global offset table, and the relocation of that slot names the function. Decoding
 * the stub finds it, whatever the linker's layout (.plt, .plt.sec, .plt.got). Internal to the
 * symbolizer.
 *
 * Machines: x86-64 and arm64. Source: the psABIs, sections on the procedure linkage table.
 * Addresses are ELF addresses. Order: sb_plt_new(), sb_plt_find(), then sb_plt_name(), and
 * sb_plt_free(). No pointer is NULL unless a contract says so. Thread: any, one at a time for each
 * file.
 */
#ifndef SB_PLT_H
#define SB_PLT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "symbolizer/elf/elf_file.h"

struct sb_plt;

/*
 * Get the range of addresses [*ret_start, *ret_end) that sections with stubs span, which may have
 * other code in between; *ret_start > *ret_end: there are none. Nothing is read for it.
 */
void sb_plt_bounds(const struct sb_elf *elf, uint64_t *ret_start, uint64_t *ret_end);

/*
 * Decode the stubs of a file. The caller ends *ret_plt with sb_plt_free().
 * @elf: the binary itself, because separate debug files have no stubs; a file must outlive the
 * stubs
 *
 * Return: 0; -ENODATA: there are none, or the file is for another machine; -EBADMSG: its tables are
 * broken; -ENOTSUP: they are compressed; -EFBIG (a bound or the budget); -ENOMEM; others of
 * pread(2). On error *@ret_plt is untouched.
 */
int sb_plt_new(const struct sb_elf *elf, struct sb_plt **ret_plt);
/* Free the stubs. Names that sb_plt_name() appended are copies, and stay. Accepts NULL. */
void sb_plt_free(struct sb_plt *plt);

struct sb_plt_stub {
	uint64_t start;
	uint64_t
		resolver; /* address of the resolver of an IFUNC without a name; 0: it has a name */
	uint32_t idx;	  /* for sb_plt_name() */
};

/* Return: whether a stub with a name or a resolver covers @addr; if not, *@ret_stub is as
 * before. */
bool sb_plt_find(const struct sb_plt *plt, uint64_t addr, struct sb_plt_stub *ret_stub);

/*
 * Append the name of the function that stub @idx jumps to, without "@plt", to @name. @idx: of
 * sb_plt_find(), for a stub without a resolver; that is not checked. Return: 0; -EBADMSG: the name
 * is broken; -EFBIG (too long, or the budget of the file); -ENOMEM; others of pread(2). After an
 * error a part of the name may have been appended.
 */
int sb_plt_name(const struct sb_plt *plt, uint32_t idx, struct sb_str *name);

/* Return: the bytes of memory in use. */
size_t sb_plt_bytes(const struct sb_plt *plt);

#endif
