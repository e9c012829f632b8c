/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The two pieces of kernel code in user memory: the vDSO and the vsyscall page. Internal to the
 * symbolizer. Nothing is needed before a call or after it. Thread: any. Sources: vdso(7),
 * getauxval(3), arch/x86/entry/vsyscall/vsyscall_emu_64.S.
 */
#ifndef SB_VDSO_H
#define SB_VDSO_H

#include <stddef.h>
#include <stdint.h>

/* The vDSO has two to four pages; a bigger one is not read from a process. */
#define SB_VDSO_BYTES_MAX (64u << 10)

/*
 * Return: our own vDSO, in place, *@ret_len bytes, valid for good; it is the same in each process
 * of this kernel and of our word size. NULL: there is none, we run in an emulator, or our own
 * /proc/PID/maps cannot be read; *@ret_len, not a NULL pointer, means nothing then.
 */
const void *sb_vdso_own(size_t *ret_len);

/*
 * Return: the static name of the function in the vsyscall page that contains the process's address
 * @addr; *@ret_start (not NULL) becomes the address where it begins. NULL: there is none, and
 * *@ret_start is untouched.
 */
const char *sb_vsyscall_name(uint64_t addr, uint64_t *ret_start);

#endif
