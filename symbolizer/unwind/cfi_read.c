// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <dwarf.h>
#include <errno.h>

#include "base/search.h"
#include "symbolizer/unwind/cfi_priv.h"

#define ADDR_BYTES	8
#define FORMAT_MASK	0x0f /* of an encoding */
#define BASE_MASK	0x70
#define LENGTH_ESCAPE	0xffffffffu /* what follows is a length of 64 bits */
#define LENGTH_RESERVED 0xfffffff0u

/* 24 times the most that was seen; .debug_frame has a CIE for each compilation unit. */
#define NR_FDES_MAX	(1u << 22)
#define NR_CIES_MAX	(1u << 20)

/* One entry: from behind its id field to its end. */
struct entry {
	struct sb_cursor cur;
	uint32_t offset; /* of its length field */
	bool is_cie;
	uint64_t cie_offset;
};

static uint64_t field_addr(const struct sb_cfi_section *section, const struct sb_cursor *cur)
{
	return section->addr + (uint64_t)(cur->at - section->bytes);
}

static uint64_t read_format(struct sb_cursor *cur, uint8_t format)
{
	switch (format) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_signed:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return sb_cursor_uint(cur, 8);
	case DW_EH_PE_uleb128:
		return sb_cursor_uleb(cur);
	case DW_EH_PE_sleb128:
		return (uint64_t)sb_cursor_sleb(cur);
	case DW_EH_PE_udata2:
		return sb_cursor_uint(cur, 2);
	case DW_EH_PE_sdata2:
		return (uint64_t)(int64_t)(int16_t)sb_cursor_uint(cur, 2);
	case DW_EH_PE_udata4:
		return sb_cursor_uint(cur, 4);
	case DW_EH_PE_sdata4:
		return (uint64_t)(int64_t)(int32_t)sb_cursor_uint(cur, 4);
	default:
		sb_cursor_fail(cur);
		return 0;
	}
}

uint64_t sb_cfi_read_addr(const struct sb_cfi_section *section, struct sb_cursor *cur,
			  uint8_t encoding, bool *ret_is_null)
{
	uint64_t at = field_addr(section, cur), val;

	if ((encoding & BASE_MASK) == DW_EH_PE_aligned) {
		sb_cursor_skip(cur, -at & (ADDR_BYTES - 1));
		val = sb_cursor_uint(cur, ADDR_BYTES);
	} else {
		val = read_format(cur, encoding & FORMAT_MASK);
	}
	*ret_is_null = !val;
	switch (encoding & ~FORMAT_MASK) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_aligned:
		return val;
	case DW_EH_PE_pcrel:
		return at + val;
	default:
		/* Relative to text, data or function: no linker writes it on this machine.
		 * Indirect: in memory that only a loader fills. */
		sb_cursor_fail(cur);
		return 0;
	}
}

/* Of the personality routine, which unwinding for a profile does not run. */
static void skip_pointer(const struct sb_cfi_section *section, struct sb_cursor *cur,
			 uint8_t encoding)
{
	if (encoding == DW_EH_PE_omit)
		return;
	if ((encoding & BASE_MASK) == DW_EH_PE_aligned)
		sb_cursor_skip(cur, (-field_addr(section, cur) & (ADDR_BYTES - 1)) + ADDR_BYTES);
	else
		read_format(cur, encoding & FORMAT_MASK);
}

/* Data of an augmentation that begins with 'z'; @letters behind it. */
static void read_augmentation(const struct sb_cfi_section *section, struct sb_cursor *cur,
			      const char *letters, struct sb_cfi_cie *cie)
{
	uint64_t len = sb_cursor_uleb(cur);
	struct sb_cursor data = { .at = cur->at };

	sb_cursor_skip(cur, len);
	data.end = cur->at;
	cie->has_data = true;
	for (; *letters && !data.is_bad; letters++) {
		switch (*letters) {
		case 'R':
			cie->encoding = sb_cursor_u8(&data);
			break;
		case 'L': /* encoding of the pointer to the language's data */
			sb_cursor_u8(&data);
			break;
		case 'P':
			skip_pointer(section, &data, sb_cursor_u8(&data));
			break;
		case 'S':
			cie->is_signal = true;
			break;
		case 'B':
		case 'G': /* pointer authentication by key B, memory tagging: no data */
			break;
		default: /* the length says how to get over it, but not what it means */
			cie->is_bad = true;
			return;
		}
	}
	if (data.is_bad)
		sb_cursor_fail(cur);
}

/* Whether a version is one that this kind of section can have. */
static bool is_version(uint8_t version, bool is_eh)
{
	return version == 1 || version == 3 || (version == 4 && !is_eh);
}

static int read_cie(const struct sb_cfi_section *section, struct entry *entry,
		    struct sb_cfi_entries *entries)
{
	struct sb_cfi_cie cie = { .offset = entry->offset, .encoding = DW_EH_PE_absptr };
	struct sb_cursor *cur = &entry->cur;
	uint8_t version = sb_cursor_u8(cur);
	const char *letters = sb_cursor_string(cur);
	uint64_t ra;

	cie.is_bad = !is_version(version, section->is_eh);
	if (letters && !strcmp(letters, "eh")) { /* GCC 2: a pointer to its own tables */
		sb_cursor_skip(cur, ADDR_BYTES);
		letters = "";
	}
	if (version == 4 && (sb_cursor_u8(cur) != ADDR_BYTES || sb_cursor_u8(cur) != 0))
		cie.is_bad = true; /* 32-bit addresses, or segments */
	cie.code_align = sb_cursor_uleb(cur);
	cie.data_align = sb_cursor_sleb(cur);
	ra = version == 1 ? sb_cursor_u8(cur) : sb_cursor_uleb(cur);
	if (letters && *letters == 'z')
		read_augmentation(section, cur, letters + 1, &cie);
	else if (!letters || *letters)
		cie.is_bad = true;
	if (cur->is_bad || ra != section->machine->ra)
		cie.is_bad = true;
	if (!cie.is_bad && sb_cfi_exec_cie(section, cur, &cie))
		cie.is_bad = true;
	if (entries->cies.nr == NR_CIES_MAX)
		return -EFBIG;
	return sb_vec_push(&entries->cies, cie);
}

/* Return: the index, or the number of CIEs when there is none at @offset. */
static size_t find_cie(const struct sb_cfi_entries *entries, uint64_t offset)
{
	size_t nr = entries->cies.nr, at;

	/* Almost always it is the last one. */
	if (nr && entries->cies.at[nr - 1].offset == offset)
		return nr - 1;
	at = sb_bisect(nr, i, entries->cies.at[i].offset < offset);
	return at < nr && entries->cies.at[at].offset == offset ? at : nr;
}

static int read_fde(const struct sb_cfi_section *section, struct entry *entry,
		    struct sb_cfi_entries *entries)
{
	size_t idx = find_cie(entries, entry->cie_offset);
	struct sb_cursor *cur = &entry->cur;
	const struct sb_cfi_cie *cie;
	struct sb_cfi_fde fde;
	bool is_null;

	if (idx == entries->cies.nr || entries->cies.at[idx].is_bad) {
		entries->nr_bad++;
		return 0;
	}
	cie = &entries->cies.at[idx];
	fde.cie = (uint32_t)idx;
	fde.lo = sb_cfi_read_addr(section, cur, cie->encoding, &is_null);
	fde.hi = fde.lo + read_format(cur, cie->encoding & FORMAT_MASK);
	if (cie->has_data)
		sb_cursor_skip(cur, sb_cursor_uleb(cur));
	if (cur->is_bad || fde.hi < fde.lo) {
		entries->nr_bad++;
		return 0;
	}
	/* The linker dropped the function, or it has no code. */
	if (is_null || fde.hi == fde.lo)
		return 0;
	fde.insns = (uint32_t)(cur->at - section->bytes);
	fde.end = (uint32_t)(cur->end - section->bytes);
	if (entries->fdes.nr == NR_FDES_MAX)
		return -EFBIG;
	return sb_vec_push(&entries->fdes, fde);
}

/* Return: 1 and the entry, 0 for a terminator, -EBADMSG: nothing behind can be found. */
static int next_entry(const struct sb_cfi_section *section, struct sb_cursor *cur,
		      struct entry *ret_entry)
{
	struct entry *entry = ret_entry;
	uint64_t len, id, id_at;
	size_t id_bytes = 4;

	entry->offset = (uint32_t)(cur->at - section->bytes);
	len = sb_cursor_uint(cur, 4);
	if (len == LENGTH_ESCAPE) {
		len = sb_cursor_uint(cur, 8);
		/* In .eh_frame the id remains at 32 bits. */
		id_bytes = section->is_eh ? 4 : 8;
	} else if (len >= LENGTH_RESERVED) {
		return -EBADMSG;
	}
	if (!len && !cur->is_bad)
		return 0;
	entry->cur = (struct sb_cursor){ .at = cur->at };
	sb_cursor_skip(cur, len);
	entry->cur.end = cur->at;
	if (cur->is_bad)
		return -EBADMSG;
	id_at = (uint64_t)(entry->cur.at - section->bytes);
	id = sb_cursor_uint(&entry->cur, id_bytes);
	if (section->is_eh) {
		entry->is_cie = !id;
		entry->cie_offset = id_at - id;
	} else {
		entry->is_cie = id == (id_bytes == 4 ? UINT32_MAX : UINT64_MAX);
		entry->cie_offset = id;
	}
	return 1;
}

int sb_cfi_read(const struct sb_cfi_section *section, struct sb_cfi_entries *entries)
{
	struct sb_cursor cur = { .at = section->bytes, .end = section->bytes + section->len };
	struct entry entry;
	int got, err = 0;

	while (sb_cursor_left(&cur) && !err) {
		got = next_entry(section, &cur, &entry);
		if (got < 0) {
			entries->nr_bad++;
			return 0;
		}
		/* Linkers put one in the middle, too, when an input had it at its end. */
		if (!got && section->ends_at_zero)
			return 0;
		if (!got)
			continue;
		err = entry.is_cie ? read_cie(section, &entry, entries)
				   : read_fde(section, &entry, entries);
	}
	return err;
}

void sb_cfi_entries_release(struct sb_cfi_entries *entries)
{
	sb_vec_release(&entries->cies);
	sb_vec_release(&entries->fdes);
}
