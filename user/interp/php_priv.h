/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by php.c (names) and php_layout.c (where things lie). */
#ifndef SB_INTERP_PHP_PRIV_H
#define SB_INTERP_PHP_PRIV_H

#include <stdint.h>

#include "interp/runtime.h"

/* Fill in conf, version and anchors. Return: as ops->attach(). */
int sb_php_layout(struct sb_runtime *rt);
/* The code of opcache's JIT: where it is, as of now. */
void sb_php_find_jit(struct sb_runtime *rt);
/* ops->describe(). */
int sb_php_describe(struct sb_runtime *rt, const struct sb_interp_frame *frame,
		    struct sb_runtime_text *text);

#endif
