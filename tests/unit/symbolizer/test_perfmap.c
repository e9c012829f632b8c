// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "symbolizer/symbols/perfmap.h"

/* Tests of files read into a map of @maps in its place. */
static struct sb_perfmap own, *map;
static struct sb_perfmaps maps;

static int setup(void **state)
{
	own = (struct sb_perfmap){};
	map = &own;
	return 0;
}

static int teardown(void **state)
{
	if (map != &own)
		sb_perfmaps_put(&maps, map);
	sb_perfmaps_release(&maps);
	sb_perfmap_release(&own);
	return 0;
}

static void add(const char *text)
{
	size_t used;

	assert_int_equal(sb_perfmap_add(map, text, strlen(text), &used), 0);
	assert_int_equal(used, strlen(text));
}

static void expect(uint64_t addr, const char *name, uint64_t start)
{
	uint64_t got_start = UINT64_MAX;
	const char *got = sb_perfmap_lookup(map, addr, &got_start);

	if (!name) {
		assert_null(got);
		return;
	}
	assert_non_null(got);
	assert_string_equal(got, name);
	assert_true(got_start == start);
}

static void test_lines(void **state)
{
	add("1000 10 plain\n"
	    "0x2000 0x20 LazyCompile:~with spaces /a/b.js:12\n"
	    "nonsense\n"
	    "\n"
	    "3000\n"
	    "3000 10\n"
	    "3000 10 \n"
	    "g000 10 x\n"
	    "ffffffffffffffff 2 wraps\n"
	    "4000 0 unsized\n"
	    "4100 10 next\n"
	    "90000 0 last unsized\n");
	expect(0xfff, NULL, 0);
	expect(0x1000, "plain", 0x1000);
	expect(0x100f, "plain", 0x1000);
	expect(0x1010, NULL, 0);
	expect(0x201f, "LazyCompile:~with spaces /a/b.js:12", 0x2000);
	expect(0x40ff, "unsized", 0x4000);
	expect(0x4100, "next", 0x4100);
	expect(0x4110, NULL, 0);
	expect(0x90000 + SB_PERFMAP_REACH_MAX - 1, "last unsized", 0x90000);
	expect(0x90000 + SB_PERFMAP_REACH_MAX, NULL, 0);
	assert_true(map->nr_lines == 12 && map->nr_bad_lines == 7);
}

static void test_later_wins(void **state)
{
	add("1000 100 old\n"
	    "1040 10 inner\n");
	expect(0x1000, "old", 0x1000);
	expect(0x1040, "inner", 0x1040);
	expect(0x1050, "old", 0x1000); /* the offset counts from the function's start */
	add("1048 20 newest\n");
	expect(0x1047, "inner", 0x1040);
	expect(0x1048, "newest", 0x1048);
	expect(0x1067, "newest", 0x1048);
	expect(0x1068, "old", 0x1000);
	add("1000 100 all new\n");
	expect(0x1048, "all new", 0x1000);
}

static void append(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void test_torn_file(void **state)
{
	char path[] = "/tmp/sb-perfmap-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	map = NULL;
	append(fd, "1000 10 one\n2000 10 tw");
	assert_int_equal(sb_perfmaps_read(&maps, fd, &map), 0);
	expect(0x1000, "one", 0x1000);
	expect(0x2000, NULL, 0);
	append(fd, "o\n3000 1");
	assert_int_equal(sb_perfmaps_read(&maps, fd, &map), 0);
	expect(0x2000, "two", 0x2000);
	expect(0x3000, NULL, 0);
	append(fd, "0 three\n");
	assert_int_equal(sb_perfmaps_read(&maps, fd, &map), 0);
	expect(0x300f, "three", 0x3000);
	assert_true(map->nr_lines == 3 && map->nr_bad_lines == 0);
	/* Begun anew: nothing old is left. */
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_true(lseek(fd, 0, SEEK_SET) == 0);
	append(fd, "5000 10 five\n");
	assert_int_equal(sb_perfmaps_read(&maps, fd, &map), 0);
	expect(0x1000, NULL, 0);
	expect(0x5000, "five", 0x5000);
	close(fd);
	unlink(path);
}

static void test_bad_descriptor(void **state)
{
	assert_int_equal(sb_perfmaps_read(&maps, -1, &map), -EBADF);
	assert_ptr_equal(map, &own);
}

/* A line longer than any buffer is one bad line, or a few, but the others are read. */
static void test_long_line(void **state)
{
	const size_t len = 1u << 20;
	sb_cleanup(sb_freep) char *text = malloc(len + 1);
	char path[] = "/tmp/sb-perfmap-XXXXXX";
	int fd = mkstemp(path);
	FILE *file;

	assert_non_null(text);
	assert_true(fd >= 0);
	map = NULL;
	file = fdopen(fd, "w+");
	assert_non_null(file);
	memset(text, 'x', len);
	text[len] = '\0';
	fprintf(file, "1000 10 one\n2000 10 %s\n3000 10 three\n", text);
	fflush(file);
	assert_int_equal(sb_perfmaps_read(&maps, fileno(file), &map), 0);
	expect(0x1000, "one", 0x1000);
	expect(0x2000, NULL, 0);
	expect(0x3000, "three", 0x3000);
	assert_true(map->nr_bad_lines > 0);
	fclose(file);
	unlink(path);
}

/* Random overlapping entries, added in two halves, against painting byte by byte. */
static void test_random(void **state)
{
	enum { SPACE = 2000, NR = 300 };
	static int painted[SPACE];
	uint64_t x = 88172645463325252ull, start;
	char line[64];
	int round, i;

	for (round = 0; round < 50; round++) {
		memset(painted, 0xff, sizeof(painted));
		sb_perfmap_release(map);
		for (i = 0; i < NR; i++) {
			unsigned int at, len;

			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			at = (unsigned int)(x % SPACE);
			len = 1 + (unsigned int)(x >> 32) % 64;
			snprintf(line, sizeof(line), "%x %x f%d\n", at, len, i);
			add(line);
			for (; len-- && at < SPACE; at++)
				painted[at] = i;
			if (i == NR / 2)
				sb_perfmap_lookup(map, 0, &start);
		}
		for (i = 0; i < SPACE; i++) {
			const char *name = sb_perfmap_lookup(map, (uint64_t)i, &start);

			assert_int_equal(name ? atoi(name + 1) : -1, painted[i]);
		}
	}
}

static void test_bounds(void **state)
{
	char name[SB_PERFMAP_NAME_MAX + 100], line[SB_PERFMAP_NAME_MAX + 200];
	uint32_t i;

	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	snprintf(line, sizeof(line), "1000 10 %s\n", name);
	add(line);
	name[SB_PERFMAP_NAME_MAX] = '\0';
	expect(0x1000, name, 0x1000);
	for (i = 1; i < SB_PERFMAP_ENTRIES_MAX; i++) {
		snprintf(line, sizeof(line), "%x 10 x\n", 0x10000 + i * 16);
		add(line);
	}
	assert_false(map->is_cut);
	add("1 1 too many\n");
	assert_true(map->is_cut);
}

static void expect_parts(const char *text, const char *name, const char *file, uint32_t line)
{
	struct sb_perfmap_name parts;

	assert_true(sb_perfmap_split(text, &parts));
	assert_int_equal(parts.name_len, strlen(name));
	assert_memory_equal(parts.name, name, parts.name_len);
	assert_int_equal(parts.file != NULL, file != NULL);
	assert_int_equal(parts.file_len, file ? strlen(file) : 0);
	if (file)
		assert_memory_equal(parts.file, file, parts.file_len);
	assert_int_equal(parts.line, line);
}

/* As Node.js 16, 18 and 20 to 24 write them. */
static void test_v8_names(void **state)
{
	struct sb_perfmap_name parts;

	expect_parts("JS:*leaf /tmp/a.js:3:7", "leaf", "/tmp/a.js", 3);
	expect_parts("JS:^mid /tmp/with blank/a.js:6:13", "mid", "/tmp/with blank/a.js", 6);
	expect_parts("JS:~ /tmp/a.js:1:1", "(anonymous)", "/tmp/a.js", 1);
	expect_parts("JS:+get size node:internal/util:12:3", "get size", "node:internal/util", 12);
	expect_parts("LazyCompile:*leaf /tmp/a.js:3", "leaf", "/tmp/a.js", 3);
	expect_parts("LazyCompile:~leaf", "leaf", NULL, 0);
	expect_parts("JS:*f evalmachine.<anonymous>:1:2", "f", "evalmachine.<anonymous>", 1);
	expect_parts("Function:", "(anonymous)", NULL, 0);
	expect_parts("JS:*a b", "a b", NULL, 0);
	expect_parts("JS:*f /x:99999999999:1", "f", "/x:99999999999", 1);
	expect_parts("JS:*f :1", "f", "", 1);
	assert_false(sb_perfmap_split("Builtin:ArrayMap", &parts));
	assert_false(sb_perfmap_split("java.lang.Object::wait", &parts));
	assert_false(sb_perfmap_split("", &parts));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_later_wins, setup, teardown),
		cmocka_unit_test_setup_teardown(test_torn_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_descriptor, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_line, setup, teardown),
		cmocka_unit_test_setup_teardown(test_random, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
		cmocka_unit_test(test_v8_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
