// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/vec.h"

static void test_push(void **state)
{
	SB_VEC(struct pair {
		uint32_t a;
		char b;
	})
	v = {};
	uint32_t i;

	for (i = 0; i < 10000; i++)
		assert_int_equal(sb_vec_push(&v, (struct pair){ .a = i, .b = (char)i }), 0);
	assert_int_equal(v.nr, 10000);
	assert_true(v.cap >= v.nr);
	for (i = 0; i < 10000; i++) {
		assert_int_equal(v.at[i].a, i);
		assert_int_equal(v.at[i].b, (char)i);
	}
	sb_vec_release(&v);
	assert_null(v.at);
	assert_int_equal(v.nr, 0);
	assert_int_equal(v.cap, 0);
	assert_int_equal(sb_vec_push(&v, (struct pair){ .a = 7 }), 0);
	assert_int_equal(v.at[0].a, 7);
	sb_vec_release(&v);
}

static void test_reserve(void **state)
{
	SB_VEC(uint64_t) v = {};
	uint64_t *at;
	size_t cap;

	assert_int_equal(sb_vec_reserve(&v, 0), 0);
	assert_null(v.at);
	assert_int_equal(sb_vec_reserve(&v, 100), 0);
	assert_true(v.cap >= 100);
	assert_int_equal(v.nr, 0);
	at = v.at;
	cap = v.cap;
	assert_int_equal(sb_vec_reserve(&v, 100), 0);
	assert_ptr_equal(v.at, at);
	assert_int_equal(sb_vec_reserve(&v, SIZE_MAX / 8), -ENOMEM); /* the product overflows */
	assert_int_equal(sb_vec_reserve(&v, SIZE_MAX), -ENOMEM);
	assert_ptr_equal(v.at, at);
	assert_int_equal(v.cap, cap);
	sb_vec_release(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_push),
		cmocka_unit_test(test_reserve),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
