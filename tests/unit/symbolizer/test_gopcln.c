// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tables of the Go linker of each layout, assembled byte by byte: where functions are, their names,
 * unwind rules. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/str.h"
#include "cfi_each_row.h"
#include "cfi_image.h"
#include "rule_text.h"
#include "symbolizer/elf/gopcln.h"
#include "symbolizer/symbols/symtab.h"
#include "symbolizer/unwind/cfi.h"

#define TABLE_ADDR 0xa00000ull
#define RELA_ADDR  0xb00000ull

enum layout { GO_1_2, GO_1_16, GO_1_18, GO_1_20, NR_LAYOUTS };

static const uint32_t magics[] = { 0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1 };

/* How far below the return address the stack pointer is, and for how many bytes; up to a 0 of
 * these. */
struct piece {
	int32_t depth;
	uint32_t nr_bytes;
};
static const struct function {
	const char *name;
	struct piece pieces[6];
} functions[] = {
	{ "main.leaf", { { 0, 0x20 } } },
	{ "main.(*T).run", { { 0, 4 }, { 24, 0x30 }, { 0, 0xc } } },
	{ "runtime.goexit.abi0", { { 0, 0x10 } } },
	{ "runtime.systemstack", { { 0, 0x20 } } },
	{ "runtime.nanotime1", { { 0, 8 }, { 16, 0x18 } } },
	{ "runtime.sigreturn__sigaction", { { 0, 0x10 } } },
	{ "runtime.clone", { { 0, 0x10 } } },
	{ "main.handwritten", { { 0, 0 } } }, /* nothing is said */
};
#define NR_FUNCTIONS (sizeof(functions) / sizeof(functions[0]))
#define UNSAID_BYTES 0x10

static struct image img;
static struct bytes table, pairs, names, funcs;

static int setup(void **state)
{
	memset(&img, 0, sizeof(img));
	return 0;
}

static uint64_t bytes_of(const struct function *function)
{
	uint64_t nr = 0;
	size_t i;

	for (i = 0; function->pieces[i].nr_bytes; i++)
		nr += function->pieces[i].nr_bytes;
	return nr ? nr : UNSAID_BYTES;
}

/* Return: where they lie. */
static size_t put_pieces(const struct function *function)
{
	size_t at = pairs.len, i;
	int32_t last = -1, delta;

	if (!function->pieces[0].nr_bytes)
		return 0;
	for (i = 0; function->pieces[i].nr_bytes; i++) {
		delta = function->pieces[i].depth - last;
		last = function->pieces[i].depth;
		put_uleb(&pairs, delta < 0 ? ~((uint32_t)delta << 1) : (uint32_t)delta << 1);
		put_uleb(&pairs, function->pieces[i].nr_bytes);
	}
	PUT(&pairs, 0);
	return at;
}

/* From @addr on; @base: what places count from, of pairs and names. Fills funcs, pairs, names. */
static void put_functions(enum layout layout, uint64_t addr, size_t list_bytes, size_t pairs_base,
			  size_t names_base, struct bytes *list)
{
	const size_t entry_bytes = layout < GO_1_18 ? 8 : 4;
	size_t i, k;

	for (i = 0; i < NR_FUNCTIONS; i++) {
		size_t pieces = put_pieces(&functions[i]);

		put_uint(list, addr, entry_bytes);
		put_uint(list, list_bytes + funcs.len, entry_bytes);
		put_uint(&funcs, addr, entry_bytes);
		put_uint(&funcs, names_base + names.len, 4);
		put_uint(&funcs, 0, 8);
		put_uint(&funcs, pieces ? pairs_base + pieces : 0, 4);
		for (k = 0; k < 5; k++)
			put_uint(&funcs, 0, 8);
		put(&names, functions[i].name, strlen(functions[i].name) + 1);
		addr += bytes_of(&functions[i]);
	}
	put_uint(list, addr, entry_bytes);
	put_uint(list, 0, 4);
}

/* Names, pairs, list and functions, in this order, behind a head of 8 words; as of Go 1.2: list
 * first. */
static void make_table(enum layout layout, uint64_t text_said)
{
	static struct bytes list;
	const size_t names_at = 72, pairs_at = 1024, list_at = 2048;
	const size_t entry_bytes = layout < GO_1_18 ? 8 : 4;
	const size_t list_bytes = NR_FUNCTIONS * 2 * entry_bytes + entry_bytes + 4;

	memset(&table, 0, sizeof(table));
	memset(&pairs, 0, sizeof(pairs));
	memset(&names, 0, sizeof(names));
	memset(&funcs, 0, sizeof(funcs));
	memset(&list, 0, sizeof(list));
	PUT(&pairs, 0);
	put_uint(&table, magics[layout], 4);
	PUT(&table, 0, 0, 1, 8);
	put_uint(&table, NR_FUNCTIONS, 8);
	if (layout == GO_1_2) {
		put_functions(layout, TEXT_ADDR, 16 + list_bytes, pairs_at, list_at, &list);
		memcpy(table.at + 16, list.at, list.len);
		memcpy(table.at + 16 + list_bytes, funcs.at, funcs.len);
		memcpy(table.at + pairs_at, pairs.at, pairs.len);
		memcpy(table.at + list_at, names.at, names.len);
		table.len = list_at + names.len;
		return;
	}
	put_uint(&table, 0, 8);
	if (layout >= GO_1_18)
		put_uint(&table, text_said, 8);
	put_uint(&table, names_at, 8);
	put_uint(&table, 0, 8);
	put_uint(&table, 0, 8);
	put_uint(&table, pairs_at, 8);
	put_uint(&table, list_at, 8);
	put_functions(layout, layout < GO_1_18 ? TEXT_ADDR : 0, list_bytes, 0, 0, &list);
	memcpy(table.at + names_at, names.at, names.len);
	memcpy(table.at + pairs_at, pairs.at, pairs.len);
	memcpy(table.at + list_at, list.at, list.len);
	memcpy(table.at + list_at + list_bytes, funcs.at, funcs.len);
	table.len = list_at + list_bytes + funcs.len;
}

static void add_table(size_t len)
{
	image_load(&img, TABLE_ADDR, len, image_put(&img, table.at, len), 0);
	image_section(&img, ".gopclntab", TABLE_ADDR, table.at, len);
}

static struct sb_elf *finish(void)
{
	struct sb_elf *elf;

	image_finish(&img);
	assert_int_equal(sb_elf_new_image(img.at, img.len, &elf), 0);
	return elf;
}

static const char rules[] = "0 rsp+8 rbp=same rbx=lost\n"
			    "24 rsp+32 rbp=*(cfa-16) rbx=lost\n"
			    "54 rsp+8 rbp=same rbx=lost\n"
			    "60 stop\n"
			    "70 rbp+16 rbp=*(cfa-16) rbx=lost other-stack\n"
			    "90 rsp+8 rbp=same rbx=lost\n"
			    "98 rbp+16 rbp=*(cfa-16) rbx=lost other-stack\n"
			    "af signal\n"
			    "c0 rsp+8 rbp=same rbx=lost stop-if-rax=0\n"
			    "d0 frame-pointer\n";

static int add_row_text(void *arg, const struct cfi_row *row)
{
	char rule[80], line[128];

	rule_text(EM_X86_64, &row->rule, rule, sizeof(rule));
	snprintf(line, sizeof(line), "%llx %s\n", (long long)(row->addr - TEXT_ADDR), rule);
	return sb_str_add(arg, line);
}

static void expect_rules(const struct sb_elf *elf)
{
	struct sb_str text = {};
	struct sb_cfi_info info;
	struct sb_cfi *cfi;

	assert_int_equal(sb_cfi_new(elf, NULL, &cfi), 0);
	sb_cfi_info(cfi, &info);
	assert_string_equal(info.source, ".gopclntab");
	assert_int_equal(info.nr_fdes, NR_FUNCTIONS);
	assert_int_equal(info.nr_bad, 0);
	assert_int_equal(cfi_each_row(cfi, add_row_text, &text), 0);
	assert_string_equal(text.s, rules);
	sb_str_release(&text);
	sb_cfi_free(cfi);
}

static void expect_names(const struct sb_elf *elf)
{
	struct sb_symtab *tab = sb_symtab_new(NULL);
	uint64_t addr = TEXT_ADDR;
	struct sb_str name = {};
	uint32_t symbol;
	size_t i;

	assert_int_equal(sb_symtab_add_go(tab, elf, 0), 0);
	assert_int_equal(sb_symtab_finish(tab), 0);
	for (i = 0; i < NR_FUNCTIONS; i++) {
		symbol = sb_symtab_find(tab, addr + bytes_of(&functions[i]) - 1);
		assert_int_equal(sb_symtab_addr(tab, symbol), addr);
		sb_str_clear(&name);
		assert_int_equal(sb_symtab_name(tab, symbol, &name), 0);
		assert_string_equal(name.s, functions[i].name);
		addr += bytes_of(&functions[i]);
	}
	assert_int_equal(sb_symtab_find(tab, addr), SB_SYMBOL_NONE);
	sb_str_release(&name);
	sb_symtab_free(tab);
}

static void test_layouts(void **state)
{
	enum layout layout;

	for (layout = GO_1_2; layout < NR_LAYOUTS; layout++) {
		struct sb_elf *elf;

		make_table(layout, TEXT_ADDR);
		image_init(&img);
		add_table(table.len);
		elf = finish();
		expect_rules(elf);
		expect_names(elf);
		sb_elf_free(elf);
	}
}

/* Half of a table is no table: a budget that ends in its midst leaves nothing. */
static void test_budget(void **state)
{
	struct sb_budget_pool pool;
	struct sb_budget budget;
	struct sb_symtab *tab;
	struct sb_elf *elf;
	uint64_t work;
	int err = -EFBIG;

	make_table(GO_1_20, TEXT_ADDR);
	image_init(&img);
	add_table(table.len);
	elf = finish();
	for (work = 0; err; work += 10) {
		sb_budget_pool_init(&pool, 0);
		sb_budget_init(&budget, &pool, 0, "go");
		pool.work_max = work;
		tab = sb_symtab_new(&budget);
		err = sb_symtab_add_go(tab, elf, 0);
		assert_true(!err || err == -EFBIG);
		pool.work_max = UINT32_MAX;
		assert_int_equal(sb_symtab_finish(tab), 0);
		assert_int_equal(sb_symtab_find(tab, TEXT_ADDR) == SB_SYMBOL_NONE, err != 0);
		sb_symtab_free(tab);
		sb_budget_pool_release(&pool);
	}
	assert_true(work > 20);
	sb_elf_free(elf);
}

/* Of programs that may lie anywhere: the loader writes it, or the runtime knows, or it is where the
 * section begins; and the table lies somewhere in other data. */
static void test_text(void **state)
{
	static const uint8_t other[64];
	Elf64_Rela rela = { .r_offset = TABLE_ADDR + sizeof(other) + 24,
			    .r_info = ELF64_R_INFO(0, R_X86_64_RELATIVE),
			    .r_addend = TEXT_ADDR };
	static struct bytes data, module;
	struct sb_elf *elf;
	Elf64_Shdr *shdr;
	int how;

	for (how = 0; how < 3; how++) {
		make_table(GO_1_20, 0);
		memset(&data, 0, sizeof(data));
		put(&data, other, sizeof(other));
		put(&data, table.at, table.len);
		image_init(&img);
		image_section(&img, ".go.buildinfo", 0x990000, other, sizeof(other));
		image_load(&img, TABLE_ADDR, data.len, image_put(&img, data.at, data.len), 0);
		image_section(&img, ".data.rel.ro", TABLE_ADDR, data.at, data.len);
		if (how == 0) {
			shdr = image_section(&img, ".rela.dyn", RELA_ADDR, &rela, sizeof(rela));
			shdr->sh_type = SHT_RELA;
			shdr->sh_entsize = sizeof(rela);
		} else if (how == 1) {
			memset(&module, 0, sizeof(module));
			put(&module, other, sizeof(other));
			put(&module, other, sizeof(other));
			put(&module, other, 48);
			put_uint(&module, TEXT_ADDR, 8);
			image_load(&img, RELA_ADDR, module.len,
				   image_put(&img, module.at, module.len), 0);
			image_section(&img, ".go.module", RELA_ADDR, module.at, module.len);
		} else {
			image_section(&img, ".text", TEXT_ADDR, other, sizeof(other));
		}
		elf = finish();
		expect_rules(elf);
		expect_names(elf);
		sb_elf_free(elf);
	}
}

/* C beside it has CFI. */
static void test_with_c(void **state)
{
	static struct bytes eh;
	struct sb_str text = {};
	struct sb_cfi *cfi;
	struct sb_elf *elf;

	memset(&eh, 0, sizeof(eh));
	put_plain_cie(&eh);
	FDE(&eh, TEXT_ADDR + 0x400, 0x10, 0x42, 0x0e, 16); /* advance 2; def_cfa_offset 16 */
	put_uint(&eh, 0, 4);
	make_table(GO_1_20, TEXT_ADDR);
	image_init(&img);
	add_table(table.len);
	image_section(&img, ".eh_frame", EH_ADDR, eh.at, eh.len);
	elf = finish();
	assert_int_equal(sb_cfi_new(elf, NULL, &cfi), 0);
	assert_int_equal(cfi_each_row(cfi, add_row_text, &text), 0);
	assert_memory_equal(text.s, rules, strlen(rules));
	assert_string_equal(text.s + strlen(rules),
			    "400 rsp+8 rbp=same\n402 rsp+16 rbp=same\n410 frame-pointer\n");
	sb_str_release(&text);
	sb_cfi_free(cfi);
	sb_elf_free(elf);
}

/* Cut short anywhere, and with each byte wrong: an error, or less of it. */
static void test_hostile(void **state)
{
	size_t i, whole;
	struct sb_elf *elf;
	struct sb_cfi *cfi;

	make_table(GO_1_20, TEXT_ADDR);
	whole = table.len;
	for (i = 0; i < 2 * whole; i++) {
		const size_t at = i % whole;
		uint8_t was = table.at[at];
		struct sb_symtab *tab = sb_symtab_new(NULL);

		if (i >= whole)
			table.at[at] ^= 0xff;
		image_init(&img);
		add_table(i < whole ? i : whole);
		table.at[at] = was;
		elf = finish();
		if (!sb_cfi_new(elf, NULL, &cfi))
			sb_cfi_free(cfi);
		if (!sb_symtab_add_go(tab, elf, 0))
			assert_int_equal(sb_symtab_finish(tab), 0);
		sb_symtab_free(tab);
		sb_elf_free(elf);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_layouts, setup),
		cmocka_unit_test_setup(test_budget, setup),
		cmocka_unit_test_setup(test_text, setup),
		cmocka_unit_test_setup(test_with_c, setup),
		cmocka_unit_test_setup(test_hostile, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
