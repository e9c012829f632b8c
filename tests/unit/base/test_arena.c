// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/arena.h"

/* Objects of all sizes side by side: aligned, disjoint, and untouched by what came later. */
static void test_disjoint(void **state)
{
	enum { NR = 3000 };
	static unsigned char *at[NR];
	static size_t len[NR];
	struct sb_arena arena = {};
	size_t i, j;

	for (i = 0; i < NR; i++) {
		/* Every 97th is beyond what a shared block takes. */
		len[i] = i % 97 ? i * 7 % 300 : 20000 + i * 50;
		at[i] = sb_arena_alloc(&arena, len[i]);
		assert_non_null(at[i]);
		assert_int_equal((uintptr_t)at[i] % 8, 0);
		memset(at[i], (int)(i & 0xff), len[i]);
	}
	for (i = 0; i < NR; i++)
		for (j = 0; j < len[i]; j++)
			assert_int_equal(at[i][j], i & 0xff);
	sb_arena_release(&arena);
}

static void test_accounts(void **state)
{
	struct sb_arena arena = {};
	size_t before;

	assert_int_equal(arena.nr_bytes, 0);
	assert_non_null(sb_arena_alloc(&arena, 100));
	before = arena.nr_bytes;
	assert_true(before >= 100);
	assert_true(before < 2048); /* there may be thousands of arenas with a few names each */
	assert_non_null(sb_arena_alloc(&arena, 100)); /* from the same block */
	assert_int_equal(arena.nr_bytes, before);
	/* A big object does not take away the room that the current block still has. */
	assert_non_null(sb_arena_alloc(&arena, 1000000));
	assert_true(arena.nr_bytes >= before + 1000000);
	before = arena.nr_bytes;
	assert_non_null(sb_arena_alloc(&arena, 100));
	assert_int_equal(arena.nr_bytes, before);
	sb_arena_release(&arena);
	assert_null(arena.blocks);
	assert_int_equal(arena.nr_bytes, 0);
	sb_arena_release(&arena);
}

static void test_strings(void **state)
{
	struct sb_arena arena = {};
	char *s = sb_arena_strndup(&arena, "abcdef", 3);

	assert_string_equal(s, "abc");
	assert_memory_equal(sb_arena_strndup(&arena, "a\0b", 3), "a\0b", 4);
	assert_string_equal(sb_arena_strndup(&arena, "x", 0), "");
	assert_string_equal(s, "abc");
	sb_arena_release(&arena);
}

static void test_too_big(void **state)
{
	struct sb_arena arena = {};

	assert_null(sb_arena_alloc(&arena, SIZE_MAX));
	assert_null(sb_arena_alloc(&arena, SIZE_MAX - 7));
	assert_null(sb_arena_alloc(&arena, SIZE_MAX - 16));
	assert_null(sb_arena_strndup(&arena, "", SIZE_MAX));
	assert_int_equal(arena.nr_bytes, 0);
	assert_non_null(sb_arena_alloc(&arena, 0));
	sb_arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_disjoint),
		cmocka_unit_test(test_accounts),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_too_big),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
