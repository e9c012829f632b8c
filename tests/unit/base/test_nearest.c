// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/nearest.h"

static void test_nearest(void **state)
{
	static const struct {
		const char *typed, *names[3], *expected;
	} rows[] = {
		{ "maloc", { "calloc", "malloc", "realloc" }, "malloc" },
		{ "mallco", { "malloc", "calloc" }, "malloc" }, /* two neighbours swapped */
		{ "fsnyc", { "fsync", "fsyncs" }, "fsync" },
		{ "off", { "offwake", "offcpu" }, "offcpu" }, /* an abbreviation of both */
		{ "of", { "offcpu" }, NULL },		      /* too short for one */
		{ "abcdef", { "uvwxyz", "abcxyz" }, NULL },
		{ "", { "a" }, NULL },
		/* As long as functions of C++ are. */
		{ "_ZN9_gnu_cxx13new_allocatorIcE8allocateEmPKv",
		  { "_ZN9__gnu_cxx13new_allocatorIcE10deallocateEPcm",
		    "_ZN9__gnu_cxx13new_allocatorIcE8allocateEmPKv" },
		  "_ZN9__gnu_cxx13new_allocatorIcE8allocateEmPKv" },
	};
	struct sb_nearest nearest;
	size_t i, j;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		nearest = (struct sb_nearest){ .typed = rows[i].typed };
		for (j = 0; j < 3 && rows[i].names[j]; j++)
			sb_nearest_offer(&nearest, rows[i].names[j]);
		if (rows[i].expected)
			assert_string_equal(nearest.name, rows[i].expected);
		else
			assert_null(nearest.name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_nearest) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
