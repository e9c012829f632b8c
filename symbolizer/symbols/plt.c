// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/symbols/plt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "base/vec.h"
#include "symbolizer/symbols/names.h"

/* Browsers have some thousand stubs of 16 bytes. */
#define PLT_BYTES_MAX	     (16u << 20)
#define STUB_BYTES_MAX	     16u
/* bti; adrp; ldr; add; br, and one more for pointer authentication */
#define STUB_BYTES_MAX_ARM64 24u
#define NR_RELOCATIONS_MAX   (32u << 20)
/* Units of work: of 16 bytes of code, of sorting a stub, of looking up the slot of a relocation. */
#define WORK_OF_CODE	     5u
#define WORK_OF_STUB	     250u
#define WORK_OF_RELOCATION   40u

struct stub {
	uint64_t start, end;
	uint64_t slot;	   /* of the global offset table */
	uint64_t resolver; /* addend of an IRELATIVE relocation */
	uint32_t symbol;   /* number in .dynsym; later the offset of its name */
	bool is_relocated, is_named;
};

struct sb_plt {
	SB_VEC(struct stub) stubs; /* ordered by start */
	struct sb_names names;	   /* .dynstr */
	size_t nr_relocations;	   /* read so far */
};

/* Input of a decoder: @len bytes of code, which begin at @addr. */
struct code {
	const uint8_t *bytes;
	size_t len;
	uint64_t addr;
};

static uint32_t get_u32(const uint8_t *at)
{
	uint32_t val;

	memcpy(&val, at, sizeof(val));
	return val;
}

/* [endbr64] [bnd] jmp *disp(%rip) */
static bool decode_x86_64(const struct code *code, size_t at, uint64_t *ret_slot)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	const uint8_t *p = code->bytes + at, *end = code->bytes + code->len;

	if ((size_t)(end - p) >= sizeof(endbr64) && !memcmp(p, endbr64, sizeof(endbr64)))
		p += sizeof(endbr64);
	if (p < end && *p == 0xf2)
		p++;
	if (end - p < 6 || p[0] != 0xff || p[1] != 0x25)
		return false;
	p += 6;
	*ret_slot = code->addr + (uint64_t)(p - code->bytes) + (uint64_t)(int32_t)get_u32(p - 4);
	return true;
}

/* [bti c] adrp x16, page; ldr x17, [x16, #offset] */
static bool decode_arm64(const struct code *code, size_t at, uint64_t *ret_slot)
{
	uint32_t adrp, ldr;
	uint64_t pages;

	if (code->len - at >= 4 && get_u32(code->bytes + at) == 0xd503245f)
		at += 4;
	if (code->len - at < 8)
		return false;
	adrp = get_u32(code->bytes + at);
	ldr = get_u32(code->bytes + at + 4);
	if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
		return false;
	pages = ((adrp >> 29) & 3) | ((adrp >> 5 & 0x7ffff) << 2);
	if (pages & (1u << 20))
		pages |= ~0ull << 21;
	*ret_slot = ((code->addr + at) & ~0xfffull) + (pages << 12) + ((ldr >> 10 & 0xfff) << 3);
	return true;
}

static const struct decoder {
	uint16_t machine;
	size_t align; /* where stubs may start */
	size_t stub_bytes_max;
	bool (*decode)(const struct code *code, size_t at, uint64_t *ret_slot);
	uint32_t irelative; /* R_*_IRELATIVE */
} decoders[] = {
	{ EM_X86_64, 8, STUB_BYTES_MAX, decode_x86_64, R_X86_64_IRELATIVE },
	{ EM_AARCH64, 4, STUB_BYTES_MAX_ARM64, decode_arm64, R_AARCH64_IRELATIVE },
};

static const struct decoder *decoder_of(const struct sb_elf *elf)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(decoders); i++)
		if (decoders[i].machine == elf->machine && elf->is_64)
			return &decoders[i];
	return NULL;
}

static const char *const section_names[] = { ".plt", ".plt.sec", ".plt.got", ".plt.bnd", ".iplt" };

void sb_plt_bounds(const struct sb_elf *elf, uint64_t *ret_start, uint64_t *ret_end)
{
	uint64_t start = UINT64_MAX, end = 0, section_end;
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(section_names); i++) {
		const Elf64_Shdr *shdr = sb_elf_section_named(elf, section_names[i]);

		if (!shdr || __builtin_add_overflow(shdr->sh_addr, shdr->sh_size, &section_end))
			continue;
		start = shdr->sh_addr < start ? shdr->sh_addr : start;
		end = section_end > end ? section_end : end;
	}
	*ret_start = start;
	*ret_end = end;
}

static int decode_section(struct sb_plt *plt, const struct sb_elf *elf,
			  const struct decoder *decoder, const Elf64_Shdr *shdr)
{
	sb_cleanup(sb_freep) char *bytes = NULL;
	struct code code = { .addr = shdr->sh_addr };
	size_t at, first = plt->stubs.nr, i;
	struct stub stub = {};
	int err;

	err = sb_elf_load(elf, shdr, PLT_BYTES_MAX, &bytes, &code.len);
	err = err ?: sb_budget_work(elf->budget, code.len / STUB_BYTES_MAX * WORK_OF_CODE);
	if (err)
		return err == -ENODATA ? 0 : err;
	code.bytes = (const uint8_t *)bytes;
	for (at = 0; at < code.len; at += decoder->align) {
		if (!decoder->decode(&code, at, &stub.slot))
			continue;
		stub.start = code.addr + at;
		err = sb_budget_push(elf->budget, &plt->stubs, stub);
		if (err)
			return err;
	}
	/*
	 * The bytes between a jump and the next stub (lazy binding, padding) belong to the first.
	 */
	for (i = first; i < plt->stubs.nr; i++) {
		uint64_t end =
			i + 1 < plt->stubs.nr ? plt->stubs.at[i + 1].start : code.addr + code.len;

		if (end - plt->stubs.at[i].start > decoder->stub_bytes_max)
			end = plt->stubs.at[i].start + decoder->stub_bytes_max;
		plt->stubs.at[i].end = end;
	}
	return 0;
}

static int compare_slots(const void *pa, const void *pb)
{
	const struct stub *a = pa, *b = pb;

	return a->slot < b->slot ? -1 : a->slot > b->slot;
}

static int compare_starts(const void *pa, const void *pb)
{
	const struct stub *a = pa, *b = pb;

	return a->start < b->start ? -1 : a->start > b->start;
}

/* Return: the first stub, in the order of slots, that uses this slot or a later one. */
static size_t first_at_slot(const struct sb_plt *plt, uint64_t slot)
{
	return sb_bisect(plt->stubs.nr, i, plt->stubs.at[i].slot < slot);
}

/* Find symbols or resolvers of the stubs by the relocations of their slots. */
static int apply_relocations(struct sb_plt *plt, const struct sb_elf *elf, const Elf64_Shdr *shdr,
			     uint32_t irelative)
{
	struct sb_elf_reader reader;
	Elf64_Rela rela;
	size_t i;
	int got;

	got = sb_elf_reader_init_section(&reader, elf, shdr, sb_elf_rela_bytes(elf));
	if (got)
		return got == -ENODATA ? 0 : got;
	while ((got = sb_elf_next_rela(&reader, &rela)) > 0) {
		if (++plt->nr_relocations > NR_RELOCATIONS_MAX ||
		    sb_budget_work(elf->budget, WORK_OF_RELOCATION))
			return -EFBIG;
		i = first_at_slot(plt, rela.r_offset);
		/* The first relocation of a slot is used, for all its stubs. */
		for (; i < plt->stubs.nr && plt->stubs.at[i].slot == rela.r_offset &&
		       !plt->stubs.at[i].is_relocated;
		     i++) {
			plt->stubs.at[i].is_relocated = true;
			if (ELF64_R_TYPE(rela.r_info) == irelative)
				plt->stubs.at[i].resolver = (uint64_t)rela.r_addend;
			else
				plt->stubs.at[i].symbol = (uint32_t)ELF64_R_SYM(rela.r_info);
		}
	}
	return got;
}

/* Replace symbol numbers by offsets of names; number 0 means no symbol. */
static int apply_symbols(struct sb_plt *plt, const struct sb_elf *elf, const Elf64_Shdr *shdr)
{
	size_t bytes = sb_elf_sym_bytes(elf), i;
	struct sb_elf_reader reader;
	Elf64_Sym sym;
	int got;

	for (i = 0; i < plt->stubs.nr; i++) {
		struct stub *stub = &plt->stubs.at[i];

		if (!stub->symbol || stub->symbol >= shdr->sh_size / bytes)
			continue;
		sb_elf_reader_init(&reader, elf, shdr->sh_offset + stub->symbol * bytes, bytes,
				   bytes);
		got = sb_elf_next_sym(&reader, &sym);
		if (got < 0)
			return got;
		stub->symbol = sym.st_name;
		stub->is_named = got && sym.st_name;
	}
	return 0;
}

static int fill(struct sb_plt *plt, const struct sb_elf *elf, const struct decoder *decoder)
{
	const Elf64_Shdr *shdr, *dynsym = sb_elf_section_typed(elf, SHT_DYNSYM);
	size_t i;
	int err;

	for (i = 0; i < SB_ARRAY_SIZE(section_names); i++) {
		shdr = sb_elf_section_named(elf, section_names[i]);
		err = shdr ? decode_section(plt, elf, decoder, shdr) : 0;
		if (err)
			return err;
	}
	if (!plt->stubs.nr)
		return -ENODATA;
	err = sb_budget_work(elf->budget, plt->stubs.nr * 2 * WORK_OF_STUB);
	if (err)
		return err;
	qsort(plt->stubs.at, plt->stubs.nr, sizeof(*plt->stubs.at), compare_slots);
	for (i = 0; i < elf->nr_shdrs; i++) {
		shdr = &elf->shdrs[i];
		if (shdr->sh_type != SHT_RELA || !(shdr->sh_flags & SHF_ALLOC))
			continue;
		err = apply_relocations(plt, elf, shdr, decoder->irelative);
		if (err)
			return err;
	}
	qsort(plt->stubs.at, plt->stubs.nr, sizeof(*plt->stubs.at), compare_starts);
	if (!dynsym || dynsym->sh_type == SHT_NOBITS || !sb_elf_section_at(elf, dynsym->sh_link))
		return 0;
	err = apply_symbols(plt, elf, dynsym);
	if (err)
		return err;
	err = sb_names_init_section(&plt->names, elf, sb_elf_section_at(elf, dynsym->sh_link));
	sb_names_unload(&plt->names);
	return err;
}

int sb_plt_new(const struct sb_elf *elf, struct sb_plt **ret_plt)
{
	const struct decoder *decoder = decoder_of(elf);
	struct sb_plt *plt;
	int err;

	if (!decoder)
		return -ENODATA;
	plt = calloc(1, sizeof(*plt));
	if (!plt)
		return -ENOMEM;
	err = fill(plt, elf, decoder);
	if (err) {
		sb_plt_free(plt);
		return err;
	}
	*ret_plt = plt;
	return 0;
}

void sb_plt_free(struct sb_plt *plt)
{
	if (!plt)
		return;
	sb_vec_release(&plt->stubs);
	sb_names_release(&plt->names);
	free(plt);
}

bool sb_plt_find(const struct sb_plt *plt, uint64_t addr, struct sb_plt_stub *ret_stub)
{
	size_t behind = sb_bisect(plt->stubs.nr, i, plt->stubs.at[i].start <= addr);
	const struct stub *stub;

	if (!behind)
		return false;
	stub = &plt->stubs.at[behind - 1];
	if (addr >= stub->end || (!stub->is_named && !stub->resolver))
		return false;
	*ret_stub = (struct sb_plt_stub){
		.start = stub->start,
		.resolver = stub->is_named ? 0 : stub->resolver,
		.idx = (uint32_t)(behind - 1),
	};
	return true;
}

int sb_plt_name(const struct sb_plt *plt, uint32_t idx, struct sb_str *name)
{
	return sb_names_get(&plt->names, plt->stubs.at[idx].symbol, name);
}

size_t sb_plt_bytes(const struct sb_plt *plt)
{
	return sizeof(*plt) + plt->stubs.cap * sizeof(*plt->stubs.at) +
	       (plt->names.mem ? plt->names.len : 0);
}
