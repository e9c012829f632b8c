// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Folded text and the outputs built on it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "output/output.h"

static struct sb_profile *profile;

static void add(const struct sb_frame *frames, size_t nr, uint64_t weight)
{
	uint32_t ids[16];
	size_t i;

	for (i = 0; i < nr; i++)
		assert_int_equal(sb_profile_frame(profile, &frames[i], &ids[i]), 0);
	assert_int_equal(sb_profile_add(profile, ids, nr, weight), 0);
}

static int setup(void **state)
{
	const struct sb_frame frames[] = {
		{ .name = "my app", .kind = SB_FRAME_ROOT },
		{ .name = "main",
		  .kind = SB_FRAME_USER,
		  .module = "app",
		  .file = "/usr/src/a.c",
		  .line = 7,
		  .func_offset = 0x1f },
		{ .name = "inl", .kind = SB_FRAME_INLINED, .module = "app" },
		{ .name = "[libc.so.6+0x12]",
		  .kind = SB_FRAME_USER,
		  .module = "libc.so.6",
		  .is_unnamed = true },
		{ .name = "-", .kind = SB_FRAME_DELIMITER },
		{ .name = "vfs_read", .kind = SB_FRAME_KERNEL, .module = "[kernel]" },
	};
	const struct sb_frame evil[] = {
		{ .name = "a;b\n\tc 12", .kind = SB_FRAME_ROOT },
	};

	if (sb_profile_new(&profile))
		return -1;
	add(frames, 6, 41);
	add(evil, 1, 1);
	sb_profile_meta(profile, "kind", "oncpu");
	sb_profile_meta(profile, "title", "two words; and more");
	return sb_profile_seal(profile);
}

static int teardown(void **state)
{
	sb_profile_free(profile);
	return 0;
}

static char *written(const char *format, const struct sb_output_opts *opts)
{
	const struct sb_output *output = sb_output_find(format);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(output);
	assert_non_null(out);
	assert_int_equal(output->write(profile, opts, out), 0);
	fclose(out);
	return text;
}

static void test_folded(void **state)
{
	const struct sb_output_opts plain = {};
	const struct sb_output_opts all = { .fold = { .annotate = true,
						      .lines = true,
						      .modules = true,
						      .offsets = true,
						      .header = true } };
	const struct sb_output_opts one = { .fold = { .limit = 1 } };
	char *text = written("folded", &plain);

	assert_string_equal(text, "my app;main;inl;[libc.so.6+0x12];-;vfs_read 41\n"
				  "a:b??c 12 1\n");
	free(text);
	text = written("folded", &all);
	assert_string_equal(text, "#stackbpf;v=1;kind=oncpu;title=two_words:_and_more\n"
				  "my app;main+0x1f a.c:7 [app];inl [app]_[i];[libc.so.6+0x12];-;"
				  "vfs_read+0x0 [kernel]_[k] 41\n"
				  "a:b??c 12 1\n");
	free(text);
	text = written("folded", &one);
	assert_string_equal(text, "my app;main;inl;[libc.so.6+0x12];-;vfs_read 41\n");
	free(text);
}

/* The form stackcollapse-stap.pl reads: leaf first, then a tab and the count. */
static void test_bt(void **state)
{
	const struct sb_output_opts one = { .fold = { .limit = 1 } };
	char *text = written("bt", &one);

	assert_string_equal(text, " vfs_read\n -\n [libc.so.6+0x12]\n inl\n main\n my app\n\t41\n");
	free(text);
}

static void test_full_disk(void **state)
{
	const struct sb_output_opts opts = {};
	FILE *out = fopen("/dev/full", "w");

	assert_non_null(out);
	setvbuf(out, NULL, _IONBF, 0);
	assert_int_equal(sb_output_find("folded")->write(profile, &opts, out), -EIO);
	fclose(out);
}

static void test_choice(void **state)
{
	assert_string_equal(sb_output_by_path("a.svg")->name, "svg");
	assert_string_equal(sb_output_by_path("/tmp/x.folded")->name, "folded");
	assert_null(sb_output_by_path("svg"));
	assert_null(sb_output_by_path(".svg"));
	assert_null(sb_output_by_path("a.png"));
	assert_null(sb_output_find("png"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_bt),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_choice),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
