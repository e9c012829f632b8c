// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/elf/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "symbolizer/elf/owner.h"
#include "symbolizer/process/reader.h"

/* The largest known debug files (browsers, vmlinux) are smaller than 4 GiB. */
#define FILE_BYTES_MAX	  (8ull << 30)
/* Linked files have some 15; each symbol without a section is compared with all of them. */
#define NR_PHDRS_MAX	  256
/* Linked files have some 40; e_shnum cannot express more than this. */
#define NR_SHDRS_MAX	  (64u << 10)
#define SECTION_NAMES_MAX (4u << 20)
/* Bound of the notes of a file that are read; the build ID is among the first. */
#define NOTES_BYTES_MAX	  (64u << 10)
#define NR_DYNAMIC_MAX	  65536
/* Work of a read: the system call, and some bytes per nanosecond. */
#define WORK_OF_READ(len) (500 + (len) / 4)

#if __BYTE_ORDER == __LITTLE_ENDIAN
#define HOST_DATA ELFDATA2LSB
#else
#define HOST_DATA ELFDATA2MSB
#endif

int sb_elf_read(const struct sb_elf *elf, uint64_t offset, void *buf, size_t len)
{
	if (offset > elf->size || len > elf->size - offset)
		return -EBADMSG;
	if (elf->image) {
		memcpy(buf, elf->image + offset, len);
		return 0;
	}
	if (sb_budget_work(elf->budget, WORK_OF_READ(len)))
		return -EFBIG;
	/* -EBADMSG: it was cut short since it was opened. */
	return sb_read_all_at(elf->fd, offset, buf, len);
}

static int read_ehdr(const struct sb_elf *elf, Elf64_Ehdr *ehdr)
{
	Elf32_Ehdr narrow;
	int err;

	if (elf->is_64)
		return sb_elf_read(elf, 0, ehdr, sizeof(*ehdr));
	err = sb_elf_read(elf, 0, &narrow, sizeof(narrow));
	if (err)
		return err;
	*ehdr = (Elf64_Ehdr){
		.e_type = narrow.e_type,
		.e_machine = narrow.e_machine,
		.e_entry = narrow.e_entry,
		.e_phoff = narrow.e_phoff,
		.e_shoff = narrow.e_shoff,
		.e_phentsize = narrow.e_phentsize,
		.e_phnum = narrow.e_phnum,
		.e_shentsize = narrow.e_shentsize,
		.e_shnum = narrow.e_shnum,
		.e_shstrndx = narrow.e_shstrndx,
	};
	return 0;
}

static int read_phdr(const struct sb_elf *elf, uint64_t offset, Elf64_Phdr *phdr)
{
	Elf32_Phdr narrow;
	int err;

	if (elf->is_64)
		return sb_elf_read(elf, offset, phdr, sizeof(*phdr));
	err = sb_elf_read(elf, offset, &narrow, sizeof(narrow));
	if (err)
		return err;
	*phdr = (Elf64_Phdr){
		.p_type = narrow.p_type,
		.p_flags = narrow.p_flags,
		.p_offset = narrow.p_offset,
		.p_vaddr = narrow.p_vaddr,
		.p_filesz = narrow.p_filesz,
		.p_memsz = narrow.p_memsz,
		.p_align = narrow.p_align,
	};
	return 0;
}

static int read_shdr(const struct sb_elf *elf, uint64_t offset, Elf64_Shdr *shdr)
{
	Elf32_Shdr narrow;
	int err;

	if (elf->is_64)
		return sb_elf_read(elf, offset, shdr, sizeof(*shdr));
	err = sb_elf_read(elf, offset, &narrow, sizeof(narrow));
	if (err)
		return err;
	*shdr = (Elf64_Shdr){
		.sh_name = narrow.sh_name,
		.sh_type = narrow.sh_type,
		.sh_flags = narrow.sh_flags,
		.sh_addr = narrow.sh_addr,
		.sh_offset = narrow.sh_offset,
		.sh_size = narrow.sh_size,
		.sh_link = narrow.sh_link,
		.sh_info = narrow.sh_info,
		.sh_addralign = narrow.sh_addralign,
		.sh_entsize = narrow.sh_entsize,
	};
	return 0;
}

static int read_phdrs(struct sb_elf *elf, const Elf64_Ehdr *ehdr)
{
	size_t bytes = elf->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	size_t i;
	int err;

	if (!ehdr->e_phnum)
		return 0;
	if (ehdr->e_phentsize != bytes)
		return -ENOEXEC;
	if (ehdr->e_phnum > NR_PHDRS_MAX)
		return -EFBIG;
	elf->phdrs = calloc(ehdr->e_phnum, sizeof(*elf->phdrs));
	if (!elf->phdrs)
		return -ENOMEM;
	for (i = 0; i < ehdr->e_phnum; i++) {
		/* A sum that wraps around is harmless: it is in the file, or the read fails. */
		err = read_phdr(elf, ehdr->e_phoff + i * bytes, &elf->phdrs[i]);
		if (err)
			return err == -EBADMSG ? -ENOEXEC : err;
	}
	elf->nr_phdrs = ehdr->e_phnum;
	return 0;
}

static int load_section_names(struct sb_elf *elf, size_t idx)
{
	const Elf64_Shdr *shdr = sb_elf_section_at(elf, idx);

	if (!shdr || shdr->sh_type != SHT_STRTAB)
		return -EBADMSG;
	return sb_elf_load(elf, shdr, SECTION_NAMES_MAX, &elf->section_names,
			   &elf->section_names_len);
}

static int read_shdrs(struct sb_elf *elf, const Elf64_Ehdr *ehdr)
{
	size_t bytes = elf->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	Elf64_Shdr first;
	uint64_t nr, names_idx, i;
	int err;

	if (!ehdr->e_shoff)
		return 0;
	if (ehdr->e_shentsize != bytes)
		return -EBADMSG;
	err = read_shdr(elf, ehdr->e_shoff, &first);
	if (err)
		return err;
	nr = ehdr->e_shnum ? ehdr->e_shnum : first.sh_size;
	names_idx = ehdr->e_shstrndx == SHN_XINDEX ? first.sh_link : ehdr->e_shstrndx;
	if (nr > NR_SHDRS_MAX)
		return -EFBIG;
	if (nr > elf->size / bytes)
		return -EBADMSG;
	err = sb_budget_charge(elf->budget, nr * sizeof(*elf->shdrs));
	if (err)
		return err;
	elf->shdrs = calloc(nr, sizeof(*elf->shdrs));
	if (!elf->shdrs && nr)
		return -ENOMEM;
	/* There are dozens of them, and each read is a system call. */
	if (elf->is_64) {
		err = sb_elf_read(elf, ehdr->e_shoff, elf->shdrs, nr * bytes);
		if (err)
			return err;
	}
	for (i = 0; i < nr && !elf->is_64; i++) {
		err = read_shdr(elf, ehdr->e_shoff + i * bytes, &elf->shdrs[i]);
		if (err)
			return err;
	}
	elf->nr_shdrs = nr;
	return load_section_names(elf, names_idx);
}

/* A program does not need section headers, so broken ones are ignored. */
static int read_shdrs_if_any(struct sb_elf *elf, const Elf64_Ehdr *ehdr)
{
	int err = read_shdrs(elf, ehdr);

	if (!err || err == -ENOMEM)
		return err;
	sb_debug("section headers are not usable (error %d), ignoring them", -err);
	free(sb_take(elf->shdrs));
	elf->nr_shdrs = 0;
	return 0;
}

struct notes {
	uint64_t offset, len, align;
};

/* Return: whether a GNU build ID was found. *@budget: number of bytes that may still be read */
static bool find_build_id(struct sb_elf *elf, const struct notes *notes, uint64_t *budget)
{
	const uint64_t offset = notes->offset, len = notes->len, align = notes->align == 8 ? 8 : 4;
	uint64_t at = 0, name_bytes, desc_bytes;
	Elf64_Nhdr note; /* the same in both classes */
	char name[4];

	if (len > *budget)
		return false;
	*budget -= len;
	while (at + sizeof(note) <= len) {
		if (sb_elf_read(elf, offset + at, &note, sizeof(note)))
			return false;
		name_bytes = (note.n_namesz + align - 1) & ~(align - 1);
		desc_bytes = (note.n_descsz + align - 1) & ~(align - 1);
		at += sizeof(note);
		if (name_bytes > len - at || note.n_descsz > len - at - name_bytes)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(name) &&
		    note.n_descsz && note.n_descsz <= SB_BUILD_ID_MAX &&
		    !sb_elf_read(elf, offset + at, name, sizeof(name)) &&
		    !memcmp(name, "GNU", sizeof(name)) &&
		    !sb_elf_read(elf, offset + at + name_bytes, elf->build_id, note.n_descsz)) {
			elf->build_id_len = note.n_descsz;
			return true;
		}
		at += name_bytes + desc_bytes;
	}
	return false;
}

static void read_build_id(struct sb_elf *elf)
{
	uint64_t budget = NOTES_BYTES_MAX;
	size_t i;

	/* Sections first: in a separate debug file, segments refer to contents that are missing. */
	for (i = 0; i < elf->nr_shdrs; i++) {
		const Elf64_Shdr *shdr = &elf->shdrs[i];
		struct notes notes = { shdr->sh_offset, shdr->sh_size, shdr->sh_addralign };

		if (shdr->sh_type == SHT_NOTE && find_build_id(elf, &notes, &budget))
			return;
	}
	for (i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *phdr = &elf->phdrs[i];
		struct notes notes = { phdr->p_offset, phdr->p_filesz, phdr->p_align };

		if (phdr->p_type == PT_NOTE && find_build_id(elf, &notes, &budget))
			return;
	}
}

static int read_headers(struct sb_elf *elf)
{
	unsigned char ident[EI_NIDENT];
	Elf64_Ehdr ehdr;
	int err;

	err = sb_elf_read(elf, 0, ident, sizeof(ident));
	if (err)
		return err == -EBADMSG ? -ENOEXEC : err;
	if (memcmp(ident, ELFMAG, SELFMAG) || ident[EI_DATA] != HOST_DATA ||
	    (ident[EI_CLASS] != ELFCLASS32 && ident[EI_CLASS] != ELFCLASS64))
		return -ENOEXEC;
	elf->is_64 = ident[EI_CLASS] == ELFCLASS64;
	err = read_ehdr(elf, &ehdr);
	if (err)
		return err == -EBADMSG ? -ENOEXEC : err;
	/* A core file is not accepted. */
	if (ehdr.e_type != ET_EXEC && ehdr.e_type != ET_DYN && ehdr.e_type != ET_REL)
		return -ENOEXEC;
	elf->type = ehdr.e_type;
	elf->machine = ehdr.e_machine;
	elf->entry = ehdr.e_entry;
	err = read_phdrs(elf, &ehdr);
	if (err)
		return err;
	err = read_shdrs_if_any(elf, &ehdr);
	if (err)
		return err;
	read_build_id(elf);
	return 0;
}

static void open_budget(struct sb_elf *elf)
{
	sb_budget_init(&elf->own, NULL, elf->uid, NULL);
	elf->budget = &elf->own;
}

static int finish(struct sb_elf *elf, struct sb_elf **ret_elf)
{
	int err = read_headers(elf);

	if (err) {
		sb_elf_free(elf);
		return err;
	}
	*ret_elf = elf;
	return 0;
}

int sb_elf_new_fd(int fd, struct sb_elf **ret_elf)
{
	struct sb_elf *elf;
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	if ((uint64_t)st.st_size > FILE_BYTES_MAX)
		return -EFBIG;
	elf = calloc(1, sizeof(*elf));
	if (!elf)
		return -ENOMEM;
	elf->size = (uint64_t)st.st_size;
	elf->uid = sb_reader_is_copy(fd) ? SB_OWNER_NOBODY : st.st_uid;
	open_budget(elf);
	elf->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (elf->fd < 0) {
		err = -errno;
		free(elf);
		return err;
	}
	return finish(elf, ret_elf);
}

int sb_elf_new_image(const void *image, size_t len, struct sb_elf **ret_elf)
{
	struct sb_elf *elf;
	uint8_t *copy;

	elf = calloc(1, sizeof(*elf));
	copy = malloc(len ? len : 1);
	if (!elf || !copy) {
		free(elf);
		free(copy);
		return -ENOMEM;
	}
	memcpy(copy, image, len);
	open_budget(elf);
	elf->fd = -1;
	elf->image = copy;
	elf->size = len;
	return finish(elf, ret_elf);
}

void sb_elf_free(struct sb_elf *elf)
{
	if (!elf)
		return;
	if (elf->fd >= 0)
		close(elf->fd);
	free((void *)elf->image);
	free(elf->phdrs);
	free(elf->shdrs);
	free(elf->section_names);
	free(elf);
}

const Elf64_Shdr *sb_elf_section_at(const struct sb_elf *elf, size_t idx)
{
	return idx < elf->nr_shdrs ? &elf->shdrs[idx] : NULL;
}

const Elf64_Shdr *sb_elf_section_named(const struct sb_elf *elf, const char *name)
{
	size_t i;

	for (i = 0; i < elf->nr_shdrs; i++) {
		if (elf->shdrs[i].sh_name < elf->section_names_len &&
		    !strcmp(elf->section_names + elf->shdrs[i].sh_name, name))
			return &elf->shdrs[i];
	}
	return NULL;
}

const Elf64_Shdr *sb_elf_section_typed(const struct sb_elf *elf, uint32_t type)
{
	size_t i;

	for (i = 0; i < elf->nr_shdrs; i++)
		if (elf->shdrs[i].sh_type == type)
			return &elf->shdrs[i];
	return NULL;
}

const Elf64_Phdr *sb_elf_phdr_typed(const struct sb_elf *elf, uint32_t type)
{
	size_t i;

	for (i = 0; i < elf->nr_phdrs; i++)
		if (elf->phdrs[i].p_type == type)
			return &elf->phdrs[i];
	return NULL;
}

bool sb_elf_has_section(const struct sb_elf *elf, const char *name)
{
	const Elf64_Shdr *shdr = sb_elf_section_named(elf, name);

	return shdr && shdr->sh_type != SHT_NOBITS && shdr->sh_size;
}

int sb_elf_load(const struct sb_elf *elf, const Elf64_Shdr *shdr, size_t max_bytes, char **ret_data,
		size_t *ret_len)
{
	sb_cleanup(sb_freep) char *data = NULL;
	int err;

	if (shdr->sh_type == SHT_NOBITS)
		return -ENODATA;
	if (shdr->sh_offset > elf->size || shdr->sh_size > elf->size - shdr->sh_offset)
		return -EBADMSG;
	if (shdr->sh_size > max_bytes)
		return -EFBIG;
	if (shdr->sh_flags & SHF_COMPRESSED)
		return -ENOTSUP;
	err = sb_budget_charge(elf->budget, shdr->sh_size + 1);
	if (err)
		return err;
	data = malloc(shdr->sh_size + 1);
	if (!data)
		return -ENOMEM;
	err = sb_elf_read(elf, shdr->sh_offset, data, shdr->sh_size);
	if (err)
		return err;
	data[shdr->sh_size] = '\0';
	*ret_data = sb_take(data);
	*ret_len = shdr->sh_size;
	return 0;
}

/* Return: whether @offset is in the segment, extended to whole units of @page bytes. */
static bool holds_offset(const Elf64_Phdr *phdr, uint64_t offset, uint64_t page)
{
	uint64_t start = phdr->p_offset & ~(page - 1);
	uint64_t end;

	if (__builtin_add_overflow(phdr->p_offset, phdr->p_filesz, &end) ||
	    __builtin_add_overflow(end, page - 1, &end))
		return false;
	return phdr->p_filesz && offset >= start && offset < (end & ~(page - 1));
}

bool sb_elf_offset_to_addr(const struct sb_elf *elf, uint64_t offset, uint64_t *ret_addr)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	/* Best first: code is in an executable segment, or in the page where one begins. */
	const struct {
		uint64_t page;
		uint32_t flags;
	} passes[] = { { 1, PF_X }, { page, PF_X }, { 1, 0 }, { page, 0 } };
	size_t pass, i;

	for (pass = 0; pass < SB_ARRAY_SIZE(passes); pass++) {
		for (i = 0; i < elf->nr_phdrs; i++) {
			const Elf64_Phdr *phdr = &elf->phdrs[i];

			if (phdr->p_type != PT_LOAD ||
			    (phdr->p_flags & passes[pass].flags) != passes[pass].flags ||
			    !holds_offset(phdr, offset, passes[pass].page))
				continue;
			*ret_addr = offset - phdr->p_offset + phdr->p_vaddr;
			return true;
		}
	}
	return false;
}

bool sb_elf_addr_to_offset(const struct sb_elf *elf, uint64_t addr, uint64_t *ret_offset)
{
	size_t i;

	for (i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *phdr = &elf->phdrs[i];

		if (phdr->p_type == PT_LOAD && addr - phdr->p_vaddr < phdr->p_filesz) {
			*ret_offset = addr - phdr->p_vaddr + phdr->p_offset;
			return true;
		}
	}
	return false;
}

bool sb_elf_is_code(const struct sb_elf *elf, uint64_t addr)
{
	size_t i;

	for (i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *phdr = &elf->phdrs[i];

		if (phdr->p_type == PT_LOAD && (phdr->p_flags & PF_X) &&
		    addr - phdr->p_vaddr < phdr->p_memsz)
			return true;
	}
	return false;
}

void sb_elf_reader_init(struct sb_elf_reader *reader, const struct sb_elf *elf, uint64_t offset,
			uint64_t len, size_t record_bytes)
{
	/* The buffer is not cleared, which would take time for nothing. */
	reader->elf = elf;
	reader->offset = offset;
	/* Only whole records, so that the rest is always a multiple of their size. */
	if (__builtin_add_overflow(offset, len - len % record_bytes, &reader->end))
		reader->end = offset;
	reader->record_bytes = record_bytes;
	reader->at = reader->filled = 0;
}

int sb_elf_reader_init_section(struct sb_elf_reader *reader, const struct sb_elf *elf,
			       const Elf64_Shdr *shdr, size_t record_bytes)
{
	sb_elf_reader_init(reader, elf, shdr->sh_offset, shdr->sh_size, record_bytes);
	if (shdr->sh_type == SHT_NOBITS)
		return -ENODATA;
	if (shdr->sh_flags & SHF_COMPRESSED)
		return -ENOTSUP;
	return shdr->sh_entsize == record_bytes ? 0 : -EBADMSG;
}

/* Return: 1 and the next record as the file has it, 0, or a negative errno. */
static int next_record(struct sb_elf_reader *reader, const void **ret_record)
{
	size_t room = sizeof(reader->buf) - sizeof(reader->buf) % reader->record_bytes;
	uint64_t left = reader->end - reader->offset;
	int err;

	if (reader->at == reader->filled) {
		if (!left)
			return 0;
		reader->at = 0;
		reader->filled = left < room ? left : room;
		err = sb_elf_read(reader->elf, reader->offset, reader->buf, reader->filled);
		if (err) {
			reader->filled = 0;
			return err;
		}
		reader->offset += reader->filled;
	}
	*ret_record = reader->buf + reader->at;
	reader->at += reader->record_bytes;
	return 1;
}

size_t sb_elf_sym_bytes(const struct sb_elf *elf)
{
	return elf->is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

size_t sb_elf_rela_bytes(const struct sb_elf *elf)
{
	return elf->is_64 ? sizeof(Elf64_Rela) : sizeof(Elf32_Rela);
}

size_t sb_elf_dyn_bytes(const struct sb_elf *elf)
{
	return elf->is_64 ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
}

int sb_elf_next_sym(struct sb_elf_reader *reader, Elf64_Sym *ret_sym)
{
	const void *record = NULL;
	int got = next_record(reader, &record);
	Elf32_Sym narrow;

	if (got <= 0)
		return got;
	if (reader->elf->is_64) {
		memcpy(ret_sym, record, sizeof(*ret_sym));
		return 1;
	}
	memcpy(&narrow, record, sizeof(narrow));
	*ret_sym = (Elf64_Sym){
		.st_name = narrow.st_name,
		.st_info = narrow.st_info,
		.st_other = narrow.st_other,
		.st_shndx = narrow.st_shndx,
		.st_value = narrow.st_value,
		.st_size = narrow.st_size,
	};
	return 1;
}

int sb_elf_next_rela(struct sb_elf_reader *reader, Elf64_Rela *ret_rela)
{
	const void *record = NULL;
	int got = next_record(reader, &record);
	Elf32_Rela narrow;

	if (got <= 0)
		return got;
	if (reader->elf->is_64) {
		memcpy(ret_rela, record, sizeof(*ret_rela));
		return 1;
	}
	memcpy(&narrow, record, sizeof(narrow));
	*ret_rela = (Elf64_Rela){
		.r_offset = narrow.r_offset,
		.r_info = ELF64_R_INFO((uint64_t)ELF32_R_SYM(narrow.r_info),
				       ELF32_R_TYPE(narrow.r_info)),
		.r_addend = narrow.r_addend,
	};
	return 1;
}

int sb_elf_next_dyn(struct sb_elf_reader *reader, Elf64_Dyn *ret_dyn)
{
	const void *record = NULL;
	int got = next_record(reader, &record);
	Elf32_Dyn narrow;

	if (got <= 0)
		return got;
	if (reader->elf->is_64) {
		memcpy(ret_dyn, record, sizeof(*ret_dyn));
		return 1;
	}
	memcpy(&narrow, record, sizeof(narrow));
	*ret_dyn = (Elf64_Dyn){ .d_tag = narrow.d_tag, .d_un.d_val = narrow.d_un.d_val };
	return 1;
}

int sb_elf_next_u32(struct sb_elf_reader *reader, uint32_t *ret_word)
{
	const void *record = NULL;
	int got = next_record(reader, &record);

	if (got > 0)
		memcpy(ret_word, record, sizeof(*ret_word));
	return got;
}

static void note_dynamic(struct sb_elf_dynamic *dynamic, const Elf64_Dyn *dyn)
{
	switch (dyn->d_tag) {
	case DT_SYMTAB:
		dynamic->symtab = dyn->d_un.d_ptr;
		break;
	case DT_STRTAB:
		dynamic->strtab = dyn->d_un.d_ptr;
		break;
	case DT_STRSZ:
		dynamic->strtab_bytes = dyn->d_un.d_val;
		break;
	case DT_HASH:
		dynamic->hash = dyn->d_un.d_ptr;
		break;
	case DT_GNU_HASH:
		dynamic->gnu_hash = dyn->d_un.d_ptr;
		break;
	}
}

int sb_elf_read_dynamic(const struct sb_elf *elf, struct sb_elf_dynamic *ret_dynamic)
{
	struct sb_elf_dynamic dynamic = {};
	struct sb_elf_reader reader;
	const Elf64_Phdr *phdr = sb_elf_phdr_typed(elf, PT_DYNAMIC);
	Elf64_Dyn dyn;
	size_t nr = 0;
	int got;

	if (!phdr)
		return -ENODATA;
	sb_elf_reader_init(&reader, elf, phdr->p_offset, phdr->p_filesz, sb_elf_dyn_bytes(elf));
	while ((got = sb_elf_next_dyn(&reader, &dyn)) > 0 && dyn.d_tag != DT_NULL) {
		if (++nr > NR_DYNAMIC_MAX)
			return -EFBIG;
		note_dynamic(&dynamic, &dyn);
	}
	if (got < 0)
		return got;
	*ret_dynamic = dynamic;
	return 0;
}
