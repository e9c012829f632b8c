// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Paths of cgroups, which are named by who may make them: the container is that of the last 64
 * digits. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cgroup.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_digit(const char *path, size_t len, size_t at)
{
	return at < len && isxdigit((unsigned char)path[at]);
}

/* Do 64 digits, and no more, begin at @at? */
static bool is_id(const char *path, size_t len, size_t at)
{
	size_t i;

	for (i = 0; i < 64; i++)
		if (!is_digit(path, len, at + i))
			return false;
	return !is_digit(path, len, at + 64) && !(at && is_digit(path, len, at - 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *path = strndup((const char *)data, size);
	struct sb_str found = {};
	const char *want = NULL;
	size_t i, len;

	must(path);
	len = strlen(path);
	for (i = 0; i < len; i++)
		if (is_id(path, len, i))
			want = path + i;
	must(!sb_str_add(&found, "x"));
	must(sb_cgroup_container(path, &found) == (want ? 0 : -ENOENT));
	must(found.len == (want ? 13 : 1) && (!want || !memcmp(found.s + 1, want, 12)));
	sb_str_release(&found);
	free(path);
	return 0;
}
