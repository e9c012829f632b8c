// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Where programs of Go keep the labels of their goroutines (runtime/pprof). On x86-64 the linker
 * puts the thread-local pointer to the runtime's `g` directly below the thread pointer, unless a
 * linker of C has arranged the thread-local block (cmd/link/internal/ld/lib.go, settls() in
 * sys_linux_amd64.s). On arm64 the `g` is in x28 while Go code runs; a program with C in it keeps
 * it in a thread-local variable, too, for the time when C code runs (runtime/tls_arm64.s). Where a
 * `g` has its labels is read from the machine code of the function that sets them, because that
 * changes from release to release.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/num.h"
#include "interp/core/labels.h"
#include "symbolizer/elf/disasm.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/elf/gopcln.h"

#define G_VARIABLE    "runtime.tlsg"
#define G_OF_ARM64    "runtime.tls_g"
#define G_REGISTER    28
#define SET_LABELS    "runtime/pprof.runtime_setProfLabel"
/* cmd/go/internal/version, buildinfo.go: the version follows in a file of Go 1.18 and newer. */
#define INFO_SECTION  ".go.buildinfo"
#define INFO_MAGIC    "\xff Go buildinf:"
#define INFO_FLAGS_AT 15
#define INFO_INLINE   2
#define INFO_BYTES    32
#define VERSION_MAX   64
/* Since this release labels are a sorted list. */
#define LIST_SINCE    24
/* m.curg of runtime2.go on 64-bit machines. In the later release a `gobuf`, which is before it, has
 * lost a member. A wrong place would be noticed: what is there has to know its thread. */
#define CURG_BEFORE   192
#define CURG_SINCE    25
#define CURG	      184
/* Bytes of the function that are looked at; it has 77 in Go 1.19, and 96 on arm64. */
#define CODE_MAX      256
/* A `g` has some 400 bytes; labels are behind what unwinders need. */
#define LABELS_MIN    64
#define LABELS_MAX    1024

/* Return: N of the version 1.N of the compiler; 0: it is not known. */
static unsigned int minor_version(struct sb_image *image)
{
	char head[INFO_BYTES + 1 + VERSION_MAX + 1] = {};
	uint64_t addr, size, minor;
	const char *at;

	if (sb_image_section(image, INFO_SECTION, &addr, &size) || size < sizeof(head) ||
	    sb_image_read(image, addr, head, sizeof(head) - 1) ||
	    memcmp(head, INFO_MAGIC, strlen(INFO_MAGIC)) != 0 ||
	    !(head[INFO_FLAGS_AT] & INFO_INLINE))
		return 0;
	at = strstr(head + INFO_BYTES + 1, "go1.");
	if (!at)
		return 0;
	at += strlen("go1.");
	return sb_scan_u64(&at, head + sizeof(head) - 1, &minor) && minor < 1000
		       ? (unsigned int)minor
		       : 0;
}

/* Find a function in the linker's own table, which stripped programs have, too. Return: 0 or a
 * negative errno. */
static int find_in_table(struct sb_image *image, const char *name, uint64_t *ret_addr,
			 uint64_t *ret_size)
{
	sb_cleanup(sb_gopcln_release) struct sb_gopcln table = {};
	struct sb_gopcln_func func;
	int err = sb_gopcln_load(sb_image_elf(image), &table);
	uint64_t i;

	for (i = 0; i < table.nr_funcs && !err; i++)
		if (!sb_gopcln_func(&table, i, &func) && !strcmp(func.name, name)) {
			*ret_addr = func.lo + sb_image_bias(image);
			*ret_size = func.hi - func.lo;
			return 0;
		}
	return err ? err : -ENOENT;
}

/* Return: whether this is MOVQ AX, offset(register) with an offset of 32 bits: REX, opcode,
 * operands. Register 4 in the last byte would say that another byte follows. */
static bool is_store(const uint8_t *code, size_t nr_bytes, uint32_t *ret_offset)
{
	if (nr_bytes < 3 + sizeof(*ret_offset) || (code[0] != 0x48 && code[0] != 0x49) ||
	    code[1] != 0x89 || code[2] < 0x80 || code[2] > 0x87 || code[2] == 0x84)
		return false;
	memcpy(ret_offset, code + 3, sizeof(*ret_offset));
	return true;
}

/* Return: whether this is MOVD R0, offset(g). */
static bool is_store_of_arm64(const uint8_t *code, size_t nr_bytes, uint32_t *ret_offset)
{
	struct sb_insn insn;

	if (sb_insn_arm64.decode(code, nr_bytes, 0, &insn) || insn.kind != SB_INSN_STORE ||
	    insn.reg != 0 || insn.base != G_REGISTER || insn.nr_bytes != 8)
		return false;
	*ret_offset = (uint32_t)insn.disp;
	return true;
}

/* Return: where the function stores its argument, which is in AX or R0, in the `g`; 0: it does not,
 * or in several places. */
static uint32_t offset_in_code(const uint8_t *code, size_t nr_bytes, bool is_arm64)
{
	uint32_t offset = 0, found;
	size_t i;

	for (i = 0; i < nr_bytes; i += is_arm64 ? 4 : 1) {
		if (is_arm64 ? !is_store_of_arm64(code + i, nr_bytes - i, &found)
			     : !is_store(code + i, nr_bytes - i, &found))
			continue;
		if (found < LABELS_MIN || found > LABELS_MAX || found % 8 ||
		    (offset && offset != found))
			return 0;
		offset = found;
	}
	return offset;
}

static uint32_t find_labels(struct sb_image *image)
{
	uint64_t addr, size;
	uint8_t code[CODE_MAX];

	if (sb_image_symbol(image, SET_LABELS, &addr, &size) &&
	    find_in_table(image, SET_LABELS, &addr, &size))
		return 0;
	if (size > sizeof(code))
		size = sizeof(code);
	if (sb_image_read(image, addr, code, size))
		return 0;
	return offset_in_code(code, size, sb_image_elf(image)->machine == EM_AARCH64);
}

/* Find where the pointer to the `g` is, relative to the thread pointer. Return: whether it is
 * there. */
static bool find_g(struct sb_image *image, uint64_t *ret_offset)
{
	const struct sb_elf *elf = sb_image_elf(image);
	const Elf64_Phdr *tls = sb_elf_phdr_typed(elf, PT_TLS);
	uint64_t offset;

	if (tls && !sb_image_symbol(image, G_VARIABLE, &offset, NULL))
		*ret_offset = sb_label_program_offset(elf, offset);
	else if (!tls || tls->p_memsz == sizeof(offset))
		*ret_offset = -sizeof(offset);
	else
		return false;
	return true;
}

/* The same for arm64. Return: 0: there is no variable, or it is not known where. Of the two that Go
 * has, the first one is it. */
static uint64_t find_g_of_arm64(struct sb_image *image)
{
	const struct sb_elf *elf = sb_image_elf(image);
	const Elf64_Phdr *tls = sb_elf_phdr_typed(elf, PT_TLS);
	uint64_t offset = 0;

	if (!tls || (sb_image_symbol(image, G_OF_ARM64, &offset, NULL) &&
		     tls->p_memsz != 2 * sizeof(offset)))
		return 0;
	return sb_label_program_offset(elf, offset);
}

bool sb_label_go_find(struct sb_image *image, struct sb_label_place *ret_place)
{
	struct sb_label_place place = { .kind = SB_LABEL_GO, .reloc = SB_IMAGE_TLS_NONE };
	const struct sb_elf *elf = sb_image_elf(image);
	unsigned int minor;

	if (!sb_elf_section_named(elf, INFO_SECTION))
		return false;
	/* Of a library the place is known at run time only. */
	minor = elf->type == ET_DYN && !sb_elf_phdr_typed(elf, PT_INTERP) ? 0
									  : minor_version(image);
	if (!minor)
		return false;
	place.go_in_register = elf->machine == EM_AARCH64;
	if (place.go_in_register)
		place.offset = find_g_of_arm64(image);
	else if (elf->machine != EM_X86_64 || !find_g(image, &place.offset))
		return false;
	place.go_labels = find_labels(image);
	place.go_curg = minor < CURG_SINCE ? CURG_BEFORE : CURG;
	place.go_is_map = minor < LIST_SINCE;
	*ret_place = place;
	return true;
}
