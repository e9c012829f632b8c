// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Folded text, or whatever its first bytes look like. */
#include "fg_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_input("", data, size);
	return 0;
}
