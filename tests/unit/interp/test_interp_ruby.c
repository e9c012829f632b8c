// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Ruby's frames in a memory made by hand: names, lines, segments; memory that is nonsense. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/str.h"
#include "interp/core/runtimes.h"
#include "interp/core/step.h"
#include "interp/ruby/ruby_priv.h"

#include "bpf/step/sb_step_ruby.h"

#define BASE  0x7f0000000000ull
#define BYTES (256u << 10)
#define FS    (BASE + 64)
#define CFP   56 /* bytes: 3.3 */
/* Flags of objects: enum ruby_value_type, imemo types; FL_USER1. */
#define CLASS 2
#define ISEQ  (0x1a | 7 << 12)
#define MENT  (0x1a | 6 << 12)
#define CREF  (0x1a | 1 << 12)
#define SVAR  (0x1a | 2 << 12)
#define USER1 (1u << 13)
#define NIL   4

#include "interp_image.h"

static struct sb_interp_walk walk;
static struct sb_ruby ruby;
static struct sb_runtime_text text;
static uint64_t next_cfp, ec;

/* Short ones are in the object, as the layout has it; long ones elsewhere. */
static uint64_t string(const char *s)
{
	uint64_t addr = make(128), len = strlen(s), bytes = addr + ruby.layout->string_at;

	put64(addr, 5);
	if (ruby.layout->string_at == 16)
		put64(addr, 5 | len << 14);
	if (len > 20) {
		bytes = make((uint32_t)len);
		put64(addr, 5 | USER1);
		put64(addr + 24, bytes);
	}
	if (len > 20 || ruby.layout->string_at != 16)
		put64(addr + 16, len);
	memcpy(image + (bytes - BASE), s, len);
	return addr;
}

static uint64_t class_named(const char *name)
{
	uint64_t addr = make(256);

	put64(addr, CLASS);
	put64(addr + 32 + 120, name ? string(name) : NIL);
	return addr;
}

static uint64_t singleton_of(uint64_t obj)
{
	uint64_t addr = class_named(NULL);

	put64(addr, CLASS | 1u << ruby.layout->singleton_bit);
	put64(addr + 32 + 96, obj);
	return addr;
}

/* A method entry, and its definition. */
static uint64_t method(uint64_t owner, uint64_t id, uint64_t func)
{
	uint64_t addr = make(40), def = make(48);

	put64(addr, MENT);
	put64(addr + 16, def);
	put64(addr + 32, owner);
	put64(def + 8, func);
	put64(def + 32, id);
	return addr;
}

/* One instruction on each of the lines 1 to @nr_lines, in a file. */
static uint64_t iseq(const char *label, const char *base, uint32_t nr_lines)
{
	const struct sb_ruby_layout *layout = ruby.layout;
	uint64_t addr = make(24), body = make(256), entries = make(nr_lines * 12), i;
	uint64_t index = make(48 + 80), rank;

	put64(addr, ISEQ);
	put64(addr + 16, body);
	put32(body, 1);
	put32(body + 4, nr_lines);
	put64(body + 8, make(nr_lines * 8));
	put64(body + 64, string("/app/tree.rb"));
	put64(body + 72, string(base));
	put64(body + 80, string(label));
	put64(body + layout->info, entries);
	put32(body + layout->info_size, nr_lines);
	for (i = 0; i < nr_lines; i++) {
		put32(entries + i * layout->entry_bytes + layout->entry_line, (uint32_t)i + 1);
		if (!layout->info_index)
			put32(entries + i * 12, (uint32_t)i);
	}
	if (!layout->info_index)
		return addr;
	put64(body + layout->info_index, index);
	for (i = 0; i < nr_lines && i < 54; i++) {
		uint64_t at = index + 8 * (i / 9), val = 0;

		read_image(NULL, &val, 8, at);
		put64(at, val | (i + 1) << (7 * (i % 9)));
	}
	/* One block: all bits are set. */
	put64(index + 48, 54);
	for (i = rank = 0; i < 7; i++)
		rank |= (i + 1) * 64 << (9 * i);
	put64(index + 56, rank);
	for (i = 0; i < 8; i++)
		put64(index + 64 + 8 * i, ~0ull);
	return addr;
}

/* An environment. @prev: that of the block around, or 0: it is a method's. */
static uint64_t environment(uint64_t cref_or_method, uint64_t prev, uint32_t kind, uint32_t flags)
{
	uint64_t addr = make(24);

	put64(addr, cref_or_method);
	put64(addr + 8, prev | 1);
	put64(addr + 16, (uint64_t)kind << 16 | flags | 1 | (prev ? 0 : SB_RUBY_LOCAL));
	return addr + 16;
}

/* From the root on. */
static void push(uint64_t code, uint64_t position, uint64_t env)
{
	uint64_t encoded = 0, body = 0;

	next_cfp -= CFP;
	if (code) {
		read_image(NULL, &body, 8, code + 16);
		read_image(NULL, &encoded, 8, body + 8);
	}
	put64(next_cfp, code ? encoded + 8 * position : 0);
	put64(next_cfp + 16, code);
	put64(next_cfp + 32, env);
	put64(ec + 16, next_cfp);
}

static struct sb_ruby_conf *conf(void)
{
	return (struct sb_ruby_conf *)walk.conf.word;
}

static void begin(unsigned int major, unsigned int minor)
{
	uint64_t stack;

	memset(image, 0, sizeof(image));
	memset(&walk, 0, sizeof(walk));
	used = 128;
	ruby = (struct sb_ruby){ .layout = sb_ruby_layout(major, minor) };
	assert_non_null(ruby.layout);
	walk.conf.runtime = SB_RUNTIME_RUBY;
	walk.thread_pointer = FS;
	walk.wants_lines = 1;
	conf()->by = SB_RUBY_BY_OFFSET;
	conf()->ec_offset = (uint64_t)-16;
	conf()->cfp_bytes = CFP;
	ec = make(128);
	put64(FS - 16, ec);
	stack = make(CFP * 600);
	put64(ec, stack);
	put64(ec + 8, CFP * 600 / 8);
	next_cfp = stack + CFP * 600;
	push(0, 0, environment(0, 0, SB_RUBY_DUMMY, SB_RUBY_FINISH));
}

static uint32_t run(void)
{
	size_t i;

	memset(walk.at, 0, sizeof(walk.at));
	walk.nr_frames = 0;
	walk.status = SB_STACK_DEPTH;
	if (sb_runtime_ruby.begin(&walk, &memory) == SB_STEP_GO_ON)
		for (i = 0; i < SB_INTERP_STEPS_MAX; i++)
			if (sb_runtime_ruby.step(&walk, &memory) != SB_STEP_GO_ON)
				break;
	return walk.status;
}

static const char *name_of(size_t i)
{
	sb_str_clear(&text.name);
	sb_str_clear(&text.file);
	text.line = 0;
	text.native = 0;
	assert_true(i < walk.nr_frames);
	return sb_ruby_describe(&memory, &ruby, &walk.frame[i], &text) ? "?" : text.name.s;
}

static bool is_end(size_t i)
{
	return walk.frame[i].where & SB_WHERE_END;
}

/* The array of names: of the operators and of the serial number 171, which the ID 171 << 4 has. */
static void make_ids(const char *name)
{
	uint64_t ids = make(64), part = make(40), values = make(8 * 512 * 2);

	put64(ids, 7 | USER1 | 1 << 15);
	put64(ids + 16, part);
	put64(part, 7);
	put64(part + 16, 1024);
	put64(part + 32, values);
	put64(values + 16 * '+', string("+"));
	put64(values + 16 * 171, string(name));
	ruby.ids_addr = make(8);
	put64(ruby.ids_addr, ids);
}

static void names_have_their_class(void **state)
{
	uint64_t foo, leaf, block, meth;

	begin(3, 3);
	make_ids("each");
	foo = class_named("App::Foo");
	push(iseq("<main>", "<main>", 9), 3, environment(0, 0, SB_RUBY_TOP, SB_RUBY_FINISH));
	meth = environment(method(singleton_of(foo), 0, 0), 0, SB_RUBY_METHOD, 0);
	push(iseq("smeth", "smeth", 9), 1, meth);
	push(0, 0,
	     environment(method(class_named("Array"), 171 << 4, 0x1234), 0, SB_RUBY_CFUNC, 0));
	block = environment(make(8), meth, SB_RUBY_BLOCK, SB_RUBY_FINISH);
	push(iseq("block in smeth", "smeth", 9), 7, block);
	push(0, 0, environment(0, 0, SB_RUBY_IFUNC, 0));
	leaf = method(foo, 0, 0);
	push(iseq("a_name_that_does_not_fit_in", "a_name_that_does_not_fit_in", 9), 2,
	     environment(leaf, 0, SB_RUBY_METHOD, 0));
	push(0, 0, environment(method(foo, '+', 0), 0, SB_RUBY_CFUNC, 0));
	assert_int_equal(run(), SB_STACK_COMPLETE);
	assert_int_equal(walk.nr_frames, 6);
	assert_string_equal(name_of(0), "App::Foo#+");
	assert_string_equal(name_of(1), "App::Foo#a_name_that_does_not_fit_in");
	assert_int_equal(text.line, 2);
	assert_string_equal(text.file.s, "/app/tree.rb");
	assert_string_equal(name_of(2), "block in App::Foo.smeth");
	assert_true(is_end(2) && !is_end(0) && !is_end(1) && !is_end(3));
	assert_string_equal(name_of(3), "Array#each");
	assert_int_equal(text.native, 0x1234);
	assert_string_equal(name_of(4), "App::Foo.smeth");
	assert_string_equal(name_of(5), "<main>");
	assert_true(is_end(5));
}

static void a_class_without_a_name_is_left_out(void **state)
{
	begin(3, 4);
	push(iseq("one", "one", 1), 1,
	     environment(method(class_named(NULL), 0, 0), 0, SB_RUBY_METHOD, 0));
	push(iseq("two", "two", 1), 1,
	     environment(method(class_named("#<Class:0x1>::Foo"), 0, 0), 0, SB_RUBY_METHOD, 0));
	push(iseq("three", "three", 1), 1,
	     environment(method(singleton_of(string("x")), 0, 0), 0, SB_RUBY_METHOD, 0));
	push(iseq("block in <class:Foo>", "<class:Foo>", 1), 1,
	     environment(method(class_named("Foo"), 0, 0), 0, SB_RUBY_BLOCK, 0));
	push(iseq("<=>", "<=>", 1), 1,
	     environment(method(class_named("Foo"), 0, 0), 0, SB_RUBY_METHOD, 0));
	push(0, 0, environment(method(class_named("Foo"), 171 << 4, 0), 0, SB_RUBY_CFUNC, 0));
	assert_int_equal(run(), SB_STACK_COMPLETE);
	assert_string_equal(name_of(0), "Foo#(C function)");
	assert_string_equal(name_of(1), "Foo#<=>");
	assert_string_equal(name_of(2), "block in <class:Foo>");
	assert_string_equal(name_of(3), "three");
	assert_string_equal(name_of(4), "two");
	assert_string_equal(name_of(5), "one");
}

static void the_method_of_a_block_is_looked_for(void **state)
{
	uint64_t svar, env;
	int i;

	begin(3, 3);
	svar = make(24);
	put64(svar, SVAR);
	put64(svar + 8, method(class_named("Foo"), 0, 0));
	env = environment(svar, 0, SB_RUBY_METHOD, 0);
	for (i = 0; i < 20; i++) {
		uint64_t cref = make(24);

		put64(cref, CREF);
		env = environment(cref, env, SB_RUBY_BLOCK, 0);
	}
	push(iseq("block (20 levels) in bar", "bar", 1), 1, env);
	env = make(24) + 16;
	put64(env - 8, env); /* a block around itself */
	put64(env, (uint64_t)SB_RUBY_BLOCK << 16 | 1);
	push(iseq("block in bar", "bar", 1), 1, env);
	assert_int_equal(run(), SB_STACK_COMPLETE);
	assert_string_equal(name_of(0), "block in bar");
	assert_string_equal(name_of(1), "block (20 levels) in Foo#bar");
}

static void check_lines(unsigned int major, unsigned int minor)
{
	static const uint32_t positions[] = { 1, 2, 9, 10, 54, 55, 56, 118, 119, 183, 300 };
	uint64_t code;
	size_t i;

	begin(major, minor);
	code = iseq("bar", "bar", 300);
	for (i = 0; i < sizeof(positions) / sizeof(positions[0]); i++) {
		push(code, positions[i], environment(0, 0, SB_RUBY_METHOD, 0));
		assert_int_equal(run(), SB_STACK_COMPLETE);
		assert_string_equal(name_of(0), "bar");
		assert_int_equal(text.line, positions[i]);
	}
	/* A compiler does not keep the counter. */
	push(code, 301, environment(0, 0, SB_RUBY_METHOD, 0));
	run();
	assert_string_equal(name_of(0), "bar");
	assert_int_equal(text.line, 0);
}

static void lines_are_of_the_instruction_before(void **state)
{
	check_lines(2, 5);
	check_lines(2, 7);
	check_lines(3, 1);
	check_lines(3, 4);
}

static void classes_of_older_versions(void **state)
{
	uint64_t class, ext, table, entries;

	begin(3, 1);
	make_ids("__classpath__");
	class = make(64);
	ext = make(16);
	table = make(56);
	entries = make(48);
	put64(class, CLASS);
	put64(class + 24, ext);
	put64(ext + 8, table);
	put64(table + 40, 2);
	put64(table + 48, entries);
	put64(entries, ~0ull); /* was removed */
	put64(entries + 32, 171 << 4);
	put64(entries + 40, string("Old::Foo"));
	push(iseq("bar", "bar", 1), 1, environment(method(class, 0, 0), 0, SB_RUBY_METHOD, 0));
	assert_int_equal(run(), SB_STACK_COMPLETE);
	assert_string_equal(name_of(0), "Old::Foo#bar");
	put64(table + 40, UINT64_MAX);
	put64(entries + 32, 0);
	assert_string_equal(name_of(0), "bar");
}

static void threads_before_3_0(void **state)
{
	uint64_t thread, vm;

	begin(2, 7);
	push(iseq("<main>", "<main>", 1), 1, environment(0, 0, SB_RUBY_TOP, SB_RUBY_FINISH));
	thread = make(64);
	vm = make(8);
	conf()->by = SB_RUBY_BY_TSD;
	conf()->tsd.first_block = 0x310;
	conf()->key = 2;
	conf()->vm_addr = vm;
	conf()->thread_vm = ruby.layout->thread_vm;
	conf()->thread_ec = ruby.layout->thread_ec;
	put64(vm, BASE + 8);
	put64(thread + 24, BASE + 8);
	put64(thread + 32, ec);
	put64(FS + 0x310 + 2 * 16 + 8, thread);
	assert_int_equal(run(), SB_STACK_COMPLETE);
	assert_int_equal(walk.nr_frames, 1);
	put64(thread + 24, BASE); /* the key's value is something else */
	assert_int_equal(run(), SB_STACK_COMPLETE);
	assert_int_equal(walk.nr_frames, 0);
}

static void what_is_no_stack_ends_the_walk(void **state)
{
	begin(3, 3);
	push(iseq("bar", "bar", 1), 1, environment(0, 0, 0x1234, 0));
	assert_int_equal(run(), SB_STACK_BAD_FP);
	push(iseq("bar", "bar", 1), 1, 8);
	assert_int_equal(run(), SB_STACK_FAULT);
	put64(ec + 16, 8);
	assert_int_equal(run(), SB_STACK_BAD_FP);
	put64(ec + 8, UINT64_MAX);
	assert_int_equal(run(), SB_STACK_BAD_FP);
	put64(ec, 0);
	assert_int_equal(run(), SB_STACK_COMPLETE);
	put64(FS - 16, 8);
	assert_int_equal(run(), SB_STACK_FAULT);
	put64(FS - 16, 0);
	assert_int_equal(run(), SB_STACK_COMPLETE);
}

static void another_object_at_the_same_address_has_no_name(void **state)
{
	uint64_t code, body = 0;

	begin(3, 3);
	code = iseq("bar", "bar", 1);
	push(code, 1, environment(0, 0, SB_RUBY_METHOD, 0));
	run();
	assert_string_equal(name_of(0), "bar");
	read_image(NULL, &body, 8, code + 16);
	put64(code + 16, body + 16);
	assert_string_equal(name_of(0), "?");
	put64(code + 16, body);
	put64(code, 5);
	assert_string_equal(name_of(0), "?");
}

/* Words that mean something here and there, at random. */
static void nonsense_ends(void **state)
{
	uint32_t round, i, seed = 1;
	uint64_t at;

	for (round = 0; round < 300; round++) {
		begin(round & 1 ? 3 : 2, round & 1 ? round / 2 % 5 : 5 + round / 2 % 3);
		make_ids("x");
		push(iseq("bar", "bar", 60), 1,
		     environment(method(class_named("Foo"), 171 << 4, 0), 0, SB_RUBY_METHOD, 0));
		push(0, 0,
		     environment(method(class_named("Foo"), 171 << 4, 0), 0, SB_RUBY_CFUNC, 0));
		for (i = 0; i < 2000; i++) {
			seed = seed * 1664525 + 1013904223;
			at = BASE + 128 + seed / 8 % ((used - 128) / 8) * 8;
			seed = seed * 1664525 + 1013904223;
			put64(at, seed & 0x800 ? BASE + seed % used : seed);
		}
		run();
		assert_true(walk.nr_frames <= SB_INTERP_FRAMES_MAX);
		for (i = 0; i < walk.nr_frames; i++)
			name_of(i);
	}
}

static int release(void **state)
{
	sb_str_release(&text.name);
	sb_str_release(&text.file);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_have_their_class),
		cmocka_unit_test(a_class_without_a_name_is_left_out),
		cmocka_unit_test(the_method_of_a_block_is_looked_for),
		cmocka_unit_test(lines_are_of_the_instruction_before),
		cmocka_unit_test(classes_of_older_versions),
		cmocka_unit_test(threads_before_3_0),
		cmocka_unit_test(what_is_no_stack_ends_the_walk),
		cmocka_unit_test(another_object_at_the_same_address_has_no_name),
		cmocka_unit_test(nonsense_ends),
	};

	return cmocka_run_group_tests(tests, NULL, release);
}
