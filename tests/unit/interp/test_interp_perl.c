// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Perl's walker and names, on stacks of contexts made by hand, and on memory of any kind. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "interp/core/runtimes.h"
#include "interp/perl/perl_priv.h"

#define BASE	   0x5550000ull
#define NR_BYTES   (64u << 10)
#define INTERP	   BASE /* the interpreter itself */
#define FIRST_FREE 4096u

enum { SORT = 3, MULTICALL = 10, OVERLOAD = 5, MAIN = 1 };
enum {
	EVAL = 0x0b | 0x20,
	EVAL_BLOCK = 0x0b | 0x40,
	TRY = 0x0b | 0xc0,
	SUB = 9,
	LOOP = 4,
	BLOCK = 2
};

static uint8_t bytes[NR_BYTES];
static size_t nr_used;
static struct sb_interp_walk walk;
static struct sb_perl perl;
static struct sb_runtime rt;
static struct sb_memory memory;
static const struct sb_perl_conf *conf;
static uint64_t si_last;
static uint64_t gone_when_read; /* what is there is something else from then on */

static int read_bytes(void *arg, void *dst, size_t len, uint64_t addr)
{
	if (addr < BASE || addr - BASE > NR_BYTES || len > NR_BYTES - (addr - BASE))
		return -EFAULT;
	memcpy(dst, bytes + (addr - BASE), len);
	if (gone_when_read && gone_when_read - addr < len)
		memset(bytes + (gone_when_read - BASE), 0x77, 8);
	return 0;
}

static void put(uint64_t addr, const void *src, size_t len)
{
	assert_true(addr >= BASE && addr - BASE + len <= NR_BYTES);
	memcpy(bytes + (addr - BASE), src, len);
}

static void put64(uint64_t addr, uint64_t value)
{
	put(addr, &value, sizeof(value));
}

static void put32(uint64_t addr, uint32_t value)
{
	put(addr, &value, sizeof(value));
}

static uint64_t make(size_t len)
{
	uint64_t addr = BASE + nr_used;

	nr_used += (len + 7) / 8 * 8;
	assert_true(nr_used <= NR_BYTES);
	return addr;
}

static uint64_t make_hek(const char *name, uint8_t flags)
{
	uint32_t len = (uint32_t)strlen(name);
	uint64_t hek = make(len + 10);

	put32(hek + 4, len);
	put(hek + 8, name, len + 1);
	put(hek + 8 + len + 1, &flags, 1);
	return hek;
}

static uint64_t make_sv(uint32_t type, size_t body_bytes, uint64_t *body)
{
	uint64_t sv = make(24);

	*body = make(body_bytes);
	put64(sv, *body);
	put32(sv + 12, type);
	return sv;
}

static uint64_t make_stash(const char *name)
{
	uint64_t body, buckets, stash = make_sv(12, 80, &body);

	if (perl.minor >= 36) {
		put64(body + 32, make_hek(name, 0));
		return stash;
	}
	put64(body + 24, 7);
	buckets = make(8 * 8 + 40);
	put64(stash + 16, buckets);
	put64(buckets + 64, make_hek(name, 0));
	return stash;
}

static uint64_t make_gv(const char *package, const char *name, uint8_t flags)
{
	uint64_t body, gp = make(88), gv = make_sv(9, 56, &body);

	put64(gv + 16, gp);
	put64(gp + 56, gv);
	put64(body + 32, make_hek(name, flags));
	put64(body + 40, make_stash(package));
	return gv;
}

static uint64_t make_cv(uint64_t gv, uint32_t flags)
{
	uint64_t body, cv = make_sv(13, 112, &body);

	put64(body + 56, gv);
	put32(body + 92, flags);
	put32(body + 96, 1);
	return cv;
}

static uint64_t make_sub(const char *package, const char *name)
{
	return make_cv(make_gv(package, name, 0), 0);
}

static uint64_t make_named(const char *package, const char *name, uint32_t flags)
{
	uint64_t cv = make_cv(make_hek(name, 0), flags | 0x8000), body;

	memcpy(&body, bytes + (cv - BASE), 8);
	put64(body + 32, make_stash(package));
	return cv;
}

static uint64_t make_cop(const char *file, uint32_t line)
{
	uint64_t cop = make(88), at = make(strlen(file) + 1);

	put(at, file, strlen(file) + 1);
	put32(cop + 36, line);
	put64(cop + 48, at);
	return cop;
}

/* One record. */
struct cx {
	uint8_t type;
	uint64_t oldcop, retop, cv;
};

static void push_si(uint32_t type, uint32_t nr, const struct cx *cxs, int32_t subix)
{
	uint64_t si = make(64), stack = make((nr + 1) * conf->cx_bytes);
	uint32_t i;

	for (i = 0; i < nr; i++) {
		uint64_t at = stack + i * conf->cx_bytes;

		put(at, &cxs[i].type, 1);
		put64(at + 16, cxs[i].oldcop);
		put64(at + 48, cxs[i].retop);
		put64(at + conf->cx_cv, cxs[i].cv);
	}
	put64(si + 8, stack);
	put64(si + 16, si_last);
	put32(si + 32, nr - 1);
	put32(si + 36, nr);
	if (conf->si_type == 44)
		put32(si + 40, (uint32_t)subix);
	put32(si + conf->si_type, type);
	si_last = si;
}
#define NR(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))
#define PUSH_SI(type, ...)                                            \
	do {                                                          \
		const struct cx cxs_[] = { __VA_ARGS__ };             \
		push_si(type, NR(cxs_), cxs_, (int32_t)NR(cxs_) - 1); \
	} while (0)

static void begin_test(uint32_t minor)
{
	struct sb_perl_conf *to = (struct sb_perl_conf *)rt.conf.word;

	memset(bytes, 0, sizeof(bytes));
	memset(&rt.conf, 0, sizeof(rt.conf));
	nr_used = FIRST_FREE;
	si_last = 0;
	perl = (struct sb_perl){ .minor = minor, .has_threads = true };
	memory = (struct sb_memory){ .read = read_bytes };
	rt.ops = &sb_runtime_perl;
	rt.memory = &memory;
	rt.state = &perl;
	rt.conf.runtime = SB_RUNTIME_PERL;
	*to = (struct sb_perl_conf){
		.curcop = INTERP + 208,
		.curstackinfo = INTERP + 224,
		.compiling = INTERP,
		.compiling_bytes = 2048,
		.si_type = minor < 32 ? 40 : 44,
		.cx_bytes = minor < 32 ? 96 : 104,
		.cx_cv = minor < 32 ? 64 : 72,
	};
	conf = to;
}

/* "name:line", leaf first; '|' behind the end of a segment. */
static const char *walked(uint64_t cop)
{
	static char text[1024];
	struct sb_runtime_text name = {};
	size_t i, len = 0;
	int steps = 0;

	put64(INTERP + 208, cop);
	put64(INTERP + 224, si_last);
	memset(&walk, 0, sizeof(walk));
	walk.conf = rt.conf;
	walk.wants_lines = 1;
	if (rt.ops->begin(&walk, &memory) == SB_STEP_GO_ON)
		while (rt.ops->step(&walk, &memory) == SB_STEP_GO_ON)
			assert_true(steps++ < 2000);
	text[0] = '\0';
	for (i = 0; i < walk.nr_frames; i++) {
		sb_str_clear(&name.name);
		sb_str_clear(&name.file);
		name.line = 0;
		assert_int_equal(sb_perl_describe(&rt, &walk.frame[i], &name), 0);
		assert_true(len < sizeof(text) - 64);
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.40s", i ? " " : "",
					name.name.s);
		if (name.line)
			len += (size_t)snprintf(text + len, sizeof(text) - len, ":%u", name.line);
		if (walk.frame[i].where & SB_WHERE_END)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "|");
	}
	sb_str_release(&name.name);
	sb_str_release(&name.file);
	return text;
}

static void subs_and_evals_have_the_line_where_they_are(void **state)
{
	static const uint32_t minors[] = { 26, 32, 36 };
	size_t i;

	for (i = 0; i < NR(minors); i++) {
		begin_test(minors[i]);
		PUSH_SI(MAIN, { .type = BLOCK, .oldcop = INTERP + 1000 },
			{ .type = LOOP, .oldcop = 7 },
			{ SUB, make_cop("a.pl", 1), 1, make_sub("Foo", "bar") },
			{ EVAL_BLOCK, make_cop("a.pl", 2), 1, 0 },
			{ TRY, make_cop("a.pl", 99), 1, 0 },
			{ SUB, make_cop("a.pl", 3), 1, make_named("main", "x", 0) },
			{ SUB, make_cop("a.pl", 4), 1, make_named("main", "lex", 0x10000) });
		assert_string_equal(walked(make_cop("a.pl", 5)),
				    "lex:5 main::x:4 (eval):3 Foo::bar:2 {main}:1|");
		assert_int_equal(walk.status, SB_STACK_COMPLETE);
	}
}

static void segments_end_where_c_called(void **state)
{
	uint64_t cop;

	begin_test(36);
	cop = make_cop("a.pl", 1);
	PUSH_SI(MAIN, { .type = BLOCK, .oldcop = INTERP }, { SUB, cop, 1, make_sub("A", "out") },
		/* call_sv() with G_EVAL, and without. */
		{ EVAL_BLOCK, cop, 0, 0 }, { SUB, cop, 0, make_sub("A", "b") },
		{ SUB, cop, 0, make_sub("A", "c") });
	PUSH_SI(SORT, { SUB | 0x10, cop, 0, make_sub("A", "less") });
	PUSH_SI(OVERLOAD, { SUB, cop, 0, make_sub("A", "plus") });
	/* A sort with a block, which calls a sub last of all. */
	PUSH_SI(SORT, { .type = 0 }, { SUB, cop, 0, make_sub("A", "last") });
	/* A regular expression with code that is part of the sub. */
	PUSH_SI(MULTICALL, { SUB | 0x10 | 0x40 | 0x80, cop, 0, 0 },
		{ SUB, cop, 0, make_sub("A", "re") });
	assert_string_equal(walked(cop), "A::re:1 [ready]| A::last:1 [ready]| A::plus:1| "
					 "A::less:1 [ready]| A::c:1| A::b:1 (eval):1| A::out:1 "
					 "{main}:1|");
}

static void a_program_that_does_not_run_has_no_frame(void **state)
{
	begin_test(36);
	/* BEGIN: compiling. */
	PUSH_SI(MAIN, { EVAL_BLOCK, INTERP + 1900, 0, 0 },
		{ SUB, INTERP + 1900, 0, make_sub("A", "BEGIN") });
	assert_string_equal(walked(make_cop("a.pl", 1)), "A::BEGIN:1 (eval)|");
	/* A thread. */
	begin_test(36);
	PUSH_SI(MAIN, { SUB, make_cop("a.pl", 9), 0, make_sub("A", "run") });
	assert_string_equal(walked(make_cop("a.pl", 1)), "A::run:1|");
	/* Nothing. */
	begin_test(36);
	push_si(MAIN, 0, NULL, -1);
	assert_string_equal(walked(INTERP + 1900), "");
	assert_int_equal(walk.status, SB_STACK_COMPLETE);
}

static void a_record_that_is_being_made_is_none(void **state)
{
	const uint32_t minors[] = { 26, 36 };
	uint64_t cv, body;
	size_t i;

	for (i = 0; i < 2; i++) {
		/* Garbage. */
		begin_test(minors[i]);
		PUSH_SI(MAIN, { .type = BLOCK }, { SUB, make_cop("a", 1), 1, make_sub("A", "a") },
			{ SUB, 8, 1, 0x1234 });
		assert_string_equal(walked(make_cop("a", 2)), "A::a:2 {main}:1|");
		/* A sub that nobody is in. */
		begin_test(minors[i]);
		cv = make_sub("A", "left");
		memcpy(&body, bytes + (cv - BASE), 8);
		put32(body + 96, 0);
		PUSH_SI(MAIN, { .type = BLOCK }, { SUB, make_cop("a", 1), 1, make_sub("A", "a") },
			{ SUB, make_cop("a", 3), 1, cv });
		assert_string_equal(walked(make_cop("a", 2)), "A::a:2 {main}:1|");
	}
	/* From 5.32 on it is known. */
	begin_test(36);
	{
		const struct cx cxs[] = { { .type = BLOCK },
					  { SUB, make_cop("a", 1), 1, make_sub("A", "a") },
					  { EVAL, make_cop("a", 3), 1, 0 } };

		push_si(MAIN, NR(cxs), cxs, 1);
	}
	assert_string_equal(walked(make_cop("a", 2)), "A::a:2 {main}:1|");
}

static void names_are_utf8(void **state)
{
	begin_test(36);
	PUSH_SI(MAIN, { .type = BLOCK },
		{ SUB, make_cop("a", 1), 1, make_cv(make_gv("A", "caf\xe9", 0), 0) },
		{ SUB, make_cop("a", 2), 1, make_cv(make_gv("A", "caf\xc3\xa9\n", 1), 0) },
		{ SUB, make_cop("a", 3), 1, make_cv(0, 0) });
	assert_string_equal(walked(make_cop("a", 4)),
			    "(unknown):4 A::caf\xc3\xa9?:3 A::caf\xc3\xa9:2 {main}:1|");
}

static void a_statement_that_is_gone_has_no_line(void **state)
{
	struct sb_memory_recent recent = { .nr = 0 };
	struct sb_runtime_text text = {};
	uint64_t cop;
	int i;

	begin_test(36);
	cop = make_cop("(eval 7)", 1);
	PUSH_SI(MAIN, { .type = BLOCK }, { EVAL, make_cop("a", 1), 1, 0 });
	assert_string_equal(walked(cop), "(eval):1 {main}:1|");
	put32(cop + 36, 77);
	assert_int_equal(sb_perl_describe(&rt, &walk.frame[0], &text), 0);
	assert_string_equal(text.name.s, "(eval)");
	assert_int_equal(text.line, 0);
	assert_int_equal(text.file.len, 0);
	/* It goes while its file is read, which may be that of another by then; also where pages
	 * are kept. */
	for (i = 0; i < 2; i++) {
		cop = make_cop("(eval 8)", 1);
		assert_string_equal(walked(cop), "(eval):1 {main}:1|");
		memory.recent = i ? &recent : NULL;
		gone_when_read = cop + SB_PERL_COP_LINE;
		sb_str_clear(&text.name);
		assert_int_equal(sb_perl_describe(&rt, &walk.frame[0], &text), 0);
		gone_when_read = 0;
		assert_string_equal(text.name.s, "(eval)");
		assert_int_equal(text.line, 0);
		assert_int_equal(text.file.len, 0);
	}
	sb_str_release(&text.name);
	sb_str_release(&text.file);
}

static void stacks_that_are_none_end(void **state)
{
	uint64_t si;

	/* A ring. */
	begin_test(36);
	PUSH_SI(OVERLOAD, { SUB, make_cop("a", 1), 0, make_sub("A", "a") });
	si = si_last;
	PUSH_SI(OVERLOAD, { SUB, make_cop("a", 1), 0, make_sub("A", "b") });
	put64(si + 16, si_last);
	put64(INTERP + 224, si_last);
	memset(&walk, 0, sizeof(walk));
	walk.conf = rt.conf;
	assert_int_equal(rt.ops->begin(&walk, &memory), SB_STEP_GO_ON);
	while (rt.ops->step(&walk, &memory) == SB_STEP_GO_ON)
		;
	assert_int_equal(walk.status, SB_STACK_DEPTH);
	assert_int_equal(walk.nr_frames, SB_INTERP_FRAMES_MAX);
	/* No sub in the midst of the stack. */
	begin_test(36);
	PUSH_SI(MAIN, { .type = BLOCK }, { SUB, 8, 1, make_gv("A", "a", 0) },
		{ SUB, make_cop("a", 1), 1, make_sub("A", "b") });
	walked(make_cop("a", 2));
	assert_int_equal(walk.status, SB_STACK_BAD_CFA);
	assert_int_equal(walk.nr_frames, 1);
	/* A count of records beyond reason. */
	begin_test(36);
	push_si(MAIN, 0, NULL, -1);
	put32(si_last + 32, 0x7ffffff0);
	walked(make_cop("a", 2));
	assert_int_equal(walk.status, SB_STACK_BAD_CFA);
}

static void any_memory_is_survived(void **state)
{
	struct sb_runtime_text text = {};
	size_t round, i;

	srandom(1);
	for (round = 0; round < 2000; round++) {
		int steps = 0;

		begin_test(round % 2 ? 30 : 40);
		perl.has_threads = round % 3;
		/* Words that lead somewhere, and small ones. */
		for (i = 0; i < 4096; i += 8)
			put64(BASE + i * 8, random() % 4
						    ? BASE + (uint64_t)random() % NR_BYTES / 8 * 8
						    : (uint64_t)random() % 64);
		memset(&walk, 0, sizeof(walk));
		walk.conf = rt.conf;
		walk.wants_lines = round & 1;
		if (rt.ops->begin(&walk, &memory) != SB_STEP_GO_ON)
			continue;
		while (steps++ < SB_INTERP_STEPS_MAX &&
		       rt.ops->step(&walk, &memory) == SB_STEP_GO_ON)
			;
		for (i = 0; i < walk.nr_frames; i++) {
			sb_str_clear(&text.name);
			sb_str_clear(&text.file);
			sb_perl_describe(&rt, &walk.frame[i], &text);
		}
	}
	sb_str_release(&text.name);
	sb_str_release(&text.file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(subs_and_evals_have_the_line_where_they_are),
		cmocka_unit_test(segments_end_where_c_called),
		cmocka_unit_test(a_program_that_does_not_run_has_no_frame),
		cmocka_unit_test(a_record_that_is_being_made_is_none),
		cmocka_unit_test(names_are_utf8),
		cmocka_unit_test(a_statement_that_is_gone_has_no_line),
		cmocka_unit_test(stacks_that_are_none_end),
		cmocka_unit_test(any_memory_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
