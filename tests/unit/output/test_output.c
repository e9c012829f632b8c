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

#include "flamegraph/fg.h"
#include "folded_line.h"
#include "output/input.h"
#include "output/jsontext.h"
#include "output/output.h"
#include "read_meta.h"

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
	read_meta(profile, "kind", "oncpu");
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

/* A store that somebody else wrote can have one. */
static void test_no_frames(void **state)
{
	const struct sb_output_opts plain = {};
	const struct sb_output *output;
	struct sb_profile *all = profile;
	char *text;
	size_t i;

	assert_int_equal(sb_profile_new(&profile), 0);
	add(NULL, 0, 5);
	assert_int_equal(sb_profile_seal(profile), 0);
	for (i = 0; (output = sb_output_at(i)); i++) {
		if (output->needs_durations)
			continue;
		text = written(output->name, &plain);
		assert_true(text[0]);
		free(text);
	}
	text = written("folded", &plain);
	assert_string_equal(text, "[no stack] 5\n");
	free(text);
	text = written("svg", &plain);
	assert_non_null(strstr(text, "[no stack]"));
	free(text);
	sb_profile_free(profile);
	profile = all;
}

/* Readers take a line that begins with # for a comment, and a process may have any name. */
static void test_no_comment(void **state)
{
	const struct sb_output_opts plain = {};
	const struct sb_frame frames[] = { { .name = "#stackbpf;lost=9" }, { .name = "#f" } };
	struct sb_profile *all = profile;
	char *text;

	assert_int_equal(sb_profile_new(&profile), 0);
	add(frames, 2, 3);
	assert_int_equal(sb_profile_seal(profile), 0);
	text = written("folded", &plain);
	assert_string_equal(text, "?stackbpf:lost=9;#f 3\n");
	free(text);
	sb_profile_free(profile);
	profile = all;
}

/* The form stackcollapse-stap.pl reads: leaf first, then a tab and the count. */
static void test_bt(void **state)
{
	const struct sb_output_opts one = { .fold = { .limit = 1 } };
	char *text = written("bt", &one);

	assert_string_equal(text, " vfs_read\n -\n [libc.so.6+0x12]\n inl\n main\n my app\n\t41\n");
	free(text);
}

/* Kinds of their own: a file is no code and has no place; a waker is code. */
static void test_annotations(void **state)
{
	static const struct {
		struct sb_frame frame;
		const char *plain, *all;
	} cases[] = {
		{ { .name = "/tmp/a;b", .kind = SB_FRAME_FILE }, "/tmp/a:b", "/tmp/a:b_[f]" },
		{ { .name = "[pipe]", .kind = SB_FRAME_FILE, .module = "x" },
		  "[pipe]",
		  "[pipe]_[f]" },
		{ { .name = "up", .kind = SB_FRAME_WAKER, .module = "m", .func_offset = 1 },
		  "up",
		  "up+0x1 [m]_[w]" },
		{ { .name = "[idle: epoll]", .kind = SB_FRAME_MARK },
		  "[idle: epoll]",
		  "[idle: epoll]" },
	};
	const struct sb_fold_opts plain = {},
				  all = { .annotate = true, .modules = true, .offsets = true };
	struct sb_str str = {};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		sb_str_clear(&str);
		assert_int_equal(sb_fold_frame(&str, &cases[i].frame, &plain), 0);
		assert_string_equal(str.s, cases[i].plain);
		sb_str_clear(&str);
		assert_int_equal(sb_fold_frame(&str, &cases[i].frame, &all), 0);
		assert_string_equal(str.s, cases[i].all);
	}
	sb_str_release(&str);
}

/* Add @nr_events durations of bucket @log2 to the row of these frames. */
static int add_log2(struct sb_profile *to, const uint32_t *ids, size_t nr, uint64_t weight,
		    uint32_t log2, uint64_t nr_events)
{
	const struct sb_row row = { .frames = ids,
				    .nr = nr,
				    .log2_ns = log2 + 1,
				    .weight = weight,
				    .nr_samples = nr_events };

	return sb_profile_add_row(to, &row);
}

/* Ranges against the powers themselves: 2^10 ns is 1.02 us. */
static void test_distr(void **state)
{
	const struct sb_output_opts all = { .fold = { .header = true } },
				    one = { .fold = { .limit = 1 } };
	struct sb_profile *outer = profile;
	uint32_t ids[2];
	char *text;

	assert_int_equal(sb_profile_new(&profile), 0);
	sb_profile_frame(profile, &(struct sb_frame){ .name = "app", .kind = SB_FRAME_ROOT },
			 &ids[0]);
	sb_profile_frame(profile, &(struct sb_frame){ .name = "f", .kind = SB_FRAME_USER },
			 &ids[1]);
	assert_int_equal(add_log2(profile, ids, 2, 5000000, 10, 40), 0);
	assert_int_equal(add_log2(profile, ids, 2, 6000000, 12, 10), 0);
	assert_int_equal(add_log2(profile, ids, 1, 3000000, 0, 1), 0);
	assert_int_equal(add_log2(profile, ids, 1, 3000000, 30, 1), 0);
	assert_int_equal(sb_profile_add(profile, &ids[1], 1, 1000000), 0);
	assert_int_equal(sb_profile_scale_by(profile, 1, 1000), 0);
	assert_int_equal(sb_profile_seal(profile), 0);
	read_meta(profile, "unit", "us");

	text = written("distr", &one);
	assert_non_null(strstr(text, "all stacks 18000 us, 52 times\n"));
	assert_null(strstr(text, "app 6000"));
	free(text);
	text = written("distr", &all);
	assert_ptr_equal(strstr(text, "#stackbpf;v=1;unit=us\nall stacks 18000 us, 52 times\n"),
			 text);
	assert_non_null(strstr(
		text,
		"\n\napp;f 11000\n"
		"       from         to   : count      distribution\n"
		"    1.02 us ->   2.05 us : 40         |****************************************|\n"
		"    2.05 us ->   4.10 us : 0          |                                        |\n"
		"    4.10 us ->   8.19 us : 10         |**********                              |\n"
		"\napp 6000\n"));
	assert_non_null(strstr(text, "\n       0 ns ->      2 ns : 1 "));
	assert_non_null(strstr(text, "\n    1.07 s  ->   2.15 s  : 1 "));
	/* A stack without durations: its weight alone. */
	assert_non_null(strstr(text, "|\n\nf 1000\n"));
	free(text);
	/* Of events, what they weigh. */
	read_meta(profile, "kind", "trace");
	text = written("distr", &all);
	assert_non_null(strstr(text, "\n       1 k  ->      2 k  : 40 "));
	assert_non_null(strstr(text, "\n       0    ->      2    : 1 "));
	assert_non_null(strstr(text, "\n       1 G  ->      2 G  : 1 "));
	free(text);
	text = written("json", &all);
	assert_non_null(strstr(text, "\"log2\":[[10,40],[12,10]]"));
	free(text);
	sb_profile_free(profile);
	profile = outer;
}

/* Of calls of several functions there is one of each, with all of its stacks. */
static void test_distr_functions(void **state)
{
	const struct sb_output_opts opts = { .fold = { .limit = 1 } };
	struct sb_profile *outer = profile;
	uint32_t app, ids[3];
	char *text;

	assert_int_equal(sb_profile_new(&profile), 0);
	sb_profile_frame(profile, &(struct sb_frame){ .name = "app", .kind = SB_FRAME_ROOT }, &app);
	sb_profile_frame(profile, &(struct sb_frame){ .name = "f", .kind = SB_FRAME_USER },
			 &ids[1]);
	sb_profile_frame(profile, &(struct sb_frame){ .name = "g", .kind = SB_FRAME_USER },
			 &ids[2]);
	ids[0] = app;
	assert_int_equal(add_log2(profile, ids, 2, 5000, 10, 4), 0);
	assert_int_equal(add_log2(profile, &ids[1], 1, 3000, 12, 1), 0);
	ids[1] = ids[2];
	assert_int_equal(add_log2(profile, ids, 2, 6000, 11, 3), 0);
	assert_int_equal(sb_profile_seal(profile), 0);
	text = written("distr", &opts);
	assert_null(strstr(text, "function"));
	free(text);
	read_meta(profile, "kind", "latency");
	text = written("distr", &opts);
	assert_non_null(strstr(text, "|\n\nfunction f 8000, 5 times\n"));
	assert_non_null(strstr(text, "|\n\nfunction g 6000, 3 times\n"));
	assert_true(strstr(text, "function f") < strstr(text, "function g"));
	free(text);
	sb_profile_free(profile);
	profile = outer;
}

/* Without durations it says so; without any stack there is nothing to miss. */
static void test_distr_without(void **state)
{
	const struct sb_output_opts opts = {};
	struct sb_profile *empty;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	assert_int_equal(sb_output_find("distr")->write(profile, &opts, out), -ENODATA);
	assert_int_equal(sb_profile_new(&empty), 0);
	assert_int_equal(sb_profile_seal(empty), 0);
	assert_int_equal(sb_output_find("distr")->write(empty, &opts, out), 0);
	fclose(out);
	assert_string_equal(text, "all stacks 0, 0 times\n");
	sb_profile_free(empty);
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
	assert_string_equal(sb_output_by_path("a.distr")->name, "distr");
	assert_null(sb_output_by_path("svg"));
	assert_null(sb_output_by_path(".svg"));
	assert_null(sb_output_by_path("a.png"));
	assert_null(sb_output_find("png"));
}

/* Commas, nesting, lines, what is escaped; brackets that are still open are closed at the end. */
static void test_json(void **state)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	struct sb_json json = { .put = sb_json_put_file, .arg = out };

	sb_json_object(&json, NULL);
	sb_json_object(&json, "empty");
	sb_json_close(&json);
	sb_json_rows(&json, "rows");
	sb_json_two(&json, NULL, 1, 2);
	sb_json_array(&json, NULL);
	sb_json_i64(&json, NULL, INT64_MIN);
	sb_json_double(&json, NULL, 0.5);
	sb_json_double(&json, NULL, 1.0 / 0.0);
	sb_json_close(&json);
	sb_json_close(&json);
	sb_json_string(&json, "a\"\n", "</b>\\\xff");
	sb_json_string(&json, "none", NULL);
	sb_json_string_if(&json, "left out", "");
	sb_json_array(&json, "open");
	sb_json_bool(&json, NULL, true);
	assert_int_equal(sb_json_end(&json), 0);
	fclose(out);
	assert_string_equal(text, "{\"empty\":{},\"rows\":[\n[1,2],\n"
				  "[-9223372036854775808,0.5,null]],"
				  "\"a\\\"\xef\xbf\xbd\":\"\\u003c/b>\\\\\xef\xbf\xbd\","
				  "\"none\":null,\"open\":[true]}\n");
	free(text);
}

/* Text tells a mark by its name, unless the name is annotated or the frame is code of an idle
 * thread. */
static void test_input(void **state)
{
	static const char line[] = "[idle];[lock: mutex]_[j];[idle: x]_[f];[running]_[m];"
				   "[blocked]_[c];[residual]_[u];[lock: gil];[stopped] 1";
	static const struct {
		enum sb_frame_kind kind;
		enum sb_attr_kind mark;
	} want[] = {
		{ SB_FRAME_MARK, SB_ATTR_ALL_IDLE },
		{ SB_FRAME_USER },
		{ SB_FRAME_FILE },
		{ SB_FRAME_MARK },
		{ SB_FRAME_USER },
		{ SB_FRAME_USER },
		{ SB_FRAME_MARK, SB_ATTR_LOCK },
		{ SB_FRAME_MARK, SB_ATTR_STOPPED },
	};
	struct sb_profile *read;
	struct sb_fg *fg;
	struct sb_row row;
	uint64_t nr_rounded;
	size_t i;

	assert_int_equal(sb_fg_new(&fg), 0);
	assert_int_equal(add_folded(fg, line, strlen(line)), 0);
	assert_int_equal(sb_input_profile(fg, &read, &nr_rounded), 0);
	assert_int_equal(nr_rounded, 0);
	row = sb_profile_row_at(read, 0);
	assert_int_equal(row.nr, sizeof(want) / sizeof(*want));
	for (i = 0; i < row.nr; i++) {
		const struct sb_frame *frame = sb_profile_frame_at(read, row.frames[i]);

		assert_int_equal(frame->kind, want[i].kind);
		assert_int_equal(frame->mark, want[i].mark);
	}
	sb_profile_free(read);
	sb_fg_free(fg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folded),	      cmocka_unit_test(test_no_comment),
		cmocka_unit_test(test_no_frames),     cmocka_unit_test(test_bt),
		cmocka_unit_test(test_annotations),   cmocka_unit_test(test_distr),
		cmocka_unit_test(test_distr_without), cmocka_unit_test(test_distr_functions),
		cmocka_unit_test(test_full_disk),     cmocka_unit_test(test_choice),
		cmocka_unit_test(test_json),	      cmocka_unit_test(test_input),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
