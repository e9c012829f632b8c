// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/unwind/cfi.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/index.h"
#include "bpf/abi/sb_abi.h"
#include "symbolizer/elf/gopcln.h"
#include "symbolizer/unwind/cfi_priv.h"

/* Functions are aligned to 16: between two of them is padding, or code without CFI. */
#define PADDING_BYTES	16
/*
 * Size of the code where the kernel enters a program: hand-written, often without CFI, never
 * called.
 */
#define ENTRY_BYTES	32
#define ENTRY_FAR_BYTES (16u << 20) /* from code with CFI: not worth an index in between */
#define OFF_MASK	(SB_UW_GRANULE_BYTES - 1)
/* Distinct rules of one binary: half have 50 or fewer, the most seen is 885. */
#define RULE_CACHE_MAX	1024u
/* Bytes of a nop before the instructions of a signal trampoline that is not marked as such. */
#define NOP_BYTES_MAX	4
/*
 * Bytes from the system call that makes a thread to where it begins: glibc has 10 on x86-64, 28 on
 * arm64.
 */
#define CLONE_BYTES_MAX 64

#ifdef SB_MACHINE_ARM64
#define SB_CFI_NATIVE EM_AARCH64
#else
#define SB_CFI_NATIVE EM_X86_64
#endif

/*
 * A table under construction. Rows come in ascending order; the rule of the last one is not final
 * yet.
 */
struct builder {
	struct sb_cfi *cfi;
	struct sb_index index; /* of rules */
	uint32_t rule;	       /* of the last row written */
	uint64_t next_addr;
	uint32_t next_rule;
	uint64_t entry; /* of the file; 0: none in its text */
	struct {
		struct sb_uw_rule rule;
		uint32_t id;
	} cache[RULE_CACHE_MAX];
};

static uint64_t rule_key(const struct sb_uw_rule *rule)
{
	uint64_t key;

	memcpy(&key, rule, sizeof(key));
	return key;
}

static uint64_t hash_key(uint64_t key)
{
	key *= 0x9e3779b97f4a7c15ull; /* 2^64 / golden ratio: multiplicative hashing, TAOCP 6.4 */
	return key >> 32;
}

/* Return: 0 and the number of the rule, -ENOMEM, -EFBIG. */
static int intern_rule(struct builder *b, const struct sb_uw_rule *rule, uint32_t *ret_id)
{
	uint64_t key = rule_key(rule), hash = hash_key(key);
	struct sb_cfi *cfi = b->cfi;
	uint32_t slot = (uint32_t)hash % RULE_CACHE_MAX;
	struct sb_index_iter it;
	uint32_t id;
	int err;

	if (rule_key(&b->cache[slot].rule) == key) {
		*ret_id = b->cache[slot].id;
		return 0;
	}
	it = sb_index_first(&b->index, hash);
	while (it.id != SB_INDEX_NONE && rule_key(&cfi->rules.at[it.id]) != key)
		it = sb_index_next(&b->index, it);
	id = it.id;
	if (id == SB_INDEX_NONE) {
		id = (uint32_t)cfi->rules.nr;
		if (id == SB_UW_RULES_MAX)
			return -EFBIG;
		err = sb_vec_push(&cfi->rules, *rule);
		err = err ? err : sb_index_add(&b->index, hash, id);
		if (err)
			return err;
	}
	b->cache[slot].rule = *rule;
	b->cache[slot].id = id;
	*ret_id = id;
	return 0;
}

/* Finish the last granule. If it has a single row, it is stored without rows. */
static void close_granule(struct sb_cfi *cfi)
{
	struct sb_cfi_granule *last = &cfi->granules.at[cfi->granules.nr - 1];

	last->nr_rows = (uint32_t)cfi->rows.nr - last->first_row;
	if (last->nr_rows == 1) {
		last->first_row = cfi->rows.at[--cfi->rows.nr] >> 16;
		last->nr_rows = 0;
	}
}

/* Append granules up to number @to, each with the rule in force as its first row. */
static int open_granules(struct builder *b, uint64_t to)
{
	struct sb_cfi *cfi = b->cfi;
	int err;

	if (to >= SB_CFI_GRANULES_MAX)
		return -EFBIG;
	while (cfi->granules.nr <= to) {
		if (cfi->granules.nr)
			close_granule(cfi);
		err = sb_vec_push(&cfi->granules,
				  (struct sb_cfi_granule){ (uint32_t)cfi->rows.nr, 0 });
		err = err ? err : sb_vec_push(&cfi->rows, SB_UW_ROW(b->rule, 0));
		if (err)
			return err;
	}
	return 0;
}

static int write_row(struct builder *b, uint64_t addr, uint32_t rule)
{
	struct sb_cfi *cfi = b->cfi;
	uint32_t off = addr & OFF_MASK;
	int err;

	if (rule == b->rule)
		return 0;
	if (cfi->info.nr_rows == SB_CFI_ROWS_MAX)
		return -EFBIG;
	err = open_granules(b, (addr - cfi->text_lo) >> SB_UW_GRANULE_BITS);
	if (err)
		return err;
	b->rule = rule;
	cfi->info.nr_rows++;
	cfi->info.nr_unsup += cfi->rules.at[rule].cfa == SB_UW_CFA_UNSUP;
	if (!off) {
		cfi->rows.at[cfi->rows.nr - 1] = SB_UW_ROW(rule, 0);
		return 0;
	}
	return sb_vec_push(&cfi->rows, SB_UW_ROW(rule, off));
}

/* Add a row; another one of the same address may still replace it. */
static int add_row(void *arg, uint64_t addr, const struct sb_uw_rule *rule)
{
	struct builder *b = arg;
	uint32_t id;
	int err;

	err = intern_rule(b, rule, &id);
	if (!err && addr != b->next_addr)
		err = write_row(b, b->next_addr, b->next_rule);
	if (err)
		return err;
	b->next_addr = addr;
	b->next_rule = id;
	return 0;
}

static bool is_trampoline(const struct sb_cfi_machine *machine, const uint8_t *code)
{
	return !memcmp(code, machine->trampoline, machine->trampoline_bytes);
}

/*
 * Where the rule of a signal trampoline begins. Its first byte is where the handler returns to, and
 * whoever walks looks up the byte before a return address; glibc's FDE has it, others do not.
 * Return: whether @fde is a trampoline.
 */
static bool find_trampoline(const struct sb_elf *elf, const struct sb_cfi_machine *machine,
			    const struct sb_cfi_fde *fde, bool is_marked, uint64_t *ret_start)
{
	const uint64_t insns = machine->trampoline_bytes, nop = machine->nop_bytes;
	uint8_t code[NOP_BYTES_MAX + SB_CFI_TRAMPOLINE_MAX] = {};
	uint64_t bytes = fde->hi - fde->lo, offset;

	if (!is_marked && bytes != insns && bytes != nop + insns)
		return false;
	if (bytes > nop + insns)
		bytes = nop + insns;
	if (sb_elf_addr_to_offset(elf, fde->lo, &offset))
		sb_elf_read(elf, offset, code, bytes); /* or it remains 0, which is none */
	if (is_trampoline(machine, code + nop))
		*ret_start = fde->lo;
	else if (is_trampoline(machine, code) || is_marked)
		*ret_start = fde->lo - 1;
	else
		return false;
	return true;
}

static int add_fde(struct builder *b, const struct sb_elf *elf,
		   const struct sb_cfi_section *section, const struct sb_cfi_fde *fde,
		   const struct sb_cfi_entries *entries)
{
	static const struct sb_uw_rule signal = { .cfa = SB_UW_CFA_SIGNAL };
	const struct sb_cfi_sink sink = { .row = add_row, .arg = b };
	const struct sb_cfi_cie *cie = NULL;
	uint64_t start;
	int err;

	if (fde->cie != SB_CFI_CIE_GO)
		cie = &entries->cies.at[fde->cie];
	if (cie && find_trampoline(elf, section->machine, fde, cie->is_signal, &start))
		return add_row(b, start, &signal);
	if (cie)
		err = sb_cfi_exec_fde(section, cie, fde, &sink);
	else
		err = sb_cfi_go_exec(section->go, section->machine->elf_machine, fde, &sink);
	if (err != -EBADMSG)
		return err;
	b->cfi->info.nr_bad++;
	return 0;
}

/* Add rows for code without CFI from @start to @end: FP_CHAIN, if it is more than padding. */
static int fill_gap(struct builder *b, uint64_t start, uint64_t end)
{
	static const struct sb_uw_rule chain = { .cfa = SB_UW_CFA_FP_CHAIN };
	static const struct sb_uw_rule stop = { .cfa = SB_UW_CFA_STOP };
	int err = 0;

	if (end - start >= PADDING_BYTES)
		err = add_row(b, start, &chain);
	if (err || !b->entry || b->entry < start || b->entry >= end ||
	    b->entry - start > ENTRY_FAR_BYTES)
		return err;
	err = add_row(b, b->entry, &stop);
	if (!err && end - b->entry > ENTRY_BYTES)
		err = add_row(b, b->entry + ENTRY_BYTES, &chain);
	return err;
}

/* Return: whether a thread begins in this function, so that it has no caller. */
static bool is_root(const struct sb_cfi_section *section, const struct sb_cfi_fde *fde)
{
	const uint8_t *insns;

	if (fde->cie == SB_CFI_CIE_GO)
		return false;
	insns = section->bytes + fde->insns;
	return fde->end - fde->insns >= 2 && insns[0] == DW_CFA_undefined &&
	       insns[1] == section->machine->ra;
}

/*
 * clone() and clone3() return twice, and between the system call and the branch to where the new
 * thread begins, @root, the CFI can be right for one of the two: glibc's hold for the caller, or
 * end, which is the same (sysdeps/unix/sysv/linux: x86_64/clone3.S, aarch64/clone.S). The code
 * begins at @start.
 */
static int add_clone(struct builder *b, const struct sb_elf *elf,
		     const struct sb_cfi_section *section, uint64_t start,
		     const struct sb_cfi_fde *root)
{
	struct sb_uw_rule rule = b->cfi->rules.at[b->next_rule];
	uint64_t len = root->lo - start, offset;
	uint8_t code[CLONE_BYTES_MAX];
	size_t behind;

	if (len > sizeof(code))
		len = sizeof(code);
	if (rule.cfa != SB_UW_CFA_SP || !sb_elf_addr_to_offset(elf, root->lo - len, &offset) ||
	    sb_elf_read(elf, offset, code, len))
		return 0;
	behind = section->machine->find_clone(code, len);
	if (!behind || root->lo - len + behind < b->next_addr)
		return 0;
	rule.cfa = SB_UW_CFA_CLONE;
	return add_row(b, root->lo - len + behind, &rule);
}

static int add_fdes(struct builder *b, const struct sb_elf *elf,
		    const struct sb_cfi_section *section, const struct sb_cfi_entries *entries)
{
	uint64_t start = b->cfi->text_lo, end = start;
	size_t i;
	int err = 0;

	for (i = 0; i < entries->fdes.nr && !err; i++) {
		const struct sb_cfi_fde *fde = &entries->fdes.at[i];

		if (fde->lo < end) {
			b->cfi->info.nr_bad++;
			continue;
		}
		err = fill_gap(b, end, fde->lo);
		if (!err && is_root(section, fde))
			err = add_clone(b, elf, section, start, fde);
		if (!err)
			err = add_fde(b, elf, section, fde, entries);
		start = fde->lo;
		end = fde->hi;
		b->cfi->info.nr_fdes++;
	}
	b->cfi->info.text_hi = end;
	return err ? err : fill_gap(b, end, UINT64_MAX);
}

/*
 * Radix sort, least significant digit first. It is stable, so of two FDEs at one address the first
 * wins.
 */
static int sort_fdes(struct sb_cfi_entries *entries)
{
	enum { DIGIT_BITS = 11, NR_DIGITS = 1 << DIGIT_BITS };
	size_t nr = entries->fdes.nr, i, sum, count;
	struct sb_cfi_fde *from = entries->fdes.at, *to;
	uint64_t lo = UINT64_MAX, hi = 0;
	unsigned int shift, digit;
	bool is_sorted = true;

	for (i = 0; i < nr; i++) {
		is_sorted = is_sorted && (!i || from[i - 1].lo <= from[i].lo);
		lo = from[i].lo < lo ? from[i].lo : lo;
		hi = from[i].lo > hi ? from[i].lo : hi;
	}
	if (is_sorted)
		return 0;
	to = malloc(nr * sizeof(*to));
	if (!to)
		return -ENOMEM;
	for (shift = 0; shift < 64 && (hi - lo) >> shift; shift += DIGIT_BITS) {
		size_t starts[NR_DIGITS] = {};
		struct sb_cfi_fde *was = from;

		for (i = 0; i < nr; i++)
			starts[(from[i].lo - lo) >> shift & (NR_DIGITS - 1)]++;
		for (digit = 0, sum = 0; digit < NR_DIGITS; digit++, sum += count) {
			count = starts[digit];
			starts[digit] = sum;
		}
		for (i = 0; i < nr; i++)
			to[starts[(from[i].lo - lo) >> shift & (NR_DIGITS - 1)]++] = from[i];
		from = to;
		to = was;
	}
	free(to);
	entries->fdes.at = from;
	entries->fdes.cap = nr;
	return 0;
}

static bool is_text(const struct sb_elf *elf, uint64_t lo, uint64_t hi)
{
	size_t i;

	for (i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *phdr = &elf->phdrs[i];
		uint64_t at = lo - phdr->p_vaddr;

		if (phdr->p_type == PT_LOAD && (phdr->p_flags & PF_X) && at < phdr->p_memsz)
			return hi - lo <= phdr->p_memsz - at;
	}
	return false;
}

/* One wrong address must not stretch the table of the whole binary. */
static void drop_outside_text(const struct sb_elf *elf, struct sb_cfi_entries *entries)
{
	size_t i, nr = 0;

	for (i = 0; i < entries->fdes.nr; i++)
		if (is_text(elf, entries->fdes.at[i].lo, entries->fdes.at[i].hi))
			entries->fdes.at[nr++] = entries->fdes.at[i];
	entries->nr_bad += (uint32_t)(entries->fdes.nr - nr);
	entries->fdes.nr = nr;
}

static int init_builder(struct builder *b)
{
	static const struct sb_uw_rule first[SB_UW_RULE_FIRST] = {
		[SB_UW_RULE_FP_CHAIN] = { .cfa = SB_UW_CFA_FP_CHAIN },
		[SB_UW_RULE_STOP] = { .cfa = SB_UW_CFA_STOP },
	};
	uint32_t i, id;
	int err = 0;

	/*
	 * An empty slot of the cache is valid: it is all 0, like the rule FP_CHAIN with the number
	 * 0.
	 */
	for (i = 0; i < SB_UW_RULE_FIRST && !err; i++) {
		err = sb_vec_push(&b->cfi->rules, first[i]);
		err = err ? err : sb_index_add(&b->index, hash_key(rule_key(&first[i])), i);
	}
	err = err ? err : intern_rule(b, &first[SB_UW_RULE_STOP], &id);
	b->rule = b->next_rule = SB_UW_RULE_FP_CHAIN;
	b->next_addr = b->cfi->text_lo;
	return err ? err : open_granules(b, 0);
}

static int build(const struct sb_elf *elf, const struct sb_cfi_section *section,
		 const struct sb_cfi_entries *entries, struct sb_cfi *cfi)
{
	sb_cleanup(sb_freep) struct builder *b = calloc(1, sizeof(*b));
	uint64_t lo = entries->fdes.at[0].lo;
	int err;

	if (!b)
		return -ENOMEM;
	cfi->info.source = section->name;
	cfi->info.machine = elf->machine;
	cfi->info.text_lo = lo;
	cfi->info.nr_bad = entries->nr_bad;
	if (elf->entry && is_text(elf, elf->entry, elf->entry + 1))
		b->entry = elf->entry;
	if (b->entry && b->entry < lo && lo - b->entry <= ENTRY_FAR_BYTES)
		lo = b->entry;
	cfi->text_lo = (lo - 1) & ~(uint64_t)OFF_MASK; /* a trampoline begins a byte early */
	b->cfi = cfi;
	err = init_builder(b);
	err = err ? err : add_fdes(b, elf, section, entries);
	err = err ? err : write_row(b, b->next_addr, b->next_rule);
	if (!err)
		close_granule(cfi);
	cfi->info.nr_granules = (uint32_t)cfi->granules.nr;
	cfi->info.nr_rules = (uint32_t)cfi->rules.nr;
	sb_index_release(&b->index);
	return err;
}

/* FDEs of code, ascending, at least one. Return: 0, -ENODATA: nothing in it; -EBADMSG: nothing
 * usable in it; -EFBIG, -ENOMEM. */
static int read_sorted(const struct sb_elf *elf, const struct sb_cfi_section *section,
		       struct sb_cfi_entries *entries)
{
	int err = section->len ? sb_cfi_read(section, entries) : 0;

	if (!err && section->go)
		err = sb_cfi_go_read(section->go, entries);
	if (!err) {
		drop_outside_text(elf, entries);
		err = sort_fdes(entries);
	}
	if (!err && !entries->fdes.nr)
		err = entries->nr_bad ? -EBADMSG : -ENODATA;
	return err;
}

static int compile(const struct sb_elf *elf, const struct sb_cfi_section *section, void *ret)
{
	struct sb_cfi_entries entries = {};
	struct sb_cfi *cfi = NULL, **ret_cfi = ret;
	int err = read_sorted(elf, section, &entries);

	if (!err) {
		cfi = calloc(1, sizeof(*cfi));
		err = cfi ? build(elf, section, &entries, cfi) : -ENOMEM;
	}
	sb_cfi_entries_release(&entries);
	if (err)
		sb_cfi_free(cfi);
	else
		*ret_cfi = cfi;
	return err;
}

struct function_list {
	struct sb_cfi_function *at;
	size_t nr;
};

static int list_functions(const struct sb_elf *elf, const struct sb_cfi_section *section, void *ret)
{
	struct sb_cfi_entries entries = {};
	struct function_list *list = ret;
	int err = read_sorted(elf, section, &entries);
	size_t i;

	if (!err) {
		list->at = malloc(entries.fdes.nr * sizeof(*list->at));
		err = list->at ? 0 : -ENOMEM;
	}
	if (!err) {
		list->nr = entries.fdes.nr;
		for (i = 0; i < list->nr; i++)
			list->at[i] = (struct sb_cfi_function){
				.lo = entries.fdes.at[i].lo,
				.hi = entries.fdes.at[i].hi,
			};
	}
	sb_cfi_entries_release(&entries);
	return err;
}

typedef int (*use_section)(const struct sb_elf *elf, const struct sb_cfi_section *section,
			   void *ret);

/* Call @fn with the first place that has something usable. */
static int from_best_place(const struct sb_elf *elf, const struct sb_elf *debug,
			   const struct sb_gopcln *go, use_section fn, void *ret)
{
	struct sb_cfi_section section;
	int place, err, worst = -ENODATA;

	for (place = 0; place < SB_CFI_PLACE_MAX; place++) {
		err = sb_cfi_section_load(elf, debug, place, &section);
		if (!err) {
			section.go = go;
			err = fn(elf, &section, ret);
			sb_cfi_section_release(&section);
		}
		if (err != -ENODATA && err != -EBADMSG)
			return err;
		if (err == -EBADMSG)
			worst = err;
	}
	if (!go)
		return worst;
	section = (struct sb_cfi_section){
		.machine = sb_cfi_machine_of(elf->machine),
		.name = ".gopclntab",
		.go = go,
	};
	return fn(elf, &section, ret);
}

/* In a Go program, C code may have CFI, which is used in addition to Go's own table. */
static int from_file(const struct sb_elf *elf, const struct sb_elf *debug, use_section fn,
		     void *ret)
{
	struct sb_gopcln go = {};
	int err;

	if (!sb_cfi_machine_of(elf->machine) || !elf->is_64 || elf->type == ET_REL)
		return -ENOTSUP;
	err = sb_gopcln_load(elf, &go);
	if (err && err != -ENODATA && err != -EBADMSG)
		return err;
	err = from_best_place(elf, debug, err ? NULL : &go, fn, ret);
	sb_gopcln_release(&go);
	return err;
}

int sb_cfi_new(const struct sb_elf *elf, const struct sb_elf *debug, struct sb_cfi **ret_cfi)
{
	return from_file(elf, debug, compile, ret_cfi);
}

int sb_cfi_new_native(const struct sb_elf *elf, const struct sb_elf *debug, struct sb_cfi **ret_cfi)
{
	return elf->machine == SB_CFI_NATIVE ? sb_cfi_new(elf, debug, ret_cfi) : -ENOTSUP;
}

int sb_cfi_functions(const struct sb_elf *elf, struct sb_cfi_function **ret, size_t *ret_nr)
{
	struct function_list list = {};
	int err = from_file(elf, NULL, list_functions, &list);

	if (err)
		return err;
	*ret = list.at;
	*ret_nr = list.nr;
	return 0;
}

void sb_cfi_free(struct sb_cfi *cfi)
{
	if (!cfi)
		return;
	if (cfi->saved) {
		free(cfi->saved);
	} else {
		sb_vec_release(&cfi->granules);
		sb_vec_release(&cfi->rows);
		sb_vec_release(&cfi->rules);
	}
	free(cfi);
}

void sb_cfi_info(const struct sb_cfi *cfi, struct sb_cfi_info *ret_info)
{
	*ret_info = cfi->info;
}

/* Return: where the rows of a granule go: at @at, or in the next chunk if they do not fit. */
static uint64_t place_rows(uint64_t at, uint32_t nr_rows)
{
	uint64_t left = SB_UW_CHUNK_WORDS - at % SB_UW_CHUNK_WORDS;

	return nr_rows <= left ? at : at + left;
}

static uint64_t rows_word(const struct sb_cfi *cfi, uint32_t at_word)
{
	return at_word + 2 * (uint64_t)cfi->granules.nr + 2 * (uint64_t)cfi->rules.nr;
}

size_t sb_cfi_words(const struct sb_cfi *cfi, uint32_t at_word)
{
	uint64_t at = rows_word(cfi, at_word);
	size_t i;

	for (i = 0; i < cfi->granules.nr; i++)
		at = place_rows(at, cfi->granules.at[i].nr_rows) + cfi->granules.at[i].nr_rows;
	return at - at_word;
}

void sb_cfi_place(const struct sb_cfi *cfi, uint32_t *pool, uint32_t at_word,
		  struct sb_uw_bin *ret_bin)
{
	uint32_t *index = pool + at_word;
	uint32_t *rules = index + 2 * cfi->granules.nr;
	uint64_t at = rows_word(cfi, at_word), to;
	size_t i;

	memcpy(rules, cfi->rules.at, cfi->rules.nr * sizeof(*cfi->rules.at));
	for (i = 0; i < cfi->granules.nr; i++) {
		const struct sb_cfi_granule *granule = &cfi->granules.at[i];

		index[2 * i + 1] = granule->nr_rows;
		if (!granule->nr_rows) {
			index[2 * i] = granule->first_row;
			continue;
		}
		to = place_rows(at, granule->nr_rows);
		memset(pool + at, 0, (to - at) * sizeof(*pool));
		memcpy(pool + to, cfi->rows.at + granule->first_row,
		       granule->nr_rows * sizeof(*pool));
		index[2 * i] = (uint32_t)to;
		at = to + granule->nr_rows;
	}
	*ret_bin = (struct sb_uw_bin){
		.text_lo = cfi->text_lo,
		.index_word = at_word,
		.nr_granules = (uint32_t)cfi->granules.nr,
		.rules_word = at_word + 2 * (uint32_t)cfi->granules.nr,
		.nr_rules = (uint32_t)cfi->rules.nr,
		.state = SB_UW_BIN_READY,
	};
}
