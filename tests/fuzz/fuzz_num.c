// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The option parsers: no crash, and what they accept means what the C library says it means. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(bool ok)
{
	if (!ok)
		abort();
}

static void check_list(const char *s)
{
	sb_vec_u32 list = {}, again = {};
	char text[24];
	size_t i;

	if (!sb_parse_list(s, 10000, &list)) {
		check(list.nr > 0 && list.nr <= 65536);
		for (i = 0; i < list.nr; i++) {
			check(list.at[i] <= 10000);
			snprintf(text, sizeof(text), "%u", list.at[i]);
			check(!sb_parse_list(text, 10000, &again));
		}
		check(again.nr == list.nr);
		check(!memcmp(again.at, list.at, list.nr * sizeof(*list.at)));
	} else {
		check(list.nr == 0);
	}
	sb_vec_release(&list);
	sb_vec_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint64_t val;
	char *s, *end;

	s = strndup((const char *)data, len);
	if (!s)
		return 0;
	if (!sb_parse_u64(s, UINT64_MAX, &val))
		check(val == strtoull(s, &end, 10) && !*end);
	if (!sb_parse_hex(s, &val))
		check(val == strtoull(s, &end, 16) && !*end);
	if (!sb_parse_duration(s, 1000000000, &val))
		check((double)val >= strtod(s, NULL) - 1);
	if (!sb_parse_bytes(s, &val))
		check(val >= strtoull(s, NULL, 10));
	check_list(s);
	free(s);
	return 0;
}
