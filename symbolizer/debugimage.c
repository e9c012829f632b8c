// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "elf_file.h"
#include "inflate.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

/* All sections of one file together. */
#define IMAGE_BYTES_MAX (4ull << 30)

struct image {
	const struct sb_elf *elf;
	Elf64_Shdr *shdrs;
	uint64_t len; /* written so far */
	int fd;
};

static const char *name_of(const struct sb_elf *elf, const Elf64_Shdr *shdr)
{
	return shdr->sh_name < elf->section_names_len ? elf->section_names + shdr->sh_name : "";
}

static bool is_wanted(const struct sb_elf *elf, const Elf64_Shdr *shdr)
{
	const char *name = name_of(elf, shdr);

	return shdr->sh_type != SHT_NOBITS &&
	       (!strncmp(name, ".debug_", 7) || !strcmp(name, ".gnu_debugaltlink") ||
		!strcmp(name, ".shstrtab"));
}

static bool is_zstd(const struct sb_elf *elf, const Elf64_Shdr *shdr)
{
	uint32_t type; /* the first field of both classes' header */

	return shdr->sh_type != SHT_NOBITS && (shdr->sh_flags & SHF_COMPRESSED) &&
	       !strncmp(name_of(elf, shdr), ".debug_", 7) &&
	       !sb_elf_read(elf, shdr->sh_offset, &type, sizeof(type)) && type == ELFCOMPRESS_ZSTD;
}

static int append(struct image *image, const void *data, size_t len)
{
	int err;

	if (len > IMAGE_BYTES_MAX - image->len)
		return -EFBIG;
	err = sb_write_all(image->fd, data, len);
	if (!err)
		image->len += len;
	return err;
}

static int align_to_8(struct image *image)
{
	static const char zeros[8];

	return append(image, zeros, -image->len & 7);
}

static int append_section(struct image *image, Elf64_Shdr *shdr)
{
	sb_cleanup(sb_freep) char *data = NULL;
	size_t len;
	int err;

	if (!is_wanted(image->elf, shdr)) {
		shdr->sh_type = SHT_NOBITS;
		return 0;
	}
	err = align_to_8(image);
	if (!err)
		err = sb_elf_load(image->elf, shdr, SB_INFLATE_BYTES_MAX, &data, &len);
	if (err)
		return err;
	shdr->sh_offset = image->len;
	shdr->sh_size = len;
	shdr->sh_flags &= ~(uint64_t)SHF_COMPRESSED;
	return append(image, data, len);
}

/* Only 64-bit files come here, as sections of 32-bit ones would have to be narrowed again. */
static int write_image(struct image *image)
{
	const struct sb_elf *elf = image->elf;
	size_t bytes = elf->nr_shdrs * sizeof(*image->shdrs), i;
	Elf64_Ehdr ehdr;
	int err;

	err = sb_elf_read(elf, 0, &ehdr, sizeof(ehdr));
	if (!err)
		err = append(image, &ehdr, sizeof(ehdr));
	for (i = 1; i < elf->nr_shdrs && !err; i++)
		err = append_section(image, &image->shdrs[i]);
	if (!err)
		err = align_to_8(image);
	ehdr.e_phoff = 0;
	ehdr.e_phnum = 0;
	ehdr.e_shoff = image->len;
	if (!err)
		err = append(image, image->shdrs, bytes);
	if (err)
		return err;
	if (pwrite(image->fd, &ehdr, sizeof(ehdr), 0) != (ssize_t)sizeof(ehdr))
		return -EIO;
	return 0;
}

int sb_inflate_debug_file(const struct sb_elf *elf, int *ret_fd)
{
	sb_cleanup(sb_freep) Elf64_Shdr *shdrs = NULL;
	sb_cleanup(sb_closep) int fd = -1;
	struct image image = { .elf = elf };
	size_t i;
	int err;

	for (i = 0; i < elf->nr_shdrs && !is_zstd(elf, &elf->shdrs[i]); i++)
		;
	if (i == elf->nr_shdrs || !elf->is_64)
		return -ENODATA;
	shdrs = malloc(elf->nr_shdrs * sizeof(*shdrs));
	if (!shdrs)
		return -ENOMEM;
	memcpy(shdrs, elf->shdrs, elf->nr_shdrs * sizeof(*shdrs));
	fd = memfd_create("debug", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	image.shdrs = shdrs;
	image.fd = fd;
	err = write_image(&image);
	if (!err)
		*ret_fd = sb_take_fd(fd);
	return err;
}
