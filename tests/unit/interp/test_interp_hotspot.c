// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Java's frames in a memory made by hand: blobs, frames that do not stand yet, lines; nonsense. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "interp/core/runtimes.h"
#include "interp/core/step.h"
#include "interp/hotspot/hotspot_priv.h"

#include "bpf/step/sb_step_hotspot.h"

#define CACHE	   0x7f0000000000ull
#define CACHE_SIZE 0x10000
#define SEGMAP	   0x7f0000100000ull
#define STACK	   0x7ffc00000000ull
#define INTERP	   (CACHE + 0x100)
#define NMETHOD	   (CACHE + 0x1000)
#define CODE	   (NMETHOD + 0x100)
#define CALLER	   (NMETHOD + 0x180) /* a return address in it */
#define NAMES	   0x7f0000200000ull

static uint8_t cache[CACHE_SIZE], segmap[CACHE_SIZE >> 7], stack[4096], names[64];
static struct sb_interp_walk walk;
static struct sb_walk native;

static int read_image(void *arg, void *dst, size_t len, uint64_t addr)
{
	static const struct {
		uint64_t begin, len;
		uint8_t *bytes;
	} parts[] = { { CACHE, sizeof(cache), cache },
		      { SEGMAP, sizeof(segmap), segmap },
		      { STACK, sizeof(stack), stack },
		      { NAMES, sizeof(names), names } };
	size_t i;

	(void)arg;
	for (i = 0; i < 4; i++)
		if (addr >= parts[i].begin && addr - parts[i].begin + len <= parts[i].len) {
			memcpy(dst, parts[i].bytes + (addr - parts[i].begin), len);
			return 0;
		}
	memset(dst, 0, len);
	return -EFAULT;
}

static struct sb_memory memory = { .read = read_image };

static void put(uint64_t addr, uint64_t val, size_t len)
{
	memcpy(addr >= STACK ? stack + (addr - STACK) : cache + (addr - CACHE), &val, len);
}

static void put_code(uint64_t addr, const char *code, size_t len)
{
	memcpy(cache + (addr - CACHE), code, len);
}

/* One nmethod of a frame of 64 bytes, whose code is whole 16 bytes behind its begin. */
static int setup(void **state)
{
	struct sb_hotspot_conf *conf = (struct sb_hotspot_conf *)walk.conf.word;

	(void)state;
	memset(cache, 0, sizeof(cache));
	memset(stack, 0, sizeof(stack));
	memset(&walk, 0, sizeof(walk));
	memset(&native, 0, sizeof(native));
	memcpy(names, "nmethod", 8);
	walk.conf.runtime = SB_RUNTIME_HOTSPOT;
	walk.conf.hook_begin = CACHE;
	walk.conf.hook_end = CACHE + CACHE_SIZE;
	*conf = (struct sb_hotspot_conf){
		.heap = { { CACHE, CACHE + CACHE_SIZE, SEGMAP } },
		.interp_begin = INTERP,
		.interp_end = INTERP + 0x100,
		.log2_segment = 7,
		.block_header = 0,
		.blob_name = 8,
		.blob_size = 24,
		.blob_code = 32,
		.is_code_offset = 1,
		.blob_frame_size = 36,
		.blob_complete = 40,
		.blob_method = 64,
	};
	memset(segmap, 0xff, sizeof(segmap));
	segmap[0x1000 >> 7] = 0;
	segmap[0x1080 >> 7] = 1;
	segmap[0x1100 >> 7] = 1; /* two hops */
	segmap[0x1180 >> 7] = 2;
	put(NMETHOD + 8, NAMES, 8);
	put(NMETHOD + 24, 0x200, 4);
	put(NMETHOD + 32, 0x100, 4);
	put(NMETHOD + 36, 8, 4);
	put(NMETHOD + 40, 16, 4);
	put(NMETHOD + 64, 0x1234560, 8);
	put_code(CALLER - 5, "\xe8\0\0\0\0", 5);
	native.user_end = 1ull << 47;
	native.flags = SB_WALK_LEAF;
	native.sp = STACK + 256;
	native.fp = 0xdead;
	return 0;
}

static void step_to(uint64_t pc, uint64_t sp, uint64_t fp)
{
	assert_int_equal(sb_hotspot_native(&walk, &native, &memory), SB_STEP_GO_ON);
	assert_int_equal(native.pc, pc);
	assert_int_equal(native.sp, sp);
	assert_int_equal(native.fp, fp);
}

static void frames_that_stand_are_left_by_their_size(void **state)
{
	(void)state;
	native.pc = CODE + 32;
	put(native.sp + 48, 0xf00, 8);
	put(native.sp + 56, CALLER, 8);
	step_to(CALLER, STACK + 256 + 64, 0xf00);
	assert_int_equal(walk.nr_frames, 1);
	assert_int_equal(walk.frame[0].obj, NMETHOD);
	assert_int_equal(sb_where_position(walk.frame[0].where),
			 SB_HOTSPOT_COMPILED | SB_HOTSPOT_EXACT | 32);
}

/* A name is eight raw bytes: the highest bit of the last one can be set. */
static void names_that_are_not_ascii_are_no_nmethods(void **state)
{
	static const char *const other[] = { "stub \xc3\xa9\xc3", "nmethod\x81",
					     "\1\0\0\0\0\0\0\x80" };
	size_t i;

	for (i = 0; i < 3; i++) {
		setup(state);
		memcpy(names, other[i], 8);
		native.flags = 0;
		native.pc = CODE + 32;
		put(native.sp + 48, 0xf00, 8);
		put(native.sp + 56, CALLER, 8);
		step_to(CALLER, STACK + 256 + 64, 0xf00);
		assert_int_equal(sb_where_position(walk.frame[0].where), SB_HOTSPOT_STUB | 32);
	}
}

/* The word read as the address of a Method can be any word: only 0 is none. */
static void any_method_but_0_is_of_an_nmethod(void **state)
{
	(void)state;
	native.pc = CODE + 32;
	put(NMETHOD + 64, 0x8000000000000001, 8);
	put(native.sp + 48, 0xf00, 8);
	put(native.sp + 56, CALLER, 8);
	step_to(CALLER, STACK + 256 + 64, 0xf00);
	assert_int_equal(sb_where_position(walk.frame[0].where),
			 SB_HOTSPOT_COMPILED | SB_HOTSPOT_EXACT | 32);
}

/* Of one that was interrupted on its way in: by what is behind and in front of it. */
static void prologues_are_known(void **state)
{
	(void)state;
	put_code(CODE, "\x89\x84\x24\0\xc0\xfe\xff\x55\x48\x83\xec\x30", 12);
	put(native.sp, CALLER, 8);
	native.pc = CODE; /* the check of the stack */
	step_to(CALLER, STACK + 256 + 8, 0xdead);
	native.flags = SB_WALK_LEAF;
	native.sp = STACK + 256;
	native.pc = CODE + 7; /* push %rbp */
	step_to(CALLER, STACK + 256 + 8, 0xdead);
	native.flags = SB_WALK_LEAF;
	native.sp = STACK + 256;
	put(native.sp, 0xf00, 8);
	put(native.sp + 8, CALLER, 8);
	native.pc = CODE + 8; /* sub $0x30,%rsp */
	step_to(CALLER, STACK + 256 + 16, 0xf00);
}

static void epilogues_are_known(void **state)
{
	static const char *const at_ret[] = {
		"\xc3",
		"\x49\x3b\xa7\x48\x03\0\0",
		"\x49\x3b\x67\x28",
		"\x0f\x87\1\0\0\0\xc3",
		"\x85\x05\1\0\0\0\xc3",
		"\x41\x85\x02\xc3",
	};
	static const uint8_t lens[] = { 1, 7, 4, 7, 7, 4 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lens); i++) {
		setup(NULL);
		put_code(CODE + 40, at_ret[i], lens[i]);
		put(native.sp, CALLER, 8);
		native.pc = CODE + 40;
		step_to(CALLER, STACK + 256 + 8, 0xdead);
	}
	setup(NULL);
	put_code(CODE + 40, "\x5d\xc3", 2); /* pop %rbp; ret */
	put(native.sp, 0xf00, 8);
	put(native.sp + 8, CALLER, 8);
	native.pc = CODE + 40;
	step_to(CALLER, STACK + 256 + 16, 0xf00);
}

/* A barrier of a collector has saved some registers. */
static void words_in_excess_are_skipped(void **state)
{
	(void)state;
	native.pc = CODE + 32;
	put(native.sp + 16 + 48, 0xf00, 8);
	put(native.sp + 16 + 56, CALLER, 8);
	step_to(CALLER, STACK + 256 + 80, 0xf00);
}

static void what_leads_nowhere_ends(void **state)
{
	(void)state;
	native.pc = CODE + 32;
	assert_int_equal(sb_hotspot_native(&walk, &native, &memory), SB_STEP_END);
	assert_int_equal(native.status, SB_STACK_BAD_PC);
	setup(NULL);
	native.pc = CACHE + 0x8000; /* free */
	assert_int_equal(sb_hotspot_native(&walk, &native, &memory), SB_STEP_FP_CHAIN);
	setup(NULL);
	native.pc = INTERP + 8; /* no frame, no return address */
	assert_int_equal(sb_hotspot_native(&walk, &native, &memory), SB_STEP_END);
}

/* The VM writes down where the bytecode is, also of a method that has none, when it is called to
 * link it. */
static void native_methods_are_known_by_having_no_bytecode(void **state)
{
	enum { METHOD = 0x3000, CONST = 0x3100, CONST_BYTES = 0x30 };
	const uint64_t bcps[] = { 0, CACHE + CONST + CONST_BYTES, CACHE + CONST,
				  0x8000000000000001 };
	const uint64_t fp = STACK + 512;
	size_t i;

	for (i = 0; i < 4; i++) {
		struct sb_hotspot_conf *conf = (struct sb_hotspot_conf *)walk.conf.word;

		setup(state);
		conf->method_const = 8;
		conf->const_code_size = 16;
		conf->const_size = CONST_BYTES;
		put(CACHE + METHOD + 8, CACHE + CONST, 8);
		put(fp - 64, bcps[i], 8);
		put(fp - 24, CACHE + METHOD, 8);
		put(fp - 8, fp + 32, 8);
		put(fp, 0xf00, 8);
		put(fp + 8, CALLER, 8);
		native.flags = 0;
		native.pc = INTERP + 8;
		native.fp = fp;
		if (i < 2) {
			step_to(CALLER, fp + 32, 0xf00);
			assert_int_equal(walk.frame[0].obj, CACHE + METHOD);
			continue;
		}
		assert_int_equal(sb_hotspot_native(&walk, &native, &memory), SB_STEP_END);
		assert_int_equal(native.status, SB_STACK_BAD_FP);
	}
}

static void lines_are_those_of_the_table(void **state)
{
	/* bci 0: 10; 4: 11; 8: 13; and, in numbers of more bits, 108: 313. */
	const uint8_t old[] = { 0xff, 0, 20, 4 << 3 | 1, 4 << 3 | 2, 0xff, 200, 0, 0xd8, 6, 0 };

	(void)state;
	assert_int_equal(sb_hotspot_line(old, sizeof(old), 0, 0), 10);
	assert_int_equal(sb_hotspot_line(old, sizeof(old), 0, 5), 11);
	assert_int_equal(sb_hotspot_line(old, sizeof(old), 0, 9), 13);
	assert_int_equal(sb_hotspot_line(old, sizeof(old), 0, 200), 313);
	assert_int_equal(sb_hotspot_line(old, 3, 0, 9), 10);
	assert_int_equal(sb_hotspot_line(old, 0, 0, 9), 0);
}

static void numbers_are_decoded(void **state)
{
	const uint8_t bytes[] = { 191, 192, 0, 255, 255, 255, 255, 255, 1 };
	uint32_t val;
	size_t at = 0;

	(void)state;
	assert_int_equal(sb_hotspot_unsigned5(bytes, sizeof(bytes), &at, 0, &val), 0);
	assert_int_equal(val, 191);
	assert_int_equal(sb_hotspot_unsigned5(bytes, sizeof(bytes), &at, 0, &val), 0);
	assert_int_equal(val, 192);
	assert_int_equal(sb_hotspot_unsigned5(bytes, sizeof(bytes), &at, 0, &val), 0);
	assert_int_equal(at, 8); /* five bytes at most */
	at = 2;
	assert_int_equal(sb_hotspot_unsigned5(bytes, sizeof(bytes), &at, 1, &val), -EBADMSG);
	at = 8;
	assert_int_equal(sb_hotspot_unsigned5(bytes, sizeof(bytes), &at, 1, &val), 0);
	assert_int_equal(val, 0);
	assert_int_equal(sb_hotspot_unsigned5(bytes, sizeof(bytes), &at, 1, &val), -EBADMSG);
}

static int read_any(void *arg, void *dst, size_t len, uint64_t addr)
{
	size_t i;

	(void)arg;
	for (i = 0; i < len; i++)
		((uint8_t *)dst)[i] = (uint8_t)((addr + i) * 0x9e3779b97f4a7c15ull >> 56);
	return 0;
}

static void nonsense_ends(void **state)
{
	struct sb_memory any = { .read = read_any };
	uint64_t seed = 1;
	int i, at;

	(void)state;
	for (i = 0; i < 2000; i++) {
		setup(NULL);
		for (at = 0; at < SB_UNWIND_REGS; at++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			native.regs[at] = seed >> 17;
		}
		native.pc = CACHE + (seed >> 20) % CACHE_SIZE;
		for (at = 0; at < 600; at++)
			if (sb_hotspot_native(&walk, &native, &any) != SB_STEP_GO_ON)
				break;
		assert_true(at < 600);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(frames_that_stand_are_left_by_their_size, setup),
		cmocka_unit_test_setup(names_that_are_not_ascii_are_no_nmethods, setup),
		cmocka_unit_test_setup(any_method_but_0_is_of_an_nmethod, setup),
		cmocka_unit_test_setup(prologues_are_known, setup),
		cmocka_unit_test_setup(epilogues_are_known, setup),
		cmocka_unit_test_setup(words_in_excess_are_skipped, setup),
		cmocka_unit_test_setup(what_leads_nowhere_ends, setup),
		cmocka_unit_test_setup(native_methods_are_known_by_having_no_bytecode, setup),
		cmocka_unit_test(lines_are_those_of_the_table),
		cmocka_unit_test(numbers_are_decoded),
		cmocka_unit_test_setup(nonsense_ends, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
