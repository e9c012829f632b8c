// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/reason.h"
#include "events/definition.h"

static void test_lines(void **state)
{
	static const char text[] =
		"# comment\n"
		"\n"
		"ssl: r:ssl:SSL_write u:/a:b --when 'comm == \"nginx x\"' --weight retval # bytes\r\n"
		"\t fsync:\tc:fsync --min 10ms --max 2s --value \"str(arg0)\"\n"
		"last-1_: \"/opt/my program:main\"\n"
		"pair: --from c:a --to c:b --from c:c --key arg0 --to-key retval\n"
		"slow: --in ./server:handle --until c:b --slower-than 100ms";
	struct sb_definitions list = {};
	struct sb_reason reason = {};
	const struct sb_definition *one;

	assert_int_equal(sb_definitions_parse(strdup(text), "events", &list, &reason), 0);
	assert_int_equal(list.at.nr, 5);
	one = sb_definitions_find(&list, "ssl", "events", &reason);
	assert_non_null(one);
	assert_int_equal(one->line, 3);
	assert_int_equal(one->request.events.nr, 2);
	assert_string_equal(one->request.events.at[0], "r:ssl:SSL_write");
	assert_string_equal(one->request.events.at[1], "u:/a:b");
	assert_string_equal(one->request.when, "comm == \"nginx x\"");
	assert_string_equal(one->request.weight, "retval");
	assert_null(one->request.value);
	one = sb_definitions_find(&list, "fsync", "events", &reason);
	assert_true(one->min_ns == 10000000 && one->max_ns == 2000000000);
	assert_string_equal(one->request.value, "str(arg0)");
	one = sb_definitions_find(&list, "last-1_", "events", &reason);
	assert_string_equal(one->request.events.at[0], "/opt/my program:main");
	one = sb_definitions_find(&list, "pair", "events", &reason);
	assert_true(!one->request.events.nr && one->request.from.nr == 2 &&
		    one->request.to.nr == 1);
	assert_string_equal(one->request.from.at[1], "c:c");
	assert_string_equal(one->request.to.at[0], "c:b");
	assert_string_equal(one->request.key, "arg0");
	assert_string_equal(one->request.to_key, "retval");
	one = sb_definitions_find(&list, "slow", "events", &reason);
	assert_string_equal(one->in, "./server:handle");
	assert_string_equal(one->until, "c:b");
	assert_int_equal(one->slower_than_ns, 100000000);
	assert_null(sb_definitions_find(&list, "sssl", "events", &reason));
	assert_string_equal(reason.text,
			    "'events' has no definition of 'sssl'; did you mean 'ssl'?");
	sb_definitions_release(&list);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{ "\n\nssl",
		  "events:3: 'ssl' is not a name with a colon, such as 'ssl: c:SSL_read'" },
		{ "ssl: ", "events:1: 'ssl' has no event" },
		{ "ssl: --when x", "events:1: 'ssl' has no event" },
		{ ": c:f",
		  "events:1: the name ':' is not one of 1 to 14 letters, digits, '_' and '-'" },
		{ "a.b: c:f",
		  "events:1: the name 'a.b:' is not one of 1 to 14 letters, digits, '_' and '-'" },
		{ "abcdefghijklmno: c:f",
		  "events:1: the name 'abcdefghijklmno:' is not one of 1 to "
		  "14 letters, digits, '_' and '-'" },
		{ "a: c:f\na: c:g", "events:2: 'a' is defined in line 1 already" },
		{ "a: c:f --when 'x", "events:1: the quote ' is not closed" },
		{ "a: c:f --when", "events:1: there is nothing behind --when" },
		{ "a: c:f --when x --when y", "events:1: --when is there twice" },
		{ "a: --from", "events:1: there is nothing behind --from" },
		{ "a: --from c:f --key x --key y", "events:1: --key is there twice" },
		{ "a: c:f --min 0", "events:1: '0' is not a time such as 500 (microseconds), 10ms, "
				    "2s" },
		{ "a: c:f --by x",
		  "events:1: '--by' is not one of --when, --weight, --value, --min, --max, "
		  "--from, --to, --key, --to-key, --in, --until, --slower-than" },
		{ "a: --in c:f c:g",
		  "events:1: 'a' has spans (--in), with which only --until and --slower-than go" },
		{ "a: --in c:f --min 1ms",
		  "events:1: 'a' has spans (--in), with which only --until and --slower-than go" },
		{ "a: c:f --slower-than 1ms",
		  "events:1: 'a' has --slower-than but no --in, the function or event of spans" },
		{ "a: --until c:f",
		  "events:1: 'a' has --until but no --in, the function or event of spans" },
	};
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(rows); i++) {
		struct sb_definitions list = {};
		struct sb_reason reason = {};

		assert_int_equal(
			sb_definitions_parse(strdup(rows[i].text), "events", &list, &reason),
			-EINVAL);
		assert_string_equal(reason.text, rows[i].why);
		sb_definitions_release(&list);
	}
}

/* @nr events, each behind @option. */
static void check_nr_of_events(const char *option, size_t nr)
{
	struct sb_definitions list = {};
	struct sb_reason reason = {};
	char *text = malloc(nr * 16 + 4), *at = text + sprintf(text, "n:");
	size_t i;

	for (i = 0; i < nr; i++)
		at += sprintf(at, " %s c:f", option);
	assert_int_equal(sb_definitions_parse(text, "events", &list, &reason),
			 nr > SB_DEFINITION_EVENTS_MAX ? -EINVAL : 0);
	sb_definitions_release(&list);
}

/* Lists of all lengths: what is too many is refused, and not cut. */
static void test_bounds(void **state)
{
	size_t nr, i;

	for (nr = 1; nr <= SB_DEFINITIONS_MAX + 1; nr++) {
		struct sb_definitions list = {};
		struct sb_reason reason = {};
		char *text = malloc(nr * 16 + 1), *at = text;

		for (i = 0; i < nr; i++)
			at += sprintf(at, "n%zu: c:f\n", i);
		assert_int_equal(sb_definitions_parse(text, "events", &list, &reason),
				 nr > SB_DEFINITIONS_MAX ? -EINVAL : 0);
		sb_definitions_release(&list);
		check_nr_of_events("", nr);
		check_nr_of_events("--to", nr);
	}
}

static int read_file(const char *path, const void *data, size_t len, mode_t mode)
{
	struct sb_definitions list = {};
	struct sb_reason reason = {};
	FILE *file = fopen(path, "w");
	int err;

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, len, file), len);
	fclose(file);
	assert_int_equal(chmod(path, mode), 0);
	err = sb_definitions_read(path, &list, &reason);
	assert_true(!err == !sb_reason_is_set(&reason));
	sb_definitions_release(&list);
	return err;
}

static void test_files(void **state)
{
	static char big[SB_DEFINITIONS_BYTES_MAX + 1];
	char path[] = "/tmp/definitions.XXXXXX";
	struct sb_definitions list = {};
	struct sb_reason reason = {};

	close(mkstemp(path));
	memset(big, '#', sizeof(big));
	assert_int_equal(read_file(path, "a: c:f\n", 7, 0600), 0);
	assert_int_equal(read_file(path, "a: c:f\n", 7, 0644), 0);
	assert_int_equal(read_file(path, "a: c:f\n", 7, 0664), -EPERM);
	assert_int_equal(read_file(path, "a: c:f\n", 7, 0602), -EPERM);
	assert_int_equal(read_file(path, "a: c\0f\n", 7, 0600), -EINVAL);
	assert_int_equal(read_file(path, big, sizeof(big) - 1, 0600), 0);
	assert_int_equal(read_file(path, big, sizeof(big), 0600), -EFBIG);
	unlink(path);
	assert_int_equal(sb_definitions_read(path, &list, &reason), -ENOENT);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(sb_definitions_read(path, &list, &reason), -EPERM);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
