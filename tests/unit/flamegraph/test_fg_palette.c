// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Colours: every name that people know, text that can be read, kinds told apart without hues. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "flamegraph/opts.h"
#include "flamegraph/palette.h"

#define CONTRAST_MIN 4.5 /* WCAG 2.1, level AA, for text of normal size */

/* All of flamegraph.pl's, and two more. */
static const char *const known[] = { "hot",    "mem",	 "io",	   "wakeup", "chain", "java",
				     "js",     "perl",	 "red",	   "green",  "blue",  "aqua",
				     "yellow", "purple", "orange", "rust",   "python" };
static const char *const runs[] = { "oncpu", "offcpu", "offwake", "wakeup", "io", "wall" };

static void check_contrast(const struct sb_fg_palette *palette)
{
	int nr = 0;

	for (char letter = 'a'; letter <= 'z'; letter++) {
		for (char digit = '0'; digit <= '7'; digit++) {
			const char class[] = { letter, digit, '\0' };
			struct sb_fg_rgb fill, text;

			for (int is_dark = 0; is_dark < 2; is_dark++) {
				if (!sb_fg_palette_colors(palette, class, is_dark, &fill, &text))
					continue;
				assert_true(sb_fg_contrast(fill, text) >= CONTRAST_MIN);
				nr++;
			}
		}
	}
	assert_true(nr >= 2 * SB_FG_NR_SHADES);
}

static void test_palettes_by_name(void **state)
{
	struct sb_fg_palette palette;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const struct sb_fg_opts opts = { .colors = (char *)known[i] };

		assert_int_equal(sb_fg_palette_init(&palette, &opts, NULL), 0);
		check_contrast(&palette);
		sb_fg_palette_release(&palette);
	}
	assert_int_equal(
		sb_fg_palette_init(&palette, &(struct sb_fg_opts){ .colors = "pink" }, NULL),
		-EINVAL);
}

static double lightness_of(const struct sb_fg_palette *palette, enum sb_fg_kind kind, bool is_dark)
{
	const struct sb_fg_rgb black = {};
	char class[SB_FG_CLASS_LEN_MAX];
	struct sb_fg_rgb fill, text;

	sb_fg_palette_class(palette, "some_function", kind, 1, class);
	assert_true(sb_fg_palette_colors(palette, class, is_dark, &fill, &text));
	return sb_fg_contrast(fill, black);
}

/* Kernel, user and inlined frames differ in lightness: that needs no sense for red and green. */
static void test_palettes_by_run(void **state)
{
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct sb_fg_palette palette;

		assert_int_equal(sb_fg_palette_init(&palette, &(struct sb_fg_opts){}, runs[i]), 0);
		check_contrast(&palette);
		for (int is_dark = 0; is_dark < 2; is_dark++) {
			double user = lightness_of(&palette, SB_FG_PLAIN, is_dark);

			assert_true(user > 1.25 * lightness_of(&palette, SB_FG_KERNEL, is_dark));
			assert_true(1.1 * user < lightness_of(&palette, SB_FG_INLINED, is_dark));
		}
		sb_fg_palette_release(&palette);
	}
}

static struct sb_fg_rgb fill_of(const struct sb_fg_palette *palette, enum sb_fg_kind kind,
				bool is_dark)
{
	char class[SB_FG_CLASS_LEN_MAX];
	struct sb_fg_rgb fill, text;

	sb_fg_palette_class(palette, "f", kind, 1, class);
	assert_true(sb_fg_palette_colors(palette, class, is_dark, &fill, &text));
	return fill;
}

static int distance(struct sb_fg_rgb a, struct sb_fg_rgb b)
{
	return abs(a.r - b.r) + abs(a.g - b.g) + abs(a.b - b.b);
}

/* What stands side by side or on one another in each kind of run can be told apart. */
static void test_kinds_apart(void **state)
{
	static const struct {
		const char *run;
		enum sb_fg_kind kinds[9]; /* up to the first SB_FG_PLAIN behind the first */
	} cases[] = {
		{ "offcpu",
		  { SB_FG_PLAIN, SB_FG_KERNEL, SB_FG_WAITING, SB_FG_IDLE, SB_FG_LOCK,
		    SB_FG_INTERP } },
		{ "offwake",
		  { SB_FG_PLAIN, SB_FG_KERNEL, SB_FG_WAKER, SB_FG_DELIMITER, SB_FG_IDLE,
		    SB_FG_INTERP, SB_FG_LOCK } },
		{ "wall",
		  { SB_FG_PLAIN, SB_FG_KERNEL, SB_FG_RUNNING, SB_FG_WAITING, SB_FG_BLOCKED,
		    SB_FG_RESIDUAL, SB_FG_INTERP, SB_FG_LOCK } },
		{ "io", { SB_FG_PLAIN, SB_FG_KERNEL, SB_FG_FILE, SB_FG_INTERP } },
		{ "oncpu", { SB_FG_PLAIN, SB_FG_KERNEL, SB_FG_INLINED, SB_FG_JIT, SB_FG_INTERP } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const enum sb_fg_kind *kinds = cases[i].kinds;
		struct sb_fg_palette palette;

		assert_int_equal(sb_fg_palette_init(&palette, &(struct sb_fg_opts){}, cases[i].run),
				 0);
		for (int dark = 0; dark < 2; dark++) {
			for (size_t a = 0; !a || (a < 9 && kinds[a]); a++) {
				for (size_t b = 0; b < a; b++)
					assert_true(distance(fill_of(&palette, kinds[a], dark),
							     fill_of(&palette, kinds[b], dark)) >=
						    40);
			}
		}
		sb_fg_palette_release(&palette);
	}
}

/* A wall-clock graph has many idle and inlined frames; both are pale. */
static void test_idle_is_not_inlined(void **state)
{
	struct sb_fg_palette palette;

	assert_int_equal(sb_fg_palette_init(&palette, &(struct sb_fg_opts){}, "wall"), 0);
	for (int dark = 0; dark < 2; dark++)
		assert_true(distance(fill_of(&palette, SB_FG_IDLE, dark),
				     fill_of(&palette, SB_FG_INLINED, dark)) >= 30);
	sb_fg_palette_release(&palette);
}

/* On a dark ground unnamed frames are not the brightest, and are told apart from what stands around
 * them. */
static void test_unnamed_on_dark(void **state)
{
	static const enum sb_fg_kind around[] = { SB_FG_PLAIN, SB_FG_KERNEL,   SB_FG_INTERP,
						  SB_FG_IDLE,  SB_FG_RESIDUAL, SB_FG_MARK };
	static const struct sb_fg_rgb ground = { 0x17, 0x19, 0x1d };

	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct sb_fg_palette palette;
		struct sb_fg_rgb unknown;

		assert_int_equal(sb_fg_palette_init(&palette, &(struct sb_fg_opts){}, runs[i]), 0);
		unknown = fill_of(&palette, SB_FG_UNKNOWN, 1);
		for (size_t k = 0; k < sizeof(around) / sizeof(around[0]); k++)
			assert_true(distance(unknown, fill_of(&palette, around[k], 1)) >= 30);
		assert_true(sb_fg_contrast(unknown, ground) <
			    sb_fg_contrast(fill_of(&palette, SB_FG_PLAIN, 1), ground));
		sb_fg_palette_release(&palette);
	}
}

/* Idle frames stand back: nearer to the ground than any other, also on a dark one. */
static void test_idle_is_faint(void **state)
{
	static const struct sb_fg_rgb grounds[] = { { 0xfb, 0xfa, 0xf8 }, { 0x17, 0x19, 0x1d } };

	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct sb_fg_palette palette;

		assert_int_equal(sb_fg_palette_init(&palette, &(struct sb_fg_opts){}, runs[i]), 0);
		for (int dark = 0; dark < 2; dark++) {
			double faint =
				sb_fg_contrast(fill_of(&palette, SB_FG_IDLE, dark), grounds[dark]);

			assert_true(faint < 1.5);
			for (int kind = 0; kind < SB_FG_GAP; kind++) {
				if (kind != SB_FG_IDLE && kind != SB_FG_INLINED &&
				    kind != SB_FG_MARK)
					assert_true(sb_fg_contrast(fill_of(&palette, kind, dark),
								   grounds[dark]) > faint);
			}
		}
		sb_fg_palette_release(&palette);
	}
}

/* Black text beside white text on one kind of frame would seem to mean something. */
static void test_text_of_a_kind(void **state)
{
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct sb_fg_palette palette;

		assert_int_equal(sb_fg_palette_init(&palette, &(struct sb_fg_opts){}, runs[i]), 0);
		for (char letter = 'a'; letter <= 'z'; letter++) {
			char class[] = { letter, '0', '\0' };
			struct sb_fg_rgb fill, first, text;

			for (int dark = 0; dark < 2; dark++) {
				class[1] = '0';
				if (!sb_fg_palette_colors(&palette, class, dark, &fill, &first))
					continue;
				for (; class[1] < '0' + SB_FG_NR_SHADES; class[1]++) {
					sb_fg_palette_colors(&palette, class, dark, &fill, &text);
					assert_int_equal(text.r, first.r);
				}
			}
		}
		sb_fg_palette_release(&palette);
	}
}

static void check_family(const char *colors, const char *name, enum sb_fg_kind kind,
			 const char *like)
{
	const struct sb_fg_opts opts = { .colors = (char *)colors };
	struct sb_fg_rgb fill, text, ends[2] = { { 255, 255, 255 }, {} };
	struct sb_fg_palette palette, one;
	char class[SB_FG_CLASS_LEN_MAX];

	assert_int_equal(sb_fg_palette_init(&palette, &opts, NULL), 0);
	sb_fg_palette_class(&palette, name, kind, 1, class);
	assert_true(sb_fg_palette_colors(&palette, class, false, &fill, &text));
	sb_fg_palette_release(&palette);

	/* Inside the range of the palette with one colour: its frames have one letter. */
	assert_int_equal(
		sb_fg_palette_init(&one, &(struct sb_fg_opts){ .colors = (char *)like }, NULL), 0);
	sb_fg_palette_class(&one, "x", SB_FG_PLAIN, 1, class);
	for (class[1] = '0'; class[1] <= '7'; class[1]++) {
		struct sb_fg_rgb shade;

		assert_true(sb_fg_palette_colors(&one, class, false, &shade, &text));
		ends[0].r = shade.r < ends[0].r ? shade.r : ends[0].r;
		ends[0].g = shade.g < ends[0].g ? shade.g : ends[0].g;
		ends[0].b = shade.b < ends[0].b ? shade.b : ends[0].b;
		ends[1].r = shade.r > ends[1].r ? shade.r : ends[1].r;
		ends[1].g = shade.g > ends[1].g ? shade.g : ends[1].g;
		ends[1].b = shade.b > ends[1].b ? shade.b : ends[1].b;
	}
	sb_fg_palette_release(&one);
	assert_in_range(fill.r, ends[0].r, ends[1].r);
	assert_in_range(fill.g, ends[0].g, ends[1].g);
	assert_in_range(fill.b, ends[0].b, ends[1].b);
}

static void test_language_palettes(void **state)
{
	check_family("java", "java/util/HashMap.get", SB_FG_PLAIN, "green");
	check_family("java", "HashMap.get", SB_FG_JIT, "green");
	check_family("java", "HashMap.get", SB_FG_INLINED, "aqua");
	check_family("java", "JavaCalls::call_helper", SB_FG_PLAIN, "yellow");
	check_family("java", "vfs_read", SB_FG_KERNEL, "orange");
	check_family("java", "read", SB_FG_PLAIN, "red");
	check_family("js", "onRequest /srv/app.js:4", SB_FG_JIT, "green");
	check_family("js", "stringify", SB_FG_JIT, "aqua");
	check_family("js", "v8::Isolate::Run", SB_FG_PLAIN, "yellow");
	check_family("perl", "Perl_pp_match", SB_FG_PLAIN, "green");
	check_family("perl", "My::Module::run", SB_FG_INTERP, "green");
	check_family("python", "Class.run", SB_FG_INTERP, "green");
	check_family("java", "java.util.HashMap.get", SB_FG_INTERP, "green");
	check_family("chain", "schedule", SB_FG_WAKER, "aqua");
	check_family("chain", "schedule", SB_FG_KERNEL, "blue");
	check_family("rust", "core::ptr::drop_in_place", SB_FG_PLAIN, "yellow");
	check_family("rust", "my_crate::run", SB_FG_PLAIN, "aqua");
	check_family("python", "run /srv/site-packages/x.py:1", SB_FG_PLAIN, "aqua");
	check_family("python", "run /srv/x.py:1", SB_FG_PLAIN, "green");
}

static void check_class(const struct sb_fg_opts *opts, const char *a, const char *b, bool is_same)
{
	char class_a[SB_FG_CLASS_LEN_MAX], class_b[SB_FG_CLASS_LEN_MAX];
	struct sb_fg_palette palette;

	assert_int_equal(sb_fg_palette_init(&palette, opts, NULL), 0);
	sb_fg_palette_class(&palette, a, SB_FG_PLAIN, 1, class_a);
	sb_fg_palette_class(&palette, b, SB_FG_PLAIN, 1, class_b);
	assert_int_equal(strcmp(class_a, class_b) == 0, is_same);
	sb_fg_palette_release(&palette);
}

static void test_shades(void **state)
{
	const struct sb_fg_opts by_module = { .color_by = SB_FG_BY_MODULE };
	const struct sb_fg_opts by_prefix = { .hash = true };

	check_class(&by_module, "[libc.so.6+0x1]", "[libc.so.6+0x22]", true);
	check_class(&by_module, "[libc.so.6+0x1]", "libc.so.6`read", true);
	check_class(&by_module, "read [libc.so.6]", "write (libc.so.6)", true);
	check_class(&by_module, "std::vector<int>::end", "std::move", true);
	check_class(&by_module, "java/util/Map", "java/util/Set", true);
	check_class(&by_module, "java/util/Map", "std::move", false);
	check_class(&by_prefix, "ext4_read", "ext4_write", true);
	check_class(&by_prefix, "__alloc", "alloc", true);
	check_class(&by_prefix, "abort", "zlib", false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_palettes_by_name), cmocka_unit_test(test_palettes_by_run),
		cmocka_unit_test(test_kinds_apart),	 cmocka_unit_test(test_idle_is_not_inlined),
		cmocka_unit_test(test_unnamed_on_dark),	 cmocka_unit_test(test_idle_is_faint),
		cmocka_unit_test(test_text_of_a_kind),	 cmocka_unit_test(test_language_palettes),
		cmocka_unit_test(test_shades),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
