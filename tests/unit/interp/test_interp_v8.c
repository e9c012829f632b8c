// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* V8's objects, frames and code in a memory made by hand; memory that is nonsense. */
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
#include "interp/v8/v8_priv.h"

#include "bpf/step/sb_step_v8.h"

#define BASE  0x7f0000000000ull
#define BYTES (64u << 10)

#include "interp_image.h"

/* Instance types, as V8 13.6 has them. */
enum {
	TYPE_SEQ2 = 32,
	TYPE_CONS2 = 33,
	TYPE_SLICED2 = 35,
	TYPE_THIN2 = 37,
	TYPE_SEQ1 = 40,
	TYPE_CONS1 = 41,
	TYPE_EXTERNAL1 = 42,
	TYPE_SLICED1 = 43,
	TYPE_THIN1 = 45,
	TYPE_SCRIPT = 167,
	TYPE_BYTECODE = 186,
	TYPE_CODE = 187,
	TYPE_INSTRUCTIONS = 192,
	TYPE_WRAPPER = 195,
	TYPE_BYTES = 196,
	TYPE_ARRAY = 197,
	TYPE_MAP = 272,
	TYPE_SCOPE = 280,
	TYPE_SHARED = 282,
	TYPE_FUNCTION = 2065,
};

static uint64_t maps[4096]; /* by instance type; tagged */
static struct sb_v8 v8;
static struct sb_str str;

static void put_ptr(uint64_t addr, uint64_t object)
{
	put64(addr, object | 1);
}

static void put_smi(uint64_t addr, int32_t val)
{
	put64(addr, (uint64_t)(uint32_t)val << 32);
}

static uint64_t map_of(uint16_t type)
{
	uint64_t map;

	if (!maps[type]) {
		map = make(40);
		maps[type] = map | 1;
		put64(map, map_of(TYPE_MAP));
		put(map + 12, &type, sizeof(type));
	}
	return maps[type];
}

static uint64_t object(uint16_t type, uint32_t len)
{
	uint64_t map = map_of(type), addr = make(len);

	put64(addr, map);
	return addr;
}

static uint64_t string(const char *s)
{
	uint64_t addr = object(TYPE_SEQ1, (uint32_t)(16 + strlen(s)));

	put32(addr + 12, (uint32_t)strlen(s));
	put(addr + 16, s, strlen(s));
	return addr;
}

/* Of two others: cons; of one and a number: sliced, thin. */
static uint64_t string_of(uint16_t type, uint32_t len, uint64_t first, uint64_t second)
{
	uint64_t addr = object(type, 32);

	put32(addr + 12, len);
	put_ptr(addr + 16, first);
	if (second >> 32)
		put_ptr(addr + 24, second);
	else
		put_smi(addr + 24, (int32_t)second);
	return addr;
}

static uint64_t bytes(const uint8_t *from, uint32_t len)
{
	uint64_t addr = object(TYPE_BYTES, 16 + len);

	put_smi(addr + 8, (int32_t)len);
	put(addr + 16, from, len);
	return addr;
}

static const struct sb_v8_layout layout_13 = {
	.smi_shift = 31,
	.tagged_size = 8,
	.frame_builtin_exit = 27,
	.type_function = TYPE_FUNCTION,
	.type_function_first = TYPE_FUNCTION,
	.type_function_last = TYPE_FUNCTION + 16,
	.type_shared = TYPE_SHARED,
	.type_scope_info = TYPE_SCOPE,
	.type_script = TYPE_SCRIPT,
	.type_bytecode = TYPE_BYTECODE,
	.type_code = TYPE_CODE,
	.type_instructions = TYPE_INSTRUCTIONS,
	.type_nonstring = 128,
	.type_map = TYPE_MAP,
	.type_interpreter_data = 188,
	.type_baseline_data = -1,
	.type_trusted_bytes = TYPE_BYTES,
	.type_shared_wrapper = TYPE_WRAPPER,
	.map_type = 12,
	.string_length = 12,
	.seq_chars = 16,
	.cons_first = 16,
	.cons_second = 24,
	.sliced_parent = 16,
	.sliced_offset = 24,
	.thin_actual = 16,
	.external_resource = 16,
	.array_length = 8,
	.array_data = 16,
	.function_shared = 32,
	.shared_name = 24,
	.shared_script = 40,
	.shared_flags = 56,
	.script_name = 16,
	.script_source = 8,
	.script_line_ends = 56,
	.bytecode_data = 64,
	.scope_locals = 2,
	.scope_first = 5,
	.code_start = 40,
	.code_size = 56,
	.code_flags = 52,
	.stream_start = 32,
	.kind_baseline = 10,
	.deopt_literals = 3,
	.deopt_inlining = 8,
	.deopt_shared = 7,
	.shared_builtin = 16,
	.bytecode_positions = 24,
	.code_deopt = 8,
	.code_positions = 16,
	.wrapper_shared = 8,
	.has_streams = true,
};

static int setup(void **state)
{
	(void)state;
	memset(image, 0, sizeof(image));
	memset(maps, 0, sizeof(maps));
	memset(&v8, 0, sizeof(v8));
	v8.memory = &memory;
	v8.at = layout_13;
	used = 64;
	maps[TYPE_MAP] = make(40) | 1;
	put64(maps[TYPE_MAP] - 1, maps[TYPE_MAP]);
	put(maps[TYPE_MAP] - 1 + 12, &(uint16_t){ TYPE_MAP }, 2);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sb_v8_release(&v8);
	sb_str_release(&str);
	return 0;
}

static void expect_chars(uint64_t object, const char *want)
{
	sb_str_clear(&str);
	assert_int_equal(sb_v8_string(&v8, object, &str), 0);
	assert_string_equal(str.s, want);
}

static void test_strings(void **state)
{
	static const uint16_t wide[] = { 'a', 0xe9, 0x20ac, '\n', 0xd83d };
	uint64_t two = object(TYPE_SEQ2, 32), outside = make(16), external;
	uint64_t hello = string("hello"), cons;

	(void)state;
	put32(two + 12, 5);
	put(two + 16, wide, sizeof(wide));
	put(outside, "outside", 7);
	external = object(TYPE_EXTERNAL1, 32);
	put32(external + 12, 7);
	put64(external + 24, outside);
	expect_chars(hello, "hello");
	expect_chars(two, "a\xc3\xa9\xe2\x82\xac??");
	expect_chars(external, "outside");
	cons = string_of(TYPE_CONS1, 10, hello, string("world"));
	expect_chars(cons, "helloworld");
	expect_chars(string_of(TYPE_THIN1, 10, cons, 0), "helloworld");
	expect_chars(string_of(TYPE_SLICED1, 3, hello, 1), "ell");
	expect_chars(string_of(TYPE_SLICED1, 2, string_of(TYPE_THIN1, 5, hello, 0), 2), "ll");
	/* Beyond the end; of itself; not a string at all. */
	assert_int_equal(sb_v8_string(&v8, string_of(TYPE_SLICED1, 5, hello, 1), &str), -EBADMSG);
	put_ptr(cons + 16, cons);
	put_ptr(cons + 24, cons);
	assert_int_equal(sb_v8_string(&v8, cons, &str), 0);
	put64(cons, map_of(TYPE_THIN1));
	assert_int_equal(sb_v8_string(&v8, cons, &str), -EBADMSG);
	assert_int_equal(sb_v8_string(&v8, object(TYPE_SCRIPT, 64), &str), -EBADMSG);
	assert_int_equal(sb_v8_string(&v8, 0x1000, &str), -EFAULT);
}

#define SOURCE "one();\r\ntwo();\rthree();\nfour();\n"

static uint64_t make_script(void)
{
	uint64_t script = object(TYPE_SCRIPT, 128);

	put_ptr(script + 8, string(SOURCE));
	put_ptr(script + 16, string("/dir/file.js"));
	return script;
}

/* A function with @nr captured variables in front of its name. */
static uint64_t make_shared(const char *name, const char *inferred, int32_t nr, uint64_t script)
{
	uint64_t shared = object(TYPE_SHARED, 80), scope = object(TYPE_SCOPE, 256),
		 slot = scope + 48;
	uint32_t flags = 4;
	int32_t i;

	for (i = 0; i < nr; i++, slot += 8)
		put_ptr(slot, string("captured"));
	for (i = 0; i < nr; i++, slot += 8)
		put_smi(slot, 7);
	if (name) {
		flags |= 3u << 12;
		put_ptr(slot, string(name));
		put_smi(slot + 8, -1);
		slot += 16;
	}
	if (inferred) {
		flags |= 1u << 14;
		put_ptr(slot, string(inferred));
	}
	put64(scope + 8, flags);
	put_smi(scope + 24, nr);
	put_smi(scope + 32, 14); /* where it begins */
	put_smi(shared + 16, -1);
	put_ptr(shared + 24, scope);
	put_ptr(shared + 40, script);
	put64(shared + 56, 5ull << 32);
	return shared;
}

static void expect_name(uint64_t shared, const char *want)
{
	sb_str_clear(&str);
	assert_int_equal(sb_v8_function_name(&v8, shared, &str), 0);
	assert_string_equal(str.s, want);
}

static void test_functions(void **state)
{
	uint64_t script = make_script(), shared = make_shared("leaf", NULL, 2, script);

	(void)state;
	expect_name(shared, "leaf");
	expect_name(make_shared("", "Foo.bar", 0, script), "Foo.bar");
	expect_name(make_shared(NULL, "Foo.bar", 3, script), "Foo.bar");
	expect_name(make_shared(NULL, NULL, 1, script), "(anonymous)");
	sb_str_clear(&str);
	assert_int_equal(sb_v8_function_file(&v8, shared, &str), 0);
	assert_string_equal(str.s, "/dir/file.js");
	assert_int_equal(sb_v8_function_start(&v8, shared), 14);
	assert_int_equal(sb_v8_function_line(&v8, shared, 0), 1);
	assert_int_equal(sb_v8_function_line(&v8, shared, 7), 1);
	assert_int_equal(sb_v8_function_line(&v8, shared, 8), 2);
	assert_int_equal(sb_v8_function_line(&v8, shared, 15), 3);
	assert_int_equal(sb_v8_function_line(&v8, shared, 24), 4);
	assert_int_equal(sb_v8_function_line(&v8, shared, -1), 0);
	/* Part of a file. */
	put_smi(script + 24, 100);
	assert_int_equal(sb_v8_function_line(&v8, shared, 8), 102);
	assert_int_equal(sb_v8_function_name(&v8, script, &str), -EBADMSG);
}

static void test_positions(void **state)
{
	/* As V8 13.6 wrote it: code -1: 0, 0: 0, 22: 315, 25: 306. */
	static const uint8_t table[] = { 0x00, 0x04, 0x03, 0x00, 0x2c, 0xec, 0x09, 0x07, 0x23 };
	uint64_t at = bytes(table, sizeof(table));
	struct sb_v8_place place;

	(void)state;
	assert_int_equal(sb_v8_position(&v8, at, 22, &place), 0);
	assert_int_equal(place.offset, 315);
	assert_int_equal(place.inlined, -1);
	assert_int_equal(sb_v8_position(&v8, at, 21, &place), 0);
	assert_int_equal(place.offset, 0);
	assert_int_equal(sb_v8_position(&v8, at, 100, &place), 0);
	assert_int_equal(place.offset, 306);
	assert_int_equal(sb_v8_position(&v8, at, -2, &place), -ENODATA);
	assert_int_equal(sb_v8_position(&v8, BASE + BYTES, 0, &place), -ENODATA);
}

/* Code of @outer, into which @inner was inlined, called at offset 3. */
static uint64_t make_code(uint64_t outer, uint64_t inner)
{
	/* At 0: offset 1, in the function itself; at 16: offset 9, in what was inlined first. */
	static const uint8_t positions[] = { 0x02, 0x08, 0x20, 0xa0, 0x80, 0x80, 0x80, 0x10 };
	uint64_t stream, code = object(TYPE_CODE, 96), deopt = object(TYPE_ARRAY, 128);
	uint64_t literals = object(TYPE_ARRAY, 64), wrapper = object(TYPE_WRAPPER, 16), inlining;
	uint64_t entry[2] = { (3 + 1) << 1, 0 };

	put_ptr(wrapper + 8, outer);
	put_smi(literals + 8, 1);
	put_ptr(literals + 16, inner);
	inlining = bytes((const uint8_t *)entry, sizeof(entry));
	put_smi(deopt + 8, 12);
	put_ptr(deopt + 16 + 8 * 3, literals);
	put_ptr(deopt + 16 + 8 * 7, wrapper);
	put_ptr(deopt + 16 + 8 * 8, inlining);
	put_ptr(code + 8, deopt);
	put_ptr(code + 16, bytes(positions, sizeof(positions)));
	used = (used + 4095) & ~4095u;
	stream = object(TYPE_INSTRUCTIONS, 512);
	put_ptr(stream + 8, code);
	put64(code + 40, stream + 32);
	put32(code + 52, 12);
	put32(code + 56, 400);
	return stream + 32;
}

static void test_code(void **state)
{
	uint64_t script = make_script(), outer = make_shared("outer", NULL, 0, script);
	uint64_t inner = make_shared("inner", NULL, 0, script), shared, begin;
	const struct sb_v8_code *code;
	struct sb_v8_place place, caller;

	(void)state;
	begin = make_code(outer, inner);
	assert_int_equal(sb_v8_code_find(&v8, begin + 20, &code), 0);
	assert_int_equal(code->begin, begin);
	assert_int_equal(code->end, begin + 400);
	assert_int_equal(code->shared, outer);
	assert_int_equal(sb_v8_position(&v8, code->positions, 20, &place), 0);
	assert_int_equal(place.inlined, 0);
	assert_int_equal(sb_v8_code_inlined(&v8, code, 0, &shared, &caller), 0);
	assert_int_equal(shared, inner);
	assert_int_equal(caller.offset, 3);
	assert_int_equal(caller.inlined, -1);
	assert_int_equal(sb_v8_code_inlined(&v8, code, 1, &shared, &caller), -EBADMSG);
	assert_int_equal(sb_v8_code_find(&v8, begin + 400, &code), -ENOENT);
	/* From here on, other code lies there. */
	put64(begin - 32, 0);
	assert_int_equal(sb_v8_code_find(&v8, begin + 20, &code), -ENOENT);
}

/* Frames. */

#define BUILTINS 0x10000000ull
#define JIT	 0x20000000ull

static struct sb_interp_walk walk;

static void begin_walk(struct sb_walk *native, uint64_t pc, uint64_t fp)
{
	struct sb_v8_conf *conf = (struct sb_v8_conf *)walk.conf.word;

	memset(&walk, 0, sizeof(walk));
	*conf = (struct sb_v8_conf){
		.map_type = 12,
		.function_type = TYPE_FUNCTION,
		.function_type_last = TYPE_FUNCTION + 16,
		.function_shared = 32,
		.shared_builtin = 16,
		.shared_script = 40,
		.shared_id = 56,
		.builtin_exit = 27,
		.builtins = { BUILTINS },
		.builtins_end = { BUILTINS + 4096 },
	};
	walk.conf.runtime = SB_RUNTIME_V8;
	walk.wants_lines = 1;
	*native = (struct sb_walk){ .pc = pc, .sp = fp - 64, .fp = fp, .user_end = 1ull << 47 };
}

static void expect_frame(uint64_t shared, enum sb_v8_kind kind, uint64_t position)
{
	assert_int_equal(walk.nr_frames, 1);
	assert_int_equal(walk.frame[0].obj, shared | kind);
	assert_int_equal(sb_where_position(walk.frame[0].where), position);
	assert_int_equal(sb_where_runtime(walk.frame[0].where), SB_RUNTIME_V8);
}

static void test_frames(void **state)
{
	uint64_t shared = make_shared("f", NULL, 0, make_script()), function, fp = make(256) + 128;
	uint64_t moved;
	struct sb_walk native;

	(void)state;
	function = object(TYPE_FUNCTION, 64);
	put_ptr(function + 32, shared);
	put_ptr(fp - 8, function); /* a context is a pointer, too */
	put_ptr(fp - 16, function);
	put_ptr(fp - 32, shared);
	put_smi(fp - 40, 77);
	begin_walk(&native, BUILTINS + 100, fp);
	assert_int_equal(sb_v8_native(&walk, &native, &memory), SB_STEP_FP_CHAIN);
	expect_frame(shared, SB_V8_BYTECODE, 77);
	begin_walk(&native, JIT, fp);
	sb_v8_native(&walk, &native, &memory);
	expect_frame(shared, SB_V8_CODE, JIT - 1);
	/* When there is no room for another frame, the native walk ends with the status that says
	 * so. */
	begin_walk(&native, JIT, fp);
	native.status = SB_STACK_COMPLETE;
	walk.nr_frames = SB_INTERP_FRAMES_MAX;
	assert_int_equal(sb_v8_native(&walk, &native, &memory), SB_STEP_END);
	assert_int_equal(native.status, SB_STACK_DEPTH);
	/* It has moved, and says where to. */
	moved = object(TYPE_FUNCTION, 64);
	put_ptr(moved + 32, shared);
	put64(function, moved);
	begin_walk(&native, JIT, fp);
	sb_v8_native(&walk, &native, &memory);
	expect_frame(shared, SB_V8_CODE, JIT - 1);
	/* One of V8's own. */
	put_smi(shared + 16, 1117);
	begin_walk(&native, BUILTINS + 100, fp);
	sb_v8_native(&walk, &native, &memory);
	expect_frame(shared, SB_V8_BUILTIN, 0);
	/* One that C++ was called for; another kind of frame; no function. */
	put64(fp - 8, 27 << 1);
	put_ptr(fp + 24, moved);
	begin_walk(&native, BUILTINS + 100, fp);
	sb_v8_native(&walk, &native, &memory);
	expect_frame(shared, SB_V8_BUILTIN, 0);
	put64(fp - 8, 22 << 1);
	begin_walk(&native, BUILTINS + 100, fp);
	sb_v8_native(&walk, &native, &memory);
	assert_int_equal(walk.nr_frames, 0);
	put_ptr(fp - 8, function);
	put_ptr(fp - 16, shared);
	begin_walk(&native, BUILTINS + 100, fp);
	sb_v8_native(&walk, &native, &memory);
	assert_int_equal(walk.nr_frames, 0);
}

/* A leaf that has not made its frame: what it was called with counts, not the caller's frame. */
static void test_prologue(void **state)
{
	static const uint8_t push_fp[] = { 0x55, 0x48, 0x89, 0xe5, 0x56, 0x57, 0x50, 0x90, 0x90 };
	uint64_t shared = make_shared("f", NULL, 0, make_script()), function, code = make(32);
	struct sb_walk native;

	(void)state;
	function = object(TYPE_FUNCTION, 64);
	put_ptr(function + 32, shared);
	put(code, push_fp, sizeof(push_fp));
	begin_walk(&native, code, BASE + BYTES / 2);
	native.flags = SB_WALK_LEAF;
	native.regs[SB_V8_REG_FUNCTION] = function | 1;
	sb_v8_native(&walk, &native, &memory);
	expect_frame(shared, SB_V8_CODE, code);
	/* Behind "mov %rsp,%rbp", nothing is pushed. */
	begin_walk(&native, code + 4, BASE + BYTES / 2);
	native.flags = SB_WALK_LEAF;
	native.sp = native.fp;
	native.regs[SB_V8_REG_FUNCTION] = function | 1;
	sb_v8_native(&walk, &native, &memory);
	expect_frame(shared, SB_V8_CODE, code + 4);
}

/* Words that lead anywhere in the image, with tags. */
static void test_noise(void **state)
{
	struct sb_runtime rt = {
		.ops = &sb_runtime_v8, .memory = &memory, .state = &v8, .wants_lines = true
	};
	struct sb_runtime_text text = {};
	struct sb_interp_frame frame;
	struct sb_walk native;
	unsigned int seed = 1, round, i, kind;

	(void)state;
	for (round = 0; round < 2000; round++) {
		for (i = 0; i < BYTES / 8; i += 1 + rand_r(&seed) % 8)
			put64(BASE + 8 * i,
			      (BASE + (rand_r(&seed) % BYTES & ~7u)) | (rand_r(&seed) % 3 == 0));
		v8.at.type_shared = sb_v8_type_of(&v8, BASE + 64);
		begin_walk(&native, BUILTINS, BASE + 1024);
		sb_v8_native(&walk, &native, &memory);
		for (kind = 0; kind < 4; kind++) {
			sb_str_clear(&text.name);
			sb_str_clear(&text.file);
			frame.obj = (BASE + 64) | kind;
			frame.where = BASE + 8 * (rand_r(&seed) % (BYTES / 8));
			sb_runtime_v8.describe(&rt, &frame, &text);
			sb_runtime_v8.describe_inlined(&rt, &frame, 0, &text);
		}
	}
	sb_str_release(&text.name);
	sb_str_release(&text.file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_strings, setup, teardown),
		cmocka_unit_test_setup_teardown(test_functions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_positions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_code, setup, teardown),
		cmocka_unit_test_setup_teardown(test_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(test_prologue, setup, teardown),
		cmocka_unit_test_setup_teardown(test_noise, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
