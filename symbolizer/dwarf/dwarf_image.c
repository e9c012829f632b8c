// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/dwarf/dwarf_image.h"

#include <endian.h>
#include <errno.h>
#include <gelf.h>
#ifdef HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include "base/cleanup.h"
#include "base/fs.h"

/* Sections are read and inflated in pieces of this size: the packed form is not in memory. */
#define CHUNK_BYTES (64u << 10)
/* Packed sections of up to this size are read whole, because libdeflate can do no less. */
#ifdef HAVE_LIBDEFLATE
#define WHOLE_BYTES_MAX (16u << 20)
#else
#define WHOLE_BYTES_MAX 0u
#endif
/* A huge page of x86-64, and of arm64 with pages of 4 KB. */
#define HUGE_BYTES	    (2u << 20)
/* Beyond 1000:1 it is a bomb: deflate cannot pack tighter, and no debug section gets near. */
#define INFLATE_RATIO_MAX   1000
/* Zstandard's own default bound; the window is memory that a frame may ask for. */
#define ZSTD_WINDOW_LOG_MAX 27
/* What libelf reads whole, to look names up in. Linked files have a kilobyte. */
#define SECTION_NAMES_MAX   (4u << 20)
/* What libelf keeps for each section. */
#define LIBELF_SHDR_BYTES   512u
/* Work of a byte that is read, and of one that is inflated. */
#define WORK_READ(len)	    ((len) / 4)
#define WORK_INFLATED(len)  ((len)*3)

static const char *const section_names[SB_DWARF_SECTION_MAX] = {
	[SB_DWARF_INFO] = "info",     [SB_DWARF_ABBREV] = "abbrev",
	[SB_DWARF_LINE] = "line",     [SB_DWARF_LINE_STR] = "line_str",
	[SB_DWARF_STR] = "str",	      [SB_DWARF_STR_OFFSETS] = "str_offsets",
	[SB_DWARF_RANGES] = "ranges", [SB_DWARF_RNGLISTS] = "rnglists",
	[SB_DWARF_ADDR] = "addr",
};

enum packing { PACKED_NOT, PACKED_ZLIB, PACKED_ZSTD };

struct source {
	uint64_t offset, len; /* in the file, behind any compression header */
	uint64_t len_inflated;
	enum packing packing;
};

struct reader {
	int fd;
	bool is_dwo, lines;
	struct sb_budget *budget; /* borrowed, or NULL */
	Elf *elf;
	uint64_t file_bytes;
	struct source sources[SB_DWARF_SECTION_MAX];
	struct sb_dwarf_image image;
};

SB_DEFINE_CLEANUP(Elf, elf_end)

/* Move @src behind its compression header. */
static int read_chdr(const struct reader *reader, struct source *src)
{
	union {
		Elf32_Chdr c32;
		Elf64_Chdr c64;
	} chdr;
	bool is_64 = gelf_getclass(reader->elf) == ELFCLASS64;
	size_t len = is_64 ? sizeof(chdr.c64) : sizeof(chdr.c32);
	uint32_t type;
	int err;

	if (src->len < len)
		return -EBADMSG;
	err = sb_read_all_at(reader->fd, src->offset, &chdr, len);
	if (err)
		return err;
	type = is_64 ? chdr.c64.ch_type : chdr.c32.ch_type;
	src->len_inflated = is_64 ? chdr.c64.ch_size : chdr.c32.ch_size;
	src->offset += len;
	src->len -= len;
	if (type != ELFCOMPRESS_ZLIB && type != 2 /* ELFCOMPRESS_ZSTD, since elfutils 0.189 */)
		return -EBADMSG;
	src->packing = type == ELFCOMPRESS_ZLIB ? PACKED_ZLIB : PACKED_ZSTD;
	return 0;
}

/* The GNU form: "ZLIB" and the size as 8 big-endian bytes. */
static int read_zdebug(const struct reader *reader, struct source *src)
{
	char head[12];
	uint64_t size;
	int err;

	if (src->len < sizeof(head))
		return -EBADMSG;
	err = sb_read_all_at(reader->fd, src->offset, head, sizeof(head));
	if (err)
		return err;
	if (memcmp(head, "ZLIB", 4))
		return -EBADMSG;
	memcpy(&size, head + 4, sizeof(size));
	src->len_inflated = be64toh(size);
	src->offset += sizeof(head);
	src->len -= sizeof(head);
	src->packing = PACKED_ZLIB;
	return 0;
}

/* Return: which section this is, or SB_DWARF_SECTION_MAX; .debug_x, .debug_x.dwo, .zdebug_x. */
static int section_of(const char *name, bool is_dwo, bool *ret_is_zdebug)
{
	const char *suffix = is_dwo ? ".dwo" : "";
	int i;

	*ret_is_zdebug = !strncmp(name, ".zdebug_", 8);
	if (!*ret_is_zdebug && strncmp(name, ".debug_", 7))
		return SB_DWARF_SECTION_MAX;
	name += *ret_is_zdebug ? 8 : 7;
	for (i = 0; i < SB_DWARF_SECTION_MAX; i++) {
		size_t len = strlen(section_names[i]);

		if (!strncmp(name, section_names[i], len) && !strcmp(name + len, suffix))
			break;
	}
	return i;
}

static int note_section(struct reader *reader, const GElf_Shdr *shdr, const char *name)
{
	struct source src = { .offset = shdr->sh_offset, .len = shdr->sh_size };
	bool is_zdebug;
	int which, err = 0;

	which = section_of(name, reader->is_dwo, &is_zdebug);
	if (which == SB_DWARF_SECTION_MAX || shdr->sh_type == SHT_NOBITS || !src.len)
		return 0;
	if (which == SB_DWARF_LINE && !reader->lines)
		return 0;
	if (reader->sources[which].len)
		return -EBADMSG;
	if (src.offset > reader->file_bytes || src.len > reader->file_bytes - src.offset)
		return -EBADMSG;
	src.len_inflated = src.len;
	if (shdr->sh_flags & SHF_COMPRESSED)
		err = read_chdr(reader, &src);
	else if (is_zdebug)
		err = read_zdebug(reader, &src);
	if (err)
		return err;
	if (src.len_inflated > SB_DWARF_IMAGE_BYTES_MAX)
		return -EFBIG;
	if (src.packing && src.len_inflated / INFLATE_RATIO_MAX > src.len)
		return -EFBIG;
	reader->sources[which] = src;
	return 0;
}

static void note_exec(struct sb_dwarf_image *image, const GElf_Shdr *shdr)
{
	const uint64_t flags = SHF_ALLOC | SHF_EXECINSTR;
	uint64_t end = shdr->sh_addr + shdr->sh_size;

	if ((shdr->sh_flags & flags) != flags || end <= shdr->sh_addr)
		return;
	if (image->exec_lo == image->exec_hi || shdr->sh_addr < image->exec_lo)
		image->exec_lo = shdr->sh_addr;
	if (end > image->exec_hi)
		image->exec_hi = end;
}

/* libelf would allocate what the section claims to hold, and inflate it. */
static int check_section_names(const struct reader *reader, size_t shstrndx)
{
	Elf_Scn *scn = elf_getscn(reader->elf, shstrndx);
	GElf_Shdr shdr;

	if (!scn || !gelf_getshdr(scn, &shdr) || (shdr.sh_flags & SHF_COMPRESSED))
		return -EBADMSG;
	if (shdr.sh_size > SECTION_NAMES_MAX)
		return -EFBIG;
	return sb_budget_charge(reader->budget, shdr.sh_size);
}

static int find_sections(struct reader *reader)
{
	size_t shstrndx;
	Elf_Scn *scn = NULL;
	int err;

	if (elf_getshdrstrndx(reader->elf, &shstrndx))
		return -ENODATA;
	err = check_section_names(reader, shstrndx);
	if (err)
		return err;
	while ((scn = elf_nextscn(reader->elf, scn))) {
		const char *name;
		GElf_Shdr shdr;

		if (!gelf_getshdr(scn, &shdr))
			return -EBADMSG;
		note_exec(&reader->image, &shdr);
		name = elf_strptr(reader->elf, shstrndx, shdr.sh_name);
		if (!name)
			return -EBADMSG;
		err = note_section(reader, &shdr, name);
		if (err)
			return err;
	}
	return reader->sources[SB_DWARF_INFO].len ? 0 : -ENODATA;
}

/*
 * Memory that is about to be written from end to end, to be freed by free(). Most of what reading
 * costs beside inflating are page faults, so the kernel is asked for huge pages, but not for one
 * that is used in part.
 */
static void *alloc_filled(size_t len)
{
	void *mem = NULL;

	if (len < HUGE_BYTES)
		return malloc(len);
	if (posix_memalign(&mem, HUGE_BYTES, len))
		return NULL;
	(void)madvise(mem, len / HUGE_BYTES * HUGE_BYTES, MADV_HUGEPAGE);
	return mem;
}

#ifdef HAVE_LIBDEFLATE
SB_DEFINE_CLEANUP(struct libdeflate_decompressor, libdeflate_free_decompressor)

/* It takes less than half of the time that zlib takes. */
static int inflate_whole(const struct reader *reader, const struct source *src, uint8_t *to)
{
	sb_cleanup(libdeflate_free_decompressorp) struct libdeflate_decompressor *z =
		libdeflate_alloc_decompressor();
	sb_cleanup(sb_freep) uint8_t *in = alloc_filled(src->len);
	int err;

	if (!in || !z)
		return -ENOMEM;
	err = sb_read_all_at(reader->fd, src->offset, in, src->len);
	if (err)
		return err;
	/* Without a place for the length, another one than the header's is an error. */
	return libdeflate_zlib_decompress(z, in, src->len, to, src->len_inflated, NULL) ? -EBADMSG
											: 0;
}
#else
static int inflate_whole(const struct reader *reader, const struct source *src, uint8_t *to)
{
	return -EBADMSG;
}
#endif

static int inflate_zlib(const struct reader *reader, const struct source *src, uint8_t *to)
{
	sb_cleanup(sb_freep) uint8_t *in = malloc(CHUNK_BYTES);
	z_stream z = { .next_out = to, .avail_out = (uInt)src->len_inflated };
	uint64_t done = 0;
	int ret = Z_OK, err = 0;

	if (!in || inflateInit(&z) != Z_OK)
		return -ENOMEM;
	while (ret == Z_OK && done < src->len) {
		size_t n = src->len - done < CHUNK_BYTES ? src->len - done : CHUNK_BYTES;

		err = sb_read_all_at(reader->fd, src->offset + done, in, n);
		if (err)
			break;
		done += n;
		z.next_in = in;
		z.avail_in = (uInt)n;
		while (ret == Z_OK && z.avail_in)
			ret = inflate(&z, Z_NO_FLUSH);
	}
	if (!err && ret == Z_MEM_ERROR)
		err = -ENOMEM;
	else if (!err && (ret != Z_STREAM_END || z.avail_out))
		err = -EBADMSG;
	inflateEnd(&z);
	return err;
}

SB_DEFINE_CLEANUP(ZSTD_DStream, ZSTD_freeDStream)

static int inflate_zstd(const struct reader *reader, const struct source *src, uint8_t *to)
{
	sb_cleanup(sb_freep) uint8_t *in = malloc(CHUNK_BYTES);
	sb_cleanup(ZSTD_freeDStreamp) ZSTD_DStream *z = ZSTD_createDStream();
	ZSTD_outBuffer out = { .dst = to, .size = src->len_inflated };
	uint64_t done = 0;
	size_t ret = 1;
	int err;

	if (!in || !z)
		return -ENOMEM;
	ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX);
	while (ret && done < src->len) {
		size_t n = src->len - done < CHUNK_BYTES ? src->len - done : CHUNK_BYTES;
		ZSTD_inBuffer chunk = { .src = in, .size = n };

		err = sb_read_all_at(reader->fd, src->offset + done, in, n);
		if (err)
			return err;
		done += n;
		while (ret && chunk.pos < chunk.size) {
			size_t in_was = chunk.pos, out_was = out.pos;

			ret = ZSTD_decompressStream(z, &out, &chunk);
			/* No progress: more comes out than the header said. */
			if (ZSTD_isError(ret) || (chunk.pos == in_was && out.pos == out_was))
				return -EBADMSG;
		}
	}
	return ret || out.pos != out.size ? -EBADMSG : 0;
}

static bool is_inflated_whole(const struct source *src)
{
	return src->packing == PACKED_ZLIB && src->len <= WHOLE_BYTES_MAX;
}

static int read_section(const struct reader *reader, const struct source *src, uint8_t *to)
{
	switch (src->packing) {
	case PACKED_ZLIB:
		return is_inflated_whole(src) ? inflate_whole(reader, src, to)
					      : inflate_zlib(reader, src, to);
	case PACKED_ZSTD:
		return inflate_zstd(reader, src, to);
	default:
		return sb_read_all_at(reader->fd, src->offset, to, src->len);
	}
}

/* All of it beforehand: headers say how much it will be. */
static int charge_sections(const struct reader *reader, uint64_t len)
{
	uint64_t work = 0, packed_max = 0;
	int i;

	for (i = 0; i < SB_DWARF_SECTION_MAX; i++) {
		const struct source *src = &reader->sources[i];

		work += src->packing ? WORK_INFLATED(src->len_inflated) : WORK_READ(src->len);
		if (is_inflated_whole(src) && src->len > packed_max)
			packed_max = src->len;
	}
	return sb_budget_charge(reader->budget, len + packed_max)
		       ?: sb_budget_work(reader->budget, work);
}

static int read_sections(struct reader *reader)
{
	struct sb_dwarf_image *image = &reader->image;
	uint64_t len = 0;
	int i, err;

	for (i = 0; i < SB_DWARF_SECTION_MAX; i++)
		len += reader->sources[i].len_inflated;
	if (len > SB_DWARF_IMAGE_BYTES_MAX)
		return -EFBIG;
	err = charge_sections(reader, len);
	if (err)
		return err;
	image->mem = alloc_filled(len);
	if (!image->mem)
		return -ENOMEM;
	len = 0;
	for (i = 0; i < SB_DWARF_SECTION_MAX; i++) {
		const struct source *src = &reader->sources[i];
		uint8_t *at = image->mem + len;

		if (!src->len)
			continue;
		err = read_section(reader, src, at);
		if (err)
			return err;
		image->sections[i] = (struct sb_dwarf_bytes){ .at = at, .len = src->len_inflated };
		len += src->len_inflated;
	}
	image->len = len;
	return 0;
}

/*
 * The count of sections stands in the header or, from 65,280 on, in the first section. libelf would
 * allocate what that one claims; linked files never have so many, so such a file is left alone.
 */
static int check_header(int fd, uint64_t file_bytes, struct sb_budget *budget)
{
	union {
		unsigned char ident[EI_NIDENT];
		Elf32_Ehdr e32;
		Elf64_Ehdr e64;
	} ehdr;
	uint64_t offset, bytes;
	int err;

	err = sb_read_all_at(fd, 0, &ehdr, sizeof(ehdr));
	if (err)
		return err;
	if (memcmp(ehdr.ident, ELFMAG, SELFMAG))
		return -EBADMSG;
	if (ehdr.ident[EI_DATA] != (BYTE_ORDER == LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB))
		return -ENODATA;
	if (ehdr.ident[EI_CLASS] == ELFCLASS64) {
		offset = ehdr.e64.e_shoff;
		bytes = (uint64_t)ehdr.e64.e_shnum * sizeof(Elf64_Shdr);
	} else {
		offset = ehdr.e32.e_shoff;
		bytes = (uint64_t)ehdr.e32.e_shnum * sizeof(Elf32_Shdr);
	}
	if (!bytes)
		return -ENODATA;
	if (offset >= file_bytes || bytes > file_bytes - offset)
		return -EBADMSG;
	return sb_budget_charge(budget, bytes / sizeof(Elf32_Shdr) * LIBELF_SHDR_BYTES);
}

int sb_dwarf_image_read(int fd, bool is_dwo, bool lines, struct sb_budget *budget,
			struct sb_dwarf_image *ret_image)
{
	sb_cleanup(elf_endp) Elf *elf = NULL;
	struct reader reader = { .fd = fd, .is_dwo = is_dwo, .lines = lines, .budget = budget };
	struct stat st;
	GElf_Ehdr ehdr;
	int err;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	err = check_header(fd, (uint64_t)st.st_size, budget);
	if (err)
		return err;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &ehdr))
		return -EBADMSG;
	reader.image.is_relocatable = ehdr.e_type == ET_REL;
	reader.elf = elf;
	reader.file_bytes = (uint64_t)st.st_size;
	err = find_sections(&reader);
	if (!err)
		err = read_sections(&reader);
	if (err) {
		sb_dwarf_image_release(&reader.image);
		return err;
	}
	*ret_image = reader.image;
	return 0;
}

void sb_dwarf_image_release(struct sb_dwarf_image *image)
{
	free(image->mem);
	memset(image, 0, sizeof(*image));
}
