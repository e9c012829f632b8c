/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Perl: perl.c finds where things lie, perl_loop.c its main loop, perl_names.c names frames. Shared
 * by them. Called on any thread, with the lock of struct sb_interp held. No argument is NULL. After
 * an error out-parameters mean nothing, strings may have a part appended, and the call can be
 * repeated. What sb_memory_read() returned is -EFAULT, -ESRCH or -EPERM. attach() fills in
 * rt->conf, and calls sb_perl_find_loop(), which calls sb_perl_entertry(). */
#ifndef SB_INTERP_PERL_PRIV_H
#define SB_INTERP_PERL_PRIV_H

#include "interp/core/runtime.h"

#include "bpf/step/sb_step_perl.h"

/* rt->state */
struct sb_perl {
	uint32_t minor; /* 36 of version 5.36.0 */
	bool has_threads;
};

/*
 * Implements describe() of struct sb_runtime_ops: append name and file of @frame to @text, and set
 * the line. Return: 0; -EFAULT, -ESRCH or -EPERM: unreadable; -EBADMSG: there is no code object;
 * -ENODATA: it has no name of its own; -ENOMEM.
 */
int sb_perl_describe(struct sb_runtime *rt, const struct sb_interp_frame *frame,
		     struct sb_runtime_text *text);

/* Find the loop and its callers: sets rt->anchors, rt->callers and rt->inner. What is not found
 * stays empty. */
void sb_perl_find_loop(struct sb_runtime *rt);

/* Find the function that implements the operation "entertry" (pp_entertry). Return: 0; -ENOENT: it
 * was not found; -ENOMEM; or what sb_memory_read() returned. At most SB_PERL_OPS_MAX operations are
 * looked at. */
#define SB_PERL_OPS_MAX 1024u
int sb_perl_entertry(struct sb_runtime *rt, uint64_t *ret_addr);

#endif
