// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/symbols/symtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/vec.h"
#include "symbolizer/elf/gopcln.h"
#include "symbolizer/symbols/names.h"

/* Browsers with all their symbols have some 1.2 million functions. */
#define NR_SYMBOLS_MAX	  (4u << 20)
/* Bound of entries of any type, and of hash buckets that are walked to count them. */
#define NR_ENTRIES_MAX	  (8u << 20)
/*
 * Aliases with a longer common prefix count as equal, so that a million of them do not take
 * minutes.
 */
#define NAME_COMPARED_MAX 1024
#define NR_NAMES_MAX \
	5 /* .symtab (broken), of the debug file (too), .dynsym, .gnu_debugdata, Go's */
/* A name is stored as its offset, with the number of its table in the upper bits. */
#define NAME_BITS 29
_Static_assert(SB_NAMES_BYTES_MAX == 1u << NAME_BITS && NR_NAMES_MAX <= 8, "both fit");

/* Work of reading a symbol, and of sorting one and finding the addresses it owns. */
#define WORK_OF_SYMBOL	    20u
#define WORK_OF_CANDIDATE   250u
/* Memory that finishing takes for each candidate, in addition to the candidate itself. */
#define BYTES_TO_FINISH	    (sizeof(struct candidate) + 6 * sizeof(struct segment))
/*
 * Bytes of names that are compared to choose among aliases, so many and so many more for each symbol. All C++
 * libraries of a distribution stay far below. A million symbols of one address and one name would cost 20 s.
 */
#define COMPARED_BYTES	    (16u << 20)
#define COMPARED_BYTES_MORE 64u
/* A shorter prefix is not worth comparing. */
#define NAME_COMPARED_MIN   8u

enum layer { LAYER_FUNC, LAYER_UNTYPED, LAYER_UNSIZED, LAYER_MAX };

/* Bits that rank aliases, the most important first. */
#define RANK_FUNC   4
#define RANK_STRONG 2
#define RANK_GLOBAL 1

struct candidate {
	uint64_t start, end; /* without a size: the latest possible end */
	uint32_t name;
	uint8_t names_idx;
	uint8_t layer; /* enum layer */
	uint8_t rank;
	bool is_label;
};

/* The addresses from @start to the start of the next segment belong to the symbol with index @owner,
 * or to none (SB_SYMBOL_NONE). */
struct segment {
	uint64_t start;
	uint32_t owner;
};
typedef SB_VEC(struct segment) segment_vec;

/*
 * Addresses, with 32 bits if that is enough: only in vmlinux and the like they span more than 4
 * GiB.
 */
struct addrs {
	uint64_t base;
	uint32_t *near; /* relative to base */
	uint64_t *far;	/* NULL: these are near */
};

struct sb_symtab {
	struct sb_budget *budget; /* borrowed, or NULL */
	struct sb_names names[NR_NAMES_MAX];
	size_t nr_names;
	SB_VEC(struct candidate) candidates; /* until flattened */
	size_t nr_broken;
	/* Arrays indexed by symbol. */
	struct addrs addrs;
	uint32_t *symbol_names;
	uint8_t *label_bits;
	size_t nr_symbols;
	/* Arrays indexed by segment; a search reads only the first one. */
	struct addrs starts;
	uint32_t *owners;
	size_t nr_segments;
};

/* Allocate @nr addresses between @base and @last. Return: 0 or -ENOMEM. */
static int addrs_init(struct addrs *addrs, uint64_t base, uint64_t last, size_t nr)
{
	addrs->base = base;
	if (last - base > UINT32_MAX)
		addrs->far = malloc(nr * sizeof(*addrs->far) + 1);
	else
		addrs->near = malloc(nr * sizeof(*addrs->near) + 1);
	return addrs->near || addrs->far ? 0 : -ENOMEM;
}

static void addrs_release(struct addrs *addrs)
{
	free(addrs->near);
	free(addrs->far);
}

static void addrs_set(struct addrs *addrs, size_t i, uint64_t addr)
{
	if (addrs->far)
		addrs->far[i] = addr;
	else
		addrs->near[i] = (uint32_t)(addr - addrs->base);
}

static size_t addrs_bytes(const struct addrs *addrs, size_t nr)
{
	return nr * (addrs->far ? sizeof(*addrs->far) : sizeof(*addrs->near));
}

struct sb_symtab *sb_symtab_new(struct sb_budget *budget)
{
	struct sb_symtab *tab = calloc(1, sizeof(*tab));

	if (tab)
		tab->budget = budget;
	return tab;
}

void sb_symtab_free(struct sb_symtab *tab)
{
	size_t i;

	if (!tab)
		return;
	for (i = 0; i < tab->nr_names; i++)
		sb_names_release(&tab->names[i]);
	sb_vec_release(&tab->candidates);
	addrs_release(&tab->addrs);
	free(tab->symbol_names);
	free(tab->label_bits);
	addrs_release(&tab->starts);
	free(tab->owners);
	free(tab);
}

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

/* How names are compared, and the remaining budget for that. */
struct comparison {
	const struct sb_symtab *tab;
	size_t len_max;	     /* bytes of a name that are compared; 0: none */
	uint64_t bytes_left; /* of all comparisons */
};

/* The version does not count: "memcpy@@GLIBC_2.14" is as long as "memcpy". */
static size_t name_len(const char *name, size_t max)
{
	size_t len = strnlen(name, max);
	const char *version = memchr(name, '@', len);

	return version ? (size_t)(version - name) : len;
}

static size_t nr_underscores(const char *name, size_t max)
{
	size_t nr = 0;

	while (nr < max && name[nr] == '_')
		nr++;
	return nr;
}

static int compare_names(struct comparison *comparison, const struct candidate *a,
			 const struct candidate *b)
{
	const struct sb_symtab *tab = comparison->tab;
	const size_t max = comparison->len_max;
	const char *name_a = tab->names[a->names_idx].mem + a->name;
	const char *name_b = tab->names[b->names_idx].mem + b->name;
	size_t a_scores = nr_underscores(name_a, max), b_scores = nr_underscores(name_b, max);
	size_t a_len = name_len(name_a, max), b_len = name_len(name_b, max);
	uint64_t spent = a_len + b_len;
	int diff;

	comparison->bytes_left -= spent < comparison->bytes_left ? spent : comparison->bytes_left;
	if (a_scores != b_scores)
		return a_scores > b_scores ? -1 : 1;
	if (a_len != b_len)
		return a_len < b_len ? -1 : 1;
	diff = strncmp(name_b, name_a, max);
	if (diff)
		return diff;
	return b->names_idx - a->names_idx;
}

/* Compare symbols that start together; the best one sorts last. */
static int compare(const void *pa, const void *pb, void *arg)
{
	const struct candidate *a = pa, *b = pb;
	struct comparison *comparison = arg;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->names_idx == b->names_idx && a->name == b->name)
		return 0;
	return comparison->len_max ? compare_names(comparison, a, b) : 0;
}

/*
 * Sort @nr that start together. The length to compare is set before, so that the order is one order: what the sort
 * will compare is at most nr log2(nr) pairs, and what is left has to do for all of them.
 */
static void sort_aliases(struct candidate *at, size_t nr, struct comparison *comparison)
{
	unsigned int steps = 1;
	uint64_t len;

	while (nr >> steps)
		steps++;
	len = comparison->bytes_left / (2 * (uint64_t)nr * steps);
	comparison->len_max = len < NAME_COMPARED_MIN	? 0
			      : len < NAME_COMPARED_MAX ? (size_t)len
							: NAME_COMPARED_MAX;
	qsort_r(at, nr, sizeof(*at), compare, comparison);
}

/*
 * Sort by one byte of the start, stable. Return: false if it is equal in all; then nothing was
 * moved.
 */
static bool sort_by_byte(const struct candidate *from, size_t nr, unsigned int shift,
			 struct candidate *to)
{
	size_t places[257] = {}, i;

	for (i = 0; i < nr; i++)
		places[(from[i].start >> shift & 0xff) + 1]++;
	if (places[(from[0].start >> shift & 0xff) + 1] == nr)
		return false;
	for (i = 1; i < SB_ARRAY_SIZE(places); i++)
		places[i] += places[i - 1];
	for (i = 0; i < nr; i++)
		to[places[from[i].start >> shift & 0xff]++] = from[i];
	return true;
}

/*
 * By start, byte by byte: most of the time to open a library would go into comparing. Only those
 * that start together are compared, by name at last.
 */
static int sort_candidates(struct sb_symtab *tab)
{
	struct candidate *from = tab->candidates.at, *to, *swap;
	const size_t nr = tab->candidates.nr;
	struct comparison comparison = {
		.tab = tab,
		.bytes_left = COMPARED_BYTES + (uint64_t)nr * COMPARED_BYTES_MORE,
	};
	unsigned int shift;
	size_t i, end;

	to = nr ? malloc(nr * sizeof(*to)) : NULL;
	if (!to)
		return nr ? -ENOMEM : 0;
	for (shift = 0; shift < 64; shift += 8) {
		if (!sort_by_byte(from, nr, shift, to))
			continue;
		swap = from;
		from = to;
		to = swap;
	}
	free(to);
	tab->candidates.at = from;
	tab->candidates.cap = nr;
	for (i = 0; i < nr; i = end) {
		for (end = i + 1; end < nr && from[end].start == from[i].start;)
			end++;
		if (end - i > 1)
			sort_aliases(from + i, end - i, &comparison);
	}
	return 0;
}

/*
 * Symbols without a size end where anything else starts, and those inside of one that has a size,
 * at its end: they are labels of its code, not of what follows.
 */
static void bound_unsized(struct sb_symtab *tab)
{
	struct candidate *at = tab->candidates.at;
	uint64_t next_start = UINT64_MAX, start = UINT64_MAX, sized_end = 0;
	size_t i;

	for (i = 0; i < tab->candidates.nr; i++) {
		if (at[i].layer != LAYER_UNSIZED)
			sized_end = at[i].end > sized_end ? at[i].end : sized_end;
		else if (at[i].start < sized_end && at[i].end > sized_end)
			at[i].end = sized_end;
	}
	for (i = tab->candidates.nr; i-- > 0;) {
		if (at[i].start != start) {
			next_start = start;
			start = at[i].start;
		}
		if (at[i].layer == LAYER_UNSIZED && at[i].end > next_start)
			at[i].end = next_start;
	}
}

struct sweep {
	const struct candidate *at;
	SB_VEC(uint32_t) open; /* symbols that have not ended, innermost last */
	segment_vec out;
};

static int emit(segment_vec *out, uint64_t start, uint32_t owner)
{
	if (out->nr && out->at[out->nr - 1].start == start)
		out->nr--;
	if (out->nr ? out->at[out->nr - 1].owner == owner : owner == SB_SYMBOL_NONE)
		return 0;
	return sb_vec_push(out, (struct segment){ .start = start, .owner = owner });
}

/* Close symbols that end at or before @upto; the symbol around them continues. */
static int close_until(struct sweep *sweep, uint64_t upto)
{
	uint64_t end;
	int err;

	while (sweep->open.nr) {
		end = sweep->at[sweep->open.at[sweep->open.nr - 1]].end;
		if (end > upto)
			break;
		/* A symbol that ended under another one does not appear again. */
		while (sweep->open.nr && sweep->at[sweep->open.at[sweep->open.nr - 1]].end <= end)
			sweep->open.nr--;
		err = emit(&sweep->out, end,
			   sweep->open.nr ? sweep->open.at[sweep->open.nr - 1] : SB_SYMBOL_NONE);
		if (err)
			return err;
	}
	return 0;
}

/* Find the segments that symbols of one layer own. The caller frees @ret_out. */
static int flatten_layer(struct sb_symtab *tab, enum layer layer, segment_vec *ret_out)
{
	struct sweep sweep = { .at = tab->candidates.at };
	size_t i;
	int err = 0;

	for (i = 0; i < tab->candidates.nr && !err; i++) {
		if (sweep.at[i].layer != layer)
			continue;
		err = close_until(&sweep, sweep.at[i].start);
		if (!err)
			err = emit(&sweep.out, sweep.at[i].start, (uint32_t)i);
		if (!err)
			err = sb_vec_push(&sweep.open, (uint32_t)i);
	}
	if (!err)
		err = close_until(&sweep, UINT64_MAX);
	sb_vec_release(&sweep.open);
	*ret_out = sweep.out;
	return err;
}

/* Combine two layers: @under is used where @over has no owner. The caller frees @ret_out. */
static int merge(const segment_vec *over, const segment_vec *under, segment_vec *ret_out)
{
	uint32_t over_owner = SB_SYMBOL_NONE, under_owner = SB_SYMBOL_NONE;
	size_t i = 0, j = 0;
	uint64_t at;
	int err;

	while (i < over->nr || j < under->nr) {
		if (j == under->nr || (i < over->nr && over->at[i].start <= under->at[j].start))
			at = over->at[i].start;
		else
			at = under->at[j].start;
		if (i < over->nr && over->at[i].start == at)
			over_owner = over->at[i++].owner;
		if (j < under->nr && under->at[j].start == at)
			under_owner = under->at[j++].owner;
		err = emit(ret_out, at, over_owner != SB_SYMBOL_NONE ? over_owner : under_owner);
		if (err)
			return err;
	}
	return 0;
}

static segment_vec take_segments(segment_vec *from)
{
	segment_vec taken = *from;

	*from = (segment_vec){};
	return taken;
}

/* Most files have symbols in one layer only; then nothing needs merging. */
static int flatten(struct sb_symtab *tab, segment_vec *ret_out)
{
	segment_vec all = {}, one = {}, merged;
	int layer, err = 0;

	for (layer = 0; layer < LAYER_MAX && !err; layer++) {
		merged = (segment_vec){};
		err = flatten_layer(tab, layer, &one);
		if (!err && all.nr && one.nr)
			err = merge(&all, &one, &merged);
		else
			merged = take_segments(all.nr ? &all : &one);
		sb_vec_release(&all);
		sb_vec_release(&one);
		all = merged;
	}
	*ret_out = all;
	return err;
}

/* Keep addresses and names of the symbols that own something, indexed by number. */
static int keep_symbols(struct sb_symtab *tab, const uint32_t *numbers)
{
	size_t i;
	int err = addrs_init(&tab->addrs, tab->starts.base,
			     tab->candidates.nr ? tab->candidates.at[tab->candidates.nr - 1].start
						: tab->starts.base,
			     tab->nr_symbols);

	tab->symbol_names = malloc(tab->nr_symbols * sizeof(*tab->symbol_names) + 1);
	tab->label_bits = calloc(tab->nr_symbols / 8 + 1, 1);
	if (err || !tab->symbol_names || !tab->label_bits)
		return -ENOMEM;
	for (i = 0; i < tab->candidates.nr; i++) {
		const struct candidate *cand = &tab->candidates.at[i];

		if (numbers[i] == SB_SYMBOL_NONE)
			continue;
		addrs_set(&tab->addrs, numbers[i], cand->start);
		tab->symbol_names[numbers[i]] = cand->name | (uint32_t)cand->names_idx << NAME_BITS;
		if (cand->is_label)
			tab->label_bits[numbers[i] / 8] |= (uint8_t)(1u << numbers[i] % 8);
	}
	return 0;
}

/* Number the symbols that own something, in order of appearance. */
static int keep_owners(struct sb_symtab *tab, const segment_vec *segments)
{
	sb_cleanup(sb_freep) uint32_t *numbers = NULL;
	size_t i, nr = segments->nr;
	uint32_t owner;

	numbers = malloc(tab->candidates.nr * sizeof(*numbers) + 1);
	tab->owners = malloc(nr * sizeof(*tab->owners) + 1);
	if (!numbers || !tab->owners ||
	    addrs_init(&tab->starts, nr ? segments->at[0].start : 0,
		       nr ? segments->at[nr - 1].start : 0, nr))
		return -ENOMEM;
	memset(numbers, 0xff, tab->candidates.nr * sizeof(*numbers));
	for (i = 0; i < nr; i++) {
		owner = segments->at[i].owner;
		if (owner != SB_SYMBOL_NONE && numbers[owner] == SB_SYMBOL_NONE)
			numbers[owner] = (uint32_t)tab->nr_symbols++;
		addrs_set(&tab->starts, i, segments->at[i].start);
		tab->owners[i] = owner == SB_SYMBOL_NONE ? owner : numbers[owner];
	}
	tab->nr_segments = nr;
	return keep_symbols(tab, numbers);
}

int sb_symtab_finish(struct sb_symtab *tab)
{
	segment_vec segments = {};
	size_t i;
	int err;

	err = sb_budget_charge(tab->budget, tab->candidates.nr * BYTES_TO_FINISH)
		      ?: sb_budget_work(tab->budget, tab->candidates.nr * WORK_OF_CANDIDATE);
	if (!err)
		err = sort_candidates(tab);
	if (!err) {
		bound_unsized(tab);
		err = flatten(tab, &segments);
	}
	if (!err)
		err = keep_owners(tab, &segments);
	sb_vec_release(&segments);
	sb_vec_release(&tab->candidates);
	for (i = 0; i < tab->nr_names; i++)
		sb_names_unload(&tab->names[i]);
	if (tab->nr_broken)
		sb_debug("%zu symbols have a name outside of the string table, ignoring them",
			 tab->nr_broken);
	return err;
}

/* Find the last start that is <= @addr. It has no branches, because they would be mispredicted. */
#define DEFINE_FIND(name, type)                                      \
	static size_t name(const type *starts, size_t nr, type addr) \
	{                                                            \
		const type *base = starts;                           \
		size_t half;                                         \
                                                                     \
		while (nr > 1) {                                     \
			half = nr / 2;                               \
			base += base[half] <= addr ? half : 0;       \
			nr -= half;                                  \
		}                                                    \
		return (size_t)(base - starts);                      \
	}
DEFINE_FIND(find_near, uint32_t)
DEFINE_FIND(find_far, uint64_t)

uint32_t sb_symtab_find(const struct sb_symtab *tab, uint64_t addr)
{
	const struct addrs *starts = &tab->starts;
	uint64_t offset = addr - starts->base;

	if (!tab->nr_segments || addr < starts->base)
		return SB_SYMBOL_NONE;
	if (starts->far)
		return tab->owners[find_far(starts->far, tab->nr_segments, addr)];
	return tab->owners[find_near(starts->near, tab->nr_segments,
				     offset < UINT32_MAX ? (uint32_t)offset : UINT32_MAX)];
}

uint64_t sb_symtab_addr(const struct sb_symtab *tab, uint32_t symbol)
{
	const struct addrs *addrs = &tab->addrs;

	return addrs->far ? addrs->far[symbol] : addrs->base + addrs->near[symbol];
}

bool sb_symtab_is_label(const struct sb_symtab *tab, uint32_t symbol)
{
	return tab->label_bits[symbol / 8] >> symbol % 8 & 1;
}

size_t sb_symtab_nr(const struct sb_symtab *tab)
{
	return tab->nr_symbols;
}

int sb_symtab_name(const struct sb_symtab *tab, uint32_t symbol, struct sb_str *name)
{
	uint32_t packed = tab->symbol_names[symbol];

	return sb_names_get(&tab->names[packed >> NAME_BITS], packed & ((1u << NAME_BITS) - 1),
			    name);
}

size_t sb_symtab_bytes(const struct sb_symtab *tab)
{
	size_t i, bytes = sizeof(*tab);

	bytes += addrs_bytes(&tab->starts, tab->nr_segments) +
		 tab->nr_segments * sizeof(*tab->owners);
	bytes += addrs_bytes(&tab->addrs, tab->nr_symbols) +
		 tab->nr_symbols * sizeof(*tab->symbol_names) + tab->nr_symbols / 8;
	for (i = 0; i < tab->nr_names; i++)
		bytes += tab->names[i].mem ? tab->names[i].len + 1 : 0;
	return bytes;
}
