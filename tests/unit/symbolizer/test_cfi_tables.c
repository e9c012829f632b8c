// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The tables of the CFI compiler: how they lie in the pool, are searched, and are in order whatever
 * the file was. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "cfi_expect.h"

/* The search of the walkers; nothing is walked here. */
static int read_nothing(void *mem, void *dst, size_t len, uint64_t addr)
{
	return -1;
}
#define SB_STEP_READ read_nothing
#include "bpf/step/sb_unwind_step.h"

#define SELF_BYTES_MAX (256u << 20)

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(place), TEST(index), TEST(this_program), TEST(damaged), TEST(stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
