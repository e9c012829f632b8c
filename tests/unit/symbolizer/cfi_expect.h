/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Behind <cmocka.h>: what tests of the CFI compiler share. Files that are assembled in memory, and
 * the rows that become of them, as text. */
#ifndef SB_UNIT_CFI_EXPECT_H
#define SB_UNIT_CFI_EXPECT_H

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cfi_each_row.h"
#include "cfi_image.h"
#include "rule_text.h"
#include "symbolizer/unwind/cfi.h"

/* Offsets in the text. */
#define AT(off) (TEXT_ADDR + (off))

static struct bytes eh;
static struct image img;
static struct sb_cfi_info info;

static inline int setup(void **state)
{
	memset(&eh, 0, sizeof(eh));
	memset(&img, 0, sizeof(img));
	return 0;
}

static inline int new_cfi(struct sb_cfi **ret_cfi)
{
	struct sb_elf *elf = NULL;
	int err;

	image_finish(&img);
	assert_int_equal(sb_elf_new_image(img.at, img.len, &elf), 0);
	err = sb_cfi_new(elf, NULL, ret_cfi);
	sb_elf_free(elf);
	return err;
}

static inline int add_row_text(void *arg, const struct cfi_row *row)
{
	char rule[80], line[128];

	rule_text(img.machine ? img.machine : EM_X86_64, &row->rule, rule, sizeof(rule));
	snprintf(line, sizeof(line), "%llx %s\n", (long long)(row->addr - TEXT_ADDR), rule);
	return sb_str_add(arg, line);
}

/* Rows, with addresses from the beginning of the text. */
static inline void expect_rows_of(struct sb_cfi *cfi, const char *expected)
{
	struct sb_str text = {};

	assert_int_equal(cfi_each_row(cfi, add_row_text, &text), 0);
	assert_string_equal(text.s ? text.s : "", expected);
	sb_str_release(&text);
}

static inline struct sb_cfi *compile_eh(void)
{
	struct sb_cfi *cfi = NULL;

	image_init(&img);
	image_section(&img, ".eh_frame", EH_ADDR, eh.at, eh.len);
	assert_int_equal(new_cfi(&cfi), 0);
	sb_cfi_info(cfi, &info);
	return cfi;
}

static inline void expect_rows(const char *expected)
{
	struct sb_cfi *cfi = compile_eh();

	expect_rows_of(cfi, expected);
	sb_cfi_free(cfi);
}

#define TEST(name) cmocka_unit_test_setup(test_##name, setup)

#endif
