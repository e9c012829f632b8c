// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* perf script text: the format is settled by a first sample. */
#include "fg_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_input("a 1 1.1: 1 cycles:\n\t 1 f (/a)\n\n", data, size);
	return 0;
}
