// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The whole picture: same bytes for the same input, its data comes back, errors are told. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/str.h"
#include "flamegraph/embed.h"
#include "flamegraph/fg.h"
#include "flamegraph/opts.h"
#include "flamegraph/svg.h"
#include "folded_line.h"

static const char header[] = "#stackbpf;v=1;kind=offcpu;unit=us;dur_us=5000000;lost=3";
static const char *const lines[] = { "a;b_[k] 10", "a;b(int);x 5.5",	   "a;b;e 7",
				     "c d;- 100",  "c d;-;vfs_read_[k] 1", "[unknown] 2" };

static struct sb_fg *make_graph(void)
{
	struct sb_fg *fg;

	assert_int_equal(sb_fg_new(&fg), 0);
	assert_int_equal(add_folded(fg, header, strlen(header)), 0);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_int_equal(add_folded(fg, lines[i], strlen(lines[i])), 0);
	return fg;
}

/* Return: the text, freed by the caller. */
static char *render(struct sb_fg *fg, const struct sb_fg_opts *opts, int expected, size_t *len)
{
	char *text = NULL;
	FILE *file = open_memstream(&text, len);

	assert_non_null(file);
	assert_int_equal(sb_fg_render(fg, opts, file), expected);
	fclose(file);
	return text;
}

static struct sb_fg_opts *make_opts(const char *name, const char *value)
{
	struct sb_fg_opts *opts;

	assert_int_equal(sb_fg_opts_new(&opts), 0);
	if (name)
		assert_int_equal(sb_fg_opts_set(opts, name, value), 0);
	return opts;
}

static int extract(const char *svg, size_t len, char **ret_text, size_t *ret_len)
{
	FILE *in = fmemopen((void *)svg, len, "r"), *out = open_memstream(ret_text, ret_len);
	int err;

	assert_non_null(in);
	assert_non_null(out);
	err = sb_fg_extract(in, out);
	fclose(in);
	fclose(out);
	return err;
}

static struct sb_fg *make_comparison(void)
{
	static const struct sb_tree_frame stack[] = { { .name = "main", .len = 4 },
						      { .name = "a", .len = 1 },
						      { .name = "b", .len = 1 } };
	static const struct sb_tree_pair pairs[] = { { .weight = { 10, 1.5 } },
						     { .weight = { 3, 70 } },
						     { .weight = { 50, 7 } } };
	struct sb_fg *fg;

	assert_int_equal(sb_fg_new(&fg), 0);
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		assert_int_equal(sb_fg_add_pair(fg, stack, i + 1, &pairs[i]), 0);
		assert_int_equal(sb_fg_add_pair(fg, stack + i, 1, &pairs[i]), 0);
	}
	return fg;
}

/* Drawn again, a comparison is as if it had not been drawn before. */
static void test_again(void **state)
{
	static const char *const widths[] = { "b", "a", "both", "b" };
	struct sb_fg *again = make_comparison();
	size_t i;

	for (i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		struct sb_fg_opts *opts = make_opts("diff-width", widths[i]);
		struct sb_fg *once = make_comparison();
		size_t len, len_again;
		char *a = render(once, opts, 0, &len), *b = render(again, opts, 0, &len_again);

		assert_non_null(strstr(a, "main"));
		assert_int_equal(len, len_again);
		assert_memory_equal(a, b, len);
		free(a);
		free(b);
		sb_fg_free(once);
		sb_fg_opts_free(opts);
	}
	sb_fg_free(again);
}

static void test_same_input_same_bytes(void **state)
{
	struct sb_fg_opts *opts = make_opts("random", NULL);
	struct sb_fg *one = make_graph(), *two = make_graph();
	size_t len_one, len_two;
	char *a = render(one, opts, 0, &len_one), *b = render(two, opts, 0, &len_two);

	assert_int_equal(len_one, len_two);
	assert_memory_equal(a, b, len_one);
	free(a);
	free(b);
	sb_fg_free(one);
	sb_fg_free(two);
	sb_fg_opts_free(opts);
}

static void test_data_comes_back(void **state)
{
	struct sb_fg_opts *opts = make_opts(NULL, NULL);
	struct sb_fg *fg = make_graph(), *again;
	size_t len, text_len, len_again;
	char *svg = render(fg, opts, 0, &len), *text, *svg_again, *line, *rest;

	assert_int_equal(extract(svg, len, &text, &text_len), 0);
	assert_memory_equal(text, header, strlen(header));
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_non_null(strstr(text, lines[i]));
	/* The picture of what came back is the same picture. */
	assert_int_equal(sb_fg_new(&again), 0);
	rest = text;
	while ((line = strsep(&rest, "\n")) && *line)
		assert_int_equal(add_folded(again, line, strlen(line)), 0);
	svg_again = render(again, opts, 0, &len_again);
	assert_int_equal(len, len_again);
	assert_memory_equal(svg, svg_again, len);
	free(svg);
	free(text);
	free(svg_again);
	sb_fg_free(fg);
	sb_fg_free(again);
	sb_fg_opts_free(opts);
}

static void check_damaged(const char *svg, size_t len, int expected)
{
	size_t text_len;
	char *text;

	assert_int_equal(extract(svg, len, &text, &text_len), expected);
	free(text);
}

static void test_damaged_data(void **state)
{
	struct sb_fg_opts *opts = make_opts(NULL, NULL);
	struct sb_fg *fg = make_graph();
	size_t len;
	char *svg = render(fg, opts, 0, &len), *data = strstr(svg, "<folded") + 60;

	check_damaged("<svg/>", 6, -ENODATA);
	check_damaged("<folded", 7, -ENODATA);
	check_damaged("<folded>", 8, -EBADMSG);
	check_damaged("<folded></folded>", 17, -EBADMSG);
	check_damaged("<folded>!</folded>", 18, -EBADMSG);
	check_damaged("<folded>aGVsbG8=</folded>", 25, -EBADMSG);
	check_damaged(svg, (size_t)(data + 40 - svg), -EBADMSG);
	/* What the checksum at the end finds. */
	data[100] = data[100] == 'A' ? 'B' : 'A';
	check_damaged(svg, len, -EBADMSG);
	free(svg);
	sb_fg_free(fg);
	sb_fg_opts_free(opts);
}

static void test_no_samples(void **state)
{
	struct sb_fg_opts *opts = make_opts("title", "<&>");
	struct sb_fg *fg;
	size_t len;
	char *svg;

	assert_int_equal(sb_fg_new(&fg), 0);
	svg = render(fg, opts, -ENODATA, &len);
	assert_non_null(strstr(svg, "no samples"));
	assert_non_null(strstr(svg, "&lt;&amp;&gt;</text>"));
	assert_string_equal(svg + len - strlen("</svg>\n"), "</svg>\n");
	free(svg);
	sb_fg_free(fg);
	sb_fg_opts_free(opts);
}

static void test_full_disk(void **state)
{
	struct sb_fg_opts *opts = make_opts(NULL, NULL);
	struct sb_fg *fg = make_graph();
	FILE *full = fopen("/dev/full", "w");

	if (!full)
		skip();
	assert_int_equal(sb_fg_render(fg, opts, full), -ENOSPC);
	fclose(full);
	sb_fg_free(fg);
	sb_fg_opts_free(opts);
}

/* Text that is in the picture with an option, and not without it. */
static void check_option(const char *name, const char *value, const char *text)
{
	struct sb_fg_opts *opts = make_opts(name, value), *plain = make_opts(NULL, NULL);
	struct sb_fg *fg = make_graph();
	size_t len;
	char *with = render(fg, opts, 0, &len), *without = render(fg, plain, 0, &len);

	if (!strstr(with, text))
		fail_msg("--%s %s: no '%s'", name, value ? value : "", text);
	if (strstr(without, text))
		fail_msg("'%s' without --%s, too", text, name);
	free(with);
	free(without);
	sb_fg_free(fg);
	sb_fg_opts_free(opts);
	sb_fg_opts_free(plain);
}

static void test_options(void **state)
{
	check_option("title", "]]> & \"x\"", ">]]&gt; &amp; &quot;x&quot;</text>");
	check_option("subtitle", "at night", "at night</text>");
	check_option("notes", "kernel 6.1", "kernel 6.1</desc>");
	check_option("countname", "pages", "(125.50 pages");
	check_option("nametype", "Method:", "nametype=\"Method:\"");
	check_option("fonttype", "Monaco};x{", "font-family:Monacox,sans-serif}");
	check_option("width", "800", "viewBox=\"0 0 800 ");
	check_option("factor", "1000", "all (125.50 ms, 100%)");
	check_option("total", "251", "all (125.50 \xc2\xb5s, 50.0%)");
	check_option("max-depth", "1", "frames hatched: above level 1<");
	check_option("max-rects", "2", " so that at most 2 are drawn");
	check_option("minwidth", "10%", "narrower than 10.0%");
	check_option("inverted", NULL, "Off-CPU icicle graph");
	check_option("reverse", NULL, "Off-CPU flame graph, by leaf");
	check_option("bgcolors", "#abcdef", "#bg{fill:#abcdef}");
	check_option("bgcolors", "green", "#g1{stop-color:#e0ffe0}");
	check_option("no-embed", NULL, " partial=\"1\"");
	check_option("colors", "java", "L?(java|javax");
}

static void check_headings(const char *first, const char *second, const char *title,
			   const char *subtitle)
{
	struct sb_fg_opts *opts = make_opts(NULL, NULL);
	struct sb_fg *fg;
	char *svg, want[256];
	size_t len;

	assert_int_equal(sb_fg_new(&fg), 0);
	assert_int_equal(add_folded(fg, first, strlen(first)), 0);
	if (second)
		assert_int_equal(add_folded(fg, second, strlen(second)), 0);
	assert_int_equal(add_folded(fg, "a;b 1536000", 11), 0);
	svg = render(fg, opts, 0, &len);
	snprintf(want, sizeof(want), ">%s</text>", title);
	if (!strstr(svg, want))
		fail_msg("no title '%s'", title);
	snprintf(want, sizeof(want), ">%s</text>", subtitle);
	if (!strstr(svg, want))
		fail_msg("no subtitle '%s' in %.2000s", subtitle, strstr(svg, "\"subtitle\""));
	free(svg);
	sb_fg_free(fg);
	sb_fg_opts_free(opts);
}

#define DOT " \xc2\xb7 "

/* Each kind of run: its name, its unit for people, and what the run says of itself. */
static void test_headings(void **state)
{
	check_headings("#stackbpf;kind=offcpu;unit=us;dur_us=2000000;n=7;idle=250000", NULL,
		       "Off-CPU flame graph",
		       "1.54 s in 2 s" DOT "7 waits" DOT "250 ms idle left out");
	check_headings("#stackbpf;kind=offwake;unit=us;idle=0", NULL, "Off-wake flame graph",
		       "1.54 s");
	check_headings("#stackbpf;kind=wakeup;unit=us;n=1200", NULL, "Wakeup flame graph",
		       "1.54 s" DOT "1,200 wake-ups");
	check_headings("#stackbpf;kind=wall;unit=us;accounted=99.7;limited=1000", NULL,
		       "Wall-clock flame graph",
		       "1.54 s" DOT "99.7% accounted for" DOT "1 ms left out by --limit");
	check_headings("#stackbpf;kind=io;unit=bytes;n=12", NULL, "I/O flame graph",
		       "1.46 MiB" DOT "12 calls");
	check_headings("#stackbpf;kind=memory;unit=bytes;of=held;dur_us=2000000;accounted=98.2",
		       NULL, "Memory flame graph",
		       "1.46 MiB held, of what came in 2 s" DOT "98.2% accounted for");
	check_headings("#stackbpf;kind=memory;unit=bytes;of=churn;dur_us=2000000", NULL,
		       "Memory flame graph", "1.46 MiB came and went in 2 s");
	/* Of several inputs: sums, and the worst. */
	check_headings("#stackbpf;kind=wall;unit=us;accounted=99.7;idle=1000",
		       "#stackbpf;kind=wall;unit=us;accounted=98.2;idle=2000",
		       "Wall-clock flame graph",
		       "1.54 s" DOT "98.2% accounted for" DOT "3 ms idle left out");
	check_headings("#stackbpf;kind=wall;unit=us;accounted=98.2",
		       "#stackbpf;kind=wall;unit=us;accounted=x", "Wall-clock flame graph",
		       "1.54 s" DOT "98.2% accounted for");
	/* Not a number: not said. */
	check_headings("#stackbpf;kind=wall;unit=us;accounted=<b>;idle=-1", NULL,
		       "Wall-clock flame graph", "1.54 s");
	/* Sampled or not. */
	check_headings("#stackbpf;kind=oncpu;unit=us;n=12", NULL, "On-CPU flame graph",
		       "1.54 s" DOT "12 samples" DOT "few samples: shares are rough");
}

static void check_legend(const char *lines_of_run, const char *legend)
{
	struct sb_fg_opts *opts = make_opts(NULL, NULL);
	struct sb_str words = {};
	struct sb_fg *fg;
	char *copy = strdup(lines_of_run), *rest = copy, *line, *svg, *at, *end;
	size_t len;

	assert_int_equal(sb_fg_new(&fg), 0);
	while ((line = strsep(&rest, "\n")))
		assert_int_equal(add_folded(fg, line, strlen(line)), 0);
	svg = render(fg, opts, 0, &len);
	at = strstr(svg, "<g id=\"legend\">");
	end = at ? strstr(at, "</g>") : NULL;
	while (at && (at = strstr(at, "<text")) && at < end) {
		at = strchr(at, '>') + 1;
		assert_int_equal(sb_str_addf(&words, "%s%.*s", words.len ? ", " : "",
					     (int)(strstr(at, "</text>") - at), at),
				 0);
	}
	assert_string_equal(words.s ? words.s : "", legend);
	sb_str_release(&words);
	free(copy);
	free(svg);
	sb_fg_free(fg);
	sb_fg_opts_free(opts);
}

static void test_legends(void **state)
{
	check_legend("#stackbpf;kind=offwake;unit=us\na;b_[k];--;w;c 1", "user, kernel, waker");
	check_legend("#stackbpf;kind=offwake;unit=us\na;b_[k];--;w_[w];c_[w] 1",
		     "user, kernel, waker");
	check_legend("#stackbpf;kind=io;unit=bytes\na;b;sys_read;/x 1", "user, kernel, file");
	check_legend("#stackbpf;kind=io;unit=bytes\na;b;sys_read_[k];/x_[f] 1",
		     "user, kernel, file");
	check_legend("#stackbpf;kind=wall;unit=us\na;[running] 1\na;[runqueue] 1\na;[throttled] 1\n"
		     "a;b;[blocked] 1\n[residual] 1",
		     "user, running, waiting for a CPU, blocked, not accounted for");
	check_legend("#stackbpf;kind=oncpu\na;main;{main}_[p];f_[i];read_[k];[residual] 1",
		     "user, kernel, inlined, interpreter, not accounted for");
	check_legend("#stackbpf;kind=offcpu;unit=us\n[idle];a;b_[k] 1\n[runqueue];a 1\na;b_[k] 1",
		     "user, kernel, idle, waiting for a CPU");
}

/* Typed stacks give the picture that their text gives, whatever the kinds of the frames above
 * imply, and whatever the names of functions look like. */
static void test_typed_stacks(void **state)
{
	static const struct sb_tree_frame stacks[][4] = {
		{ { "a", 1, SB_FG_PLAIN }, { "b", 1, SB_FG_KERNEL } },
		{ { "[idle]", 6, SB_FG_IDLE }, { "b", 1, SB_FG_INTERP }, { "", 0, SB_FG_PLAIN } },
		{ { "a", 1, SB_FG_PLAIN },
		  { "--", 2, SB_FG_DELIMITER },
		  { "w", 1, SB_FG_PLAIN },
		  { "[c+0x1]", 7, SB_FG_UNKNOWN } },
		{ { "a", 1, SB_FG_PLAIN }, { "[runqueue]", 10, SB_FG_WAITING } },
		{ { "[idle]", 6, SB_FG_PLAIN }, { "[lock: mutex]", 13, SB_FG_PLAIN } },
		{ { "a", 1, SB_FG_PLAIN },
		  { "[lock: mutex]", 13, SB_FG_JIT },
		  { "[idle]", 6, SB_FG_JIT },
		  { "-", 1, SB_FG_PLAIN } },
		{ { "[vdso]", 6, SB_FG_UNKNOWN }, { "(other)", 7, SB_FG_MARK } },
	};
	static const char *const text[] = {
		"#stackbpf;v=1;kind=wall;unit=us;dur_us=2000000;n=7;lost=0;"
		"trunc=2;idle=5;accounted=99.65;governed_us=3;"
		"tags=a_b:c",
		"a;b_[k] 1",
		"[idle];b_[p];[empty] 2",
		"a;--;w;[c+0x1]_[j] 3",
		"a;[runqueue] 4",
		"[idle]_[c];[lock: mutex]_[c] 5",
		"a;[lock: mutex]_[j];[idle]_[j];-_[c] 6",
		"[vdso]_[u];(other)_[m] 7"
	};
	static const struct sb_metadata metadata = { .version = 1,
						     .kind = "wall",
						     .unit = "us",
						     .tags = "a b;c",
						     .dur_us = 2000000,
						     .nr_samples = 7,
						     .nr_truncated = 2,
						     .idle_weight = 5,
						     .accounted = 99.6499,
						     .governed_us = 3,
						     .has_nr_lost = true };
	struct sb_fg_opts *opts = make_opts(NULL, NULL);
	struct sb_fg *typed, *folded;
	size_t len_typed, len_folded, i, nr;
	char *a, *b;

	assert_int_equal(sb_fg_new(&typed), 0);
	assert_int_equal(sb_fg_new(&folded), 0);
	assert_int_equal(sb_fg_add_metadata(typed, &metadata), 0);
	assert_int_equal(sb_fg_add_stack(typed, NULL, 0, 1), -EINVAL);
	for (i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
		for (nr = 4; !stacks[i][nr - 1].name;)
			nr--;
		assert_int_equal(sb_fg_add_stack(typed, stacks[i], nr, (double)(i + 1)), 0);
	}
	for (i = 0; i < sizeof(text) / sizeof(text[0]); i++)
		assert_int_equal(add_folded(folded, text[i], strlen(text[i])), 0);
	a = render(typed, opts, 0, &len_typed);
	b = render(folded, opts, 0, &len_folded);
	assert_string_equal(a, b);
	free(a);
	free(b);
	sb_fg_free(typed);
	sb_fg_free(folded);
	sb_fg_opts_free(opts);
}

static void test_subtitle(void **state)
{
	struct sb_fg_opts *opts = make_opts(NULL, NULL);
	struct sb_fg *fg = make_graph();
	size_t len;
	char *svg = render(fg, opts, 0, &len);

	assert_non_null(strstr(svg, ">Off-CPU flame graph</text>"));
	assert_non_null(strstr(svg, ">125.50 \xc2\xb5s in 5 s \xc2\xb7 3 lost</text>"));
	free(svg);
	sb_fg_free(fg);
	sb_fg_opts_free(opts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_input_same_bytes),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_data_comes_back),
		cmocka_unit_test(test_damaged_data),
		cmocka_unit_test(test_no_samples),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_headings),
		cmocka_unit_test(test_legends),
		cmocka_unit_test(test_typed_stacks),
		cmocka_unit_test(test_subtitle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
