/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Perl: shared by perl.c (where things lie), perl_loop.c (its loop), perl_names.c (what frames are called). */
#ifndef SB_INTERP_PERL_PRIV_H
#define SB_INTERP_PERL_PRIV_H

#include "interp/runtime.h"
#include "interp/step.h"
#include "sb_step_perl.h"

/* Of one process: struct sb_runtime.state. */
struct sb_perl {
	uint32_t minor; /* 36 of 5.36.0 */
	bool has_threads;
};

/* ops->describe(). */
int sb_perl_describe(struct sb_runtime *rt, const struct sb_interp_frame *frame,
		     struct sb_runtime_text *text);

/* Fills in rt->anchors, rt->callers, rt->inner, as far as they can be told. */
void sb_perl_find_loop(struct sb_runtime *rt);

/* The function that does the operation "entertry". Return: 0, -ENOENT, -EFAULT, -ENOMEM. */
#define SB_PERL_OPS_MAX 1024u
int sb_perl_entertry(struct sb_runtime *rt, uint64_t *ret_addr);

#endif
