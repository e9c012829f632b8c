// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/elf/gopcln.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/elf/cursor.h"

#define HEAD_BYTES     8 /* magic, two zeros, quantum, size of a pointer */
#define MAGIC_FIRST    0xfffffff0u
#define QUANTUM_MAX    4
#define WORDS_MAX      8
/* Bound of functions; large programs have a few hundred thousand. */
#define FUNCS_MAX      (4u << 20)
#define PC_BYTES_MAX   (64u << 20) /* of one function */
/* R_X86_64_RELATIVE, R_AARCH64_RELATIVE */
#define RELATIVE_X86   8
#define RELATIVE_ARM64 1027
/* Offset of text in runtime.moduledata of Go 1.26, which is in a section of its own since then. */
#define MODULE_TEXT    176

/* Indexes of words in the head, for each version of the layout; -1: it has no such word. */
struct layout {
	uint32_t magic;
	int8_t nr_words, text, names, pairs, funcs;
	bool has_offsets;
};
static const struct layout layouts[] = {
	{ 0xfffffffb, 1, -1, -1, -1, -1, false }, /* Go 1.2 */
	{ 0xfffffffa, 7, -1, 2, 5, 6, false },	  /* 1.16 */
	{ 0xfffffff0, 8, 2, 3, 6, 7, true },	  /* 1.18 */
	{ 0xfffffff1, 8, 2, 3, 6, 7, true },	  /* 1.20 */
};

static const struct layout *find_layout(uint32_t magic)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(layouts); i++)
		if (layouts[i].magic == magic)
			return &layouts[i];
	return NULL;
}

static uint64_t read_uint(const struct sb_gopcln *table, uint64_t at, size_t nr_bytes, bool *is_bad)
{
	struct sb_cursor cur = { .at = table->bytes, .end = table->bytes + table->len };
	uint64_t value;

	sb_cursor_skip(&cur, at);
	value = sb_cursor_uint(&cur, nr_bytes);
	*is_bad |= cur.is_bad;
	return value;
}

/*
 * Return: the addend of the relative relocation at @addr of a position-independent program; 0:
 * none.
 */
static uint64_t find_relative(const struct sb_elf *elf, uint64_t addr)
{
	const Elf64_Shdr *shdr = sb_elf_section_named(elf, ".rela.dyn");
	struct sb_elf_reader reader;
	Elf64_Rela rela;

	if (!shdr)
		shdr = sb_elf_section_named(elf, ".rela"); /* by Go's own linker */
	if (!shdr || sb_elf_reader_init_section(&reader, elf, shdr, sb_elf_rela_bytes(elf)))
		return 0;
	while (sb_elf_next_rela(&reader, &rela) > 0) {
		uint32_t type = ELF64_R_TYPE(rela.r_info);

		if (rela.r_offset == addr && (type == RELATIVE_X86 || type == RELATIVE_ARM64))
			return (uint64_t)rela.r_addend;
	}
	return 0;
}

/* Return: the address of code stored at @addr, in the file or after relocation; 0: none. */
static uint64_t code_at(const struct sb_elf *elf, uint64_t addr)
{
	uint64_t offset, code = 0;

	if (!sb_elf_addr_to_offset(elf, addr, &offset) ||
	    sb_elf_read(elf, offset, &code, sizeof(code)))
		return 0;
	if (!sb_elf_is_code(elf, code))
		code = find_relative(elf, addr);
	return sb_elf_is_code(elf, code) ? code : 0;
}

/* Where the text begins: as the head says; since Go 1.26, what the runtime knows; or the section,
 * where C is not in it as well. */
static uint64_t find_text(const struct sb_elf *elf, uint64_t said_at)
{
	const Elf64_Shdr *module = sb_elf_section_named(elf, ".go.module");
	const Elf64_Shdr *text = sb_elf_section_named(elf, ".text");
	uint64_t code = code_at(elf, said_at);

	if (!code && module)
		code = code_at(elf, module->sh_addr + MODULE_TEXT);
	return code || !text ? code : text->sh_addr;
}

static int read_head(const struct sb_elf *elf, uint64_t addr, struct sb_gopcln *table)
{
	uint64_t words[WORDS_MAX] = {};
	const struct layout *layout;
	uint8_t ptr_bytes;
	bool is_bad = false;
	int i;

	layout = find_layout((uint32_t)read_uint(table, 0, 4, &is_bad));
	table->quantum = (uint8_t)read_uint(table, 6, 1, &is_bad);
	ptr_bytes = (uint8_t)read_uint(table, 7, 1, &is_bad);
	if (is_bad || !layout || !table->quantum || (ptr_bytes != 4 && ptr_bytes != 8))
		return -EBADMSG;
	for (i = 0; i < layout->nr_words; i++)
		words[i] =
			read_uint(table, HEAD_BYTES + (uint64_t)i * ptr_bytes, ptr_bytes, &is_bad);
	table->nr_funcs = words[0];
	table->entry_bytes = layout->has_offsets ? 4 : ptr_bytes;
	if (layout->funcs < 0) {
		/* The list follows, and all offsets are relative to the beginning. */
		table->funcs = HEAD_BYTES + ptr_bytes;
	} else {
		table->names = words[layout->names];
		table->pairs = words[layout->pairs];
		table->funcs = words[layout->funcs];
	}
	if (layout->has_offsets)
		table->text =
			find_text(elf, addr + HEAD_BYTES + (uint64_t)layout->text * ptr_bytes);
	if (is_bad || table->nr_funcs > FUNCS_MAX || table->names > table->len ||
	    table->pairs > table->len || table->funcs > table->len ||
	    table->nr_funcs > (table->len - table->funcs) / (2 * table->entry_bytes))
		return -EBADMSG;
	return 0;
}

/* Return: the address of function @i; for the number of functions, the end of the text. */
static uint64_t entry_of(const struct sb_gopcln *table, uint64_t i, bool *is_bad)
{
	uint64_t at = table->funcs + i * 2 * table->entry_bytes;

	return table->text + read_uint(table, at, table->entry_bytes, is_bad);
}

/* Return: the section that has only this table; some linkers merge it into another section. */
static const Elf64_Shdr *find_section(const struct sb_elf *elf)
{
	static const char *const names[] = { ".gopclntab", ".data.rel.ro.gopclntab" };
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(names); i++) {
		const Elf64_Shdr *shdr = sb_elf_section_named(elf, names[i]);

		if (shdr && shdr->sh_type != SHT_NOBITS && shdr->sh_size)
			return shdr;
	}
	return NULL;
}

bool sb_gopcln_is_there(const struct sb_elf *elf)
{
	return find_section(elf) || sb_elf_has_section(elf, ".go.buildinfo") ||
	       sb_elf_has_section(elf, ".note.go.buildid");
}

/* Return: the offset of the table within other data; @len: it is not there. */
static size_t find_head(const uint8_t *bytes, size_t len)
{
	size_t at;
	uint32_t magic;

	for (at = 0; at + HEAD_BYTES <= len; at += HEAD_BYTES) {
		memcpy(&magic, bytes + at, sizeof(magic));
		if (magic >= MAGIC_FIRST && find_layout(magic) && !bytes[at + 4] &&
		    !bytes[at + 5] && bytes[at + 6] <= QUANTUM_MAX && bytes[at + 7] == 8)
			return at;
	}
	return len;
}

static int load_bytes(const struct sb_elf *elf, struct sb_gopcln *table, uint64_t *ret_addr)
{
	const Elf64_Shdr *shdr = find_section(elf);
	bool is_alone = shdr != NULL;
	size_t at = 0, len;
	char *bytes;
	int err;

	if (!shdr && sb_gopcln_is_there(elf))
		shdr = sb_elf_section_named(elf, ".data.rel.ro");
	if (!shdr)
		return -ENODATA;
	err = sb_elf_load(elf, shdr, SB_GOPCLN_BYTES_MAX, &bytes, &len);
	if (err)
		return err;
	if (!is_alone)
		at = find_head((uint8_t *)bytes, len);
	if (at == len) {
		free(bytes);
		return -ENODATA;
	}
	memmove(bytes, bytes + at, len - at);
	table->bytes = (uint8_t *)bytes;
	table->len = len - at;
	table->offset = shdr->sh_offset + at;
	*ret_addr = shdr->sh_addr + at;
	return 0;
}

int sb_gopcln_load(const struct sb_elf *elf, struct sb_gopcln *ret_table)
{
	struct sb_gopcln table = {};
	struct sb_gopcln_func first;
	bool is_bad = false;
	uint64_t addr;
	int err = load_bytes(elf, &table, &addr);

	if (err)
		return err;
	err = read_head(elf, addr, &table);
	/* In position-independent programs of older linkers, relocations supply all addresses. */
	if (!err && table.nr_funcs)
		err = sb_gopcln_func(&table, 0, &first);
	if (!err && (!table.nr_funcs || !sb_elf_is_code(elf, first.lo) ||
		     !sb_elf_is_code(elf, entry_of(&table, table.nr_funcs, &is_bad) - 1)))
		err = -EBADMSG;
	if (!err && is_bad)
		err = -EBADMSG;
	if (err)
		sb_gopcln_release(&table);
	else
		*ret_table = table;
	return err;
}

void sb_gopcln_release(struct sb_gopcln *table)
{
	free(sb_take(table->bytes));
}

int sb_gopcln_func(const struct sb_gopcln *table, uint64_t i, struct sb_gopcln_func *ret_func)
{
	const uint64_t base = table->names ? table->funcs : 0;
	struct sb_cursor cur = { .at = table->bytes, .end = table->bytes + table->len };
	uint64_t at = table->funcs + i * 2 * table->entry_bytes + table->entry_bytes;
	struct sb_gopcln_func func;
	bool is_bad = false;

	func.lo = entry_of(table, i, &is_bad);
	func.hi = entry_of(table, i + 1, &is_bad);
	/* struct _func: the entry, then numbers of 4 bytes: name, arguments, deferreturn, stack,
	 * ... */
	at = base + read_uint(table, at, table->entry_bytes, &is_bad) + table->entry_bytes;
	func.stack = read_uint(table, at + 12, 4, &is_bad);
	func.stack += func.stack ? table->pairs : 0;
	sb_cursor_skip(&cur, table->names);
	sb_cursor_skip(&cur, read_uint(table, at, 4, &is_bad));
	func.name = sb_cursor_string(&cur);
	if (is_bad || cur.is_bad || func.hi <= func.lo || func.hi - func.lo > PC_BYTES_MAX)
		return -EBADMSG;
	*ret_func = func;
	return 0;
}

/* Even numbers are positive. */
static int32_t unzigzag(uint32_t value)
{
	return (int32_t)(value & 1 ? ~(value >> 1) : value >> 1);
}

int sb_gopcln_each_depth(const struct sb_gopcln *table, const struct sb_gopcln_func *func,
			 int (*fn)(void *arg, uint64_t addr, int32_t depth), void *arg)
{
	struct sb_cursor cur = { .at = table->bytes, .end = table->bytes + table->len };
	uint64_t addr = func->lo, delta;
	uint32_t depth = UINT32_MAX; /* -1 */
	int err;

	if (!func->stack) /* hand-written, and not said */
		return 0;
	sb_cursor_skip(&cur, func->stack);
	while (addr < func->hi) {
		delta = sb_cursor_uleb(&cur);
		if (!delta && addr != func->lo)
			return 0;
		depth += (uint32_t)unzigzag((uint32_t)delta);
		delta = sb_cursor_uleb(&cur) * table->quantum;
		if (cur.is_bad || !delta || delta > PC_BYTES_MAX)
			return -EBADMSG;
		err = fn(arg, addr, (int32_t)depth);
		if (err)
			return err;
		addr += delta;
	}
	return 0;
}
