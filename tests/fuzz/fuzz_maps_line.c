// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A line of /proc/PID/maps: what is accepted keeps its promises. */
#include <stdlib.h>
#include <string.h>

#include "symbolizer/process/procfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sb_maps_line line;
	const char *text = (const char *)data;

	if (!sb_maps_line_parse(text, size, &line))
		return 0;
	if (line.start >= line.end || line.path < text ||
	    line.path + line.path_len != text + size || memchr(line.path, '\0', line.path_len))
		abort();
	return 0;
}
