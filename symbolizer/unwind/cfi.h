/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The CFI compiler: it turns .eh_frame and .debug_frame of one file into an unwind table in the
 * form that sb_abi_unwind.h describes. Internal to the symbolizer and the pool of tables. The file
 * is hostile. It is compiled for the machine it was made for (x86-64 or arm64), on whatever
 * machine this runs.
 *
 * Order: sb_cfi_new*() or sb_cfi_restore(); sb_cfi_words() and then sb_cfi_place(), or
 * sb_cfi_saved_bytes() and then sb_cfi_save(); and sb_cfi_free(), because what was written is a
 * copy. Files are not needed any more when their table was made. Out-parameters are untouched on
 * error, and then nothing is to be freed. No pointer is NULL unless a contract says so. Thread:
 * any, one at a time for each object.
 * Sources: DWARF 5, section 6.4; LSB core, "Exception Frames" (.eh_frame, .eh_frame_hdr); System V
 * ABI for x86-64, section 3.7 and figure 3.36 (register numbers); AADWARF64, sections 4.1 and 4.4.
 */
#ifndef SB_CFI_H
#define SB_CFI_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/sb_abi_unwind.h"
#include "symbolizer/elf/elf_file.h"

/* Bound of one section with CFI; the biggest seen has 28 MB. */
#define SB_CFI_BYTES_MAX (256u << 20)

struct sb_cfi;

/* Where a table came from, and what is in it. */
struct sb_cfi_info {
	const char
		*source; /* ".eh_frame", "PT_GNU_EH_FRAME", ".debug_frame", ".gopclntab", "saved" */
	uint16_t machine;	   /* EM_*: the machine whose rules these are */
	uint64_t text_lo, text_hi; /* ELF addresses of the FDEs; a row for the entry point may lie
				      outside */
	uint32_t nr_fdes, nr_rows, nr_rules, nr_granules;
	uint32_t nr_unsup; /* rows that the rules cannot express: the walk stops there, marked */
	/* FDEs left out because they are broken or overlap another, or cut short, with an
	 * unsupported rule for the rest. */
	uint32_t nr_bad;
};

/*
 * Compile @elf or, where it has no CFI, its separate debug file @debug (may be NULL). The caller
 * ends *ret_cfi with sb_cfi_free().
 *
 * Gaps of 16 bytes and more between functions, and what follows the last one, get the rule
 * FP_CHAIN; a smaller gap is padding. Functions of Go are compiled from .gopclntab
 * (gopcln.h); their .debug_frame is not used, because it does not say that the frame
 * pointer is saved.
 *
 * Return: 0; -ENODATA: no CFI, so frame pointers must do; -ENOTSUP: a machine without rules,
 * 32-bit, or not linked; -EFBIG: more bytes, functions, rows or rules than any program has, or
 * text of more than 4 GiB; -EBADMSG: nothing in it is usable; -ENOMEM; others of pread(2).
 */
int sb_cfi_new(const struct sb_elf *elf, const struct sb_elf *debug, struct sb_cfi **ret_cfi);
/*
 * Compile @elf or, where it has no CFI, @debug (may be NULL) as sb_cfi_new() does, but only for
 * files of the machine that this program was built for. The caller ends *ret_cfi with
 * sb_cfi_free(). Return: 0; -ENODATA: no CFI; -ENOTSUP: another machine, 32-bit, or not linked;
 * -EFBIG: a bound; -EBADMSG: nothing in it is usable; -ENOMEM; others of pread(2).
 */
int sb_cfi_new_native(const struct sb_elf *elf, const struct sb_elf *debug,
		      struct sb_cfi **ret_cfi);
/* Free the table. Accepts NULL. */
void sb_cfi_free(struct sb_cfi *cfi);

/* ELF addresses of one FDE: a function or a part of one, @hi exclusive. */
struct sb_cfi_function {
	uint64_t lo, hi;
};
/*
 * List all FDEs of @elf, ascending by @lo; they may overlap. The caller frees *@ret, *@ret_nr
 * entries. Return: 0; -ENODATA: no CFI; -ENOTSUP: a machine without rules, 32-bit, or not linked;
 * -EFBIG: a bound; -EBADMSG: nothing in it is usable; -ENOMEM; others of pread(2).
 */
int sb_cfi_functions(const struct sb_elf *elf, struct sb_cfi_function **ret, size_t *ret_nr);

/* Get the figures; ret_info->source is a constant. */
void sb_cfi_info(const struct sb_cfi *cfi, struct sb_cfi_info *ret_info);

/* Return: how many words the table takes if it is placed at word number @at_word, which is even. */
size_t sb_cfi_words(const struct sb_cfi *cfi, uint32_t at_word);
/*
 * Write the table into @pool from word number @at_word, which is even, on: exactly sb_cfi_words()
 * words of the same @at_word, for which there must be room. *ret_bin describes it, with the state
 * READY.
 */
void sb_cfi_place(const struct sb_cfi *cfi, uint32_t *pool, uint32_t at_word,
		  struct sb_uw_bin *ret_bin);

/*
 * Pass a table to another process: sb_cfi_save() writes sb_cfi_saved_bytes() bytes to @to, and
 * sb_cfi_restore() makes a table of such bytes, which it takes to be hostile.
 * @bytes: from malloc(); on success the table owns them, otherwise they stay the caller's
 * @ret_cfi: the caller ends it with sb_cfi_free()
 * @machine: EM_*: the machine whose rules it must have
 *
 * Return: 0; -EPROTO: these bytes are not a valid table; -ENOMEM.
 */
size_t sb_cfi_saved_bytes(const struct sb_cfi *cfi);
void sb_cfi_save(const struct sb_cfi *cfi, void *to);
int sb_cfi_restore(void *bytes, size_t len, uint16_t machine, struct sb_cfi **ret_cfi);
/* No table has more bytes. */
#define SB_CFI_SAVED_BYTES_MAX (128u << 20)

#endif
