// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* PHP's frames in a memory made by hand: names, lines, segments; memory that is nonsense. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/str.h"
#include "base/time.h"
#include "interp/core/runtimes.h"
#include "interp/core/step.h"
#include "interp/php/php_priv.h"

#include "bpf/step/sb_step_php.h"

#define BASE	 0x7f0000000000ull
#define BYTES	 (64u << 10)
#define FILENAME 168 /* 8.4 */
#define CURRENT	 488
#define SP	 0x7ffd00000000ull

#include "interp_image.h"

static struct sb_interp_walk walk;
static struct sb_runtime rt;
static struct sb_runtime_text text;
static uint64_t globals;

static uint64_t string(const char *s, uint32_t len)
{
	uint64_t addr = make(24 + len + 1);

	put32(addr + 4, 0x16); /* interned */
	put64(addr + 16, len);
	memcpy(image + (addr - BASE) + 24, s, len);
	return addr;
}

static uint64_t text_of(const char *s)
{
	return string(s, (uint32_t)strlen(s));
}

static uint64_t class_of(uint64_t name)
{
	uint64_t addr = make(64);

	put64(addr + 8, name);
	return addr;
}

static uint64_t function(uint8_t type, uint64_t name, uint64_t scope, uint32_t first, uint32_t last)
{
	uint64_t addr = make(256);

	put32(addr, type);
	put64(addr + 8, name);
	put64(addr + 16, scope);
	if (type != SB_PHP_INTERNAL) {
		put64(addr + FILENAME, text_of("/srv/app/x.php"));
		put32(addr + FILENAME + 8, first);
		put32(addr + FILENAME + 12, last);
	}
	return addr;
}

static uint64_t opline(uint32_t line, uint8_t opcode, uint32_t extended)
{
	uint64_t addr = make(32);

	put32(addr + 20, extended);
	put32(addr + 24, line);
	put32(addr + 28, opcode);
	return addr;
}

/* A frame on top of the last one. */
static uint64_t frame(uint64_t func, uint64_t op, uint32_t type_info)
{
	uint64_t addr = make(80), prev;

	memcpy(&prev, image + (globals + CURRENT - BASE), 8);
	put64(addr, op);
	put64(addr + 24, func);
	put32(addr + 40, type_info);
	put64(addr + 48, prev);
	put64(globals + CURRENT, addr);
	return addr;
}

static int setup(void **state)
{
	struct sb_php_conf *conf = (struct sb_php_conf *)rt.conf.word;

	(void)state;
	memset(image, 0, sizeof(image));
	memset(&walk, 0, sizeof(walk));
	used = 64;
	globals = make(1024);
	put64(globals + SB_PHP_BAILOUT, SP + 4096);
	rt.ops = &sb_runtime_php;
	rt.memory = &memory;
	rt.conf.runtime = SB_RUNTIME_PHP;
	*conf = (struct sb_php_conf){
		.globals = globals,
		.state = SB_PHP_GLOBAL,
		.current = CURRENT,
		.filename = FILENAME,
		.jit_begin = 0x1000000,
		.jit_end = 0x1100000,
		.frame_bytes = 64,
		.fp_slot = 2,
		.bx_slot = 5,
	};
	walk.sp = SP;
	walk.wants_lines = 1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sb_str_release(&text.name);
	sb_str_release(&text.file);
	return 0;
}

static void run(void)
{
	int i;

	walk.conf = rt.conf;
	walk.nr_frames = 0;
	memset(walk.at, 0, sizeof(walk.at));
	if (sb_runtime_php.begin(&walk, &memory) != SB_STEP_GO_ON)
		return;
	for (i = 0; i < SB_INTERP_STEPS_MAX; i++)
		if (sb_runtime_php.step(&walk, &memory) != SB_STEP_GO_ON)
			return;
	walk.status = SB_STACK_DEPTH;
}

static void expect(size_t i, const char *name, uint32_t line, bool is_end)
{
	assert_true(i < walk.nr_frames);
	sb_str_clear(&text.name);
	sb_str_clear(&text.file);
	text.line = 0;
	assert_int_equal(sb_php_describe(&rt, &walk.frame[i], &text), 0);
	assert_string_equal(text.name.s, name);
	assert_int_equal(text.line, line);
	assert_int_equal(!!(walk.frame[i].where & SB_WHERE_END), is_end);
}

static void test_stack(void **state)
{
	uint64_t foo = class_of(text_of("App\\Foo"));
	uint64_t anonymous = class_of(string("class@anonymous\0/srv/x.php:3$0", 30));

	(void)state;
	frame(function(2, 0, 0, 1, 90), opline(80, SB_PHP_OP_INCLUDE, 8), 0x30000);
	frame(function(2, 0, 0, 1, 9), opline(7, SB_PHP_OP_INCLUDE, 1), 0x10000);
	frame(function(4, 0, 0, 1, 1), opline(1, 60, 0), 0x10000);
	frame(function(2, text_of("st"), foo, 10, 20), opline(12, 60, 0), 0);
	frame(function(1, text_of("array_map"), 0, 0, 0), 0, 0);
	frame(0, 0, 0x20000); /* a copy of flags that means nothing */
	frame(function(2, text_of("App\\{closure}"), anonymous, 14, 14), opline(14, 60, 0),
	      0x20000);
	/* Called by C code, and itself C code: there is no loop. */
	frame(function(1, text_of("getName"), class_of(text_of("Reflector")), 0, 0), 0, 0x20000);
	frame(function(1, 0, 0, 0, 0), 0, 0); /* the root of a coroutine */
	run();
	assert_int_equal(walk.status, SB_STACK_COMPLETE);
	assert_int_equal(walk.nr_frames, 7);
	expect(0, "Reflector::getName", 0, false);
	expect(1, "class@anonymous::App\\{closure}", 14, true);
	expect(2, "array_map", 0, false);
	expect(3, "App\\Foo::st", 12, false);
	expect(4, "eval", 1, false);
	expect(5, "require(x.php)", 7, false);
	assert_string_equal(text.file.s, "/srv/app/x.php");
	expect(6, "{main}", 80, true);
}

static void test_leaf_line(void **state)
{
	uint64_t op, ex;

	(void)state;
	op = opline(31, 1, 0);
	opline(33, 1, 0);
	ex = frame(function(2, text_of("f"), 0, 30, 40), op, 0x20000);
	run();
	expect(0, "f", 31, true);
	/* In the loop. */
	walk.regs[14] = ex;
	walk.regs[15] = op + 32;
	run();
	expect(0, "f", 33, true);
	/* r15 has something else by now. */
	walk.regs[15] = op + 8;
	run();
	expect(0, "f", 31, true);
	walk.regs[15] = op + 64;
	run();
	expect(0, "f", 31, true);
	/* It has just begun: what is there is of another function. */
	walk.regs[14] = 0;
	put32(op + 24, 99);
	run();
	expect(0, "f", 0, true);
	walk.wants_lines = 0;
	run();
	expect(0, "f", 0, true);
}

static void test_others_thread(void **state)
{
	(void)state;
	frame(function(2, text_of("f"), 0, 1, 2), opline(1, 1, 0), 0x20000);
	walk.sp = SP + 8192;
	run();
	assert_int_equal(walk.nr_frames, 0);
	assert_int_equal(walk.status, SB_STACK_COMPLETE);
	walk.sp = SP - (64u << 20);
	run();
	assert_int_equal(walk.nr_frames, 0);
	put64(globals + SB_PHP_BAILOUT, 0); /* nobody has set one */
	run();
	assert_int_equal(walk.nr_frames, 1);
}

static void test_reuse(void **state)
{
	uint64_t func;

	(void)state;
	func = function(2, text_of("f"), 0, 1, 2);
	frame(func, opline(1, 1, 0), 0x20000);
	run();
	put64(func + 8, text_of("another"));
	assert_int_equal(sb_php_describe(&rt, &walk.frame[0], &text), -EBADMSG);
	put32(func, 7);
	assert_int_equal(sb_php_describe(&rt, &walk.frame[0], &text), -EBADMSG);
}

static uint64_t nr_reads;

static int count_read(void *arg, void *dst, size_t len, uint64_t addr)
{
	nr_reads++;
	return read_image(arg, dst, len, addr);
}

/* A process may have a thousand names that can never be read. One call tries only a part of them,
 * so that it does not hold the lock for all. */
static void test_rests_are_bounded(void **state)
{
	const struct sb_memory counting = { .read = count_read };
	uint64_t func = function(2, text_of("f"), 0, 1, 2), begin = sb_now_ns(), once;
	size_t i;

	(void)state;
	frame(func, opline(1, 1, 0), 0x20000);
	run();
	rt.memory = &counting;
	nr_reads = 0;
	assert_int_equal(sb_php_describe(&rt, &walk.frame[0], &text), 0);
	once = nr_reads;
	put64(func + 8, text_of("another"));
	nr_reads = 0;
	for (i = 0; i < 1000; i++)
		assert_int_equal(sb_php_describe(&rt, &walk.frame[0], &text), -EBADMSG);
	/* Each once; and 40 more in each second that it took. */
	assert_true(nr_reads <= once * (1000 + 40 * (2 + (sb_now_ns() - begin) / SB_NS_PER_SEC)));
}

/* Hashes as zend_hash_func() of PHP 8.2 on x86-64 gives them, and as it would on arm64, where char
 * has no sign. */
static void test_names_in_utf8(void **state)
{
	static const struct {
		const char *class, *name;
		uint64_t class_hash, name_hash;
	} machines[] = {
		{ "App\\Größe", "überprüfe", 0xbfc1df0bc986b3fb, 0xbcf6863933bd80c9 },
		{ "App\\Größe", "überprüfe", 0xbfc1df0bdc2ff7fb, 0xc291b2c29b9484c9 },
	};
	size_t i;

	for (i = 0; i < 2; i++) {
		uint64_t class, name;

		setup(state);
		class = text_of(machines[i].class);
		name = text_of(machines[i].name);
		put64(class + 8, machines[i].class_hash);
		put64(name + 8, machines[i].name_hash);
		frame(function(2, name, class_of(class), 1, 9), opline(7, 60, 0), 0x20000);
		run();
		expect(0, "App\\Größe::überprüfe", 7, true);
		put64(name + 8, machines[i].name_hash ^ 1); /* another string by now */
		assert_int_equal(sb_php_describe(&rt, &walk.frame[0], &text), -EBADMSG);
	}
}

/* File names are bytes, which are not refused; their strings need not have a hash. */
static void test_file_in_latin1(void **state)
{
	uint64_t func = function(2, text_of("f"), 0, 1, 9);

	(void)state;
	put64(func + FILENAME, text_of("/srv/caf\xe9.php"));
	frame(func, opline(7, 60, 0), 0x20000);
	run();
	expect(0, "f", 7, true);
	assert_string_equal(text.file.s, "/srv/caf?.php");
}

static void test_nonsense(void **state)
{
	uint64_t ex, func;

	(void)state;
	func = function(2, text_of("f"), 0, 1, 2);
	ex = frame(func, opline(1, 1, 0), 0x20000);
	put64(ex + 48, ex); /* for ever */
	run();
	assert_int_equal(walk.status, SB_STACK_DEPTH);
	assert_int_equal(walk.nr_frames, SB_INTERP_FRAMES_MAX);
	put64(ex + 24, 0);
	run();
	assert_int_equal(walk.status, SB_STACK_DEPTH);
	assert_int_equal(walk.nr_frames, 0);
	put64(ex + 24, func);
	put32(func, 3);
	run();
	assert_int_equal(walk.status, SB_STACK_FAULT);
	put64(globals + CURRENT, ex + 1);
	run();
	assert_int_equal(walk.status, SB_STACK_FAULT);
	put64(globals + CURRENT, 8);
	run();
	assert_int_equal(walk.status, SB_STACK_FAULT);
}

static void test_noise(void **state)
{
	uint32_t seed = 1, round, i;

	(void)state;
	for (round = 0; round < 300; round++) {
		for (i = 0; i < BYTES; i += 4) {
			seed = seed * 1103515245 + 12345;
			put32(BASE + i, seed >> 8);
			/* Every other word leads back. */
			if (i % 16 == 8 && seed >> 31)
				put64(BASE + i, BASE + (seed >> 12) % BYTES / 8 * 8);
		}
		put64(globals + SB_PHP_BAILOUT, SP + 64);
		put64(globals + CURRENT, BASE + (seed >> 9) % BYTES / 8 * 8);
		run();
		assert_in_range(walk.nr_frames, 0, SB_INTERP_FRAMES_MAX);
		for (i = 0; i < walk.nr_frames; i++) {
			sb_str_clear(&text.name);
			sb_str_clear(&text.file);
			sb_php_describe(&rt, &walk.frame[i], &text);
		}
	}
}

static int read_jit(void *arg, void *dst, size_t len, uint64_t addr)
{
	if (addr != 0x1000200 - 5)
		return read_image(arg, dst, len, addr);
	memset(dst, 0xe8, len);
	return 0;
}

static void test_jit(void **state)
{
	struct sb_walk native = {
		.pc = 0x1000100, .sp = BASE + 4096, .fp = 1, .user_end = 1ull << 47
	};

	(void)state;
	walk.conf = rt.conf;
	put64(native.sp + 64 - 8, 0x400100);
	put64(native.sp + 64 - 16, 0x77);
	assert_int_equal(sb_php_native(&walk, &native, &memory), SB_STEP_GO_ON);
	assert_int_equal(native.pc, 0x400100);
	assert_int_equal(native.sp, BASE + 4096 + 64);
	assert_int_equal(native.fp, 0x77);
	assert_int_equal(native.bx_at, BASE + 4096 + 24);
	assert_int_equal(sb_php_native(&walk, &native, &memory), SB_STEP_FP_CHAIN);
	/* In a shared piece, which has been called, and has put a word on the stack. */
	native.pc = 0x1000100;
	native.sp = BASE + 4096;
	memory.read = read_jit;
	put64(native.sp + 8, 0x1000200);
	put64(native.sp + 64 - 8 + 16, 0x400200);
	assert_int_equal(sb_php_native(&walk, &native, &memory), SB_STEP_GO_ON);
	assert_int_equal(native.pc, 0x400200);
	assert_int_equal(native.sp, BASE + 4096 + 64 + 16);
	memory.read = read_image;
	native.pc = 0x1000100;
	native.sp = 64;
	assert_int_equal(sb_php_native(&walk, &native, &memory), SB_STEP_END);
	assert_int_equal(native.status, SB_STACK_FAULT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stack, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leaf_line, setup, teardown),
		cmocka_unit_test_setup_teardown(test_others_thread, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reuse, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rests_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names_in_utf8, setup, teardown),
		cmocka_unit_test_setup_teardown(test_file_in_latin1, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nonsense, setup, teardown),
		cmocka_unit_test_setup_teardown(test_noise, setup, teardown),
		cmocka_unit_test_setup_teardown(test_jit, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
