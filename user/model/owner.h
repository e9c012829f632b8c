/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the function of a stack to which tables of functions attribute the stack's own weight. On a
 * CPU this is the leaf. A wait ends in the kernel's scheduler, below primitives of the C library
 * and the language that say nothing about the program, so it is attributed to the first function of
 * the program above them. Used by all tables of functions: top, query, diff and serve. Thread: any;
 * it keeps nothing, and calls frame_at() on the same thread. Pointers are not NULL, but for @arg.
 */
#ifndef SB_MODEL_OWNER_H
#define SB_MODEL_OWNER_H

#include <stddef.h>

#include "model/profile.h"

/* What counts of a frame. */
struct sb_owner_frame {
	const char *name; /* valid until sb_owner_find() returns */
	enum sb_frame_kind kind;
	uint8_t mark; /* as in struct sb_frame */
};

/* A stack, root first, in any representation. */
struct sb_owner_path {
	/* Called several times for a frame. Return: frame @i. */
	struct sb_owner_frame (*frame_at)(const void *arg, size_t i);
	const void *arg;
	size_t nr; /* 1 or more */
};

/* Return: the index of the frame to which the weight is attributed, less than path->nr, which is at
 * least 1: the last one if the stack is no wait, or has no function. */
size_t sb_owner_find(const struct sb_owner_path *path);

#endif
