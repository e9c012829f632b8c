// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The option parser, on the rows of the commands that record. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/record_opts.h"
#include "symbolizer/sb_sym.h"

static struct sb_record_opts got;
static char error[512];
static char **tail;

/* Words in, `got` and `error` out. The words are borrowed by `got`: literals. */
static int parse_for(const char *command, const char *const *words)
{
	struct sb_opts opts = { .command = command, .rows = sb_record_rows, .fields = &got };
	int err;

	sb_record_opts_release(&got);
	got = (struct sb_record_opts){};
	error[0] = '\0';
	opts.stop = &got.common.ask;
	err = sb_opts_parse(&opts, (char **)words);
	if (!err)
		err = sb_record_opts_finish(&got, &opts);
	if (opts.error.s)
		snprintf(error, sizeof(error), "%s", opts.error.s);
	tail = opts.tail;
	sb_opts_release(&opts);
	return err;
}

#define parse(...) parse_for("oncpu", (const char *const[]){ __VA_ARGS__, NULL })

#define refused(sentence, ...)                                  \
	do {                                                    \
		assert_int_equal(parse(__VA_ARGS__), -EINVAL);  \
		assert_string_equal(error, "oncpu: " sentence); \
	} while (0)

static void test_spellings(void **state)
{
	const char *const spellings[][3] = {
		{ "-p1302", NULL },   { "-p", "1302", NULL },	{ "--pid=1302", NULL },
		{ "--pid", "1302" },  { "-x1302", NULL },	{ "-x", "1302", NULL },
		{ "-ukp1302", NULL }, { "-ukp", "1302", NULL },
	};
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(spellings); i++) {
		const char *words[4] = { spellings[i][0], spellings[i][1] };

		assert_int_equal(parse_for("oncpu", words), 0);
		assert_int_equal(got.run.targets.tgids.nr, 1);
		assert_int_equal(got.run.targets.tgids.at[0].pid, 1302);
		assert_int_equal(got.run.targets.tgids.at[0].rule, SB_RULE_ALLOW);
	}
}

static void test_defaults(void **state)
{
	const char *const nothing[] = { NULL };

	assert_int_equal(parse_for("oncpu", nothing), 0);
	assert_int_equal(got.run.freq_hz, 99);
	assert_null(got.run.view_opts.counter);
	assert_int_equal(got.run.sides, SB_SIDE_USER | SB_SIDE_KERNEL);
	assert_int_equal(got.run.depth_max, SB_USTACK_DEPTH_MAX);
	assert_true(got.run.time_ns == 0);
	assert_false(sb_record_opts_has_target(&got));
	assert_null(got.run.command);
}

static void test_sides(void **state)
{
	assert_int_equal(parse("-u"), 0);
	assert_int_equal(got.run.sides, SB_SIDE_USER);
	assert_int_equal(parse("-K"), 0);
	assert_int_equal(got.run.sides, SB_SIDE_KERNEL);
	assert_int_equal(parse("-Uk"), 0);
	assert_int_equal(got.run.sides, SB_SIDE_USER | SB_SIDE_KERNEL);
	assert_int_equal(parse("-guf"), 0);
	assert_int_equal(got.run.sides, SB_SIDE_USER);
}

static void test_lists(void **state)
{
	assert_int_equal(parse("-p", "1,2", "-p!3,4", "--pid=5\n6"), 0);
	assert_int_equal(got.run.targets.tgids.nr, 6);
	assert_int_equal(got.run.targets.tgids.at[2].pid, 3);
	assert_int_equal(got.run.targets.tgids.at[2].rule, SB_RULE_DENY);
	assert_int_equal(got.run.targets.tgids.at[3].rule, SB_RULE_ALLOW);
	assert_int_equal(got.run.targets.tgids.at[5].pid, 6);
	assert_int_equal(parse("-L", "7,8"), 0);
	assert_int_equal(got.run.targets.tids.nr, 2);
	assert_int_equal(parse("-C", "0,2-4", "-C", "9"), 0);
	assert_int_equal(got.run.cpus.nr, 5);
	assert_int_equal(got.run.cpus.at[4], 9);
	assert_int_equal(parse("--by", "cpu,comm", "-T"), 0);
	assert_int_equal(got.run.roots.nr, 3);
	assert_int_equal(got.run.roots.at[0], SB_ATTR_CPU);
	assert_int_equal(got.run.roots.at[1], SB_ATTR_COMM);
	assert_int_equal(got.run.roots.at[2], SB_ATTR_THREAD);
	assert_int_equal(parse("-o", "a.svg", "-ob.folded", "-o", "-"), 0);
	assert_int_equal(got.output_paths.nr, 3);
	assert_string_equal(got.output_paths.at[2], "-");
}

static void test_rules(void **state)
{
	assert_int_equal(
		parse("-n", "nginx*", "-n!ngin?-2", "--uid", "0,!65534", "-G", "!/a", "-G/b"), 0);
	assert_int_equal(got.run.targets.nr_comms, 2);
	assert_string_equal(got.run.targets.comms[0].glob, "nginx*");
	assert_string_equal(got.run.targets.comms[1].glob, "ngin?-2");
	assert_int_equal(got.run.targets.comms[1].rule, SB_RULE_DENY);
	assert_int_equal(got.run.targets.nr_uids, 2);
	assert_int_equal(got.run.targets.uids[1].uid, 65534);
	assert_int_equal(got.run.targets.uids[1].rule, SB_RULE_DENY);
	assert_int_equal(got.run.targets.nr_cgroups, 2);
	assert_string_equal(got.run.targets.cgroups[0].path, "/a");
	assert_int_equal(got.run.targets.cgroups[0].rule, SB_RULE_DENY);
	assert_int_equal(got.run.targets.cgroups[1].rule, SB_RULE_ALLOW);
	assert_true(sb_record_opts_has_target(&got));
	assert_int_equal(parse("-n", "!x"), 0);
	assert_false(sb_record_opts_has_target(&got));
	assert_int_equal(parse("--uid", "root"), 0);
	assert_int_equal(got.run.targets.uids[0].uid, 0);
}

static void test_numbers(void **state)
{
	assert_int_equal(parse("-t", "500ms", "-F", "199", "-l", "10", "--depth", "64",
			       "--symbol-cache", "64M"),
			 0);
	assert_true(got.run.time_ns == 500000000);
	assert_int_equal(got.run.freq_hz, 199);
	assert_int_equal(got.limit, 10);
	assert_int_equal(got.run.depth_max, 64);
	assert_true(got.run.symbol_cache_bytes == 64u << 20);
	assert_int_equal(parse("-t5"), 0);
	assert_true(got.run.time_ns == 5000000000);
	assert_int_equal(parse("--demangle=full"), 0);
	assert_int_equal(got.run.demangle, SB_SYM_DEMANGLE_FULL);
	assert_int_equal(parse("--no-demangle"), 0);
	assert_int_equal(got.run.demangle, SB_SYM_DEMANGLE_OFF);
	assert_int_equal(parse("--no-inline", "--inline"), 0);
	assert_false(got.run.no_inlines);
	assert_int_equal(parse("--inline", "--no-inline"), 0);
	assert_true(got.run.no_inlines);
}

/* A bare number: seconds where a target is named, a question where none is. */
static void test_bare_number(void **state)
{
	assert_int_equal(parse("-p", "1302", "-d", "5"), 0);
	assert_true(got.run.delimited);
	assert_true(got.run.time_ns == 5000000000);
	assert_int_equal(parse("5", "-a"), 0);
	assert_true(got.run.time_ns == 5000000000);
	assert_int_equal(parse("-n", "x", "500ms"), 0);
	assert_true(got.run.time_ns == 500000000);
	assert_int_equal(parse("5", "--", "prog"), 0);
	assert_true(got.run.time_ns == 5000000000);
	assert_int_equal(parse("500ms"), 0);
	refused("'stackbpf oncpu 1302': did you mean -p 1302 or -t 1302?", "1302");
	refused("'stackbpf oncpu 5': did you mean -p 5 or -t 5?", "-d", "5");
	refused("'stackbpf oncpu 5': did you mean -p 5 or -t 5?", "-p", "!1", "5");
	refused("'6': the time was given twice; leave one out", "-a", "5", "6");
	refused("'6': the time was given twice; leave one out", "-a", "-t", "5", "6");
	refused("there is an unexpected argument 'prog'; to run a command, put it after '--': stackbpf oncpu -- prog",
		"prog");
}

static void test_command(void **state)
{
	assert_int_equal(parse("-F", "199", "--", "prog", "-t", "5"), 0);
	assert_string_equal(got.run.command[0], "prog");
	assert_string_equal(got.run.command[1], "-t");
	assert_true(got.run.time_ns == 0);
	assert_int_equal(parse("-c", "a | b"), 0);
	assert_string_equal(got.run.command[0], "sh");
	assert_string_equal(got.run.command[2], "a | b");
	assert_null(got.run.command[3]);
	assert_true(got.run.targets.follow_children);
	assert_int_equal(parse("-a", "--", "sleep", "1"), 0);
	refused("the command after '--' is missing; append it", "--");
	refused("-c and '--' both name a command; use only one of them", "-c", "x", "--", "y");
	refused("option '-t' needs a value: DUR", "-t", "--", "y");
}

static void test_wrong_values(void **state)
{
	refused("option '--freq': 'abc' is not a number from 1 to 100000", "--freq=abc");
	refused("option '-F': '0' is not a number from 1 to 100000", "-F0");
	refused("option '-F': '100001' is not a number from 1 to 100000", "-F", "100001");
	refused("option '-t': '5x' is not a time such as 5 (seconds), 500ms or 2m", "-t5x");
	refused("option '-t': '99999999999' is longer than 100 years; choose a shorter time",
		"-t99999999999");
	refused("option '-t': '0' is not a time such as 5 (seconds), 500ms or 2m", "-t", "0");
	assert_non_null(strstr(sb_view_kind_names(), "oncpu, offcpu, "));
	assert_non_null(strstr(sb_view_kind_names(), ", alloc, trace, latency, memory"));
	refused("option '-e': 'page-faults' is a second event, and a run samples one; sample it with "
		"another stackbpf at the same time",
		"-e", "cycles", "-e", "page-faults");
	refused("option '--event': 'cycles,page-faults' names several events, and a run samples one; "
		"sample each with a stackbpf of its own",
		"--event=cycles,page-faults");
	refused("option '-p': 'nginx' is not a list of process IDs such as 1302,1400 (use -n for names)",
		"-p", "nginx");
	refused("option '--pid': '' is not a list of process IDs such as 1302,1400 (use -n for names)",
		"--pid=");
	refused("option '-p': '1,0' is not a list of process IDs such as 1302,1400 (use -n for names)",
		"-p", "1,0");
	refused("option '-p': '5,' is not a list of process IDs such as 1302,1400 (use -n for names)",
		"-p", "5,");
	refused("option '-p': ',5' is not a list of process IDs such as 1302,1400 (use -n for names)",
		"-p", ",5");
	refused("option '-p': '5, ,6' is not a list of process IDs such as 1302,1400 (use -n for names)",
		"-p", "5, ,6");
	refused("option '-p': '4194305' has an ID above 4194304, the highest one that Linux assigns",
		"-p", "4194305");
	refused("option '-p': '!' is not a list of process IDs such as 1302,1400 (use -n for names)",
		"-p!");
	refused("option '-n': 'a-name-of-16-chr' is longer than 15 characters, "
		"the maximum length of a thread name",
		"-n", "a-name-of-16-chr");
	refused("option '-n': '[ab]' has brackets, but only * and ? are supported in patterns",
		"-n[ab]");
	refused("option '--uid': 'no-such-user' is neither a user ID nor the name of a user",
		"--uid", "no-such-user");
	refused("option '--by': 'cpu,moon' is not a list of comm, pid, thread, cpu, cgroup, container; "
		"--value of trace and latency takes an expression",
		"--by", "cpu,moon");
	refused("option '--by': 'cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu' has too many root frames: the limit is 8",
		"--by", "cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu");
	refused("option '--demangle': 'no' is not one of short, full, off", "--demangle", "no");
	refused("--event: there is no counter 'cycle'; did you mean 'cycles'?", "-e", "cycle");
	refused("option '--symbol-cache': '1K' is not a number of bytes such as 256M, at least 1048576",
		"--symbol-cache", "1K");
	refused("option '-o': '' is empty", "-o", "");
	refused("option '-C': '1-' is not a list such as 0,2,4-7 of numbers up to 65535", "-C1-");
}

static void test_too_many_rules(void **state)
{
	const char *words[2 * SB_RULES_MAX + 3] = {};
	size_t i;

	for (i = 0; i <= SB_RULES_MAX; i++) {
		words[2 * i] = "-n";
		words[2 * i + 1] = "x";
	}
	assert_int_equal(parse_for("oncpu", words), -EINVAL);
	assert_string_equal(error,
			    "oncpu: option '-n': 'x' is one pattern too many: the limit is 16");
	for (i = 0; i <= SB_RULES_MAX; i++)
		words[2 * i] = "-G";
	assert_int_equal(parse_for("oncpu", words), -EINVAL);
	for (i = 0; i <= SB_RULES_MAX; i++) {
		words[2 * i] = "--uid";
		words[2 * i + 1] = "1";
	}
	assert_int_equal(parse_for("oncpu", words), -EINVAL);
}

static void test_missing_values(void **state)
{
	refused("option '-p' needs a value: LIST", "-p");
	refused("option '--time' needs a value: DUR", "--time");
	refused("option '-p' needs a value (LIST), but '-t' follows; "
		"if that is the value, write it without a space before it",
		"-p", "-t", "5");
	refused("option '--lines' takes no value; leave out '=' and what follows it", "--lines=1");
	assert_int_equal(parse("--title=-x"), 0);
	assert_string_equal(got.title, "-x");
}

static void test_unknown(void **state)
{
	refused("there is no option '--pdi'; did you mean '--pid'?", "--pdi", "1");
	refused("there is no option '--frequency'; did you mean '--freq'?", "--frequency=99");
	refused("there is no option '--sub'; did you mean '--subprocesses'?", "--sub");
	refused("there is no option '--xyzzy'; 'stackbpf help oncpu' lists them", "--xyzzy");
	refused("there is no option '-Z'; 'stackbpf help oncpu' lists them", "-uZ");
	/* An option of other commands only is none of this one's. */
	assert_int_equal(parse_for("offcpu", (const char *const[]){ "-F", "99", NULL }), -EINVAL);
	assert_string_equal(error,
			    "offcpu: there is no option '-F'; 'stackbpf help offcpu' lists them");
	assert_int_equal(parse_for("offcpu", (const char *const[]){ "-p", "1", NULL }), 0);
}

static void test_contradictions(void **state)
{
	refused("-a samples the whole machine; leave out -a or the other targets", "-a", "-p", "1");
	assert_int_equal(parse("-a", "-p", "!1"), 0);
	refused("-s follows the child processes of -p or of a command, but neither was given; "
		"leave it out, or add one",
		"-s", "-n", "x");
}

static void test_help_stops(void **state)
{
	assert_int_equal(parse("-h", "--nonsense"), 0);
	assert_int_equal(got.common.ask, SB_ASK_HELP);
	assert_int_equal(parse("--version"), 0);
	assert_int_equal(got.common.ask, SB_ASK_VERSION);
	assert_int_equal(parse("-qv"), 0);
	assert_true(got.common.quiet && got.common.verbose);
}

/* No two options of one command answer to the same name, and each can be explained. */
/* Whatever is typed means one row. */
static void check_rows(const struct sb_command *command)
{
	const struct sb_opt *row, *other;
	const char *letter;

	for (row = command->opts; !sb_opt_is_end(row); row++) {
		if (!sb_opt_is_for(row, command->name))
			continue;
		assert_true(row->help || row->type == SB_OPT_NONE);
		for (other = row + 1; !sb_opt_is_end(other); other++) {
			if (!sb_opt_is_for(other, command->name))
				continue;
			if (row->name && other->name)
				assert_string_not_equal(row->name, other->name);
			for (letter = row->letters ? row->letters : ""; *letter; letter++) {
				assert_null(other->letters ? strchr(other->letters, *letter)
							   : NULL);
				assert_null(other->synonyms ? strchr(other->synonyms, *letter)
							    : NULL);
			}
		}
	}
}

static void test_rows(void **state)
{
	struct sb_command command;
	size_t i;

	for (i = 0; sb_command_at(i, &command); i++)
		check_rows(&command);
	assert_true(i > 6);
}

/* Of several rows of a name, any can be the command's. */
static void check_names_of_commands(void)
{
	static const char *const has[][2] = {
		{ "count", "io" },    { "count", "top" },  { "every", "offcpu" },
		{ "every", "top" },   { "format", "run" }, { "format", "snap" },
		{ "kind", "memory" }, { "kind", "io" },	   { "kind", "top" },
		{ "layer", "alloc" }, { "layer", "io" },   { "limit", "run" },
		{ "limit", "top" },   { "output", "run" }, { "output", "snap" },
		{ "pid", "io" },
	};
	static const char *const has_not[][2] = {
		{ "kind", "oncpu" },	{ "layer", "oncpu" }, { "count", "run" },
		{ "output", "record" }, { "nothing", "io" },
	};
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(has); i++)
		assert_true(sb_record_opt_is_for(has[i][0], has[i][1]));
	for (i = 0; i < SB_ARRAY_SIZE(has_not); i++)
		assert_false(sb_record_opt_is_for(has_not[i][0], has_not[i][1]));
}

/* Commands that a row is for, and that it is not for. */
static void test_rows_for_commands(void **state)
{
	static const struct sb_opt all = {}, some = { .commands = "io wall" },
				   others = { .commands = "!io wall" },
				   timed = { .views = SB_VIEW_TIMED, .commands = "top" },
				   files = { .views = SB_VIEW_FILES };

	assert_true(sb_opt_is_for(&all, "io"));
	assert_true(sb_opt_is_for(&some, "wall"));
	assert_false(sb_opt_is_for(&some, "wal"));
	assert_false(sb_opt_is_for(&some, "oncpu"));
	assert_false(sb_opt_is_for(&others, "io"));
	assert_false(sb_opt_is_for(&others, "wall"));
	assert_true(sb_opt_is_for(&others, "oncpu"));
	assert_true(sb_opt_is_for(&timed, "oncpu"));
	assert_true(sb_opt_is_for(&timed, "wall"));
	assert_true(sb_opt_is_for(&timed, "top"));
	assert_false(sb_opt_is_for(&timed, "io"));
	assert_false(sb_opt_is_for(&timed, "run"));
	assert_true(sb_opt_is_for(&files, "io"));
	assert_false(sb_opt_is_for(&files, "top"));
	check_names_of_commands();
}

static int teardown(void **state)
{
	sb_record_opts_release(&got);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spellings),      cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_sides),	       cmocka_unit_test(test_lists),
		cmocka_unit_test(test_rules),	       cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_bare_number),    cmocka_unit_test(test_command),
		cmocka_unit_test(test_wrong_values),   cmocka_unit_test(test_too_many_rules),
		cmocka_unit_test(test_missing_values), cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_contradictions), cmocka_unit_test(test_help_stops),
		cmocka_unit_test(test_rows),	       cmocka_unit_test(test_rows_for_commands),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
