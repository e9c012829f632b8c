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
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cfi.h"
#include "cfi_image.h"

/* Offsets in the text. */
#define AT(off) (TEXT_ADDR + (off))

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

static int add_row_text(void *arg, const struct sb_cfi_row *row)
{
	char rule[80], line[128];

	sb_uw_rule_format(&row->rule, rule, sizeof(rule));
	snprintf(line, sizeof(line), "%llx %s\n", (long long)(row->addr - TEXT_ADDR), rule);
	return sb_str_add(arg, line);
}

/* Rows, with addresses from the beginning of the text. */
static void expect_rows_of(struct sb_cfi *cfi, const char *expected)
{
	struct sb_str text = {};

	assert_int_equal(sb_cfi_each_row(cfi, add_row_text, &text), 0);
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

static int main_group(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_stack_and_frame_pointer, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
	return main_group();
}
