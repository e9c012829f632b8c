// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Machine code of accessor functions: shapes as compilers made them, and none at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

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

static void follow(const char *code, size_t len, sb_stub_is_tls_fn is_tls)
{
	nr_last = 0;
	assert_int_equal(sb_stub_follow_code((const uint8_t *)code, len, CODE, note, is_tls, NULL),
			 0);
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

		assert_int_equal(sb_insn_decode(code, rows[i].len, CODE, &insn), 0);
		assert_int_equal(insn.len, rows[i].len);
		assert_int_equal(insn.kind, rows[i].kind);
		/* Cut off, it is none. */
		assert_true(sb_insn_decode(code, rows[i].len - 1u, CODE, &insn) != 0);
	}
	assert_true(sb_insn_decode((const uint8_t *)"\x06", 1, CODE, &insn) != 0);
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
	assert_value(&last[0].reg[SB_STUB_RDI], SB_STUB_CONST, CODE + 7 + 0x17d169, 1);
	assert_int_equal(last[0].reg[SB_STUB_RDI].off[1], 0x248);
	assert_int_equal(last[1].exit, SB_STUB_RET);
	assert_value(&last[1].reg[SB_STUB_RAX], SB_STUB_CONST, 0, 0);
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
	assert_value(&last[1].reg[SB_STUB_RDI], SB_STUB_CONST, CODE + 11 + 0x3ec015, 1);
	assert_int_equal(last[1].reg[SB_STUB_RDI].off[1], 0x870);
	assert_value(&last[1].reg[SB_STUB_RAX], SB_STUB_UNKNOWN, 0, 0);
}

static void constants(void **state)
{
	/* CPython 3.14 at a fixed address; 3.11, a program */
	static const char fixed[] = "\xbf\xe0\x10\xba\x00\xe9\x7f\x2e\x11\x00";
	static const char relative[] = "\x8b\x3d\x14\x91\x58\x00\xe9\x8b\x33\xf5\xff";

	follow(fixed, NR(fixed), NULL);
	assert_value(&last[0].reg[SB_STUB_RDI], SB_STUB_CONST, 0xba10e0, 0);
	follow(relative, NR(relative), NULL);
	assert_value(&last[0].reg[SB_STUB_RDI], SB_STUB_CONST, CODE + 6 + 0x589114, 1);
}

static void thread_local(void **state)
{
	static const char exec[] = "\x64\x48\x8b\x04\x25\xd8\xff\xff\xff\xc3";
	static const char initial[] = "\x48\x8b\x05\x00\x10\x00\x00\x64\x48\x8b\x00\xc3";
	static const char dynamic[] = "\x55\x48\x89\xe5\x48\x8d\x3d\x61\xa6\x4a\x00"
				      "\xe8\x5c\x9d\xcf\xff\x5d\x48\x8b\x80\x28\x00\x00\x00\xc3";
	const struct sb_stub_value *rax;

	follow(exec, NR(exec), always);
	rax = &last[0].reg[SB_STUB_RAX];
	assert_value(rax, SB_STUB_FS, 0, 1);
	assert_int_equal(rax->off[0], -40);
	follow(initial, NR(initial), always);
	assert_value(&last[0].reg[SB_STUB_RAX], SB_STUB_FS_SLOT, CODE + 7 + 0x1000, 1);
	follow(dynamic, NR(dynamic), always);
	rax = &last[1].reg[SB_STUB_RAX];
	assert_value(rax, SB_STUB_TLS, CODE + 11 + 0x4aa661, 1);
	assert_int_equal(rax->off[0], 40);
	follow(dynamic, NR(dynamic), NULL);
	assert_int_equal(last[1].reg[SB_STUB_RAX].base, SB_STUB_UNKNOWN);
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
	uint8_t code[256];
	struct sb_insn insn;

	srand(5);
	for (int round = 0; round < 20000; round++) {
		for (size_t i = 0; i < sizeof(code); i++)
			code[i] = (uint8_t)rand();
		nr_last = 0;
		sb_stub_follow_code(code, sizeof(code), CODE, note, always, NULL);
		if (!sb_insn_decode(code, 20, CODE, &insn))
			assert_in_range(insn.len, 1, SB_INSN_BYTES_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths),
		cmocka_unit_test(key_through_the_got),
		cmocka_unit_test(argument_kept_over_a_call),
		cmocka_unit_test(constants),
		cmocka_unit_test(thread_local),
		cmocka_unit_test(values),
		cmocka_unit_test(noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
