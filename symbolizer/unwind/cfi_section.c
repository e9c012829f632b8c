// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "base/cleanup.h"
#include "symbolizer/elf/gopcln.h"
#include "symbolizer/unwind/cfi_priv.h"

/* Since elfutils 0.189. */
#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

#define EH_HDR_VERSION 1

static int inflate_bytes(const Elf64_Chdr *chdr, const uint8_t *in, size_t in_len, uint8_t *out)
{
	uLongf len = chdr->ch_size;
	size_t nr;

	if (chdr->ch_type == ELFCOMPRESS_ZLIB) {
		if (uncompress(out, &len, in, in_len) != Z_OK || len != chdr->ch_size)
			return -EBADMSG;
		return 0;
	}
	if (chdr->ch_type != ELFCOMPRESS_ZSTD)
		return -EBADMSG;
	nr = ZSTD_decompress(out, chdr->ch_size, in, in_len);
	return ZSTD_isError(nr) || nr != chdr->ch_size ? -EBADMSG : 0;
}

/* @raw: the section as the file has it, with its compression header. */
static int inflate_section(const uint8_t *raw, size_t raw_len, uint8_t **ret_bytes, size_t *ret_len)
{
	sb_cleanup(sb_freep) uint8_t *bytes = NULL;
	Elf64_Chdr chdr;
	int err;

	if (raw_len < sizeof(chdr))
		return -EBADMSG;
	memcpy(&chdr, raw, sizeof(chdr));
	if (chdr.ch_size > SB_CFI_BYTES_MAX)
		return -EFBIG;
	bytes = malloc(chdr.ch_size + 1);
	if (!bytes)
		return -ENOMEM;
	err = inflate_bytes(&chdr, raw + sizeof(chdr), raw_len - sizeof(chdr), bytes);
	if (err)
		return err;
	*ret_bytes = sb_take(bytes);
	*ret_len = chdr.ch_size;
	return 0;
}

static int load_bytes(const struct sb_elf *elf, uint64_t offset, uint64_t len, uint8_t **ret_bytes)
{
	sb_cleanup(sb_freep) uint8_t *bytes = NULL;
	int err;

	if (offset > elf->size || len > elf->size - offset)
		return -EBADMSG;
	if (len > SB_CFI_BYTES_MAX)
		return -EFBIG;
	bytes = malloc(len + 1);
	if (!bytes)
		return -ENOMEM;
	err = sb_elf_read(elf, offset, bytes, len);
	if (!err)
		*ret_bytes = sb_take(bytes);
	return err;
}

static int load_named(const struct sb_elf *elf, const char *name, struct sb_cfi_section *section)
{
	const Elf64_Shdr *shdr = sb_elf_section_named(elf, name);
	sb_cleanup(sb_freep) uint8_t *raw = NULL;
	int err;

	/* The type is SHT_PROGBITS or, by some assemblers, SHT_X86_64_UNWIND. */
	if (!shdr || shdr->sh_type == SHT_NOBITS || !shdr->sh_size)
		return -ENODATA;
	if (section->is_eh && !(shdr->sh_flags & SHF_ALLOC))
		return -ENODATA;
	err = load_bytes(elf, shdr->sh_offset, shdr->sh_size, &raw);
	if (err)
		return err;
	section->name = name;
	section->addr = shdr->sh_addr;
	if (shdr->sh_flags & SHF_COMPRESSED)
		return inflate_section(raw, shdr->sh_size, &section->bytes, &section->len);
	section->bytes = sb_take(raw);
	section->len = shdr->sh_size;
	return 0;
}

/* Address of .eh_frame, from the header that the segment @phdr is. */
static int read_eh_hdr(const struct sb_elf *elf, const Elf64_Phdr *phdr, uint64_t *ret_addr)
{
	uint8_t bytes[4 + 10] = {}; /* version, three encodings, a pointer in any of them */
	size_t len = phdr->p_filesz < sizeof(bytes) ? phdr->p_filesz : sizeof(bytes);
	struct sb_cfi_section section = { .bytes = bytes, .len = len, .addr = phdr->p_vaddr };
	struct sb_cursor cur = { .at = bytes, .end = bytes + len };
	uint8_t encoding;
	bool is_null;
	int err;

	err = sb_elf_read(elf, phdr->p_offset, bytes, len);
	if (err)
		return err;
	if (sb_cursor_u8(&cur) != EH_HDR_VERSION)
		return -EBADMSG;
	encoding = sb_cursor_u8(&cur);
	sb_cursor_skip(&cur, 2);
	if (encoding == DW_EH_PE_omit)
		return -ENODATA;
	/* In this header, "data" is the header. */
	if ((encoding & 0x70) == DW_EH_PE_datarel)
		*ret_addr =
			sb_cfi_read_addr(&section, &cur, encoding & 0x0f, &is_null) + phdr->p_vaddr;
	else
		*ret_addr = sb_cfi_read_addr(&section, &cur, encoding, &is_null);
	return cur.is_bad ? -EBADMSG : 0;
}

static int load_segment(const struct sb_elf *elf, struct sb_cfi_section *section)
{
	const Elf64_Phdr *hdr = sb_elf_phdr_typed(elf, PT_GNU_EH_FRAME);
	size_t i;
	int err;

	if (!hdr || !hdr->p_filesz)
		return -ENODATA;
	err = read_eh_hdr(elf, hdr, &section->addr);
	if (err)
		return err;
	for (i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *phdr = &elf->phdrs[i];
		uint64_t at = section->addr - phdr->p_vaddr;

		if (phdr->p_type != PT_LOAD || at >= phdr->p_filesz)
			continue;
		section->name = "PT_GNU_EH_FRAME";
		section->ends_at_zero = true;
		section->len = phdr->p_filesz - at;
		return load_bytes(elf, phdr->p_offset + at, section->len, &section->bytes);
	}
	return -EBADMSG;
}

int sb_cfi_section_load(const struct sb_elf *elf, const struct sb_elf *debug,
			enum sb_cfi_place place, struct sb_cfi_section *ret_section)
{
	const bool is_eh = place != SB_CFI_DEBUG_SECTION && place != SB_CFI_OTHER_DEBUG_SECTION;
	const bool is_other =
		place == SB_CFI_OTHER_DEBUG_SECTION || place == SB_CFI_OTHER_EH_SECTION;
	struct sb_cfi_section section = {
		.machine = sb_cfi_machine_of(elf->machine),
		.is_eh = is_eh,
	};
	int err;

	if (!section.machine)
		return -ENOTSUP;
	if (is_other && !debug)
		return -ENODATA;
	/*
	 * Go says where the CFA is, but not that its functions save rbp, which they do. Its own
	 * tables (cfi_go.c), and frame pointers, are better sources.
	 */
	if (!is_eh && sb_gopcln_is_there(elf))
		return -ENODATA;
	if (place == SB_CFI_EH_SEGMENT)
		err = load_segment(elf, &section);
	else
		err = load_named(is_other ? debug : elf, is_eh ? ".eh_frame" : ".debug_frame",
				 &section);
	if (!err)
		*ret_section = section;
	return err;
}

void sb_cfi_section_release(struct sb_cfi_section *section)
{
	free(sb_take(section->bytes));
}
