// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What becomes of an output that cannot be written; how sentences of the report show numbers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/outputs.h"
#include "cli/record.h"
#include "cli/report.h"
#include "events/allocator.h"

/* An output that is missing is an error of the run, though it is the format that does not fit. */
static void test_no_durations(void **state)
{
	const struct sb_frame frame = { .name = "main" };
	const struct sb_output_opts opts = {};
	struct sb_outputs outputs = {};
	struct sb_profile *profile;
	uint32_t id;

	(void)state;
	assert_int_equal(sb_profile_new(&profile), 0);
	assert_int_equal(sb_profile_frame(profile, &frame, &id), 0);
	assert_int_equal(sb_profile_add(profile, &id, 1, 7), 0);
	assert_int_equal(sb_profile_seal(profile), 0);
	assert_int_equal(sb_outputs_add(&outputs, "-", sb_output_find("distr")), -1);
	assert_int_equal(sb_outputs_write(&outputs, profile, &opts), -EINVAL);
	sb_outputs_release(&outputs);
	sb_profile_free(profile);
}

/* No period is 0, however small the weight of a sample is. */
static void test_lowest(void **state)
{
	static const struct {
		uint64_t divisor, weight;
		const char *text;
		bool is_held;
	} cases[] = {
		{ 1000, 8, "one sample per 0.008 objects" },
		{ 1000, 999, "one sample per 0.999 objects" },
		{ 1000, 8000, "one sample per 8 objects" },
		{ 1, 1ull << 40, "one sample per 1099511627776 objects" },
		{ 1, 8000, "one of 8 allocations", true },
	};
	struct sb_view view = {};
	struct sb_run_config config = { .views = { .at = { &view }, .nr = 1 } };
	static struct sb_run run;
	static struct sb_run_figures figures;
	char text[64];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		run.config = &config;
		view.kind = cases[i].is_held ? SB_VIEW_KIND(heap) : SB_VIEW_KIND(offcpu);
		run.units[0].name = "objects";
		run.units[0].divisor = cases[i].divisor;
		figures.session.thinning.weight = cases[i].weight;
		sb_report_lowest(&run, &figures, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
}

/* What sb_report_empty_spans() says. */
static const char *said(const struct sb_run *run, const struct sb_run_figures *figures)
{
	static char text[1024];
	char path[] = "/tmp/sb-outputs-XXXXXX";
	int fd = mkstemp(path), saved = dup(STDERR_FILENO);
	ssize_t len;

	assert_true(fd >= 0 && !unlink(path));
	assert_true(saved >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	sb_report_empty_spans(run, figures, "3 in too many open spans");
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	len = pread(fd, text, sizeof(text) - 1, 0);
	close(fd);
	assert_true(len > 0);
	text[len] = '\0';
	return text;
}

/* Spans that were not followed are no lost samples, and samples of fast spans are not lost. */
static void test_full_spans(void **state)
{
	static struct sb_run_config config;
	static struct sb_run run = { .config = &config };
	static struct sb_run_figures figures;
	const char *text;

	(void)state;
	config.view_opts.slower_than_ns = 1000;
	figures.session.spans.nr_ended = 5;
	figures.session.stat[SB_STAT_SPANS_FULL] = 7;
	text = said(&run, &figures);
	assert_non_null(strstr(
		text, "nothing was recorded: 7 spans of --in were not followed, because the "
		      "table of spans was full; choose fewer targets or a longer --slower-than"));
	/* What helps against one of both makes the other worse. */
	figures.nr_lost = figures.session.spans.nr_samples_full = 3;
	text = said(&run, &figures);
	assert_non_null(
		strstr(text, "nothing was recorded: 3 samples were lost: 3 in too many open spans, "
			     "and 7 spans"));
	assert_non_null(strstr(text, "; choose fewer targets\n"));
	figures.session.stat[SB_STAT_SPANS_FULL] = 0;
	text = said(&run, &figures);
	assert_non_null(strstr(text, "; choose fewer targets or a shorter --slower-than\n"));
	/* For want of room elsewhere, the bound does not matter. */
	figures.session.spans.nr_samples_full = 0;
	text = said(&run, &figures);
	assert_non_null(strstr(text, "; choose fewer targets\n"));
	figures.nr_lost = 0;
	assert_non_null(strstr(said(&run, &figures), "none of 5 spans took 1"));
}

/* By chance, the pages that were followed can stand for more memory than came: it is not said that
 * they are a part of it. */
static void test_thinned_memory(void **state)
{
	static const struct sb_view view = { .follows_pages = true };
	struct sb_run_config config = { .views = { .at = { &view }, .nr = 1 } };
	static struct sb_run run;
	static struct sb_run_figures figures;
	struct sb_resident_stats *stats = &figures.session.resident;
	struct sb_str list = {};

	(void)state;
	run.config = &config;
	stats->nr_processes = stats->shift = 1;
	stats->top[0] = (struct sb_resident_process){
		.tgid = UINT32_MAX,
		.comm = "php",
		.rss = 60ull << 20,
		.before = 11ull << 20,
		.held = 57ull << 20,
		.unaccounted = 3ull << 20,
	};
	sb_report_memory_lines(&run, &figures, &list);
	assert_non_null(strstr(list.s,
			       "process 4294967295 (php): 60.0 MiB resident = 11.0 before the run "
			       "+ 49.0 that came, of which about 95.00 % is accounted for; the "
			       "pages that were followed stand for about 60.0 MiB\n"));
	assert_non_null(strstr(list.s, "which add up to what came on average only"));
	sb_str_release(&list);
}

/* Return: the bit of a runtime in sb_view_opts.own_heaps. */
static uint32_t own_heap(const char *name)
{
	uint32_t i;

	for (i = 0; strcmp(sb_own_heaps[i].name, name); i++)
		;
	return 1u << i;
}

static struct sb_run_figures of_source;

/* What sb_report_source() says. */
static const char *source(struct sb_run_config *config, const struct sb_tracing_stats *tracing)
{
	static struct sb_run run;
	static char text[2048];
	struct sb_str list = {};

	run.config = config;
	of_source.session.tracing = *tracing;
	sb_report_source(&run, &of_source, &list);
	snprintf(text, sizeof(text), "%s", list.s ? list.s : "");
	sb_str_release(&list);
	return text;
}

/* Of each runtime with a heap of its own, what it can tell; what is true of all is said once. */
static void test_own_heaps(void **state)
{
	const struct sb_tracing_stats by_pages = {};
	struct sb_run_config config = {};
	const char *text;

	(void)state;
	assert_string_equal(source(&config, &by_pages), "");
	config.view_opts.own_heaps = own_heap("Python") | own_heap("V8");
	text = source(&config, &by_pages);
	assert_non_null(strstr(text, "V8 keeps"));
	assert_non_null(strstr(text, "tracemalloc"));
	text = strstr(text, "pages do not show which code holds");
	assert_non_null(text);
	assert_null(strstr(text + 1, "pages do not show"));
}

/* Pages hold more than calls explain: by a runtime's heap there may be more than advice to trace
 * calls would find. */
static void test_rest(void **state)
{
	struct sb_tracing_stats tracing = { .is_on = true, .is_sampled = true, .nr_slices = 9 };
	struct sb_run_config config = {};
	const char *text;

	(void)state;
	tracing.pages = 10000000;
	tracing.calls = 4000000;
	text = source(&config, &tracing);
	assert_non_null(strstr(text, "of pages there are 10.0 MB, and 'stackbpf memory' shows "
				     "them; the result has 40 % of that, and the rest can be large "
				     "pieces that are rarely allocated"));
	assert_null(strstr(text, "runtime"));
	config.view_opts.own_heaps = own_heap("Python");
	text = source(&config, &tracing);
	assert_non_null(strstr(text, "rarely allocated, or objects in the heap of a runtime, which "
				     "neither --max-overhead off nor libstackbpf-alloc.so sees\n"
				     "Python keeps objects"));
	assert_non_null(strstr(text, "tracemalloc"));
	tracing.calls = 6000000;
	assert_null(strstr(source(&config, &tracing), "the rest"));
	/* Of each call. */
	tracing.is_sampled = false;
	text = source(&config, &tracing);
	assert_non_null(strstr(text, "60 % of that, and the rest can be objects in the heap"));
	tracing.calls = 8000000;
	assert_null(strstr(source(&config, &tracing), "the rest"));
	tracing.calls = 6000000;
	config.view_opts.own_heaps = 0;
	assert_null(strstr(source(&config, &tracing), "the rest"));
}

/* A stack of which no end was seen is held as far as is known: that is no estimate. */
static void test_no_ends(void **state)
{
	const struct sb_tracing_stats tracing = { .is_on = true,
						  .is_sampled = true,
						  .nr_slices = 9 };
	struct sb_run_config config = {};
	const char *text;

	(void)state;
	of_source.session.estimate =
		(struct sb_held_estimate){ .nr = 60, .held = 5000, .traced = 0.1 };
	text = source(&config, &tracing);
	assert_non_null(strstr(text, "so that all of it counts as held; the functions that give"));
	assert_null(strstr(text, "by this estimate"));
	of_source.session.estimate.gone = 15000;
	text = source(&config, &tracing);
	assert_non_null(strstr(text, "by this estimate, 25 % of the memory"));
	assert_null(strstr(text, "counts as held"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lowest),	       cmocka_unit_test(test_full_spans),
		cmocka_unit_test(test_thinned_memory), cmocka_unit_test(test_own_heaps),
		cmocka_unit_test(test_no_durations),   cmocka_unit_test(test_rest),
		cmocka_unit_test(test_no_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
