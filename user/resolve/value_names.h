/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names for numbers that an expression says to be system calls, signals or software interrupts.
 * Thread: any. No pointer is NULL unless it says so, and none is kept; @text is initialized and
 * released by the caller. */
#ifndef SB_RESOLVE_VALUE_NAMES_H
#define SB_RESOLVE_VALUE_NAMES_H

#include <stdint.h>

#include "base/str.h"

#define SB_SYSCALL_NAMES_MAX 512u

/* By number, for the processor that this is built for; NULL: not known. Generated. */
extern const char *const sb_syscall_names[SB_SYSCALL_NAMES_MAX];

/*
 * Append the frame of a named value, such as "[syscall=read]"; a number that has no name is shown
 * as a number. @kind: enum sb_expr_kind; others are allowed, and have no names.
 *
 * Return: 1; 0 if values of this kind have no names, and nothing is appended; -ENOMEM, and a part
 * may have been appended.
 */
int sb_value_add_name(struct sb_str *text, uint32_t kind, uint64_t number);

#endif
