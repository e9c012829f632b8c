/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The two pieces of kernel code in user memory. Internal to the symbolizer. Sources: vdso(7),
 * getauxval(3), arch/x86/entry/vsyscall/vsyscall_emu_64.S.
 */
#ifndef SB_VDSO_H
#define SB_VDSO_H

#include <stddef.h>
#include <stdint.h>

/* The vDSO is two to four pages; nothing bigger is read out of a process. */
#define SB_VDSO_BYTES_MAX (64u << 10)

/* Our own vDSO, the same as in each process of this kernel and of our width.
 * Return: where it lies in our memory, or NULL (there is none, or we run in an emulator). */
const void *sb_vdso_own(size_t *ret_len);

/* Return: the name of what is at @addr in the vsyscall page, at fixed places, and its start; or
 * NULL. */
const char *sb_vsyscall_name(uint64_t addr, uint64_t *ret_start);

#endif
