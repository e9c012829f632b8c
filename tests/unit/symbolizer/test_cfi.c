// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The CFI compiler on files assembled here: each kind of rule, each thing a file can have wrong,
 * and how tables lie in the pool. Real files: cfi_oracle.py.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/str.h"
#include "cfi_each_row.h"
#include "cfi_image.h"
#include "rule_text.h"
#include "symbolizer/unwind/cfi.h"

/* The search of the walkers; nothing is walked here. */
static int read_nothing(void *mem, void *dst, size_t len, uint64_t addr)
{
	return -1;
}
#define SB_STEP_READ read_nothing
#include "bpf/step/sb_unwind_step.h"

/* Offsets in the text. */
#define AT(off)	       (TEXT_ADDR + (off))
#define SELF_BYTES_MAX (256u << 20)

static struct bytes eh;
static struct image img;
static struct sb_cfi_info info;

static int setup(void **state)
{
	memset(&eh, 0, sizeof(eh));
	memset(&img, 0, sizeof(img));
	return 0;
}

static int new_cfi(struct sb_cfi **ret_cfi)
{
	struct sb_elf *elf = NULL;
	int err;

	image_finish(&img);
	assert_int_equal(sb_elf_new_image(img.at, img.len, &elf), 0);
	err = sb_cfi_new(elf, NULL, ret_cfi);
	sb_elf_free(elf);
	return err;
}

static int add_row_text(void *arg, const struct cfi_row *row)
{
	char rule[80], line[128];

	rule_text(img.machine ? img.machine : EM_X86_64, &row->rule, rule, sizeof(rule));
	snprintf(line, sizeof(line), "%llx %s\n", (long long)(row->addr - TEXT_ADDR), rule);
	return sb_str_add(arg, line);
}

/* Rows, with addresses from the beginning of the text. */
static void expect_rows_of(struct sb_cfi *cfi, const char *expected)
{
	struct sb_str text = {};

	assert_int_equal(cfi_each_row(cfi, add_row_text, &text), 0);
	assert_string_equal(text.s ? text.s : "", expected);
	sb_str_release(&text);
}

static struct sb_cfi *compile_eh(void)
{
	struct sb_cfi *cfi = NULL;

	image_init(&img);
	image_section(&img, ".eh_frame", EH_ADDR, eh.at, eh.len);
	assert_int_equal(new_cfi(&cfi), 0);
	sb_cfi_info(cfi, &info);
	return cfi;
}

static void expect_rows(const char *expected)
{
	struct sb_cfi *cfi = compile_eh();

	expect_rows_of(cfi, expected);
	sb_cfi_free(cfi);
}

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

/* One function for each way to write an address. */
static void put_encoded(uint8_t encoding, uint64_t lo)
{
	const uint8_t data[] = { 1, encoding };
	const uint64_t len = 0x10;

	open_cie(&eh, "zR", data, sizeof(data));
	PUT(&eh, 0x0c, 7, 8, 0x90, 1);
	close_entry(&eh);
	open_entry(&eh);
	put_uint(&eh, eh.len - eh.cie, 4);
	if (encoding == 0x50)
		while (eh.len % 8)
			put_uint(&eh, 0xee, 1);
	if ((encoding & 0x70) == 0x10)
		lo -= EH_ADDR + eh.len;
	switch (encoding & 0x0f) {
	case 1:
		put_uleb(&eh, lo);
		put_uleb(&eh, len);
		break;
	case 9: /* a difference, negative and of four digits */
		PUT(&eh, (uint8_t)(lo & 0x7f) | 0x80, (uint8_t)(lo >> 7 & 0x7f) | 0x80,
		    (uint8_t)(lo >> 14 & 0x7f) | 0x80, (uint8_t)(lo >> 21 & 0x7f), (uint8_t)len);
		break;
	case 3:
	case 11:
		put_uint(&eh, lo, 4);
		put_uint(&eh, len, 4);
		break;
	default:
		put_uint(&eh, lo, 8);
		put_uint(&eh, len, 8);
	}
	PUT(&eh, 0);
	PUT(&eh, 0x0e, 16);
	close_entry(&eh);
}

static void test_encodings(void **state)
{
	static const uint8_t good[] = { 0x00, 0x01, 0x03, 0x04, 0x08, 0x0b, 0x0c,
					0x10, 0x11, 0x19, 0x1b, 0x1c, 0x50 };
	/* Unknown; relative to what no linker uses; indirect; forward only. */
	static const uint8_t bad[] = { 0x13, 0x05, 0x20, 0x30, 0x40, 0x9b, 0xff };
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(good); i++)
		put_encoded(good[i], AT(i * 0x10));
	for (i = 0; i < SB_ARRAY_SIZE(bad); i++)
		put_encoded(bad[i], AT(0x200 + i * 0x10));
	expect_rows("0 rsp+16 rbp=same\n"
		    "d0 frame-pointer\n");
	assert_int_equal(info.nr_fdes, SB_ARRAY_SIZE(good));
	assert_int_equal(info.nr_bad, SB_ARRAY_SIZE(bad));
}

/* An FDE of 0x10 bytes for the CIE put last, with @letters of its own data. */
static void put_augmented(const char *letters, const uint8_t *data, size_t len, uint64_t lo)
{
	open_cie(&eh, letters, data, len);
	PUT(&eh, 0x0c, 7, 8, 0x90, 1);
	close_entry(&eh);
	open_entry(&eh);
	put_uint(&eh, eh.len - eh.cie, 4);
	put_uint(&eh, lo, 8);
	put_uint(&eh, 0x10, 8);
	if (*letters == 'z')
		PUT(&eh, 3, 0x0b, 0x0b, 0x0b); /* would be instructions that fail */
	PUT(&eh, 0x0e, 16);
	close_entry(&eh);
}

static void test_augmentations(void **state)
{
	static const uint8_t plr[] = { 7, 0x9b, 1, 2, 3, 4, 0x1b, 0 };
	static const uint8_t p_none[] = { 1, 0xff };
	static const uint8_t b[] = { 3, 0, 0xaa, 0xbb }; /* more than the letters need */
	static const uint8_t too_short[] = { 1, 0x1b };
	static const uint8_t beyond[] = { 0x7f, 0 };
	static const uint8_t old[8] = { 1, 2, 3 }, none[1] = {};

	put_augmented("zPLR", plr, sizeof(plr), AT(0));
	put_augmented("zP", p_none, sizeof(p_none), AT(0x10));
	put_augmented("zRBG", b, sizeof(b), AT(0x20));
	put_augmented("z", none, 1, AT(0x30));
	put_augmented("", NULL, 0, AT(0x40));
	put_augmented("eh", old, sizeof(old), AT(0x50));
	put_augmented("zX", none, 1, AT(0x200));
	put_augmented("R", too_short + 1, 1, AT(0x210));
	put_augmented("zLR", too_short, sizeof(too_short), AT(0x220));
	put_augmented("zR", beyond, sizeof(beyond), AT(0x230));
	expect_rows("0 rsp+16 rbp=same\n"
		    "60 frame-pointer\n");
	assert_int_equal(info.nr_fdes, 6);
	assert_int_equal(info.nr_bad, 4);
}

static void test_entries(void **state)
{
	uint64_t len;

	put_plain_cie(&eh);
	FDE(&eh, AT(0), 0x10, 0x0e, 16);
	put_uint(&eh, 0, 4); /* a terminator of one of the linker's inputs */
	put_plain_cie(&eh);
	/* a length of 64 bits; the id remains at 32 */
	put_uint(&eh, 0xffffffff, 4);
	put_uint(&eh, 17, 8);
	put_uint(&eh, eh.len - eh.cie, 4);
	put_uint(&eh, AT(0x10) - (EH_ADDR + eh.len), 4);
	put_uint(&eh, 0x10, 4);
	PUT(&eh, 0, 0x0e, 24, 0, 0);
	/* of a CIE that is not there: in the middle of one, and before the section */
	open_fde(&eh, AT(0x20), 0x10);
	len = eh.cie + 4;
	len = eh.id - len;
	memcpy(eh.at + eh.id, &len, 4);
	close_entry(&eh);
	open_fde(&eh, AT(0x20), 0x10);
	len = eh.id + 8;
	memcpy(eh.at + eh.id, &len, 4);
	close_entry(&eh);
	FDE(&eh, AT(0x20), 0x10, 0x0e, 32);
	put_uint(&eh, 0x1000, 4); /* reaches beyond the section: the end */
	put_uint(&eh, 0, 4);
	expect_rows("0 rsp+16 rbp=same\n"
		    "10 rsp+24 rbp=same\n"
		    "20 rsp+32 rbp=same\n"
		    "30 frame-pointer\n");
	assert_int_equal(info.nr_bad, 3);
}

/* CIEs that no FDE should trust. */
static void test_broken_cies(void **state)
{
	static const uint8_t data[] = { 1, 0x1b };
	size_t i;

	for (i = 0; i < 5; i++) {
		open_cie(&eh, "zR", data, sizeof(data));
		if (i == 0)
			eh.at[eh.cie + 8] = 2; /* version */
		if (i == 1)
			eh.at[eh.len - 3] = 17; /* another column has the return address */
		if (i == 2)
			PUT(&eh, 0x41); /* moves on, before there is a place */
		if (i == 3)
			PUT(&eh, 0x3b);
		PUT(&eh, 0x0c, 7, 8, 0x90, 1);
		close_entry(&eh);
		FDE(&eh, AT(0x10 * i), 0x10, 0x0e, 16);
	}
	/* without any rule for the CFA, or for the return address */
	open_cie(&eh, "zR", data, sizeof(data));
	PUT(&eh, 0x90, 1);
	close_entry(&eh);
	FDE(&eh, AT(0x50), 0x10, 0x44, 0x0c, 7, 8);
	open_cie(&eh, "zR", data, sizeof(data));
	PUT(&eh, 0x0c, 7, 8);
	close_entry(&eh);
	FDE(&eh, AT(0x60), 0x10, 0x44, 0x90, 1);
	expect_rows("40 rsp+16 rbp=same\n"
		    "50 unsupported\n"
		    "54 rsp+8 rbp=same\n"
		    "60 unsupported\n"
		    "64 rsp+8 rbp=same\n"
		    "70 frame-pointer\n");
	assert_int_equal(info.nr_bad, 4);
}

static void test_without_sections(void **state)
{
	uint8_t hdr[8] = { 1, 0x1b, 0xff, 0xff };
	struct sb_cfi *cfi = NULL;
	uint32_t delta = (uint32_t)(EH_ADDR - (EH_ADDR + 0x100000 + 4));

	put_plain_cie(&eh);
	FDE(&eh, AT(0), 0x10, 0x0e, 16);
	put_uint(&eh, 0, 4);
	FDE(&eh, AT(0x10), 0x10, 0x0e, 24); /* behind the end */
	memcpy(hdr + 4, &delta, sizeof(delta));
	image_init(&img);
	image_load(&img, EH_ADDR - 32, eh.len + 32, image_put(&img, eh.at, eh.len), 0);
	img.phdrs[1].p_offset -= 32; /* the section is in the middle of a segment */
	image_load(&img, EH_ADDR + 0x100000, sizeof(hdr), image_put(&img, hdr, sizeof(hdr)), 0);
	img.phdrs[2].p_type = PT_GNU_EH_FRAME;
	assert_int_equal(new_cfi(&cfi), 0);
	sb_cfi_info(cfi, &info);
	assert_string_equal(info.source, "PT_GNU_EH_FRAME");
	expect_rows_of(cfi, "0 rsp+16 rbp=same\n"
			    "10 frame-pointer\n");
	sb_cfi_free(cfi);
	img.at[img.phdrs[2].p_offset] = 2; /* version */
	cfi = NULL;
	assert_int_equal(new_cfi(&cfi), -EBADMSG);
	img.at[img.phdrs[2].p_offset] = 1;
	img.at[img.phdrs[2].p_offset + 7] = 0x7f; /* leads out of all segments */
	assert_int_equal(new_cfi(&cfi), -EBADMSG);
	assert_null(cfi);
}

/* Version 4 and 32 bits, then version 3 and 64 bits. */
static void put_debug_frame(struct bytes *b)
{
	size_t cie, len_at;

	open_entry(b);
	cie = b->entry;
	put_uint(b, UINT32_MAX, 4);
	PUT(b, 4, 0, 8, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1);
	close_entry(b);
	open_entry(b);
	put_uint(b, cie, 4);
	put_uint(b, AT(0), 8);
	put_uint(b, 0x10, 8);
	PUT(b, 0x0e, 16);
	close_entry(b);
	cie = b->len;
	put_uint(b, UINT32_MAX, 4);
	put_uint(b, 20, 8);
	put_uint(b, UINT64_MAX, 8);
	PUT(b, 3, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0);
	put_uint(b, UINT32_MAX, 4);
	len_at = b->len;
	put_uint(b, 26, 8);
	put_uint(b, cie, 8);
	put_uint(b, AT(0x10), 8);
	put_uint(b, 0x10, 8);
	PUT(b, 0x0e, 24);
	assert_int_equal(b->len - len_at, 8 + 26);
}

static const char debug_frame_rows[] = "0 rsp+16 rbp=same\n"
				       "10 rsp+24 rbp=same\n"
				       "20 frame-pointer\n";

static void test_debug_frame(void **state)
{
	struct sb_cfi *cfi = NULL;

	put_debug_frame(&eh);
	image_init(&img);
	image_section(&img, ".eh_frame", EH_ADDR, "\0\0\0", 4); /* only the terminator */
	image_section(&img, ".debug_frame", 0, eh.at, eh.len);
	assert_int_equal(new_cfi(&cfi), 0);
	sb_cfi_info(cfi, &info);
	assert_string_equal(info.source, ".debug_frame");
	expect_rows_of(cfi, debug_frame_rows);
	sb_cfi_free(cfi);
	/* Go's frame pointers say more than its .debug_frame. */
	cfi = NULL;
	image_init(&img);
	image_section(&img, ".debug_frame", 0, eh.at, eh.len);
	image_section(&img, ".gopclntab", 0, "x", 1);
	assert_int_equal(new_cfi(&cfi), -ENODATA);
}

static size_t pack(uint32_t type, uint64_t size, uint8_t *out, size_t out_len)
{
	Elf64_Chdr chdr = { .ch_type = type, .ch_size = size, .ch_addralign = 8 };
	uLongf len = out_len - sizeof(chdr);

	memcpy(out, &chdr, sizeof(chdr));
	if (type == ELFCOMPRESS_ZLIB)
		assert_int_equal(compress(out + sizeof(chdr), &len, eh.at, eh.len), Z_OK);
	else
		len = ZSTD_compress(out + sizeof(chdr), len, eh.at, eh.len, 3);
	return sizeof(chdr) + len;
}

static void test_compressed(void **state)
{
	const struct {
		uint32_t type;
		uint64_t size;
		int err;
	} cases[] = { { 1, eh.len, 0 },		 { 2, eh.len, 0 },	    { 1, 1, -EBADMSG },
		      { 2, 1, -EBADMSG },	 { 1, 4096, -EBADMSG },	    { 2, 4096, -EBADMSG },
		      { 1, 1ull << 40, -EFBIG }, { 2, 1ull << 40, -EFBIG }, { 3, 4096, -EBADMSG } };
	uint8_t packed[4096];
	struct sb_cfi *cfi;
	size_t i, len, size;

	put_debug_frame(&eh);
	for (i = 0; i < SB_ARRAY_SIZE(cases); i++) {
		size = cases[i].err ? cases[i].size : eh.len;
		len = pack(cases[i].type, size, packed, sizeof(packed));
		image_init(&img);
		image_section(&img, ".debug_frame", 0, packed, len)->sh_flags = SHF_COMPRESSED;
		cfi = NULL;
		assert_int_equal(new_cfi(&cfi), cases[i].err);
		if (cfi)
			expect_rows_of(cfi, debug_frame_rows);
		sb_cfi_free(cfi);
	}
}

static void test_separate_debug_file(void **state)
{
	struct sb_elf *elf = NULL, *debug = NULL;
	struct sb_cfi *cfi = NULL;

	image_init(&img);
	image_finish(&img);
	assert_int_equal(sb_elf_new_image(img.at, img.len, &elf), 0);
	put_debug_frame(&eh);
	memset(&img, 0, sizeof(img));
	image_init(&img);
	image_section(&img, ".eh_frame", EH_ADDR, eh.at, eh.len)->sh_type = SHT_NOBITS;
	image_section(&img, ".debug_frame", 0, eh.at, eh.len);
	image_finish(&img);
	assert_int_equal(sb_elf_new_image(img.at, img.len, &debug), 0);
	assert_int_equal(sb_cfi_new(elf, NULL, &cfi), -ENODATA);
	assert_int_equal(sb_cfi_new(elf, debug, &cfi), 0);
	expect_rows_of(cfi, debug_frame_rows);
	sb_cfi_free(cfi);
	sb_elf_free(elf);
	sb_elf_free(debug);
}

static void test_section_types(void **state)
{
	struct sb_cfi *cfi = NULL;

	put_plain_cie(&eh);
	FDE(&eh, AT(0), 0x10, 0x0e, 16);
	image_init(&img);
	image_section(&img, ".eh_frame", EH_ADDR, eh.at, eh.len)->sh_type = SHT_X86_64_UNWIND;
	assert_int_equal(new_cfi(&cfi), 0);
	sb_cfi_free(cfi);
	cfi = NULL;
	image_init(&img);
	image_section(&img, ".eh_frame", EH_ADDR, eh.at, eh.len)->sh_flags = 0;
	assert_int_equal(new_cfi(&cfi), -ENODATA);
	image_init(&img);
	image_section(&img, ".eh_frame", EH_ADDR, eh.at, eh.len)->sh_offset = IMAGE_BYTES;
	assert_int_equal(new_cfi(&cfi), -EBADMSG);
	image_init(&img);
	image_section(&img, ".eh_frame", EH_ADDR, eh.at, eh.len)->sh_offset = UINT64_MAX - 8;
	assert_int_equal(new_cfi(&cfi), -EBADMSG);
	assert_null(cfi);
}

static void test_errors(void **state)
{
	struct sb_cfi *cfi = NULL;
	struct sb_elf *elf = NULL;

	image_init(&img);
	assert_int_equal(new_cfi(&cfi), -ENODATA);
	put_uint(&eh, 0, 4);
	image_init(&img);
	image_section(&img, ".eh_frame", EH_ADDR, eh.at, eh.len);
	assert_int_equal(new_cfi(&cfi), -ENODATA);
	PUT(&eh, 1, 2, 3);
	image_init(&img);
	image_section(&img, ".eh_frame", EH_ADDR, eh.at, eh.len);
	assert_int_equal(new_cfi(&cfi), -EBADMSG);
	assert_int_equal(sb_elf_new_image(img.at, img.len, &elf), 0);
	elf->machine = EM_RISCV;
	assert_int_equal(sb_cfi_new(elf, NULL, &cfi), -ENOTSUP);
	elf->machine = EM_X86_64;
	elf->is_64 = false; /* x32 */
	assert_int_equal(sb_cfi_new(elf, NULL, &cfi), -ENOTSUP);
	sb_elf_free(elf);
	assert_null(cfi);
}

/* Text with a hole of 4 GiB in it. */
static void test_huge_span(void **state)
{
	struct sb_cfi *cfi = NULL;
	uint64_t far = 1ull << 32;

	image_init(&img);
	img.phdrs[0].p_memsz = far + 0x1000;
	put_encoded(0, AT(0));
	put_encoded(0, AT(far - 0x1000));
	image_section(&img, ".eh_frame", EH_ADDR, eh.at, eh.len);
	assert_int_equal(new_cfi(&cfi), -EFBIG);
	setup(NULL);
	image_init(&img);
	img.phdrs[0].p_memsz = far + 0x1000;
	put_encoded(0, AT(0));
	put_encoded(0, AT(far - 0x3000));
	image_section(&img, ".eh_frame", EH_ADDR, eh.at, eh.len);
	assert_int_equal(new_cfi(&cfi), 0);
	sb_cfi_info(cfi, &info);
	assert_int_equal(info.nr_granules, (1u << 20) - 1);
	expect_rows_of(cfi, "0 rsp+16 rbp=same\n"
			    "10 frame-pointer\n"
			    "ffffd000 rsp+16 rbp=same\n"
			    "ffffd010 frame-pointer\n");
	sb_cfi_free(cfi);
}

/* As the walkers do it. */
static struct sb_uw_rule look_up(const uint32_t *pool, const struct sb_uw_bin *bin, uint64_t addr)
{
	uint64_t granule = (addr - bin->text_lo) >> SB_UW_GRANULE_BITS;
	struct sb_uw_rule rule = { .cfa = SB_UW_CFA_FP_CHAIN };
	uint32_t first, nr, id;

	if (granule >= bin->nr_granules)
		return rule;
	assert_int_equal(bin->index_word % 2, 0);
	assert_int_equal(bin->rules_word % 2, 0);
	first = pool[bin->index_word + 2 * granule];
	nr = pool[bin->index_word + 2 * granule + 1];
	id = first;
	if (nr) {
		assert_true(first % SB_UW_CHUNK_WORDS + nr <= SB_UW_CHUNK_WORDS);
		id = sb_uw_row_at(pool + first / SB_UW_CHUNK_WORDS * SB_UW_CHUNK_WORDS,
				  first % SB_UW_CHUNK_WORDS, nr, addr % SB_UW_GRANULE_BYTES) >>
		     16;
	}
	assert_true(id < bin->nr_rules);
	memcpy(&rule, pool + bin->rules_word + 2 * id, sizeof(rule));
	return rule;
}

struct check {
	const uint32_t *pool;
	const struct sb_uw_bin *bin;
	struct cfi_row row; /* the one before */
	uint64_t nr_rows;
};

static void check_at(const struct check *check, uint64_t addr, const struct sb_uw_rule *rule)
{
	struct sb_uw_rule found = look_up(check->pool, check->bin, addr);

	assert_memory_equal(&found, rule, sizeof(found));
}

/* The rule before this row holds up to its last byte, and at the granules in between. */
static int check_row(void *arg, const struct cfi_row *row)
{
	struct check *check = arg;
	uint64_t addr = check->row.addr;

	assert_true(!check->nr_rows || row->addr > addr);
	for (; addr < row->addr; addr = (addr | (SB_UW_GRANULE_BYTES - 1)) + 1) {
		check_at(check, addr, &check->row.rule);
		check_at(check, addr + (row->addr - addr) / 2, &check->row.rule);
	}
	check_at(check, row->addr - 1, &check->row.rule);
	check_at(check, row->addr, &row->rule);
	check->row = *row;
	check->nr_rows++;
	return 0;
}

/* Lay it there, twice, over different rubbish: what is the same was written. */
static void check_placed(const struct sb_cfi *cfi, uint32_t at_word)
{
	size_t nr = sb_cfi_words(cfi, at_word), end = at_word + nr, i;
	uint32_t *pool = malloc((end + SB_UW_CHUNK_WORDS) * 4), *other = malloc((end + 1) * 4);
	struct sb_uw_bin bin;
	struct check check = { .pool = pool, .bin = &bin };

	assert_true(pool && other);
	memset(pool, 0xa5, (end + 1) * 4);
	memset(other, 0x5a, (end + 1) * 4);
	sb_cfi_place(cfi, other, at_word, &bin);
	sb_cfi_place(cfi, pool, at_word, &bin);
	assert_memory_equal(pool + at_word, other + at_word, nr * 4);
	for (i = 0; i < at_word; i++)
		assert_int_equal(pool[i], 0xa5a5a5a5);
	assert_int_equal(pool[end], 0xa5a5a5a5);
	assert_int_equal(bin.state, SB_UW_BIN_READY);
	assert_int_equal(bin.text_lo % SB_UW_GRANULE_BYTES, 0);
	check.row.addr = bin.text_lo;
	assert_int_equal(cfi_each_row(cfi, check_row, &check), 0);
	sb_cfi_info(cfi, &info);
	assert_int_equal(check.nr_rows, info.nr_rows);
	check_at(&check, info.text_hi, &(struct sb_uw_rule){});
	check_at(&check, UINT64_MAX, &(struct sb_uw_rule){});
	free(pool);
	free(other);
}

/* Granules with up to 1400 rows, some with a single one, one without any function. */
static struct sb_cfi *compile_dense(void)
{
	uint64_t off, at = 0;
	unsigned int n = 0;

	put_plain_cie(&eh);
	for (off = 0; off < 0x1a000; off += 0x2000) {
		open_fde(&eh, AT(off), off == 0x8000 ? 0x100 : 0x1fff);
		for (at = 0; at < 0x1c00 && off % 0x6000; at += 3 + off / 0x2000 % 3, n++)
			PUT(&eh, (uint8_t)(0x43 + off / 0x2000 % 3), 0x0e,
			    (uint8_t)(n % 5 * 8 + 8));
		close_entry(&eh);
	}
	return compile_eh();
}

static void test_place(void **state)
{
	static const uint32_t words[] = { 0,	2,    8,    1000, 4096, 7000, 8000,
					  8100, 8188, 8190, 8192, 8194, 9000, 16382 };
	struct sb_cfi *cfi = compile_dense();
	size_t i;

	assert_true(info.nr_rows > SB_UW_CHUNK_WORDS);
	assert_int_equal(info.nr_bad, 0);
	for (i = 0; i < SB_ARRAY_SIZE(words); i++)
		check_placed(cfi, words[i]);
	/* 4.5 bytes for each row and less */
	assert_true(sb_cfi_words(cfi, 0) * 4 * 2 <= info.nr_rows * 9ull);
	sb_cfi_free(cfi);
}

/* A granule with one rule has no rows, be it in a function or in none. */
static void test_index(void **state)
{
	struct sb_uw_bin bin;
	struct sb_cfi *cfi;
	uint32_t pool[64], *index;

	put_plain_cie(&eh);
	FDE(&eh, AT(0), 0x3800, 0x0e, 16);
	FDE(&eh, AT(0x5000), 0x800, 0x44, 0x0e, 24);
	cfi = compile_eh();
	assert_true(sb_cfi_words(cfi, 2) <= 60);
	sb_cfi_place(cfi, pool, 2, &bin);
	/* TEXT_ADDR begins a granule, and the one before belongs to it for trampolines. */
	assert_int_equal(bin.text_lo, TEXT_ADDR - SB_UW_GRANULE_BYTES);
	assert_int_equal(bin.nr_granules, 7);
	index = pool + bin.index_word;
	assert_int_equal(index[1], 0);
	assert_int_equal(index[0], SB_UW_RULE_FP_CHAIN);
	assert_int_equal(index[3] + index[5] + index[7], 0);
	assert_int_equal(index[2], SB_UW_RULE_FIRST);
	assert_int_equal(index[4], SB_UW_RULE_FIRST);
	assert_int_equal(index[9], 2); /* 0x3000: the rule, then the frame pointer */
	assert_int_equal(pool[index[8]], SB_UW_ROW(SB_UW_RULE_FIRST, 0));
	assert_int_equal(pool[index[8] + 1], SB_UW_ROW(SB_UW_RULE_FP_CHAIN, 0x800));
	assert_int_equal(index[11], 0);
	assert_int_equal(index[10], SB_UW_RULE_FP_CHAIN);
	assert_int_equal(index[13], 3);
	assert_int_equal(pool[index[12]] & 0xfff, 0);
	assert_int_equal(bin.nr_rules, 5);
	assert_int_equal(pool[bin.rules_word] & 0xff, SB_UW_CFA_FP_CHAIN);
	assert_int_equal(pool[bin.rules_word + 2] & 0xff, SB_UW_CFA_STOP);
	sb_cfi_free(cfi);
}

static void test_this_program(void **state)
{
	char *data = NULL;
	size_t len = 0;
	struct sb_elf *elf = NULL;
	struct sb_cfi *cfi = NULL;

	assert_int_equal(sb_read_file("/proc/self/exe", SELF_BYTES_MAX, &data, &len), 0);
	assert_int_equal(sb_elf_new_image(data, len, &elf), 0);
	assert_int_equal(sb_cfi_new(elf, NULL, &cfi), 0);
	check_placed(cfi, 0);
	check_placed(cfi, 8190);
	assert_int_equal(info.nr_bad, 0);
	assert_true(info.nr_rows > 300);
	sb_cfi_free(cfi);
	sb_elf_free(elf);
	free(data);
}

/* Whatever comes of it, it is a table in order, or an error. */
static void check_damaged(const char *data, size_t len)
{
	struct sb_elf *elf = NULL;
	struct sb_cfi *cfi = NULL;

	if (sb_elf_new_image(data, len, &elf))
		return;
	if (!sb_cfi_new(elf, NULL, &cfi) && sb_cfi_words(cfi, 0) < 1u << 20)
		check_placed(cfi, 6);
	sb_cfi_free(cfi);
	sb_elf_free(elf);
}

static void test_damaged(void **state)
{
	sb_cleanup(sb_freep) char *data = NULL, *was = NULL;
	uint32_t random = 12345, round, i;
	struct sb_elf *elf = NULL;
	Elf64_Shdr shdr;
	size_t len = 0;

	assert_int_equal(sb_read_file("/proc/self/exe", SELF_BYTES_MAX, &data, &len), 0);
	assert_int_equal(sb_elf_new_image(data, len, &elf), 0);
	shdr = *sb_elf_section_named(elf, ".eh_frame");
	sb_elf_free(elf);
	was = malloc(shdr.sh_size);
	assert_non_null(was);
	memcpy(was, data + shdr.sh_offset, shdr.sh_size);
	for (round = 0; round < 400; round++) {
		for (i = 0; i <= round % 16; i++) {
			random = random * 1664525 + 1013904223; /* Numerical Recipes, 7.1 */
			data[shdr.sh_offset + (random >> 8) % shdr.sh_size] = (char)(random >> 3);
		}
		check_damaged(data, len);
		memcpy(data + shdr.sh_offset, was, shdr.sh_size);
	}
	for (round = 0; round < 64; round++)
		check_damaged(data, shdr.sh_offset + shdr.sh_size * round / 64);
}

static int stop_at_two(void *arg, const struct cfi_row *row)
{
	return ++*(int *)arg == 2 ? -ECANCELED : 0;
}

static void test_stop(void **state)
{
	struct sb_cfi *cfi = compile_dense();
	int nr = 0;

	assert_int_equal(cfi_each_row(cfi, stop_at_two, &nr), -ECANCELED);
	assert_int_equal(nr, 2);
	sb_cfi_free(cfi);
	sb_cfi_free(NULL);
}

#define TEST(name) cmocka_unit_test_setup(test_##name, setup)

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
		TEST(encodings),
		TEST(augmentations),
		TEST(entries),
		TEST(broken_cies),
		TEST(without_sections),
		TEST(debug_frame),
		TEST(compressed),
		TEST(separate_debug_file),
		TEST(section_types),
		TEST(errors),
		TEST(huge_span),
		TEST(place),
		TEST(index),
		TEST(this_program),
		TEST(damaged),
		TEST(stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
