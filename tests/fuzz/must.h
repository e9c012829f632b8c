/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a fuzzer holds to be true of any input. The line is said: frames of abort() are folded into
 * one. */
#ifndef FUZZ_MUST_H
#define FUZZ_MUST_H

#include <stdio.h>
#include <stdlib.h>

#define must(holds)                                                                                \
	do {                                                                                       \
		if (!(holds)) {                                                                    \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #holds); \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#endif
