// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* top without a run and without a terminal: sums, keys, what stands on the screen. */
#include <errno.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cli/term.h"
#include "cli/top.h"
#include "model/fold.h"

/* "comm;a;b:3": frames of user code below a root, those in brackets are marks. Return: a sealed
 * profile. */
static struct sb_profile *profile_of(const char *const *lines, size_t nr_lines)
{
	struct sb_profile *profile;
	size_t i, nr;

	assert_int_equal(sb_profile_new(&profile), 0);
	for (i = 0; i < nr_lines; i++) {
		char *line = strdup(lines[i]), *rest = strrchr(line, ':'), *name, *next = line;
		uint64_t weight = strtoull(rest + 1, NULL, 10);
		uint32_t ids[16];

		*rest = '\0';
		for (nr = 0; (name = strsep(&next, ";")); nr++) {
			struct sb_frame frame = { .name = name, .module = "/lib/mod.so" };

			frame.kind = !nr	      ? SB_FRAME_ROOT
				     : name[0] == '[' ? SB_FRAME_MARK
						      : SB_FRAME_USER;
			frame.mark = name[0] == '[' ? (uint8_t)sb_fold_mark_kind(name) : 0;
			assert_int_equal(sb_profile_frame(profile, &frame, &ids[nr]), 0);
		}
		assert_int_equal(sb_profile_add(profile, ids, nr, weight), 0);
		free(line);
	}
	assert_int_equal(sb_profile_seal(profile), 0);
	return profile;
}

static void add(struct sb_top *top, const char *const *lines, size_t nr_lines)
{
	struct sb_profile *profile = profile_of(lines, nr_lines);

	assert_int_equal(sb_top_data_add(&top->data, profile, 1000000000), 0);
	sb_profile_free(profile);
}

#define ADD(top, ...)                                    \
	add((top), (const char *const[]){ __VA_ARGS__ }, \
	    sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

static struct sb_top top_of(size_t nr_slots)
{
	return (struct sb_top){
		.data.nr_slots = nr_slots,
		.metadata = { .kind = "oncpu", .unit = "samples", .targets = "all", .divisor = 1 },
	};
}

static const struct sb_top_func *find(const struct sb_top *top, const char *name)
{
	size_t i;

	for (i = 0; i < top->data.funcs.nr; i++)
		if (!strcmp(sb_top_name(top, &top->data.funcs.at[i]), name))
			return &top->data.funcs.at[i];
	return NULL;
}

static void check(const struct sb_top *top, const char *name, uint64_t self, uint64_t total,
		  uint64_t self_all, uint64_t total_all)
{
	const struct sb_top_func *func = find(top, name);

	assert_non_null(func);
	assert_int_equal(func->self[SB_TOP_RECENT], self);
	assert_int_equal(func->total[SB_TOP_RECENT], total);
	assert_int_equal(func->self[SB_TOP_ALL], self_all);
	assert_int_equal(func->total[SB_TOP_ALL], total_all);
}

/* The last two periods are the recent ones. */
static void test_spans(void **state)
{
	struct sb_top top = top_of(2);

	ADD(&top, "p;main;work:10", "p;main:1");
	ADD(&top, "p;main;work:5", "q;main;rest:2");
	ADD(&top, "p;main;rest:3");
	assert_int_equal(sb_top_update(&top), 0);
	check(&top, "main", 0, 10, 1, 21);
	check(&top, "work", 5, 5, 15, 15);
	check(&top, "rest", 5, 5, 5, 5);
	assert_null(find(&top, "p"));
	assert_int_equal(top.data.weight[SB_TOP_RECENT], 10);
	assert_int_equal(top.data.weight[SB_TOP_ALL], 21);
	assert_int_equal(top.data.ns[SB_TOP_RECENT], 2000000000);
	assert_int_equal(top.data.ns[SB_TOP_ALL], 3000000000);
	sb_top_release(&top);
}

/* Recursion counts once; what is said of a leaf is its leaf's; a stack of marks only is one of its
 * own. */
static void test_whose(void **state)
{
	struct sb_top top = top_of(1);

	ADD(&top, "p;a;b;a;b:4", "p;a;[idle: epoll]:3", "p;[lost stack]:2");
	assert_int_equal(sb_top_update(&top), 0);
	check(&top, "a", 3, 7, 3, 7);
	check(&top, "b", 4, 4, 4, 4);
	check(&top, "[lost stack]", 2, 2, 2, 2);
	assert_null(find(&top, "[idle: epoll]"));
	sb_top_release(&top);
}

/* There is a bound, and no weight is lost to it. */
static void test_bound(void **state)
{
	struct sb_top top = top_of(1);
	const struct sb_top_func *other;
	char line[32];
	const char *at = line;
	int i;

	top.data.stacks_max = 100;
	for (i = 0; i < 500; i++) {
		snprintf(line, sizeof(line), "p;heavy:5");
		add(&top, &at, 1);
		snprintf(line, sizeof(line), "p;f%d:1", i);
		add(&top, &at, 1);
		assert_true(sb_profile_nr_stacks(top.data.all) <= 100);
	}
	assert_int_equal(sb_top_update(&top), 0);
	assert_int_equal(top.data.weight[SB_TOP_ALL], 500 * 5 + 500);
	check(&top, "heavy", 0, 0, 2500, 2500);
	other = find(&top, "(other)");
	assert_non_null(other);
	assert_true(other->total[SB_TOP_ALL] >= 350);
	assert_true(top.data.nr_shed > 0);
	sb_top_release(&top);
}

/* Frames of stacks that have gone are not carried along. */
static void test_frames(void **state)
{
	struct sb_top top = top_of(1);
	struct sb_profile *profile;
	char name[16];
	uint32_t id;
	int i;

	assert_int_equal(sb_profile_new(&profile), 0);
	for (i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		assert_int_equal(
			sb_profile_frame(profile,
					 &(struct sb_frame){ .name = name, .kind = SB_FRAME_USER },
					 &id),
			0);
	}
	assert_int_equal(sb_profile_add(profile, &id, 1, 7), 0);
	assert_int_equal(sb_profile_seal(profile), 0);
	assert_int_equal(sb_top_data_add(&top.data, profile, 1), 0);
	assert_int_equal(sb_profile_nr_frames(top.data.slots[0]), 1);
	assert_int_equal(sb_profile_nr_frames(top.data.all), 1);
	assert_int_equal(sb_top_update(&top), 0);
	check(&top, "f99", 7, 7, 7, 7);
	sb_profile_free(profile);
	sb_top_release(&top);
}

/* The text of a row, without the blanks at its end. */
static const char *row_of(const struct sb_canvas *canvas, int row)
{
	static char text[SB_CANVAS_MAX * 8];
	size_t len = 0;
	int col;

	for (col = 0; col < canvas->nr_cols; col++) {
		const char *cell = canvas->cells[row * canvas->nr_cols + col].text;

		memcpy(text + len, cell, strlen(cell));
		len += strlen(cell);
	}
	while (len && text[len - 1] == ' ')
		len--;
	text[len] = '\0';
	return text;
}

static void draw(struct sb_top *top, int nr_cols, int nr_rows)
{
	top->canvas.nr_cols = nr_cols;
	top->canvas.nr_rows = nr_rows;
	assert_int_equal(sb_top_draw(top), 0);
}

static void press(struct sb_top *top, const char *keys)
{
	for (; *keys; keys++)
		assert_int_equal(sb_top_press(top, *keys), 0);
}

static void test_list(void **state)
{
	struct sb_top top = top_of(1);

	ADD(&top, "p;main;alpha;beta:60", "p;main;alpha:30", "p;main;gamma:10");
	assert_int_equal(sb_top_update(&top), 0);
	draw(&top, 80, 24);
	assert_string_equal(
		row_of(&top.canvas, 4),
		"  60.00   60.00    60.00   60.00  beta                          mod.so");
	assert_non_null(strstr(row_of(&top.canvas, 5), " alpha "));
	/* The name of a function has room, whatever else has not. */
	draw(&top, 55, 24);
	assert_string_equal(row_of(&top.canvas, 4), "  60.00   60.00    60.00   60.00  beta");
	draw(&top, 40, 10);
	assert_string_equal(row_of(&top.canvas, 3), "* SELF%  TOTAL%  FUNCTION");
	assert_string_equal(row_of(&top.canvas, 4), "  60.00   60.00  beta");
	assert_null(strstr(row_of(&top.canvas, 2), "in all"));
	press(&top, "s");
	draw(&top, 80, 24);
	assert_non_null(strstr(row_of(&top.canvas, 4), " main "));
	press(&top, "/AM");
	draw(&top, 80, 24);
	assert_non_null(strstr(row_of(&top.canvas, 4), " gamma "));
	assert_string_equal(row_of(&top.canvas, 5), "");
	assert_string_equal(row_of(&top.canvas, 23), "/AM_");
	assert_int_equal(sb_top_press(&top, SB_KEY_ESCAPE), 0);
	assert_int_equal(sb_top_press(&top, SB_KEY_DOWN), 0);
	draw(&top, 80, 24);
	assert_non_null(strstr(row_of(&top.canvas, 4), " alpha "));
	press(&top, "r");
	draw(&top, 80, 24);
	assert_non_null(strstr(row_of(&top.canvas, 4), "nothing was sampled so far"));
	press(&top, "q");
	assert_true(top.is_over);
	sb_top_release(&top);
}

static void test_one_sample(void **state)
{
	struct sb_top top = top_of(1);

	ADD(&top, "p;main:1");
	assert_int_equal(sb_top_update(&top), 0);
	draw(&top, 80, 24);
	assert_non_null(strstr(row_of(&top.canvas, 2), " 1 sample;"));
	sb_top_release(&top);
}

/* 100 columns for 100 samples. */
static void test_tree(void **state)
{
	struct sb_top top = top_of(1);
	int i;

	ADD(&top, "p;main;alpha;beta:60", "p;main;alpha:10", "p;main;gamma:30");
	assert_int_equal(sb_top_update(&top), 0);
	press(&top, "f");
	draw(&top, 100, 24);
	assert_string_equal(row_of(&top.canvas, 4), "|all");
	assert_string_equal(row_of(&top.canvas, 6), "|main");
	assert_int_equal(strstr(row_of(&top.canvas, 7), "|gamma") - row_of(&top.canvas, 7), 70);
	assert_string_equal(row_of(&top.canvas, 8), "|beta");
	assert_int_equal(top.canvas.cells[8 * 100 + 59].ink != SB_INK_PLAIN, 1);
	assert_int_equal(top.canvas.cells[8 * 100 + 60].ink, SB_INK_PLAIN);
	for (i = 0; i < 3; i++)
		assert_int_equal(sb_top_press(&top, SB_KEY_DOWN), 0);
	draw(&top, 100, 24);
	assert_string_equal(row_of(&top.canvas, 22), "self 10.00 %, total 70.00 %  alpha  mod.so");
	assert_int_equal(sb_top_press(&top, SB_KEY_RIGHT), 0);
	draw(&top, 100, 24);
	assert_string_equal(row_of(&top.canvas, 22), "self 30.00 %, total 30.00 %  gamma  mod.so");
	assert_int_equal(sb_top_press(&top, SB_KEY_LEFT), 0);
	assert_int_equal(sb_top_press(&top, SB_KEY_ENTER), 0);
	/* Others come meanwhile: the same one remains chosen. */
	ADD(&top, "a;x:50", "p;main;aa:50", "p;main;alpha;beta:50", "p;main;alpha:50");
	assert_int_equal(sb_top_update(&top), 0);
	draw(&top, 100, 24);
	assert_string_equal(row_of(&top.canvas, 4), "|alpha");
	assert_string_equal(row_of(&top.canvas, 5), "|beta");
	assert_int_equal(top.canvas.cells[5 * 100 + 49].ink != SB_INK_PLAIN, 1);
	assert_int_equal(top.canvas.cells[5 * 100 + 50].ink, SB_INK_PLAIN);
	/* A screen that is too small for anything. */
	draw(&top, 1, 1);
	draw(&top, 3, 5);
	sb_top_release(&top);
}

/* Names are other people's: nothing in them comes to the terminal but what can be printed. */
static void test_hostile_text(void **state)
{
	struct sb_canvas canvas = {};
	struct sb_str out = {};

	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
	assert_int_equal(sb_canvas_resize(&canvas, 12, 1), 0);
	assert_int_equal(sb_canvas_text(&canvas, (struct sb_place){ 0, 0, 12 }, SB_INK_PLAIN,
					"a\033[31m\xff\xc2\x9b\n"),
			 9);
	assert_string_equal(row_of(&canvas, 0), "a?[31m???");
	assert_int_equal(sb_canvas_render(&canvas, NULL, true, &out), 0);
	assert_null(strstr(out.s, "\033[31m"));
	/* Wide ones take two cells, and half of one is none. */
	assert_int_equal(sb_canvas_text(&canvas, (struct sb_place){ 0, 0, 3 }, SB_INK_PLAIN,
					"\xe6\xbc\xa2\xe5\xad\x97"),
			 2);
	assert_int_equal(
		sb_canvas_text(&canvas, (struct sb_place){ 0, 10, 9 }, SB_INK_PLAIN, "abc"), 2);
	assert_int_equal(sb_canvas_text(&canvas, (struct sb_place){ 7, 0, 9 }, SB_INK_PLAIN, "abc"),
			 0);
	sb_canvas_release(&canvas);
	sb_str_release(&out);
}

/* Without colours there are none; what is shown already is not sent again. */
static void test_render(void **state)
{
	struct sb_canvas now = {}, before = {};
	struct sb_str out = {};

	assert_int_equal(sb_canvas_resize(&now, 4, 2), 0);
	assert_int_equal(sb_canvas_resize(&before, 4, 2), 0);
	sb_canvas_text(&now, (struct sb_place){ 1, 0, 4 }, SB_INK_USER, "ab");
	assert_int_equal(sb_canvas_render(&now, &before, false, &out), 0);
	assert_string_equal(out.s, "\033[2;1H\033[0mab\033[0m  \033[0m");
	sb_str_clear(&out);
	assert_int_equal(sb_canvas_render(&now, &now, true, &out), 0);
	assert_int_equal(out.len, 0);
	sb_canvas_release(&now);
	sb_canvas_release(&before);
	sb_str_release(&out);
}

static void test_keys(void **state)
{
	static const struct {
		const char *bytes;
		int key;
		size_t len;
	} rows[] = {
		{ "q", 'q', 1 },
		{ "\033", SB_KEY_ESCAPE, 1 },
		{ "\033q", SB_KEY_ESCAPE, 1 },
		{ "\033[Aq", SB_KEY_UP, 3 },
		{ "\033OB", SB_KEY_DOWN, 3 },
		{ "\033[6~x", SB_KEY_PAGE_DOWN, 4 },
		{ "\033[1;5C", SB_KEY_UNKNOWN, 6 },
		{ "\033[", SB_KEY_UNKNOWN, 2 },
		{ "\n", SB_KEY_ENTER, 1 },
		{ "\b", SB_KEY_BACKSPACE, 1 },
	};
	size_t i, len;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(sb_term_parse_key((const unsigned char *)rows[i].bytes,
						   strlen(rows[i].bytes), &len),
				 rows[i].key);
		assert_int_equal(len, rows[i].len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spans),  cmocka_unit_test(test_whose),
		cmocka_unit_test(test_bound),  cmocka_unit_test(test_frames),
		cmocka_unit_test(test_list),   cmocka_unit_test(test_one_sample),
		cmocka_unit_test(test_tree),   cmocka_unit_test(test_hostile_text),
		cmocka_unit_test(test_render), cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
