/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which function of a stack the stack's own weight is counted for in tables of functions. On a CPU it is the leaf. A
 * wait ends in the kernel's scheduler, below the C library's and the language's own primitives, which say nothing of
 * a program: it is counted for the first function of the program above them. Used by every table of functions: top,
 * query, diff and serve. Thread: any.
 */
#ifndef SB_MODEL_OWNER_H
#define SB_MODEL_OWNER_H

#include <stddef.h>

#include "model/profile.h"

/* A stack, root first, wherever it is kept. */
struct sb_owner_path {
	/* Return: the name of frame @i, below nr; its kind in *ret_kind. */
	const char *(*frame_at)(const void *arg, size_t i, enum sb_frame_kind *ret_kind);
	const void *arg;
	size_t nr; /* 1 or more */
};

/* Return: the frame that owns the stack's weight, below path->nr. */
size_t sb_owner_find(const struct sb_owner_path *path);

#endif
