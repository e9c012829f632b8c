// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The two side files of a picture: what is taken, what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/fs.h"
#include "flamegraph/attrs.h"

/* A file with this text; the path is good until the next call. */
static const char *file_of(const char *text, size_t len)
{
	static char path[64];
	static int fd = -1;

	if (fd >= 0)
		close(fd);
	fd = memfd_create("file", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(sb_write_all(fd, text, len), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return path;
}

static const char *color_of(const struct sb_fg_palette_map *map, const char *name)
{
	return sb_fg_palette_map_get(map, name, strlen(name));
}

static void test_palette_map(void **state)
{
	static const char text[] =
		"main->rgb(1,2,3)\n"
		"a->b->#00ffAA\r\n"
		"main->rgb(255,0,0)\n"
		"x->rgb(256,0,0)\nx->rgb(1,2)\nx->rgb(1,2,3) \nx->red\nx->#12345g\n"
		"->rgb(1,2,3)\nx\n\n"
		"x->url(#a)\"onload=\n"
		"\xff->#000000";
	struct sb_fg_palette_map map;

	assert_int_equal(sb_fg_palette_map_init(&map), 0);
	assert_int_equal(sb_fg_palette_map_read(&map, "/nonexistent"), -ENOENT);
	assert_int_equal(sb_fg_palette_map_read(&map, file_of(text, sizeof(text) - 1)), 0);
	assert_string_equal(color_of(&map, "main"), "rgb(255,0,0)");
	assert_string_equal(color_of(&map, "a->b"), "#00ffAA");
	assert_string_equal(color_of(&map, "\xef\xbf\xbd"), "#000000");
	assert_null(color_of(&map, "x"));
	assert_null(color_of(&map, ""));
	assert_null(color_of(&map, "rgb(255,0,0)")); /* a string of the table, but no name */
	assert_int_equal(map.nr_ignored, 8);
	assert_int_equal(sb_fg_palette_map_put(&map, "z", 1, "#123"), -EINVAL);
	assert_int_equal(sb_fg_palette_map_put(&map, "z", 1, "#123456"), 0);
	assert_string_equal(color_of(&map, "z"), "#123456");
	sb_fg_palette_map_release(&map);
}

static void test_palette_map_write(void **state)
{
	struct sb_fg_palette_map map;
	char folder[] = "/tmp/fg_attrs.XXXXXX", path[64], *text;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/palette.map", folder);
	assert_int_equal(sb_fg_palette_map_init(&map), 0);
	assert_int_equal(sb_fg_palette_map_put(&map, "b", 1, "#123456"), 0);
	assert_int_equal(sb_fg_palette_map_put(&map, "a->", 3, "rgb(1,2,3)"), 0);
	assert_int_equal(sb_fg_palette_map_write(&map, path), 0);
	sb_fg_palette_map_release(&map);
	assert_int_equal(sb_read_file(path, 1000, &text, NULL), 0);
	assert_string_equal(text, "a->->rgb(1,2,3)\nb->#123456\n");
	free(text);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

static const char *href_of(const struct sb_fg_name_attrs *attrs, const char *name)
{
	const struct sb_fg_name_attr *attr = sb_fg_name_attrs_get(attrs, name, strlen(name));

	assert_non_null(attr);
	return sb_strtab_get(&attrs->strs, attr->href, NULL);
}

static void test_name_attrs(void **state)
{
	static const char text[] = "f\thref=https://x/?a=b\ttitle=T t\ttarget=_top\tid=i\tclass=c\n"
				   "rel\thref=a/b:c\n"
				   "anchor\thref=#x:y\n"
				   "js\thref=javascript:alert(1)\n"
				   "js2\thref=JaVaScRiPt:alert(1)\n"
				   "js3\thref= javascript:alert(1)\n"
				   "js4\thref=java\x01script:alert(1)\n"
				   "data\thref=data:text/html,x\ttitle=kept\n"
				   "g\tg_extra=onclick='x'\tnovalue\n"
				   "no tab\n\thref=x\n";
	struct sb_fg_name_attrs attrs;
	const struct sb_fg_name_attr *attr;

	assert_int_equal(sb_fg_name_attrs_init(&attrs), 0);
	assert_int_equal(sb_fg_name_attrs_read(&attrs, file_of(text, sizeof(text) - 1)), 0);
	assert_string_equal(href_of(&attrs, "f"), "https://x/?a=b");
	attr = sb_fg_name_attrs_get(&attrs, "f", 1);
	assert_string_equal(sb_strtab_get(&attrs.strs, attr->title, NULL), "T t");
	assert_string_equal(sb_strtab_get(&attrs.strs, attr->target, NULL), "_top");
	assert_string_equal(sb_strtab_get(&attrs.strs, attr->id, NULL), "i");
	assert_string_equal(sb_strtab_get(&attrs.strs, attr->css_class, NULL), "c");
	assert_string_equal(href_of(&attrs, "rel"), "a/b:c");
	assert_string_equal(href_of(&attrs, "anchor"), "#x:y");
	assert_string_equal(href_of(&attrs, "js"), "");
	assert_string_equal(href_of(&attrs, "js2"), "");
	assert_string_equal(href_of(&attrs, "js3"), "");
	assert_string_equal(href_of(&attrs, "js4"), "");
	assert_string_equal(href_of(&attrs, "data"), "");
	attr = sb_fg_name_attrs_get(&attrs, "data", 4);
	assert_string_equal(sb_strtab_get(&attrs.strs, attr->title, NULL), "kept");
	assert_null(sb_fg_name_attrs_get(&attrs, "no tab", 6));
	assert_null(sb_fg_name_attrs_get(&attrs, "kept", 4));
	assert_int_equal(attrs.nr_ignored, 9);
	sb_fg_name_attrs_release(&attrs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_palette_map),
		cmocka_unit_test(test_palette_map_write),
		cmocka_unit_test(test_name_attrs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
