// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The CFI compiler on files assembled here: what each kind of instruction becomes. How files hold
 * them: test_cfi_sections.c; how tables lie in the pool: test_cfi_tables.c; real files:
 * cfi_oracle.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cfi_expect.h"

static void test_stack_and_frame_pointer(void **state)
{
	put_plain_cie(&eh);
	/* push rbp; mov rsp, rbp; ...; leave */
	FDE(&eh, AT(0x10), 0x20, 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x58, 0x0c, 7, 8, 0xc6);
	expect_rows("10 rsp+8 rbp=same\n"
		    "11 rsp+16 rbp=*(cfa-16)\n"
		    "14 rbp+16 rbp=*(cfa-16)\n"
		    "2c rsp+8 rbp=same\n"
		    "30 frame-pointer\n");
	assert_string_equal(info.source, ".eh_frame");
	assert_int_equal(info.text_lo, AT(0x10));
	assert_int_equal(info.text_hi, AT(0x30));
	assert_int_equal(info.nr_fdes, 1);
	assert_int_equal(info.nr_rows, 5);
	assert_int_equal(info.nr_unsup + info.nr_bad, 0);
}

static void test_plt(void **state)
{
	put_plain_cie(&eh);
	FDE(&eh, AT(0), 0x40, 0x0e, 16, 0x46, 0x0e, 24, 0x4a, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f,
	    0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22);
	FDE(&eh, AT(0x40), 0x40, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3a, 0x2a, 0x33, 0x24,
	    0x22);
	/* nearly one: lit12, lit4 */
	FDE(&eh, AT(0x80), 0x40, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3c, 0x2a, 0x33, 0x24,
	    0x22);
	FDE(&eh, AT(0xc0), 0x40, 0x44, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x34,
	    0x24, 0x22);
	expect_rows("0 rsp+16 rbp=same\n"
		    "6 rsp+24 rbp=same\n"
		    "10 rsp+8+((rip&15)>=11)*8 rbp=same\n"
		    "40 rsp+8+((rip&15)>=10)*8 rbp=same\n"
		    "80 unsupported\n"
		    "c0 rsp+8 rbp=same\n"
		    "c4 unsupported\n"
		    "100 frame-pointer\n");
	assert_int_equal(info.nr_unsup, 2);
	assert_int_equal(info.nr_bad, 0);
}

static void test_cfa_in_memory(void **state)
{
	put_plain_cie(&eh);
	/* *(rsp+136)+8, *(rsp-8)+16, *(rbp-16) */
	FDE(&eh, AT(0), 0x10, 0x0f, 6, 0x77, 0x88, 1, 0x06, 0x23, 8, 0x42, 0x0f, 5, 0x77, 0x78,
	    0x06, 0x23, 16, 0x42, 0x0f, 3, 0x76, 0x70, 0x06);
	/* offsets at their limits: *(rbp-32768)+65535, and one beyond each */
	FDE(&eh, AT(0x10), 0x10, 0x0f, 9, 0x76, 0x80, 0x80, 0x7e, 0x06, 0x23, 0xff, 0xff, 3, 0x42,
	    0x0f, 9, 0x76, 0xff, 0xff, 0x7d, 0x06, 0x23, 0xff, 0xff, 3, 0x42, 0x0f, 9, 0x76, 0x80,
	    0x80, 0x7e, 0x06, 0x23, 0x80, 0x80, 4);
	/* rbx as the base; an operation more; no dereference; end in the middle */
	FDE(&eh, AT(0x20), 0x10, 0x0f, 3, 0x73, 0, 0x06, 0x44, 0x0e, 8, 0x0f, 6, 0x77, 0, 0x06,
	    0x23, 8, 0x06, 0x44, 0x0f, 4, 0x77, 0, 0x23, 8, 0x44, 0x0f, 2, 0x77, 0x80);
	expect_rows("0 *(rsp+136)+8 rbp=same\n"
		    "2 *(rsp-8)+16 rbp=same\n"
		    "4 *(rbp-16)+0 rbp=same\n"
		    "10 *(rbp-32768)+65535 rbp=same\n"
		    "12 unsupported\n"
		    "30 frame-pointer\n");
	/* 0x12, 0x14 and all of the third function have one and the same rule */
	assert_int_equal(info.nr_unsup, 1);
}

/* *(rsp + 8 + r9 * 8) + 8: bignum multiplication of OpenSSL; nothing that looks like it. */
static void test_cfa_in_memory_indexed(void **state)
{
	put_plain_cie(&eh);
	FDE(&eh, AT(0), 0x10, 0x0f, 10, 0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8);
	/* rbp as the base; r8; r9 + 8; by 4; added twice; end in the middle */
	FDE(&eh, AT(0x10), 0x20, 0x0f, 10, 0x76, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8, 0x44,
	    0x0e, 8, 0x0f, 10, 0x77, 8, 0x78, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8, 0x44, 0x0f, 10,
	    0x77, 8, 0x79, 8, 0x38, 0x1e, 0x22, 0x06, 0x23, 8, 0x44, 0x0f, 10, 0x77, 8, 0x79, 0,
	    0x34, 0x1e, 0x22, 0x06, 0x23, 8, 0x44, 0x0f, 11, 0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22,
	    0x22, 0x06, 0x23, 8, 0x44, 0x0f, 6, 0x77, 8, 0x79, 0, 0x38, 0x1e);
	expect_rows("0 *(rsp+8+r9*8)+8 rbp=same\n"
		    "10 unsupported\n"
		    "30 frame-pointer\n");
	assert_int_equal(info.nr_unsup, 1);
}

/* push rbp with the stack aligned anew: GCC's "dynamic realign argument pointer" */
static void test_realigned_stack(void **state)
{
	put_plain_cie(&eh);
	FDE(&eh, AT(0), 0x40, 0x45, 0x0c, 10, 0, 0x49, 0x10, 6, 2, 0x76, 0, 0x4c, 0x0f, 3, 0x76,
	    0x78, 0x06, 0x5a, 0x0c, 10, 0, 0x45, 0x0c, 7, 8);
	/* an offset from rbp; from rsp; a value; more than a base */
	FDE(&eh, AT(0x40), 0x40, 0x10, 6, 2, 0x76, 0x70, 0x44, 0x10, 6, 2, 0x77, 0, 0x44, 0xc6,
	    0x44, 0x16, 6, 2, 0x76, 0, 0x44, 0xc6, 0x44, 0x10, 6, 3, 0x76, 0, 0x06);
	expect_rows("0 rsp+8 rbp=same\n"
		    "5 r10+0 rbp=same\n"
		    "e r10+0 rbp=*(rbp+0)\n"
		    "1a *(rbp-8)+0 rbp=*(rbp+0)\n"
		    "34 r10+0 rbp=*(rbp+0)\n"
		    "35 r10+0 rbp=same\n" /* behind "leave": it is not said, see cfi_exec.c */
		    "39 rsp+8 rbp=same\n"
		    "40 rsp+8 rbp=*(rbp-16)\n"
		    "44 unsupported\n"
		    "48 rsp+8 rbp=same\n"
		    "4c unsupported\n"
		    "50 rsp+8 rbp=same\n"
		    "54 unsupported\n"
		    "80 frame-pointer\n");
}

/* It is said of the last 4 bytes of the row only, and of a row that ends within the function. */
static void test_leave_behind_other_code(void **state)
{
	put_plain_cie(&eh);
	FDE(&eh, AT(0), 0x40, 0x10, 6, 2, 0x76, 0, 0x0f, 3, 0x76, 0x78, 0x06, 0x44, 0x0c, 10, 0,
	    0x4d, 0x0c, 7, 8, 0x43, 0x0f, 3, 0x76, 0x78, 0x06, 0x44, 0x0c, 13, 0, 0x44, 0x0c, 7, 8,
	    0x48, 0x0f, 3, 0x76, 0x78, 0x06, 0x44, 0x0c, 10, 0);
	expect_rows("0 *(rbp-8)+0 rbp=*(rbp+0)\n"
		    "4 r10+0 rbp=*(rbp+0)\n"
		    "d r10+0 rbp=same\n"
		    "11 rsp+8 rbp=same\n"
		    "14 *(rbp-8)+0 rbp=*(rbp+0)\n"
		    "18 r13+0 rbp=*(rbp+0)\n"
		    "1c rsp+8 rbp=same\n"
		    "24 *(rbp-8)+0 rbp=*(rbp+0)\n"
		    "28 r10+0 rbp=*(rbp+0)\n"
		    "40 frame-pointer\n");
}

static void test_cfa_registers(void **state)
{
	put_plain_cie(&eh);
	FDE(&eh, AT(0), 0x20, 0x0c, 0, 8, 0x42, 0x0d, 4, 0x42, 0x0d, 15, 0x42, 0x0d, 16, 0x42, 0x0c,
	    7, 0xe0, 0xfb, 0x20, 0x42, 0x0c, 7, 0xff, 0xff, 0xff, 0xff, 7, 0x42, 0x0c, 7, 0x80,
	    0x80, 0x80, 0x80, 8);
	expect_rows("0 rax+8 rbp=same\n"
		    "2 rsi+8 rbp=same\n"
		    "4 r15+8 rbp=same\n"
		    "6 unsupported\n"
		    "8 rsp+540128 rbp=same\n"
		    "a rsp+2147483647 rbp=same\n"
		    "c unsupported\n"
		    "20 frame-pointer\n");
}

static void test_return_address(void **state)
{
	put_plain_cie(&eh);
	FDE(&eh, AT(0), 0x10, 0x07, 16, 0x44, 0xd0); /* undefined: a root; restored */
	/* popped into rdi, with rbp saved elsewhere that cannot be said too; in rip itself */
	FDE(&eh, AT(0x10), 0x10, 0x0e, 0, 0x09, 16, 5, 0x44, 0x86, 2, 0x44, 0xc6, 0x09, 16, 16);
	FDE(&eh, AT(0x20), 0x10, 0x90, 2, 0x44, 0x90, 1, 0x44, 0x08, 16, 0x44, 0x06, 16);
	/* at CFA+8, as a broken compiler had it: no root, but nothing to follow either */
	FDE(&eh, AT(0x30), 0x10, 0x11, 16, 0x7f, 0x44, 0x10, 16, 2, 0x76, 8);
	expect_rows("0 stop\n"
		    "4 rsp+8 rbp=same\n"
		    "10 rsp+0 ra=rdi rbp=same\n"
		    "14 unsupported\n"
		    "24 rsp+8 rbp=same\n"
		    "28 unsupported\n"
		    "2c rsp+8 rbp=same\n"
		    "30 unsupported\n"
		    "40 frame-pointer\n");
}

static void test_frame_pointer_rules(void **state)
{
	put_plain_cie(&eh);
	FDE(&eh, AT(0), 0x30, 0x07, 6, 0x42, 0x08, 6, 0x42, 0x05, 6, 3, 0x42, 0x11, 6, 4, 0x42,
	    0x2f, 6, 5, 0x42, 0x06, 6, 0x42, 0x09, 6, 3, 0x42, 0xc6, 0x42, 0x14, 6, 2, 0x42, 0xc6,
	    0x42, 0x05, 6, 0x80, 0x20, 0x42, 0x05, 6, 0x81, 0x20, 0x42, 0x11, 6, 0x81, 0x60);
	expect_rows("0 rsp+8 rbp=lost\n"
		    "2 rsp+8 rbp=same\n"
		    "4 rsp+8 rbp=*(cfa-24)\n"
		    "6 rsp+8 rbp=*(cfa-32)\n"
		    "8 rsp+8 rbp=*(cfa+40)\n"
		    "a rsp+8 rbp=same\n"
		    "c unsupported\n"
		    "e rsp+8 rbp=same\n"
		    "10 unsupported\n"
		    "12 rsp+8 rbp=same\n"
		    "14 rsp+8 rbp=*(cfa-32768)\n"
		    "16 unsupported\n"
		    "18 rsp+8 rbp=*(cfa+32760)\n"
		    "30 frame-pointer\n");
}

/* The caller's stack pointer is not the CFA: longjmp(), setcontext(). */
static void test_stack_switch(void **state)
{
	put_plain_cie(&eh);
	FDE(&eh, AT(0), 0x20, 0x09, 7, 8, 0x44, 0xc7, 0x44, 0x87, 2, 0x44, 0x14, 7, 0, 0x44, 0x14,
	    7, 1);
	expect_rows("0 unsupported\n"
		    "4 rsp+8 rbp=same\n"
		    "8 unsupported\n"
		    "c rsp+8 rbp=same\n"
		    "10 unsupported\n"
		    "20 frame-pointer\n");
}

static void test_other_instructions(void **state)
{
	put_plain_cie(&eh);
	/* advance_loc1, 2, 4, MIPS_advance_loc8; def_cfa_sf, def_cfa_offset_sf; args_size;
	 * registers of no interest: r12 saved, in a register, undefined, by expressions */
	FDE(&eh, AT(0), 0x800, 0x8c, 2, 0x02, 0x10, 0x12, 7, 0x7e, 0x03, 0x10, 0x01, 0x13, 0x7d,
	    0x2e, 0x88, 1, 0x04, 0x00, 0x01, 0, 0, 0x0e, 32, 0x07, 12, 0x09, 12, 5, 0x10, 12, 2,
	    0x76, 0, 0x16, 12, 2, 0x76, 0, 0x08, 12, 0x06, 12, 0xcc, 0x1d, 0, 1, 0, 0, 0, 0, 0, 0,
	    0x0e, 40);
	expect_rows("0 rsp+8 rbp=same\n"
		    "10 rsp+16 rbp=same\n"
		    "120 rsp+24 rbp=same\n"
		    "220 rsp+32 rbp=same\n"
		    "320 rsp+40 rbp=same\n"
		    "800 frame-pointer\n");
	assert_int_equal(info.nr_bad, 0);
}

/* Saved where a slot can say, where none can, in a register, and back. */
static void test_rbx(void **state)
{
	put_plain_cie(&eh);
	FDE(&eh, AT(0), 0x20, 0x44, 0x83, 2, 0x44, 0x83, 63, 0x41, 0x83, 64, 0x41, 0x09, 3, 5, 0x41,
	    0x83, 1, 0x41, 0x07, 3, 0x41, 0x08, 3, 0x41, 0x83, 3, 0x41, 0xc3);
	expect_rows("0 rsp+8 rbp=same\n"
		    "4 rsp+8 rbp=same rbx=*(cfa-16)\n"
		    "8 rsp+8 rbp=same rbx=*(cfa-504)\n"
		    "9 rsp+8 rbp=same rbx=lost\n"
		    "d rsp+8 rbp=same\n"
		    "e rsp+8 rbp=same rbx=*(cfa-24)\n"
		    "f rsp+8 rbp=same\n"
		    "20 frame-pointer\n");
	assert_int_equal(info.nr_bad, 0);
}

static void test_set_loc(void **state)
{
	put_plain_cie(&eh);
	open_fde(&eh, AT(0), 0x20);
	PUT(&eh, 0x01);
	put_uint(&eh, AT(8) - (EH_ADDR + eh.len), 4);
	PUT(&eh, 0x0e, 16, 0x01);
	put_uint(&eh, AT(4) - (EH_ADDR + eh.len), 4); /* backwards */
	close_entry(&eh);
	expect_rows("0 rsp+8 rbp=same\n"
		    "8 unsupported\n"
		    "20 frame-pointer\n");
	assert_int_equal(info.nr_bad, 1);
}

static void test_rows_of_one_address(void **state)
{
	put_plain_cie(&eh);
	/* by 0: the later row counts; back to the rule of the one before: no row at all */
	FDE(&eh, AT(0), 0x20, 0x44, 0x0e, 16, 0x40, 0x0e, 24, 0x44, 0x0e, 32, 0x40, 0x0e, 24);
	/* beyond the end */
	FDE(&eh, AT(0x20), 0x20, 0x5f, 0x0e, 16, 0x41, 0x0e, 24, 0x41, 0x0e, 32);
	expect_rows("0 rsp+8 rbp=same\n"
		    "4 rsp+24 rbp=same\n"
		    "20 rsp+8 rbp=same\n"
		    "3f rsp+16 rbp=same\n"
		    "40 frame-pointer\n");
	assert_int_equal(info.nr_bad, 0);
}

static void test_remember(void **state)
{
	int i;

	put_plain_cie(&eh);
	open_fde(&eh, AT(0), 0x20);
	for (i = 1; i <= 8; i++)
		PUT(&eh, 0x0e, (uint8_t)(8 * i), 0x0a);
	PUT(&eh, 0x0f, 3, 0x77, 0, 0x06, 0x86, 2);
	for (i = 1; i <= 8; i++)
		PUT(&eh, 0x41, 0x0b);
	close_entry(&eh);
	open_fde(&eh, AT(0x20), 0x10);
	for (i = 0; i < 9; i++)
		PUT(&eh, 0x0a);
	close_entry(&eh);
	FDE(&eh, AT(0x30), 0x10, 0x44, 0x0b);
	expect_rows("0 *(rsp+0)+0 rbp=*(cfa-16)\n"
		    "1 rsp+64 rbp=same\n"
		    "2 rsp+56 rbp=same\n"
		    "3 rsp+48 rbp=same\n"
		    "4 rsp+40 rbp=same\n"
		    "5 rsp+32 rbp=same\n"
		    "6 rsp+24 rbp=same\n"
		    "7 rsp+16 rbp=same\n"
		    "8 rsp+8 rbp=same\n"
		    "20 unsupported\n"
		    "30 rsp+8 rbp=same\n"
		    "34 unsupported\n"
		    "40 frame-pointer\n");
	assert_int_equal(info.nr_bad, 2);
}

/* What came before the broken instruction still holds. */
static void test_broken_instructions(void **state)
{
	put_plain_cie(&eh);
	FDE(&eh, AT(0), 0x10, 0x0e, 16, 0x44, 0x3b);	  /* none of DWARF's */
	FDE(&eh, AT(0x10), 0x10, 0x44, 0x0f, 0x7f, 0x77); /* a block beyond the entry */
	FDE(&eh, AT(0x20), 0x10, 0x0e, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
	    0x80, 0x80); /* no number has so many digits */
	FDE(&eh, AT(0x30), 0x10, 0x0e, 24);
	open_fde(&eh, AT(0x40), 0x10);
	while (eh.len % 8 != 5)
		put_uint(&eh, 0, 1);
	PUT(&eh, 0x04, 1, 0); /* two bytes of four */
	close_entry(&eh);
	expect_rows("0 rsp+16 rbp=same\n"
		    "4 unsupported\n"
		    "10 rsp+8 rbp=same\n"
		    "14 unsupported\n"
		    "30 rsp+24 rbp=same\n"
		    "40 unsupported\n"
		    "50 frame-pointer\n");
	assert_int_equal(info.nr_bad, 4);
	assert_int_equal(info.nr_fdes, 5);
}

static void test_gaps(void **state)
{
	put_plain_cie(&eh);
	FDE(&eh, AT(0x01), 0x0f, 0x0e, 16);
	FDE(&eh, AT(0x1f), 0x11, 0x0e, 24); /* 15 bytes behind: padding */
	FDE(&eh, AT(0x40), 0x10, 0x0e, 24); /* 16 bytes */
	expect_rows("1 rsp+16 rbp=same\n"
		    "1f rsp+24 rbp=same\n"
		    "30 frame-pointer\n"
		    "40 rsp+24 rbp=same\n"
		    "50 frame-pointer\n");
}

static void test_order(void **state)
{
	put_plain_cie(&eh);
	FDE(&eh, AT(0x11000), 0x10, 0x0e, 64);
	FDE(&eh, AT(0x20), 0x10, 0x0e, 16);
	FDE(&eh, AT(0x10), 0x10, 0x0e, 24);
	FDE(&eh, AT(0x10), 0x10, 0x0e, 32); /* the same place: the first one counts */
	FDE(&eh, AT(0x2f), 0x10, 0x0e, 40); /* reaches into another */
	FDE(&eh, AT(0x30), 0x00, 0x0e, 48); /* no code: nothing to say, nothing wrong */
	FDE(&eh, AT(0x30), 0x10, 0x0e, 56);
	FDE(&eh, AT(-0x10), 0x10, 0x0e, 56);	      /* outside of the text */
	FDE(&eh, AT(TEXT_BYTES - 8), 0x10, 0x0e, 56); /* reaches out */
	expect_rows("10 rsp+24 rbp=same\n"
		    "20 rsp+16 rbp=same\n"
		    "30 rsp+56 rbp=same\n"
		    "40 frame-pointer\n"
		    "11000 rsp+64 rbp=same\n"
		    "11010 frame-pointer\n");
	assert_int_equal(info.nr_bad, 4);
	assert_int_equal(info.nr_fdes, 4);
	assert_int_equal(info.nr_granules, 18);
}

static const uint8_t trampoline[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };

static void test_signal(void **state)
{
	static const uint8_t data[] = { 1, 0x1b };

	memcpy(img.text + 0x41, trampoline, sizeof(trampoline));
	memcpy(img.text + 0x80, trampoline, sizeof(trampoline));
	memcpy(img.text + 0xc1, trampoline, sizeof(trampoline));
	memcpy(img.text + 0x100, trampoline, sizeof(trampoline));
	put_plain_cie(&eh);
	FDE(&eh, AT(0x70), 0x10, 0x0e, 16);
	FDE(&eh, AT(0x80), 9, 0x0e, 16);   /* not marked, but it is one */
	FDE(&eh, AT(0xc0), 10, 0x0e, 16);  /* the same with its nop */
	FDE(&eh, AT(0x100), 11, 0x0e, 16); /* longer: only looked at when marked */
	open_cie(&eh, "zRS", data, sizeof(data));
	PUT(&eh, 0x0c, 7, 8, 0x90, 1);
	close_entry(&eh);
	FDE(&eh, AT(0x40), 10, 0x0e, 16); /* with its nop, as glibc has it */
	FDE(&eh, AT(0x140), 0x20, 0x3b);  /* marked; what it says is not even read */
	expect_rows("40 signal\n"
		    "4a frame-pointer\n"
		    "70 rsp+16 rbp=same\n"
		    "7f signal\n"
		    "89 frame-pointer\n"
		    "c0 signal\n"
		    "ca frame-pointer\n"
		    "100 rsp+16 rbp=same\n"
		    "10b frame-pointer\n"
		    "13f signal\n"
		    "160 frame-pointer\n");
	assert_int_equal(info.nr_bad, 0);
}

/* Behind the system call of clone() the new thread begins, but CFI hold for its maker there, or
 * end. */
static void test_clone(void **state)
{
	/* syscall; test %rax, %rax; jl; je 1f; ret; 1: glibc's clone3() */
	static const uint8_t call[] = {
		0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7c, 0x18, 0x74, 0x01, 0xc3
	};

	/* CFI end at the call; hold behind it; the branch leads elsewhere; no call; nobody's
	 * root */
	memcpy(img.text + 0x16, call, sizeof(call));
	memcpy(img.text + 0x56, call, sizeof(call));
	memcpy(img.text + 0x95, call, sizeof(call));
	memcpy(img.text + 0xd8, call + 2, sizeof(call) - 2);
	memcpy(img.text + 0x116, call, sizeof(call));
	put_plain_cie(&eh);
	FDE(&eh, AT(0x00), 0x16, 0x0e, 8);
	FDE(&eh, AT(0x20), 0x10, 0x07, 16);
	FDE(&eh, AT(0x30), 0x30, 0x0e, 8);
	FDE(&eh, AT(0x60), 0x10, 0x07, 16);
	FDE(&eh, AT(0x70), 0x30, 0x0e, 8);
	FDE(&eh, AT(0xa0), 0x10, 0x07, 16);
	FDE(&eh, AT(0xb0), 0x30, 0x0e, 8);
	FDE(&eh, AT(0xe0), 0x10, 0x07, 16);
	FDE(&eh, AT(0xf0), 0x30, 0x0e, 8);
	FDE(&eh, AT(0x120), 0x10, 0x0e, 16);
	expect_rows("0 rsp+8 rbp=same\n"
		    "18 rsp+8 rbp=same stop-if-rax=0\n"
		    "20 stop\n"
		    "30 rsp+8 rbp=same\n"
		    "58 rsp+8 rbp=same stop-if-rax=0\n"
		    "60 stop\n"
		    "70 rsp+8 rbp=same\n"
		    "a0 stop\n"
		    "b0 rsp+8 rbp=same\n"
		    "e0 stop\n"
		    "f0 rsp+8 rbp=same\n"
		    "120 rsp+16 rbp=same\n"
		    "130 frame-pointer\n");
}

/* What compilers write for arm64: CFA = sp, and the return address is in x30. */
static void put_arm64_cie(void)
{
	static const uint8_t data[] = { 1, 0x1b };

	img.machine = EM_AARCH64;
	eh.ra = 30;
	open_cie(&eh, "zR", data, sizeof(data));
	PUT(&eh, 0x0c, 31, 0);
	close_entry(&eh);
}

static void test_arm64(void **state)
{
	put_arm64_cie();
	/* stp x29, x30, [sp, #-32]!; str x19, [sp, #16]; ...; ldp x29, x30, [sp], #32 */
	FDE(&eh, AT(0x10), 0x20, 0x44, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x44, 0x93, 2, 0x50, 0xde, 0xdd,
	    0xd3, 0x0e, 0);
	/* paciasp; stp x29, x30, [sp, #-16]!; mov x29, sp; sub sp, sp, ...; ...; autiasp */
	FDE(&eh, AT(0x30), 0x20, 0x44, 0x2d, 0x44, 0x0e, 16, 0x9d, 2, 0x9e, 1, 0x44, 0x0d, 29, 0x48,
	    0x0c, 31, 0, 0xdd, 0xde, 0x44, 0x2d);
	/* x30 alone; x30 apart; far below; x30 nowhere */
	FDE(&eh, AT(0x50), 0x10, 0x44, 0x0e, 48, 0x9e, 6, 0x44, 0x9d, 2, 0x44, 0x07, 30);
	FDE(&eh, AT(0x60), 0x10, 0x0e, 0x80, 0x80, 1, 0x9e, 0x80, 8, 0x48, 0x9d, 4);
	expect_rows("10 sp+0 x29=same x30=same\n"
		    "14 sp+32 x29=*(cfa-32) x30=*(cfa-24)\n"
		    "28 sp+0 x29=same x30=same\n"
		    "38 sp+16 x29=*(cfa-16) x30=*(cfa-8)\n"
		    "3c x29+16 x29=*(cfa-16) x30=*(cfa-8)\n"
		    "44 sp+0 x29=same x30=same\n"
		    "54 sp+48 x29=same x30=*(cfa-48)\n"
		    "58 sp+48 x29=*(cfa-16) x30=*(cfa-48)\n"
		    "5c stop\n"
		    "60 sp+16384 x29=same x30=*(sp+8192)\n"
		    "68 unsupported\n"
		    "70 frame-pointer\n");
	assert_int_equal(info.machine, EM_AARCH64);
	assert_int_equal(info.nr_bad, 0);
}

static void test_arm64_clone(void **state)
{
	/* svc #0; cmp x0, #0; b.eq 1f; b.lt; ret; b; nop; 1: glibc's clone() */
	static const uint32_t call[] = { 0xd4000001, 0xf100001f, 0x540000a0, 0x5400004b,
					 0xd65f03c0, 0x17fcfea6, 0xd503201f };
	/* svc #0; cbz x0, 1f; ret; 1: */
	static const uint32_t other[] = { 0xd4000001, 0xb4000040, 0xd65f03c0 };

	memcpy(img.text + 0x14, call, sizeof(call));
	memcpy(img.text + 0x54, other, sizeof(other));
	memcpy(img.text + 0x90, call, sizeof(call));
	put_arm64_cie();
	FDE(&eh, AT(0x00), 0x2c, 0x44);
	FDE(&eh, AT(0x30), 0x10, 0x07, 30);
	FDE(&eh, AT(0x40), 0x20, 0x44);
	FDE(&eh, AT(0x60), 0x10, 0x07, 30);
	FDE(&eh, AT(0x70), 0x3c, 0x44);
	FDE(&eh, AT(0xb0), 0x10, 0x07, 30); /* where no branch leads to */
	expect_rows("0 sp+0 x29=same x30=same\n"
		    "18 sp+0 x29=same x30=same stop-if-x0=0\n"
		    "30 stop\n"
		    "40 sp+0 x29=same x30=same\n"
		    "58 sp+0 x29=same x30=same stop-if-x0=0\n"
		    "60 stop\n"
		    "70 sp+0 x29=same x30=same\n"
		    "b0 stop\n"
		    "c0 frame-pointer\n");
}

/* glibc's _dl_runtime_resolve(): the return address above the CFA, which is not the CFA. */
static void test_arm64_resolver(void **state)
{
	put_arm64_cie();
	FDE(&eh, AT(0), 0x20, 0x44, 0x11, 30, 0x7f, 0x44, 0x0e, 0x80, 1);
	expect_rows("0 sp+0 x29=same x30=same\n"
		    "4 sp+16 x29=same x30=*(cfa-8)\n"
		    "8 sp+144 x29=same x30=*(cfa-8)\n"
		    "20 frame-pointer\n");
}

/* A frame record below more than 256 KiB of locals: found near to where sp or x29 points. */
static void test_arm64_big_frame(void **state)
{
	put_arm64_cie();
	FDE(&eh, AT(0), 0x20, 0x44, 0x0e, 0x80, 0x80, 0x10, 0x9d, 0x80, 0x80, 2, 0x9e, 0xff, 0xff,
	    1, 0x44, 0x0e, 0x80, 0x80, 0x20, 0x9d, 0x80, 0x80, 4, 0x9e, 0xff, 0xff, 3, 0x44, 0x0d,
	    29, 0x48, 0x0c, 15, 8);
	expect_rows("0 sp+0 x29=same x30=same\n"
		    "4 sp+262144 x29=*(cfa-262144) x30=*(cfa-262136)\n"
		    "8 sp+524288 x29=*(sp+0) x30=*(sp+8)\n"
		    "c x29+524288 x29=*(x29+0) x30=*(x29+8)\n"
		    "14 unsupported\n"
		    "20 frame-pointer\n");
}

static void test_arm64_signal(void **state)
{
	static const uint8_t data[] = { 1, 0x1b };
	/* nop; mov x8, #139; svc #0 */
	static const uint8_t code[] = { 0x1f, 0x20, 0x03, 0xd5, 0x68, 0x11,
					0x80, 0xd2, 0x01, 0,	0,    0xd4 };

	memcpy(img.text + 0x40, code, sizeof(code));
	memcpy(img.text + 0x60, code + 4, sizeof(code) - 4);
	put_arm64_cie();
	FDE(&eh, AT(0x40), 12, 0x0e, 16);
	FDE(&eh, AT(0x60), 8, 0x0e, 16);
	open_cie(&eh, "zRS", data, sizeof(data));
	PUT(&eh, 0x0c, 29, 0);
	close_entry(&eh);
	FDE(&eh, AT(0x80), 8, 0x9d, 0);
	expect_rows("40 signal\n"
		    "4c frame-pointer\n"
		    "5f signal\n"
		    "68 frame-pointer\n"
		    "7f signal\n"
		    "88 frame-pointer\n");
	/* On x86-64 that instruction means something else. */
	setup(state);
	put_plain_cie(&eh);
	FDE(&eh, AT(0), 0x10, 0x44, 0x2d);
	expect_rows("0 rsp+8 rbp=same\n"
		    "4 unsupported\n"
		    "10 frame-pointer\n");
	assert_int_equal(info.nr_bad, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(stack_and_frame_pointer),
		TEST(plt),
		TEST(cfa_in_memory),
		TEST(cfa_in_memory_indexed),
		TEST(realigned_stack),
		TEST(leave_behind_other_code),
		TEST(cfa_registers),
		TEST(return_address),
		TEST(frame_pointer_rules),
		TEST(stack_switch),
		TEST(other_instructions),
		TEST(rbx),
		TEST(set_loc),
		TEST(rows_of_one_address),
		TEST(remember),
		TEST(broken_instructions),
		TEST(gaps),
		TEST(order),
		TEST(signal),
		TEST(clone),
		TEST(arm64),
		TEST(arm64_clone),
		TEST(arm64_big_frame),
		TEST(arm64_resolver),
		TEST(arm64_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
