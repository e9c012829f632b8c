// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Machine code of accessor functions: shapes as compilers made them, and none at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "interp/core/memory.h"
#include "interp/core/stub.h"
#include "symbolizer/elf/disasm.h"

#define CODE	 0x555500001000ull
#define NR(code) (sizeof(code) - 1)

static struct sb_stub last[8];
static size_t nr_last;

static int note(void *arg, const struct sb_stub *stub)
{
	last[nr_last++ % 8] = *stub;
	return 0;
}

/* In these tests, all that is called by a call is __tls_get_addr(). */
static int always(void *arg, const struct sb_stub *stub)
{
	return 1;
}

static void follow_of(const struct sb_insn_set *set, const char *bytes, size_t len,
		      sb_stub_is_tls_fn is_tls)
{
	struct sb_stub_code code = { set, (const uint8_t *)bytes, len, CODE };

	nr_last = 0;
	assert_int_equal(sb_stub_follow_code(&code, note, is_tls, NULL), 0);
}

static void follow(const char *code, size_t len, sb_stub_is_tls_fn is_tls)
{
	follow_of(&sb_insn_x86, code, len, is_tls);
}

static void assert_value(const struct sb_stub_value *value, enum sb_stub_base base, uint64_t addr,
			 size_t nr_loads)
{
	assert_int_equal(value->base, base);
	assert_int_equal(value->addr, addr);
	assert_int_equal(value->nr_loads, nr_loads);
}

static void lengths(void **state)
{
	static const struct {
		const char *code;
		uint8_t len, kind;
	} rows[] = {
		{ "\xf3\x0f\x1e\xfa", 4, SB_INSN_OTHER },		     /* endbr64 */
		{ "\x48\x83\x3d\x08\x00\x00\x00\x00", 8, SB_INSN_CMP_IMM },  /* cmpq $0,8(%rip) */
		{ "\x64\x48\x8b\x04\x25\xd8\xff\xff\xff", 9, SB_INSN_LOAD }, /* mov %fs:-40,%rax */
		{ "\xbf\xe0\x10\xba\x00", 5, SB_INSN_IMM },
		{ "\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08", 10, SB_INSN_IMM },
		{ "\x66\x66\x48\xe8\x01\x00\x00\x00", 8, SB_INSN_CALL },
		{ "\x0f\x84\x10\x00\x00\x00", 6, SB_INSN_JCC },
		{ "\x74\x05", 2, SB_INSN_JCC },
		{ "\xc5\xf8\x77", 3, SB_INSN_OTHER },		  /* vzeroupper */
		{ "\x62\xf1\x7c\x48\x28\x07", 6, SB_INSN_OTHER }, /* vmovaps (%rdi),%zmm0 */
		{ "\xc4\xe3\x79\x0f\xc1\x05", 6, SB_INSN_OTHER }, /* vpalignr $5 */
		{ "\xf7\x05\x00\x00\x00\x00\x01\x00\x00\x00", 10, SB_INSN_OTHER }, /* testl */
		{ "\x66\xf7\xc1\x01\x00", 5, SB_INSN_OTHER },			   /* test $1,%cx */
		{ "\x0f\x0b", 2, SB_INSN_TRAP },
		{ "\xff\x25\x00\x00\x00\x00", 6, SB_INSN_JMP_MEM },
	};
	struct sb_insn insn;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint8_t *code = (const uint8_t *)rows[i].code;

		assert_int_equal(sb_insn_x86.decode(code, rows[i].len, CODE, &insn), 0);
		assert_int_equal(insn.len, rows[i].len);
		assert_int_equal(insn.kind, rows[i].kind);
		/* Cut off, it is none. */
		assert_true(sb_insn_x86.decode(code, rows[i].len - 1u, CODE, &insn) != 0);
	}
	assert_true(sb_insn_x86.decode((const uint8_t *)"\x06", 1, CODE, &insn) != 0);
}

/* Words and their meaning as objdump has them, of Debian's PHP 8.2 for arm64. */
static void of_arm64(void **state)
{
	static const struct {
		uint32_t word;
		uint8_t kind, reg, base;
		int64_t val; /* the displacement, immediate, or target relative to CODE */
	} rows[] = {
		{ 0xd0001420, SB_INSN_LEA, 0, SB_INSN_NO_BASE, 0x286000 }, /* adrp x0 */
		{ 0x10000040, SB_INSN_LEA, 0, SB_INSN_NO_BASE, 8 },	   /* adr x0 */
		{ 0xf9445800, SB_INSN_LOAD, 0, 0, 2224 },		   /* ldr x0, [x0, #2224] */
		{ 0xb4000141, SB_INSN_JCC, 0, SB_INSN_NO_BASE, 0x28 },	   /* cbz x1 */
		{ 0x39400002, SB_INSN_OTHER, 2, 0, 0 },			   /* ldrb w2, [x0] */
		{ 0x540000a1, SB_INSN_JCC, 0, SB_INSN_NO_BASE, 0x14 },	   /* b.ne */
		{ 0xb5ffff01, SB_INSN_JCC, 0, SB_INSN_NO_BASE, -0x20 },	   /* cbnz x1 */
		{ 0x36b80142, SB_INSN_JCC, 0, SB_INSN_NO_BASE, 0x28 },	   /* tbz w2, #23 */
		{ 0xd2800000, SB_INSN_IMM, 0, SB_INSN_NO_BASE, 0 },	   /* mov x0, #0 */
		{ 0x5281af62, SB_INSN_IMM, 2, SB_INSN_NO_BASE, 3451 },	   /* mov w2, #3451 */
		{ 0x92800000, SB_INSN_IMM, 0, SB_INSN_NO_BASE, -1 },	   /* mov x0, #-1 */
		{ 0xa9be7bfd, SB_INSN_STORE, 29, 31, -32 }, /* stp x29, x30, [sp, #-32]! */
		{ 0xa8c17bfd, SB_INSN_LOAD, 29, 31, 0 },    /* ldp x29, x30, [sp], #16 */
		{ 0xf9000bf3, SB_INSN_STORE, 19, 31, 16 },  /* str x19, [sp, #16] */
		{ 0x294118a4, SB_INSN_LOAD, 4, 5, 8 },	    /* ldp w4, w6, [x5, #8] */
		{ 0xf8400c01, SB_INSN_LOAD, 1, 0, 0 },	    /* ldr x1, [x0, #0]! */
		{ 0x910003fd, SB_INSN_LEA, 29, 31, 0 },	    /* mov x29, sp */
		{ 0x91406400, SB_INSN_LEA, 0, 0, 0x19000 }, /* add x0, x0, #0x19, lsl #12 */
		{ 0xd10243ff, SB_INSN_LEA, 31, 31, -0x90 }, /* sub sp, sp, #0x90 */
		{ 0xaa0003f3, SB_INSN_MOVE, 19, 0, 0 },	    /* mov x19, x0 */
		{ 0x97fffff4, SB_INSN_CALL, 0, SB_INSN_NO_BASE, -0x30 }, /* bl */
		{ 0x14000002, SB_INSN_JMP, 0, SB_INSN_NO_BASE, 8 },	 /* b */
		{ 0xd63f0020, SB_INSN_CALL_MEM, 0, 1, 0 },		 /* blr x1 */
		{ 0xd61f0000, SB_INSN_JMP_MEM, 0, 0, 0 },		 /* br x0 */
		{ 0xd65f03c0, SB_INSN_RET, 0, 30, 0 },			 /* ret */
		{ 0xd65f0bff, SB_INSN_RET, 0, 31, 0 },			 /* retaa */
		{ 0xd4200020, SB_INSN_TRAP, 0, SB_INSN_NO_BASE, 0 },	 /* brk #1 */
		{ 0xd503201f, SB_INSN_OTHER, 0, SB_INSN_NO_BASE, 0 },	 /* nop */
		{ 0xeb01001f, SB_INSN_OTHER, 0, SB_INSN_NO_BASE, 0 },	 /* cmp x0, x1 */
		{ 0xf9400c21, SB_INSN_LOAD, 1, 1, 24 },			 /* ldr x1, [x1, #24] */
		{ 0xf8606820, SB_INSN_LOAD, 0, 1, 0 },			 /* ldr x0, [x1, x0] */
		{ 0x8b000020, SB_INSN_LEA, 0, 1, 0 },			 /* add x0, x1, x0 */
	};
	struct sb_insn insn;

	for (size_t i = 0; i < SB_ARRAY_SIZE(rows); i++) {
		const uint8_t *code = (const uint8_t *)&rows[i].word;
		int64_t val;

		assert_int_equal(sb_insn_arm64.decode(code, 4, CODE, &insn), 0);
		val = insn.target ? (int64_t)(insn.target - CODE)
		      : insn.kind == SB_INSN_IMM
			      ? insn.imm
			      : insn.disp - (insn.base == SB_INSN_NO_BASE && insn.disp
						     ? (int64_t)CODE
						     : 0);
		assert_int_equal(insn.len, 4);
		assert_int_equal(insn.kind, rows[i].kind);
		assert_int_equal(insn.reg, rows[i].reg);
		assert_int_equal(insn.base, rows[i].base);
		assert_int_equal(val, rows[i].val);
		assert_true(sb_insn_arm64.decode(code, 3, CODE, &insn) != 0);
	}
}

static void stub_of_arm64(void **state)
{
	/* zend_is_executing() without its comparison, and the PLT */
	static const uint32_t loads[] = { 0xd0001420, 0xf9445800, 0xf940f400, 0xd65f03c0 };
	static const uint32_t plt[] = { 0xd0001410, 0xf9400611, 0x91002210, 0xd61f0220 };
	const struct sb_stub_value *result = &last[0].reg[SB_STUB_RESULT];

	follow_of(&sb_insn_arm64, (const char *)loads, sizeof(loads), NULL);
	assert_int_equal(nr_last, 1);
	assert_int_equal(last[0].exit, SB_STUB_RET);
	assert_value(result, SB_STUB_CONST, CODE + 0x286000 + 2224, 2);
	assert_int_equal(result->off[1], 488);
	follow_of(&sb_insn_arm64, (const char *)plt, sizeof(plt), NULL);
	assert_int_equal(nr_last, 1);
	assert_int_equal(last[0].exit, SB_STUB_JUMP);
	assert_int_equal(last[0].target_slot, CODE + 0x282000 + 8);
}

/* A variable by a TLS descriptor: rb_thread_current() of Ruby 3.1, and what compilers write,
 * too. */
static void descriptor_of_arm64(void **state)
{
	static const uint32_t indexed[] = { 0xd53bd041, 0xa9bf7bfd, 0x910003fd, 0xb0000c00,
					    0xf941f402, 0x910fa000, 0xd63f0040, 0xf8606820,
					    0xa8c17bfd, 0xf9401800, 0xf9400800, 0xd65f03c0 };
	/* mrs x1; adrp x0; ldr x2; add x0; blr x2; add x0, x1, x0; ldr x0, [x0]; ret */
	static const uint32_t added[] = { 0xd53bd041, 0xb0000c00, 0xf941f402, 0x910fa000,
					  0xd63f0040, 0x8b000020, 0xf9400000, 0xd65f03c0 };
	/* The thread pointer is in x3; the descriptor's value is added to x1. */
	static const uint32_t other[] = { 0xd53bd043, 0xb0000c00, 0xf941f402, 0x910fa000,
					  0xd63f0040, 0x8b000020, 0xf9400000, 0xd65f03c0 };
	const struct sb_stub_value *result = &last[1].reg[SB_STUB_RESULT];

	follow_of(&sb_insn_arm64, (const char *)indexed, sizeof(indexed), NULL);
	assert_int_equal(nr_last, 2);
	assert_int_equal(last[0].exit, SB_STUB_CALL);
	assert_int_equal(last[1].exit, SB_STUB_RET);
	assert_value(result, SB_STUB_DESC, CODE + 0x181000 + 1000, 3);
	assert_int_equal(result->off[0], 0);
	assert_int_equal(result->off[1], 48);
	assert_int_equal(result->off[2], 16);
	follow_of(&sb_insn_arm64, (const char *)added, sizeof(added), NULL);
	assert_value(result, SB_STUB_DESC, CODE + 0x181000 + 1000, 1);
	follow_of(&sb_insn_arm64, (const char *)other, sizeof(other), NULL);
	assert_int_equal(result->base, SB_STUB_UNKNOWN);
}

static void key_through_the_got(void **state)
{
	/* CPython 3.10, a library */
	static const char code[] = "\x48\x8b\x05\x69\xd1\x17\x00"     /* mov GOT(%rip),%rax */
				   "\x48\x83\xb8\x40\x02\x00\x00\x00" /* cmpq $0,576(%rax) */
				   "\x74\x0f"			      /* je */
				   "\x48\x8d\xb8\x48\x02\x00\x00"     /* lea 584(%rax),%rdi */
				   "\xe9\x13\xd5\xe6\xff"	      /* jmp */
				   "\x0f\x1f\x00\x31\xc0\xc3";

	follow(code, NR(code), NULL);
	assert_int_equal(nr_last, 2);
	assert_int_equal(last[0].exit, SB_STUB_JUMP);
	assert_value(&last[0].reg[sb_insn_x86.reg_argument], SB_STUB_CONST, CODE + 7 + 0x17d169, 1);
	assert_int_equal(last[0].reg[sb_insn_x86.reg_argument].off[1], 0x248);
	assert_int_equal(last[1].exit, SB_STUB_RET);
	assert_value(&last[1].reg[SB_STUB_RESULT], SB_STUB_CONST, 0, 0);
}

static void argument_kept_over_a_call(void **state)
{
	/* CPython 3.13, a library */
	static const char code[] = "\xf3\x0f\x1e\xfa\x48\x8b\x05\x15\xc0\x3e\x00\x53"
				   "\x48\x8d\x98\x70\x08\x00\x00" /* lea 0x870(%rax),%rbx */
				   "\x48\x89\xdf"		  /* mov %rbx,%rdi */
				   "\xe8\xa5\x0f\x01\x00\x85\xc0\x74\x0f"
				   "\x48\x89\xdf\x5b\xe9\x27\x0e\x01\x00";

	follow(code, NR(code), NULL);
	assert_int_equal(nr_last, 2);
	assert_int_equal(last[0].exit, SB_STUB_CALL);
	assert_int_equal(last[1].exit, SB_STUB_JUMP);
	assert_value(&last[1].reg[sb_insn_x86.reg_argument], SB_STUB_CONST, CODE + 11 + 0x3ec015,
		     1);
	assert_int_equal(last[1].reg[sb_insn_x86.reg_argument].off[1], 0x870);
	assert_value(&last[1].reg[SB_STUB_RESULT], SB_STUB_UNKNOWN, 0, 0);
}

static void constants(void **state)
{
	/* CPython 3.14 at a fixed address; 3.11, a program */
	static const char fixed[] = "\xbf\xe0\x10\xba\x00\xe9\x7f\x2e\x11\x00";
	static const char relative[] = "\x8b\x3d\x14\x91\x58\x00\xe9\x8b\x33\xf5\xff";

	follow(fixed, NR(fixed), NULL);
	assert_value(&last[0].reg[sb_insn_x86.reg_argument], SB_STUB_CONST, 0xba10e0, 0);
	follow(relative, NR(relative), NULL);
	assert_value(&last[0].reg[sb_insn_x86.reg_argument], SB_STUB_CONST, CODE + 6 + 0x589114, 1);
}

static void thread_local(void **state)
{
	static const char exec[] = "\x64\x48\x8b\x04\x25\xd8\xff\xff\xff\xc3";
	static const char initial[] = "\x48\x8b\x05\x00\x10\x00\x00\x64\x48\x8b\x00\xc3";
	static const char dynamic[] = "\x55\x48\x89\xe5\x48\x8d\x3d\x61\xa6\x4a\x00"
				      "\xe8\x5c\x9d\xcf\xff\x5d\x48\x8b\x80\x28\x00\x00\x00\xc3";
	const struct sb_stub_value *rax;

	follow(exec, NR(exec), always);
	rax = &last[0].reg[SB_STUB_RESULT];
	assert_value(rax, SB_STUB_FS, 0, 1);
	assert_int_equal(rax->off[0], -40);
	follow(initial, NR(initial), always);
	assert_value(&last[0].reg[SB_STUB_RESULT], SB_STUB_FS_SLOT, CODE + 7 + 0x1000, 1);
	follow(dynamic, NR(dynamic), always);
	rax = &last[1].reg[SB_STUB_RESULT];
	assert_value(rax, SB_STUB_TLS, CODE + 11 + 0x4aa661, 1);
	assert_int_equal(rax->off[0], 40);
	follow(dynamic, NR(dynamic), NULL);
	assert_int_equal(last[1].reg[SB_STUB_RESULT].base, SB_STUB_UNKNOWN);
}

static int read_words(void *arg, void *dst, size_t len, uint64_t addr)
{
	uint64_t word = addr + 0x100;

	memcpy(dst, &word, len);
	return 0;
}

static void values(void **state)
{
	const struct sb_memory memory = { .read = read_words };
	struct sb_stub_value value = {
		.base = SB_STUB_CONST, .addr = 0x1000, .nr_loads = 2, .off = { 8, 16, 32 }
	};
	uint64_t ret;

	/* 0x1008 has 0x1108; + 16 has 0x1218 */
	assert_int_equal(sb_stub_address(&memory, &value, &ret), 0);
	assert_int_equal(ret, 0x1118);
	assert_int_equal(sb_stub_value(&memory, &value, &ret), 0);
	assert_int_equal(ret, 0x1218 + 32);
	value.base = SB_STUB_FS;
	assert_true(sb_stub_value(&memory, &value, &ret) != 0);
}

static void noise(void **state)
{
	static const struct sb_insn_set *const sets[] = { &sb_insn_x86, &sb_insn_arm64 };
	uint8_t code[256];
	struct sb_insn insn;

	srand(5);
	for (int round = 0; round < 20000; round++) {
		for (size_t i = 0; i < sizeof(code); i++)
			code[i] = (uint8_t)rand();
		nr_last = 0;
		for (size_t i = 0; i < SB_ARRAY_SIZE(sets); i++) {
			sb_stub_follow_code(
				&(struct sb_stub_code){ sets[i], code, sizeof(code), CODE }, note,
				always, NULL);
			if (!sets[i]->decode(code, 20, CODE, &insn))
				assert_in_range(insn.len, 1, SB_INSN_BYTES_MAX);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths),
		cmocka_unit_test(of_arm64),
		cmocka_unit_test(stub_of_arm64),
		cmocka_unit_test(descriptor_of_arm64),
		cmocka_unit_test(key_through_the_got),
		cmocka_unit_test(argument_kept_over_a_call),
		cmocka_unit_test(constants),
		cmocka_unit_test(thread_local),
		cmocka_unit_test(values),
		cmocka_unit_test(noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
