// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* CPython's frames, names and lines in hand-made memory, and in memory that makes no sense. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "interp/python/python_priv.h"

#define BASE  0x7f0000000000ull
#define BYTES 8192u

static union {
	uint8_t byte[BYTES];
	uint64_t word[BYTES / 8];
} there;

static int read_there(void *arg, void *dst, size_t len, uint64_t addr)
{
	if (addr < BASE || addr - BASE > BYTES || len > BYTES - (addr - BASE))
		return -EFAULT;
	memcpy(dst, there.byte + (addr - BASE), len);
	return 0;
}

static struct sb_memory memory = { .read = read_there };
static struct sb_interp_walk walk;

/* As CPython 3.13 has it. */
static const struct sb_python_layout layout = {
	.version = SB_PYTHON(3, 13),
	.code_type = BASE + 8000,
	.first_line = 68,
	.name = 120,
	.qualname = 128,
	.line_table = 136,
	.type = 8,
	.type_name = 24,
	.bytes_length = 16,
	.bytes_data = 32,
	.text_length = 16,
	.text_state = 32,
	.text_ascii = 40,
	.text_compact = 56,
	.text_kind_shift = 2,
};
static const struct sb_python_conf conf_313 = {
	.tls = -16ull,
	.interps = BASE,
	.main_interp = BASE + 64,
	.flags = SB_PYTHON_SHIMS | SB_PYTHON_CURRENT | SB_PYTHON_TLS_FS,
	.interp_next = 0,
	.interp_threads = 8,
	.state_next = 8,
	.state_thread_id = 24,
	.state_frame = 32,
	.code_word = 0,
	.back_word = 1,
	.instr_word = 7,
	.owner_byte = 70,
	.code_filename = 112,
	.code_adaptive = 200,
};

static void put(uint64_t addr, uint64_t val)
{
	memcpy(there.byte + (addr - BASE), &val, sizeof(val));
}

static void put_frame(uint64_t addr, uint64_t code, uint64_t back, uint64_t unit, uint8_t owner)
{
	put(addr, code | 1);
	put(addr + 8, back);
	put(addr + 56, code + 200 + 2 * unit);
	there.byte[addr - BASE + 70] = owner;
}

static void put_text(uint64_t addr, const void *text, size_t len, uint8_t kind, bool is_ascii)
{
	put(addr + 16, len);
	put(addr + 32, (uint64_t)kind << 2 | 1u << 5 | (uint64_t)is_ascii << 6);
	memcpy(there.byte + (addr - BASE) + (is_ascii ? 40 : 56), text, len * kind);
}

/* Run the walker from a thread whose pointer is BASE + 1024; its state is at BASE + 512. */
static void run(void)
{
	memset(walk.at, 0, sizeof(walk.at));
	walk.conf.runtime = SB_RUNTIME_PYTHON;
	memcpy(walk.conf.word, &conf_313, sizeof(conf_313));
	walk.thread_pointer = BASE + 1024;
	walk.wants_lines = 1;
	walk.nr_frames = 0;
	walk.status = SB_STACK_DEPTH;
	if (sb_python_begin(&walk, &memory) != SB_STEP_GO_ON)
		return;
	for (size_t i = 0; i < SB_INTERP_STEPS_MAX; i++)
		if (sb_python_step(&walk, &memory) != SB_STEP_GO_ON)
			return;
}

static void begin(void)
{
	memset(&there, 0, sizeof(there));
	put(BASE, BASE + 64);
	put(BASE + 1024 - 16, BASE + 512);
	put(BASE + 512 + 24, BASE + 1024);
	put(BASE + 512 + 32, BASE + 2048);
}

static void shims_end_segments(void **state)
{
	begin();
	put_frame(BASE + 2048, BASE + 4096, BASE + 2176, 4, 0);
	put_frame(BASE + 2176, BASE + 4608, BASE + 2304, 2, 1);
	put_frame(BASE + 2304, BASE + 7000, BASE + 2432, 0, 3);
	put_frame(BASE + 2432, BASE + 4096, BASE + 2560, 1, 0);
	put_frame(BASE + 2560, BASE + 7000, 0, 0, 4);
	run();
	assert_int_equal(walk.status, SB_STACK_COMPLETE);
	assert_int_equal(walk.nr_frames, 3);
	assert_int_equal(walk.frame[0].obj, BASE + 4096);
	assert_int_equal(sb_where_position(walk.frame[0].where), 5);
	assert_false(walk.frame[0].where & SB_WHERE_END);
	assert_int_equal(walk.frame[1].obj, BASE + 4608);
	assert_true(walk.frame[1].where & SB_WHERE_END);
	assert_true(walk.frame[2].where & SB_WHERE_END);
}

static void interpreters_are_stitched(void **state)
{
	begin();
	put_frame(BASE + 2048, BASE + 4096, 0, 0, 0);
	/* A younger interpreter, whose thread is another one, leads the list; then the main one,
	 * where this thread has a second state. */
	put(BASE, BASE + 128);
	put(BASE + 128, BASE + 64);
	put(BASE + 128 + 8, BASE + 768);
	put(BASE + 768 + 24, 4711);
	put(BASE + 64 + 8, BASE + 512);
	put(BASE + 512 + 8, BASE + 640);
	put(BASE + 640 + 24, BASE + 1024);
	put(BASE + 640 + 32, BASE + 2176);
	put_frame(BASE + 2176, BASE + 4608, 0, 0, 0);
	run();
	assert_int_equal(walk.status, SB_STACK_COMPLETE);
	assert_int_equal(walk.nr_frames, 2);
	assert_int_equal(walk.frame[0].obj, BASE + 4096);
	assert_int_equal(walk.frame[1].obj, BASE + 4608);
	assert_true(walk.frame[0].where & SB_WHERE_END);
	assert_true(walk.frame[1].where & SB_WHERE_END);
}

static void no_python_in_this_thread(void **state)
{
	begin();
	put(BASE + 1024 - 16, 0);
	run();
	assert_int_equal(walk.status, SB_STACK_COMPLETE);
	assert_int_equal(walk.nr_frames, 0);
}

static void cycles_end(void **state)
{
	begin();
	put_frame(BASE + 2048, BASE + 4096, BASE + 2048, 0, 0);
	run();
	assert_int_equal(walk.status, SB_STACK_DEPTH);
	put_frame(BASE + 2048, BASE + 4096, BASE + BYTES, 0, 0);
	run();
	assert_int_equal(walk.status, SB_STACK_FAULT);
	assert_int_equal(walk.fault_addr, BASE + BYTES);
	/* Of interpreters, and of threads. */
	put(BASE, BASE + 128);
	put(BASE + 128, BASE + 128);
	put(BASE + 128 + 8, BASE + 768);
	put(BASE + 768 + 8, BASE + 768);
	put(BASE + 512 + 32, 0);
	run();
	assert_int_equal(walk.status, SB_STACK_DEPTH);
}

static void put_code(uint64_t addr)
{
	put(addr + 8, layout.code_type);
	put(addr + 68, 7);
	put(addr + 112, BASE + 5120);
	put(addr + 120, BASE + 5376);
	put(addr + 128, BASE + 5376);
	put(addr + 136, BASE + 5632);
	put_text(BASE + 5120, "/src/a.py", 9, 1, true);
	/* one line on, two units; none, one unit */
	put(BASE + 5632 + 16, 4);
	memcpy(there.byte + 5632 + 32, "\xd9\x01\x02\xf8", 4);
}

/* A frame of the code object at BASE + 4096. */
static int describe(uint64_t position, struct sb_runtime_text *text)
{
	const uint64_t *words = &there.word[(4096 + 112) / 8];
	uint64_t check = sb_python_check(words[0], words[1], words[2]);
	const struct sb_interp_frame frame = { BASE + 4096,
					       check << SB_WHERE_CHECK_SHIFT | position };

	return sb_python_code(&memory, &layout, &frame, text);
}

/* The frame of a code object that was freed has the name of none that was made at its address. */
static void replaced_code(void **state)
{
	struct sb_runtime_text text = {};
	struct sb_interp_frame frame;

	begin();
	put_code(BASE + 4096);
	put_text(BASE + 5376, "old", 3, 1, true);
	put_text(BASE + 5888, "new", 3, 1, true);
	put_frame(BASE + 2048, BASE + 4096, 0, 0, 0);
	run();
	assert_int_equal(walk.nr_frames, 1);
	frame = walk.frame[0];
	assert_int_equal(sb_python_code(&memory, &layout, &frame, &text), 0);
	assert_string_equal(text.name.s, "old");
	put(BASE + 4096 + 120, BASE + 5888);
	put(BASE + 4096 + 128, BASE + 5888);
	sb_str_clear(&text.name);
	assert_int_equal(sb_python_code(&memory, &layout, &frame, &text), -EBADMSG);
	assert_int_equal(text.name.len, 0);
	sb_str_release(&text.name);
	sb_str_release(&text.file);
}

static struct {
	uint64_t addr[8];
	size_t nr;
} wanted;

static void note_wanted(void *arg, uint64_t addr)
{
	assert_true(wanted.nr < SB_ARRAY_SIZE(wanted.addr));
	wanted.addr[wanted.nr++] = addr;
}

/* All that a name needs can be read by two requests: the code object, and what it points to. */
static void wants_are_told(void **state)
{
	struct sb_runtime_text text = {};

	begin();
	put_code(BASE + 4096);
	/* The texts cannot be read yet: the first of them ends it. */
	put(BASE + 4096 + 112, BASE + BYTES + 1);
	put(BASE + 4096 + 128, BASE + BYTES + 2);
	put(BASE + 4096 + 136, BASE + BYTES + 3);
	memory.want = note_wanted;
	assert_int_equal(describe(2, &text), -EFAULT);
	memory.want = NULL;
	assert_int_equal(wanted.nr, 5);
	assert_int_equal(wanted.addr[0], BASE + 4096);
	assert_int_equal(wanted.addr[1], BASE + 4096 + 136);
	assert_int_equal(wanted.addr[2], BASE + BYTES + 2);
	assert_int_equal(wanted.addr[3], BASE + BYTES + 1);
	assert_int_equal(wanted.addr[4], BASE + BYTES + 3);
	sb_str_release(&text.name);
}

static void names_and_lines(void **state)
{
	static const uint16_t wide[] = { 'f', 0xe9, 0x20ac, 0xd800, 1 };
	struct sb_runtime_text text = {};

	begin();
	put_code(BASE + 4096);
	put_text(BASE + 5376, wide, 5, 2, false);
	assert_int_equal(describe(2, &text), 0);
	assert_string_equal(text.name.s, "f\xc3\xa9\xe2\x82\xac??");
	assert_string_equal(text.file.s, "/src/a.py");
	assert_int_equal(text.line, 8);
	assert_int_equal(describe(3, &text), 0);
	assert_int_equal(text.line, 0);
	/* Not a code object; a name longer than any. */
	put(BASE + 4096 + 8, BASE + 7000);
	assert_int_equal(describe(2, &text), -EFAULT);
	put(BASE + 4096 + 8, layout.code_type);
	put(BASE + 5376 + 16, 1u << 20);
	assert_int_equal(describe(2, &text), -EBADMSG);
	sb_str_release(&text.name);
	sb_str_release(&text.file);
}

static void noise(void **state)
{
	struct sb_runtime_text text = {};
	uint8_t table[64];

	srand(7);
	for (int round = 0; round < 3000; round++) {
		for (size_t i = 0; i < BYTES; i++)
			there.byte[i] = (uint8_t)rand();
		/* Words that point into it, too. */
		for (size_t i = 0; i < 400; i++)
			there.word[(size_t)rand() % (BYTES / 8)] = BASE + (uint64_t)rand() % BYTES;
		put(BASE + 1024 - 16, BASE + 512);
		run();
		assert_in_range(walk.nr_frames, 0, SB_INTERP_FRAMES_MAX);
		sb_str_clear(&text.name);
		sb_str_clear(&text.file);
		describe((uint64_t)rand() % 999, &text);
		memcpy(table, there.byte, sizeof(table));
		for (uint32_t minor = 6; minor < 16; minor++)
			sb_python_line(SB_PYTHON(3, minor), table, sizeof(table), (uint32_t)rand(),
				       (uint64_t)rand() % 999);
	}
	sb_str_release(&text.name);
	sb_str_release(&text.file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shims_end_segments),
		cmocka_unit_test(interpreters_are_stitched),
		cmocka_unit_test(no_python_in_this_thread),
		cmocka_unit_test(cycles_end),
		cmocka_unit_test(wants_are_told),
		cmocka_unit_test(names_and_lines),
		cmocka_unit_test(replaced_code),
		cmocka_unit_test(noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
