// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static unsigned int nr_calls;

static void count_free(void *p)
{
	nr_calls++;
	free(p);
}

/* What the functions of the header call. */
#define free count_free
#include "base/cleanup.h"
#undef free

/* A run that probes free() must not pay for each pointer of its own that is NULL. */
static void test_nothing_to_free(void **state)
{
	{
		sb_cleanup(sb_freep) char *nothing = NULL;

		(void)state;
		assert_null(nothing);
	}
	assert_int_equal(nr_calls, 0);
	{
		sb_cleanup(sb_freep) char *something = malloc(1);

		assert_non_null(something);
	}
	assert_int_equal(nr_calls, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_to_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
