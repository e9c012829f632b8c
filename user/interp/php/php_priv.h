/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* PHP: php_layout.c finds where things lie, php.c names frames. Shared by the two. Called on any
 * thread, with the lock of struct sb_interp held. No argument is NULL. After an error
 * out-parameters mean nothing, and strings may have a part appended. attach() calls
 * sb_php_layout(), then sb_php_find_jit(); later calls of look_again() are sb_php_find_jit(). */
#ifndef SB_INTERP_PHP_PRIV_H
#define SB_INTERP_PHP_PRIV_H

#include <stdint.h>

#include "interp/core/runtime.h"

/* Fill in rt->conf, rt->version and rt->anchors. Return: 0; -EAGAIN: PHP has not begun yet, or its
 * memory cannot be read; -ENOTSUP: the layout is not known, and rt->why, which belongs to @rt, says
 * why; -ENOMEM. attach() returns the same. */
int sb_php_layout(struct sb_runtime *rt);
/* Find the code of opcache's JIT in rt->maps, and update conf, anchors and rt->code. It grows while
 * the process runs. With rt->maps set; nothing changes if no code is found. */
void sb_php_find_jit(struct sb_runtime *rt);
/*
 * Implements describe() of struct sb_runtime_ops: append name and file of @frame to @text, and set
 * the line. It may sleep a few times, for a function that is just being made again. Return: 0;
 * -EFAULT, -ESRCH or -EPERM: unreadable; -EBADMSG: there is no code object; -ENODATA: it has no
 * name of its own; -ENOMEM.
 */
int sb_php_describe(struct sb_runtime *rt, const struct sb_interp_frame *frame,
		    struct sb_runtime_text *text);

#endif
