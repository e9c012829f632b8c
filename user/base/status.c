// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/status.h"

#include <string.h>

#include "base/num.h"

/* What follows the colon of the line, or NULL. */
static const char *value_of(const char *status, const char *key)
{
	size_t len = strlen(key);
	const char *line;

	for (line = status; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, len) && line[len] == ':')
			return line + len + 1;
	}
	return NULL;
}

size_t sb_status_numbers(const char *status, const char *key, uint64_t *ret_nums, size_t max)
{
	const char *p = value_of(status, key), *end;
	uint64_t num;
	size_t nr = 0;

	if (!p)
		return 0;
	end = p + strcspn(p, "\n");
	for (;;) {
		while (p < end && (*p == ' ' || *p == '\t'))
			p++;
		if (!sb_scan_u64(&p, end, &num))
			return nr;
		if (nr < max)
			ret_nums[nr] = num;
		nr++;
	}
}
