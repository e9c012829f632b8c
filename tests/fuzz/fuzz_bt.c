// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* SystemTap backtraces: the format is settled by a first stack. */
#include "fg_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_input(" 0x1 : f+0x1/0x2 [m]\n\t1\n", data, size);
	return 0;
}
