// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Symbols from ELF files: from a section, from what the dynamic linker uses in a file without
 * sections, or from the function table of a Go program. Only symbols in code are taken.
 */
#include <errno.h>
#include <string.h>

#include "symbolizer/elf/gopcln.h"
#include "symbolizer/symbols/symtab_priv.h"

/* Browsers with all their symbols have some 1.2 million functions. */
#define NR_SYMBOLS_MAX (4u << 20)
/* Bound of entries of any type, and of hash buckets that are walked to count them. */
#define NR_ENTRIES_MAX (8u << 20)
/* Work of reading a symbol. */
#define WORK_OF_SYMBOL 20u

/* Return: false for labels that compilers make and people do not want: .L12, $x, $d.3 */
static bool is_label(const char *name)
{
	if (name[0] == '$')
		return !name[1] || !strchr("xdta", name[1]) || (name[2] && name[2] != '.');
	return name[0] && (name[0] != '.' || name[1] != 'L');
}

static bool is_function(const Elf64_Sym *sym)
{
	unsigned int type = ELF64_ST_TYPE(sym->st_info);

	return type == STT_FUNC || type == STT_GNU_IFUNC;
}

/* GHC's code has the type OBJECT. Data of that type are not in executable sections. */
static bool may_be_code(const struct sb_elf *elf, const Elf64_Sym *sym)
{
	const Elf64_Shdr *shdr = NULL;

	if (is_function(sym) || ELF64_ST_TYPE(sym->st_info) == STT_NOTYPE)
		return true;
	if (ELF64_ST_TYPE(sym->st_info) == STT_OBJECT && sym->st_shndx < SHN_LORESERVE)
		shdr = sb_elf_section_at(elf, sym->st_shndx);
	return shdr && shdr->sh_type == SHT_PROGBITS && (shdr->sh_flags & SHF_EXECINSTR);
}

/* Return: whether the symbol is in code. *ret_limit: the latest end of one without a size. */
static bool is_in_code(const struct sb_elf *elf, const Elf64_Sym *sym, uint64_t *ret_limit)
{
	const Elf64_Shdr *shdr =
		sym->st_shndx < SHN_LORESERVE ? sb_elf_section_at(elf, sym->st_shndx) : NULL;

	if (shdr) {
		*ret_limit = shdr->sh_addr + shdr->sh_size;
		return (shdr->sh_flags & SHF_EXECINSTR) ||
		       (is_function(sym) && sb_elf_is_code(elf, sym->st_value));
	}
	*ret_limit = sym->st_value + 1;
	return sb_elf_is_code(elf, sym->st_value);
}

static uint8_t rank_of(const Elf64_Sym *sym)
{
	unsigned int bind = ELF64_ST_BIND(sym->st_info);
	uint8_t rank = 0;

	if (is_function(sym))
		rank |= RANK_FUNC;
	if (bind != STB_WEAK)
		rank |= RANK_STRONG;
	if (bind == STB_GLOBAL || bind == STB_GNU_UNIQUE)
		rank |= RANK_GLOBAL;
	return rank;
}

static int add_symbol(struct sb_symtab *tab, const struct sb_elf *elf, const Elf64_Sym *sym,
		      uint32_t section_type, uint64_t bias)
{
	const struct sb_names *names = &tab->names[tab->nr_names - 1];
	struct candidate cand = { .name = sym->st_name, .rank = rank_of(sym) };
	uint64_t start = sym->st_value, limit;

	if (!may_be_code(elf, sym) || sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS ||
	    !is_in_code(elf, sym, &limit))
		return 0;
	if (sym->st_name >= names->len) {
		tab->nr_broken++;
		return 0;
	}
	/* Names of functions are not examined, because each would be a cache miss. */
	if (!sym->st_name || (!is_function(sym) && !is_label(names->mem + sym->st_name)))
		return 0;
	if (elf->machine == EM_ARM && is_function(sym))
		start &= ~1ull; /* the bit says Thumb */
	cand.names_idx = (uint8_t)(tab->nr_names - 1);
	cand.is_label = !sym->st_size || ELF64_ST_TYPE(sym->st_info) == STT_OBJECT;
	if (sym->st_size) {
		cand.layer = is_function(sym) ? LAYER_FUNC : LAYER_UNTYPED;
		limit = start + sym->st_size < start ? UINT64_MAX : start + sym->st_size;
	} else {
		cand.layer = LAYER_UNSIZED;
		if (section_type == SHT_DYNSYM)
			limit = start + 1;
	}
	if (limit <= start)
		return 0; /* a label at the end of the section covers nothing */
	cand.start = start + bias;
	cand.end = limit + bias < cand.start ? UINT64_MAX : limit + bias;
	if (tab->candidates.nr >= NR_SYMBOLS_MAX)
		return -EFBIG;
	return sb_budget_push(tab->budget, &tab->candidates, cand);
}

static int add_all(struct sb_symtab *tab, struct sb_elf_reader *reader, uint32_t section_type,
		   uint64_t bias)
{
	const uint64_t work = WORK_OF_SYMBOL + reader->elf->nr_phdrs;
	size_t before = tab->candidates.nr, nr = 0;
	Elf64_Sym sym;
	int got = 0, err = 0;

	while (!err && (got = sb_elf_next_sym(reader, &sym)) > 0) {
		if (++nr > NR_ENTRIES_MAX || sb_budget_work(tab->budget, work))
			err = -EFBIG;
		else
			err = add_symbol(tab, reader->elf, &sym, section_type, bias);
	}
	err = err ? err : got;
	/* In half of a table labels would extend over missing functions. */
	if (err == -EFBIG)
		tab->candidates.nr = before;
	if (err)
		return err;
	return tab->candidates.nr > before ? 0 : -ENODATA;
}

static int add_section(struct sb_symtab *tab, const struct sb_elf *elf, const Elf64_Shdr *shdr,
		       uint64_t bias)
{
	struct sb_elf_reader reader;
	const Elf64_Shdr *strings = sb_elf_section_at(elf, shdr->sh_link);
	int err;

	if (!strings)
		return -EBADMSG;
	err = sb_names_init_section(&tab->names[tab->nr_names], elf, strings);
	if (err)
		return err;
	tab->nr_names++;
	err = sb_elf_reader_init_section(&reader, elf, shdr, sb_elf_sym_bytes(elf));
	if (err)
		return err;
	return add_all(tab, &reader, shdr->sh_type, bias);
}

/* The hash table of System V says how many symbols there are: { nbucket, nchain, ... }. */
static int count_by_hash(const struct sb_elf *elf, uint64_t addr, uint64_t *ret_nr)
{
	uint64_t offset;
	uint32_t nr;
	int err;

	if (!addr || !sb_elf_addr_to_offset(elf, addr, &offset))
		return -ENODATA;
	err = sb_elf_read(elf, offset + sizeof(nr), &nr, sizeof(nr));
	if (!err)
		*ret_nr = nr;
	return err;
}

/*
 * GNU's does not: { nbucket, symoffset, bloom_size, bloom_shift, bloom[], buckets[], chains[] }.
 * The bucket with the highest symbol, then to the end of its chain (lowest bit set).
 * Source: "ELF: better symbol lookup via DT_GNU_HASH", flapenguin.me; glibc's elf/dl-lookup.c.
 */
static int count_by_gnu_hash(const struct sb_elf *elf, uint64_t addr, uint64_t *ret_nr)
{
	struct sb_elf_reader reader;
	uint32_t head[4], last = 0, word;
	uint64_t offset, nr;
	int err, got;

	if (!addr || !sb_elf_addr_to_offset(elf, addr, &offset))
		return -ENODATA;
	err = sb_elf_read(elf, offset, head, sizeof(head));
	if (err)
		return err;
	if (head[0] > NR_ENTRIES_MAX)
		return -EFBIG;
	offset += sizeof(head) + (uint64_t)head[2] * (elf->is_64 ? 8 : 4);
	sb_elf_reader_init(&reader, elf, offset, (uint64_t)head[0] * sizeof(word), sizeof(word));
	while ((got = sb_elf_next_u32(&reader, &word)) > 0)
		last = word > last ? word : last;
	if (got < 0)
		return got;
	if (last < head[1]) {
		*ret_nr = head[1]; /* all buckets are empty: no symbol is hashed */
		return 0;
	}
	nr = last;
	offset += (uint64_t)head[0] * sizeof(word) + (uint64_t)(last - head[1]) * sizeof(word);
	if (offset > elf->size)
		return -EBADMSG;
	sb_elf_reader_init(&reader, elf, offset, elf->size - offset, sizeof(word));
	do {
		if (++nr > NR_ENTRIES_MAX)
			return -EFBIG;
		got = sb_elf_next_u32(&reader, &word);
	} while (got > 0 && !(word & 1));
	if (got > 0)
		*ret_nr = nr;
	return got > 0 ? 0 : got ? got : -EBADMSG;
}

static int add_dynamic(struct sb_symtab *tab, const struct sb_elf *elf, uint64_t bias)
{
	struct sb_elf_dynamic dynamic;
	struct sb_elf_reader reader;
	uint64_t symbols, strings, nr;
	int err;

	err = sb_elf_read_dynamic(elf, &dynamic);
	if (err)
		return err;
	if (!dynamic.symtab || !dynamic.strtab)
		return -ENODATA;
	if (!sb_elf_addr_to_offset(elf, dynamic.symtab, &symbols) ||
	    !sb_elf_addr_to_offset(elf, dynamic.strtab, &strings))
		return -EBADMSG;
	err = count_by_hash(elf, dynamic.hash, &nr);
	if (err == -ENODATA)
		err = count_by_gnu_hash(elf, dynamic.gnu_hash, &nr);
	if (err)
		return err;
	err = sb_names_init(&tab->names[tab->nr_names], elf, strings, dynamic.strtab_bytes);
	if (err)
		return err;
	tab->nr_names++;
	sb_elf_reader_init(&reader, elf, symbols, nr * sb_elf_sym_bytes(elf),
			   sb_elf_sym_bytes(elf));
	return add_all(tab, &reader, SHT_DYNSYM, bias);
}

int sb_symtab_add(struct sb_symtab *tab, const struct sb_elf *elf, uint32_t section_type,
		  uint64_t bias)
{
	const Elf64_Shdr *shdr = sb_elf_section_typed(elf, section_type);

	if (tab->nr_names == NR_NAMES_MAX)
		return -EFBIG;
	if (shdr && shdr->sh_type != SHT_NOBITS)
		return add_section(tab, elf, shdr, bias);
	if (section_type == SHT_DYNSYM && !elf->nr_shdrs)
		return add_dynamic(tab, elf, bias);
	return -ENODATA;
}

static int add_go_functions(struct sb_symtab *tab, const struct sb_gopcln *go, uint64_t bias)
{
	struct sb_gopcln_func func;
	struct candidate cand = { .names_idx = (uint8_t)(tab->nr_names - 1),
				  .layer = LAYER_FUNC,
				  .rank = RANK_FUNC | RANK_STRONG };
	size_t before = tab->candidates.nr;
	uint64_t i;
	int err = 0;

	for (i = 0; i < go->nr_funcs && !err; i++) {
		err = sb_budget_work(tab->budget, WORK_OF_SYMBOL);
		if (err)
			break;
		if (sb_gopcln_func(go, i, &func)) {
			tab->nr_broken++;
			continue;
		}
		cand.name = (uint32_t)(func.name - (const char *)(go->bytes + go->names));
		cand.start = func.lo + bias;
		cand.end = func.hi + bias < cand.start ? UINT64_MAX : func.hi + bias;
		err = tab->candidates.nr < NR_SYMBOLS_MAX
			      ? sb_budget_push(tab->budget, &tab->candidates, cand)
			      : -EFBIG;
	}
	if (err == -EFBIG)
		tab->candidates.nr = before;
	return err;
}

int sb_symtab_add_go(struct sb_symtab *tab, const struct sb_elf *elf, uint64_t bias)
{
	struct sb_gopcln go;
	int err = tab->nr_names == NR_NAMES_MAX ? -EFBIG : sb_gopcln_load(elf, &go);

	if (err)
		return err;
	err = sb_names_init(&tab->names[tab->nr_names], elf, go.offset + go.names,
			    go.len - go.names);
	if (!err) {
		tab->nr_names++;
		err = add_go_functions(tab, &go, bias);
	}
	sb_gopcln_release(&go);
	return err;
}
