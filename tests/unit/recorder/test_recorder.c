// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tags of samples, and options of `record`. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/recorder_opts.h"
#include "interp/core/interp.h"
#include "recorder/series.h"

static void check_cgroup(const char *text, const char *want)
{
	sb_cleanup(sb_str_release) struct sb_str path = {};

	assert_int_equal(sb_series_cgroup(text, &path), want ? 0 : -ENOENT);
	if (want)
		assert_string_equal(path.s, want);
}

static void test_cgroup(void **state)
{
	check_cgroup("0::/system.slice/nginx.service\n", "/system.slice/nginx.service");
	/* Version 1, with an empty tree of version 2 beside it. */
	check_cgroup("9:name=systemd:/a\n8:pids:/b\n4:memory:/c\n0::/\n", "/a");
	check_cgroup("9:name=systemd:/\n4:memory:/c\n0::/\n", "/c");
	check_cgroup("9:name=systemd:/\n0::/\n", NULL);
	/* A path may have what separates fields. */
	check_cgroup("0::/a:b:c", "/a:b:c");
	check_cgroup("", NULL);
	check_cgroup("0:", NULL);
	check_cgroup("0::", NULL);
	check_cgroup("::\n::", NULL);
	check_cgroup("12:memory", NULL);
}

#define ENVIRON(text) text, sizeof(text) - 1
static void check_service(const char *environ, size_t len, const char *want)
{
	sb_cleanup(sb_str_release) struct sb_str service = {};
	/* Exactly so many bytes, for the sanitizers. */
	sb_cleanup(sb_freep) char *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	memcpy(copy, environ, len);
	assert_int_equal(sb_series_service(copy, len, &service), want ? 0 : -ENOENT);
	if (want)
		assert_string_equal(service.s, want);
}

static void test_service(void **state)
{
	check_service(ENVIRON("A=b\0OTEL_SERVICE_NAME=shop\0C=d\0"), "shop");
	check_service(ENVIRON("OTEL_RESOURCE_ATTRIBUTES=a=b,service.name=bank,c=d\0"), "bank");
	check_service(
		ENVIRON("OTEL_RESOURCE_ATTRIBUTES=service.name=bank\0OTEL_SERVICE_NAME=shop\0"),
		"shop");
	check_service(ENVIRON("OTEL_RESOURCE_ATTRIBUTES=myservice.name=bank\0"), NULL);
	check_service(ENVIRON("OTEL_RESOURCE_ATTRIBUTES=service.name=\0"), NULL);
	check_service(ENVIRON("OTEL_RESOURCE_ATTRIBUTES=a=b, service.name=bank\0"), "bank");
	check_service(ENVIRON("OTEL_SERVICE_NAME=\0"), NULL);
	/* The environment was longer than what is read: this may be a part of a name. */
	check_service(ENVIRON("OTEL_SERVICE_NAME=sho"), NULL);
	check_service(ENVIRON(""), NULL);
	check_service(ENVIRON("\0\0\0"), NULL);
	check_service(ENVIRON("XOTEL_SERVICE_NAME=a\0"), NULL);
}

static struct sb_sample_key key_of(uint32_t tgid, const char *comm)
{
	struct sb_sample_key key = { .tgid = tgid, .tid = tgid, .start_ns = 5 };

	memcpy(key.comm, comm, strnlen(comm, sizeof(key.comm)));
	return key;
}

static struct sb_processes *processes;

static struct sb_series_table *table_of(struct sb_series_opts opts)
{
	struct sb_series_table *table;

	assert_int_equal(sb_series_new(&opts, &table), 0);
	assert_int_equal(sb_processes_new(NULL, &processes), 0);
	sb_series_begin(table, processes, NULL);
	return table;
}

static void free_table(struct sb_series_table *table)
{
	sb_series_free(table);
	sb_processes_free(processes);
}

static const char *tag_of(const struct sb_block_tags *tags, const char *name)
{
	size_t i;

	for (i = 0; i < tags->nr; i++)
		if (sb_streq(tags->at[i].key, name))
			return tags->at[i].value;
	return NULL;
}

static void test_series(void **state)
{
	static const char *const labels[] = { "vehicle" };
	static const char *const car[] = { "car" }, *const bike[] = { "bike" },
				 *const none[] = { NULL };
	struct sb_sample_key here = key_of((uint32_t)getpid(), "a\nb"),
			     other = key_of(0, "kworker/0:1");
	struct sb_series_table *table;
	const struct sb_block_tags *all;
	uint32_t first, second, third, fourth, again;
	char pid[16];
	size_t nr, i;

	table = table_of(
		(struct sb_series_opts){ .labels = labels, .nr_labels = 1, .nr_kinds = 1 });
	assert_int_equal(sb_series_of(table, &here, none, &first), 0);
	assert_int_equal(sb_series_of(table, &other, none, &second), 0);
	assert_int_equal(sb_series_of(table, &here, car, &third), 0);
	assert_int_equal(sb_series_of(table, &here, bike, &fourth), 0);
	assert_int_equal(sb_series_of(table, &here, car, &again), 0);
	assert_true(first && first != second && third != first && fourth != third &&
		    again == third);
	assert_int_equal(sb_series_all(table, &all, &nr), 0);
	assert_int_equal(nr, 5);
	assert_string_equal(tag_of(&all[0], "service"), "(other)");
	assert_string_equal(tag_of(&all[first], "comm"), "a?b");
	snprintf(pid, sizeof(pid), "%d", getpid());
	assert_string_equal(tag_of(&all[first], "pid"), pid);
	assert_null(tag_of(&all[first], "vehicle"));
	assert_string_equal(tag_of(&all[third], "vehicle"), "car");
	assert_string_equal(tag_of(&all[second], "service"), "kworker/0:1");
	for (i = 1; i < all[third].nr; i++)
		assert_true(strcmp(all[third].at[i - 1].key, all[third].at[i].key) < 0);
	sb_series_next_block(table);
	assert_int_equal(sb_series_all(table, &all, &nr), 0);
	assert_int_equal(nr, 0);
	assert_int_equal(sb_series_of(table, &other, none, &again), 0);
	assert_int_equal(again, 1);
	free_table(table);
}

/* One that began within the block has a pid if it is there at its end: of those that came and went
 * there may be thousands. */
static void test_pids(void **state)
{
	static const char *const none[] = { NULL };
	struct sb_sample_key here = key_of((uint32_t)getpid(), "here"), gone = key_of(0, "gone");
	struct sb_series_table *table;
	const struct sb_block_tags *all;
	uint32_t first, second, third;
	pid_t child = fork();
	size_t nr;

	if (!child)
		_exit(0);
	gone.tgid = (uint32_t)child;
	here.start_ns = gone.start_ns = UINT64_MAX;
	assert_int_equal(waitpid(child, NULL, 0), child);
	table = table_of((struct sb_series_opts){ .by_thread = true, .nr_kinds = 1 });
	assert_int_equal(sb_series_of(table, &here, none, &first), 0);
	assert_int_equal(sb_series_of(table, &gone, none, &second), 0);
	gone.start_ns = 5;
	assert_int_equal(sb_series_of(table, &gone, none, &third), 0);
	assert_int_equal(sb_series_all(table, &all, &nr), 0);
	assert_non_null(tag_of(&all[first], "pid"));
	assert_non_null(tag_of(&all[first], "tid"));
	assert_null(tag_of(&all[second], "pid"));
	assert_null(tag_of(&all[second], "tid"));
	assert_string_equal(tag_of(&all[second], "comm"), "gone");
	assert_non_null(tag_of(&all[third], "pid"));
	free_table(table);
}

/* What is found out of a process within a block is said of all of it; what was found out of one
 * that is gone stays. */
static void test_runtimes(void **state)
{
	static const char *const none[] = { NULL };
	struct sb_sample_key here = key_of((uint32_t)getpid(), "here"),
			     kernel = key_of(0, "swapper");
	const struct sb_space_key space = { .start_ns = here.start_ns, .tgid = here.tgid };
	struct sb_interp_confs confs;
	struct sb_series_table *table;
	const struct sb_block_tags *all;
	struct sb_interp *interp;
	uint32_t first, second;
	size_t nr;

	table = table_of((struct sb_series_opts){ .nr_kinds = 1 });
	assert_int_equal(sb_interp_new(&(struct sb_interp_opts){ .processes = processes }, &interp),
			 0);
	sb_series_begin(table, processes, interp);
	assert_int_equal(sb_series_of(table, &here, none, &first), 0);
	assert_int_equal(sb_series_of(table, &kernel, none, &second), 0);
	assert_int_equal(sb_series_all(table, &all, &nr), 0);
	assert_null(tag_of(&all[first], "runtime"));
	assert_int_equal(sb_interp_look(interp, &space, &confs), 0);
	assert_int_equal(sb_series_of(table, &here, none, &first), 0);
	sb_interp_ended(interp, &space);
	sb_processes_forget(processes, UINT64_MAX);
	assert_false(sb_interp_knows(interp, &space));
	assert_int_equal(sb_series_of(table, &here, none, &first), 0);
	assert_int_equal(sb_series_all(table, &all, &nr), 0);
	assert_int_equal(nr, 3);
	assert_string_equal(tag_of(&all[first], "runtime"), "native");
	assert_string_equal(tag_of(&all[second], "runtime"), "kernel");
	sb_interp_free(interp);
	free_table(table);
}

/* What is sampled together is apart in series, "(other)" as well. */
static void test_kinds(void **state)
{
	static const char *const none[] = { NULL };
	struct sb_sample_key key = key_of(0, "kworker/0:1");
	const struct sb_block_tags *all;
	struct sb_series_table *table;
	uint32_t series[3], kind, i;
	size_t nr;

	table = table_of((struct sb_series_opts){ .nr_kinds = 3 });
	for (kind = 0; kind < 3; kind++) {
		key.view = (uint8_t)kind;
		assert_int_equal(sb_series_of(table, &key, none, &series[kind]), 0);
	}
	assert_int_equal(sb_series_all(table, &all, &nr), 0);
	assert_int_equal(nr, 6);
	for (kind = 0; kind < 3; kind++) {
		assert_int_equal(all[kind].kind, kind);
		assert_string_equal(tag_of(&all[kind], "service"), "(other)");
		assert_int_equal(all[series[kind]].kind, kind);
		assert_string_equal(tag_of(&all[series[kind]], "comm"), "kworker/0:1");
	}
	/* One that has too many takes no room from the others. */
	for (i = 0; i < SB_BLOCK_SERIES_MAX; i++) {
		snprintf(key.comm, sizeof(key.comm), "t%u", i);
		assert_int_equal(sb_series_of(table, &key, none, &series[2]), 0);
	}
	assert_int_equal(sb_series_all(table, &all, &nr), 0);
	assert_string_equal(tag_of(&all[series[2]], "comm"), "(other)");
	key.view = 0;
	assert_int_equal(sb_series_of(table, &key, none, &series[0]), 0);
	assert_true(series[0] > 2);
	free_table(table);
}

/* As many names of threads as there may be pids: memory is bounded, the rest is "(other)" of whose
 * they are, and others who come later are not concerned. */
static void test_many(void **state)
{
	static const char *const none[] = { NULL };
	struct sb_series_table *table;
	const struct sb_block_tags *all;
	struct sb_sample_key key;
	uint32_t series, other = 0, i, nr_other = 0, later[100];
	char comm[16];
	size_t nr;

	table = table_of((struct sb_series_opts){ .nr_kinds = 1 });
	for (i = 0; i < 1000000; i++) {
		snprintf(comm, sizeof(comm), "t%u", i);
		key = key_of(0, comm);
		assert_int_equal(sb_series_of(table, &key, none, &series), 0);
		if (i == 999999)
			other = series;
	}
	for (i = 0; i < 100; i++) {
		snprintf(comm, sizeof(comm), "car%u", i);
		key = key_of((uint32_t)getpid(), comm);
		assert_int_equal(sb_series_of(table, &key, none, &later[i]), 0);
	}
	assert_int_equal(sb_series_all(table, &all, &nr), 0);
	assert_true(nr <= SB_BLOCK_SERIES_MAX);
	for (i = 0; i < nr; i++)
		nr_other += sb_streq(tag_of(&all[i], "comm"), "(other)");
	/* One of the kind, one of the owner. */
	assert_int_equal(nr_other, 2);
	assert_string_equal(tag_of(&all[other], "service"), "(other)");
	snprintf(comm, sizeof(comm), "%u", getuid());
	for (i = 0; i < 100; i++) {
		assert_int_equal(strncmp(tag_of(&all[later[i]], "comm"), "car", 3), 0);
		assert_string_equal(tag_of(&all[later[i]], "uid"), comm);
	}
	free_table(table);
}

static int parse(int (*fn)(void *, const char *, const char **), void *opts, const char *value)
{
	const char *why = NULL;
	int err = fn(opts, value, &why);

	assert_true(!err == !why);
	return err;
}

static void test_options(void **state)
{
	static const char *const bad_tags[] = { "",	 "a",	 "a=",	   "=b",
						"a b=c", "1a=b", "kind=x", "a{=b" };
	static const char *const bad_levels[] = { "",	   "10s",     "10s=",	 "10s=x",
						  "2d=1d", "10s=1d,", "10s=-1d", "10s=1q" };
	struct sb_recorder_config opts = {};
	struct sb_run_config run = {};
	size_t i;

	assert_int_equal(parse(sb_recorder_parse_kinds, &opts, "oncpu,io"), 0);
	assert_int_equal(opts.nr_kinds, 2);
	assert_string_equal(opts.kinds[1].name, "io");
	assert_ptr_equal(opts.kinds[1].view, sb_view_find("io"));
	assert_int_equal(parse(sb_recorder_parse_kinds, &opts, "trace:ssl,latency:a-name_of-14ch"),
			 0);
	assert_string_equal(opts.kinds[3].name, "latency:a-name_of-14ch");
	assert_ptr_equal(opts.kinds[3].view, sb_view_find("latency"));
	assert_int_equal(parse(sb_recorder_parse_kinds, &opts, "trace"), -EINVAL);
	assert_int_equal(parse(sb_recorder_parse_kinds, &opts, "trace:ssl"), -EINVAL);
	assert_int_equal(parse(sb_recorder_parse_kinds, &opts, "nothing:ssl"), -EINVAL);
	assert_int_equal(parse(sb_recorder_parse_kinds, &opts, "latency:a-name-of-15ch_"), -EINVAL);
	assert_int_equal(parse(sb_recorder_parse_kinds, &opts, "oncpu"), -EINVAL);
	assert_int_equal(parse(sb_recorder_parse_kinds, &opts, ""), -EINVAL);
	assert_int_equal(parse(sb_recorder_parse_tag, &opts, "region=a=b"), 0);
	assert_string_equal(opts.tags[0].key, "region");
	assert_string_equal(opts.tags[0].value, "a=b");
	for (i = 0; i < SB_ARRAY_SIZE(bad_tags); i++)
		assert_int_equal(parse(sb_recorder_parse_tag, &opts, bad_tags[i]), -EINVAL);
	assert_int_equal(parse(sb_recorder_parse_retain, &opts, "10s=2d,1d=0,1h=1y"), 0);
	assert_true(opts.has_keep[0] && opts.keep_s[0] == 2 * 86400);
	assert_true(opts.has_keep[3] && !opts.keep_s[3]);
	assert_true(opts.has_keep[2] && opts.keep_s[2] == 366 * 86400);
	assert_false(opts.has_keep[1]);
	for (i = 0; i < SB_ARRAY_SIZE(bad_levels); i++)
		assert_int_equal(parse(sb_recorder_parse_retain, &opts, bad_levels[i]), -EINVAL);
	assert_int_equal(parse(sb_recorder_parse_label, &run, "http.route"), 0);
	assert_int_equal(parse(sb_recorder_parse_label, &run, "a b"), -EINVAL);
	sb_recorder_opts_release(&opts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cgroup),	 cmocka_unit_test(test_service),
		cmocka_unit_test(test_series),	 cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_many),	 cmocka_unit_test(test_pids),
		cmocka_unit_test(test_runtimes), cmocka_unit_test(test_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
