// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/reason.h"
#include "events/event.h"

static void test_spellings(void **state)
{
	static const struct {
		const char *text;
		enum sb_probe_kind kind;
		const char *file, *provider, *name;
		uint64_t offset;
		bool is_return, is_either;
	} rows[] = {
		{ "sched:sched_switch", SB_PROBE_TRACEPOINT, "sched", "", "sched_switch", 0, false,
		  true },
		{ "t:sched:sched_switch", SB_PROBE_TRACEPOINT, "sched", "", "sched_switch", 0,
		  false, false },
		{ "tracepoint:sched:*", SB_PROBE_TRACEPOINT, "sched", "", "*", 0, false, false },
		{ "vfs_read", SB_PROBE_KERNEL, "", "", "vfs_read", 0, false, false },
		{ "read", SB_PROBE_KERNEL, "", "", "read", 0, false, false },
		{ "p::vfs_read", SB_PROBE_KERNEL, "", "", "vfs_read", 0, false, false },
		{ "r::vfs_read", SB_PROBE_KERNEL, "", "", "vfs_read", 0, true, false },
		{ "k:vfs_read", SB_PROBE_KERNEL, "", "", "vfs_read", 0, false, false },
		{ "kr:vfs_read", SB_PROBE_KERNEL, "", "", "vfs_read", 0, true, false },
		{ "kprobe:vfs_read+8", SB_PROBE_KERNEL, "", "", "vfs_read", 8, false, false },
		{ "fexit:vfs_read", SB_PROBE_KERNEL, "", "", "vfs_read", 0, true, false },
		{ "fentry:xfs:xfs_file_open", SB_PROBE_KERNEL, "", "", "xfs_file_open", 0, false,
		  false },
		{ "c:malloc", SB_PROBE_TRACEPOINT, "c", "", "malloc", 0, false, true },
		{ "c:malloc+0x10", SB_PROBE_USER, "c", "", "malloc", 16, false, false },
		{ "p:c:malloc", SB_PROBE_USER, "c", "", "malloc", 0, false, false },
		{ "r:c:malloc", SB_PROBE_USER, "c", "", "malloc", 0, true, false },
		{ "./a.out:main", SB_PROBE_USER, "./a.out", "", "main", 0, false, false },
		{ "bin/x/y:main", SB_PROBE_USER, "bin/x/y", "", "main", 0, false, false },
		{ "/bin/x:0x1234", SB_PROBE_USER, "/bin/x", "", "", 0x1234, false, false },
		{ "uretprobe:/bin/x:f", SB_PROBE_USER, "/bin/x", "", "f", 0, true, false },
		{ "u:/bin/x:probe", SB_PROBE_USDT, "/bin/x", "", "probe", 0, false, false },
		{ "usdt:/bin/x:lib:probe", SB_PROBE_USDT, "/bin/x", "lib", "probe", 0, false,
		  false },
		{ "page-faults", SB_PROBE_PERF, "", "", "page-faults", 0, false, false },
		{ "rawtracepoint:sched_switch", SB_PROBE_TRACEPOINT, "*", "", "sched_switch", 0,
		  false, false },
		{ "app:ns::Worker::run", SB_PROBE_TRACEPOINT, "app", "", "ns::Worker::run", 0,
		  false, true },
		{ "./app:ns::*", SB_PROBE_USER, "./app", "", "ns::*", 0, false, false },
		{ "r:app:ns::f<int>", SB_PROBE_USER, "app", "", "ns::f<int>", 0, true, false },
		{ "usdt:/bin/x::probe", SB_PROBE_USDT, "/bin/x", "", "probe", 0, false, false },
		{ "cpu/event=0xa8/", SB_PROBE_PERF, "cpu", "", "event=0xa8", 0, false, false },
	};
	struct sb_reason reason = {};
	struct sb_event_spec spec;
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(rows); i++) {
		print_message("%s\n", rows[i].text);
		assert_int_equal(sb_event_parse(rows[i].text, &spec, &reason), 0);
		assert_int_equal(spec.kind, rows[i].kind);
		assert_string_equal(spec.file, rows[i].file);
		assert_string_equal(spec.provider, rows[i].provider);
		assert_string_equal(spec.name, rows[i].name);
		assert_true(spec.offset == rows[i].offset);
		assert_int_equal(spec.is_return, rows[i].is_return);
		assert_int_equal(spec.is_either, rows[i].is_either);
	}
}

static void test_counters(void **state)
{
	static const struct {
		const char *text;
		uint32_t type;
		uint64_t config, period;
		bool no_user, no_kernel;
	} rows[] = {
		{ "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0, false, false },
		{ "software:faults:100", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 100, false,
		  false },
		{ "h:cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 0, false,
		  false },
		{ "cycles:u", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, false, true },
		{ "cycles:k:9999", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 9999, true,
		  false },
		{ "cycles:uk", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, false, false },
		{ "r1a8", PERF_TYPE_RAW, 0x1a8, 0, false, false },
		{ "LLC-load-misses", PERF_TYPE_HW_CACHE, 2 | 1 << 16, 0, false, false },
		{ "cpu/event=0xa8/u:50", 0, 0, 50, false, true },
	};
	struct sb_reason reason = {};
	struct sb_event_spec spec;
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(rows); i++) {
		print_message("%s\n", rows[i].text);
		assert_int_equal(sb_event_parse(rows[i].text, &spec, &reason), 0);
		assert_int_equal(spec.kind, SB_PROBE_PERF);
		assert_int_equal(spec.counter.type, rows[i].type);
		assert_true(spec.counter.config[0] == rows[i].config);
		assert_true(spec.counter.period == rows[i].period);
		assert_int_equal(spec.counter.no_user, rows[i].no_user);
		assert_int_equal(spec.counter.no_kernel, rows[i].no_kernel);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{ "", "names no function" },
		{ "t:sched", "is not spelled like 't:sched:sched_process_exec'" },
		{ "a:b:c", "begins with no kind of event" },
		{ "uprob:/bin/x:f", "did you mean 'uprobe:'" },
		{ "a:b:c:d:e", "has too many colons" },
		{ "c:malloc+x", "has no offset" },
		{ "c:mal*+8", "a pattern and an offset" },
		{ "r:c:malloc+8", "returns as a whole" },
		{ ":malloc", "names no program or library" },
		{ "cycles:q", "has a modifier other than" },
		{ "cycles:0", "a number above 0" },
		{ "software:fault", "did you mean 'faults'" },
		{ "u::x", "names no program or no probe" },
		{ "ns::Worker::run", "names no file; write it as in ./server:Worker::run" },
	};
	struct sb_event_spec spec;
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(rows); i++) {
		struct sb_reason reason = {};

		print_message("%s\n", rows[i].text);
		assert_int_equal(sb_event_parse(rows[i].text, &spec, &reason), -EINVAL);
		assert_non_null(strstr(reason.text, rows[i].why));
	}
}

static void test_too_long(void **state)
{
	struct sb_reason reason = {};
	struct sb_event_spec spec;
	char text[4 * SB_EVENT_NAME_BYTES];

	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(sb_event_parse(text, &spec, &reason), -EINVAL);
	text[SB_EVENT_NAME_BYTES] = '\0';
	assert_int_equal(sb_event_parse(text, &spec, &reason), -EINVAL);
	text[SB_EVENT_NAME_BYTES - 1] = '\0';
	assert_int_equal(sb_event_parse(text, &spec, &reason), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spellings),
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
