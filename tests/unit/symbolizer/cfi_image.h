/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ELF files with call frame information, assembled byte by byte. */
#ifndef CFI_IMAGE_H
#define CFI_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TEXT_ADDR     0x401000ull
#define TEXT_BYTES    0x20000ull
#define EH_ADDR	      0x900000ull
#define IMAGE_BYTES   (512u << 10)
#define SECTION_BYTES (128u << 10)

/* Bytes of a section that is being written. */
struct bytes {
	uint8_t at[SECTION_BYTES];
	size_t len;
	size_t entry; /* offset of the length field of the open entry */
	size_t cie;   /* offset of the last CIE */
	size_t id;    /* offset of the id field of the open entry */
	uint8_t ra;   /* return address column; 0: 16 */
};

static inline void put(struct bytes *b, const void *data, size_t len)
{
	if (len)
		memcpy(b->at + b->len, data, len);
	b->len += len;
}

static inline void put_uint(struct bytes *b, uint64_t val, size_t len)
{
	put(b, &val, len);
}

#define PUT(b, ...)                                           \
	do {                                                  \
		const uint8_t put_bytes_[] = { __VA_ARGS__ }; \
		put((b), put_bytes_, sizeof(put_bytes_));     \
	} while (0)

static inline void put_uleb(struct bytes *b, uint64_t val)
{
	do {
		put_uint(b, (val & 0x7f) | (val > 0x7f ? 0x80 : 0), 1);
		val >>= 7;
	} while (val);
}

static inline void open_entry(struct bytes *b)
{
	b->entry = b->len;
	put_uint(b, 0, 4);
	b->id = b->len;
}

/* Fill with nops to 8 bytes, as assemblers do, and set the length. */
static inline void close_entry(struct bytes *b)
{
	uint32_t len;

	while (b->len % 8)
		put_uint(b, 0, 1);
	len = (uint32_t)(b->len - b->entry - 4);
	memcpy(b->at + b->entry, &len, 4);
}

/* Up to the initial instructions; @data: augmentation data, with its length. */
static inline void open_cie(struct bytes *b, const char *letters, const void *data, size_t data_len)
{
	open_entry(b);
	b->cie = b->entry;
	put_uint(b, 0, 4);
	put_uint(b, 1, 1); /* version */
	put(b, letters, strlen(letters) + 1);
	if (*letters == 'e') /* GCC 2: its data come first */
		put(b, data, data_len);
	put_uleb(b, 1);	      /* code alignment */
	put_uint(b, 0x78, 1); /* data alignment -8 */
	put_uint(b, b->ra ? b->ra : 16, 1);
	if (*letters != 'e')
		put(b, data, data_len);
}

/* What every compiler writes: addresses relative to where they stand, CFA = rsp + 8. */
static inline void put_plain_cie(struct bytes *b)
{
	static const uint8_t data[] = { 1, 0x1b };

	open_cie(b, "zR", data, sizeof(data));
	PUT(b, 0x0c, 7, 8, 0x90, 1); /* def_cfa rsp 8; offset RA at CFA-8 */
	close_entry(b);
}

/* Up to the instructions, for the CIE put last and addresses as put_plain_cie() has them. */
static inline void open_fde(struct bytes *b, uint64_t lo, uint64_t len)
{
	open_entry(b);
	put_uint(b, b->len - b->cie, 4);
	put_uint(b, lo - (EH_ADDR + b->len), 4);
	put_uint(b, len, 4);
	put_uleb(b, 0);
}

#define FDE(b, lo, bytes, ...)                \
	do {                                  \
		open_fde((b), (lo), (bytes)); \
		PUT((b), __VA_ARGS__);        \
		close_entry(b);               \
	} while (0)

/* A file around sections. */
struct image {
	uint8_t at[IMAGE_BYTES];
	size_t len;
	uint8_t text[TEXT_BYTES];
	uint16_t machine; /* 0: EM_X86_64 */
	Elf64_Phdr phdrs[4];
	Elf64_Shdr shdrs[8];
	char names[64];
	size_t nr_phdrs, nr_shdrs, names_len;
};

static inline size_t image_put(struct image *img, const void *data, size_t len)
{
	size_t at = (img->len + 15) & ~(size_t)15;

	memcpy(img->at + at, data, len);
	img->len = at + len;
	return at;
}

static inline void image_load(struct image *img, uint64_t addr, uint64_t len, size_t offset,
			      uint32_t flags)
{
	img->phdrs[img->nr_phdrs++] = (Elf64_Phdr){ .p_type = PT_LOAD,
						    .p_flags = PF_R | flags,
						    .p_offset = offset,
						    .p_vaddr = addr,
						    .p_filesz = len,
						    .p_memsz = len,
						    .p_align = 16 };
}

static inline void image_init(struct image *img)
{
	img->len = sizeof(Elf64_Ehdr) + sizeof(img->phdrs);
	img->nr_phdrs = 0;
	img->nr_shdrs = 1;
	img->names_len = 1;
	memset(img->shdrs, 0, sizeof(img->shdrs));
	memset(img->names, 0, sizeof(img->names));
	image_load(img, TEXT_ADDR, TEXT_BYTES, image_put(img, img->text, TEXT_BYTES), PF_X);
}

static inline Elf64_Shdr *image_section(struct image *img, const char *name, uint64_t addr,
					const void *data, size_t len)
{
	Elf64_Shdr *shdr = &img->shdrs[img->nr_shdrs++];

	*shdr = (Elf64_Shdr){ .sh_name = (uint32_t)img->names_len,
			      .sh_type = SHT_PROGBITS,
			      .sh_flags = addr ? SHF_ALLOC : 0,
			      .sh_addr = addr,
			      .sh_offset = image_put(img, data, len),
			      .sh_size = len };
	strcpy(img->names + img->names_len, name);
	img->names_len += strlen(name) + 1;
	return shdr;
}

/* Headers, when all else is in. */
static inline void image_finish(struct image *img)
{
	Elf64_Ehdr ehdr = { .e_type = ET_DYN,
			    .e_machine = img->machine ? img->machine : EM_X86_64,
			    .e_version = EV_CURRENT,
			    .e_ehsize = sizeof(Elf64_Ehdr),
			    .e_phoff = sizeof(Elf64_Ehdr),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_shentsize = sizeof(Elf64_Shdr) };

	memcpy(ehdr.e_ident, ELFMAG, SELFMAG);
	ehdr.e_ident[EI_CLASS] = ELFCLASS64;
	ehdr.e_ident[EI_DATA] = ELFDATA2LSB;
	ehdr.e_ident[EI_VERSION] = EV_CURRENT;
	ehdr.e_phnum = (uint16_t)img->nr_phdrs;
	if (img->nr_shdrs > 1) {
		image_section(img, ".shstrtab", 0, img->names, sizeof(img->names));
		img->shdrs[img->nr_shdrs - 1].sh_type = SHT_STRTAB;
		memcpy(img->at + img->shdrs[img->nr_shdrs - 1].sh_offset, img->names,
		       sizeof(img->names));
		ehdr.e_shnum = (uint16_t)img->nr_shdrs;
		ehdr.e_shstrndx = (uint16_t)(img->nr_shdrs - 1);
		ehdr.e_shoff = image_put(img, img->shdrs, img->nr_shdrs * sizeof(*img->shdrs));
	}
	memcpy(img->at, &ehdr, sizeof(ehdr));
	memcpy(img->at + sizeof(ehdr), img->phdrs, sizeof(img->phdrs));
}

#endif
