/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Behind <cmocka.h>: a test whose truth valgrind changes (it maps libraries of its own, keeps
 * descriptors back, ends a process later than a parser is waited for). tests/analyze/analyze.py
 * says that it is there. */
#ifndef SB_UNIT_UNDER_VALGRIND_H
#define SB_UNIT_UNDER_VALGRIND_H

#include <stdlib.h>

static inline void not_under_valgrind(void)
{
	if (getenv("STACKBPF_UNDER_VALGRIND"))
		skip();
}

#endif
