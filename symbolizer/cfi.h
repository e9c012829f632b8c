/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The CFI compiler: .eh_frame and .debug_frame of one file to an unwind table in the form that
 * sb_abi_unwind.h describes. Internal to the symbolizer and the pool of tables; any thread, one at
 * a time per object. The file is hostile.
 *
 * A file is compiled for the machine it is for, whatever the one we run on: x86-64 and arm64.
 *
 * Sources: DWARF 5, section 6.4; LSB core, "Exception Frames" (.eh_frame, .eh_frame_hdr); System V
 * ABI for x86-64, section 3.7 and figure 3.36 (register numbers); AADWARF64, sections 4.1 and 4.4.
 */
#ifndef SB_CFI_H
#define SB_CFI_H

#include <stddef.h>
#include <stdint.h>

#include "elf_file.h"
#include "sb_abi_unwind.h"

/* Bytes of one section with CFI: the biggest seen is 28 MB. */
#define SB_CFI_BYTES_MAX (256u << 20)

struct sb_cfi;

/* Where a table came from, and what is in it. */
struct sb_cfi_info {
	const char *source; /* ".eh_frame", "PT_GNU_EH_FRAME", ".debug_frame", ".gopclntab" */
	uint16_t machine;   /* EM_*: whose rules these are */
	uint64_t text_lo, text_hi; /* from the first FDE to the last, ELF addresses; a row for the
				      entry point may lie outside */
	uint32_t nr_fdes, nr_rows, nr_rules, nr_granules;
	uint32_t nr_unsup; /* rows whose rule cannot be said: the walk stops there, marked */
	/* FDEs left out, being broken or over another, or cut short: the rest is UNSUP. */
	uint32_t nr_bad;
};

/*
 * Compile @elf, or @debug (its separate debug file, may be NULL) where @elf has no CFI.
 * Gaps of 16 bytes and more between functions, and what lies behind the last one, get the rule
 * FP_CHAIN; a smaller gap is padding. Functions of Go are compiled from .gopclntab on x86-64 (gopcln.h); its
 * .debug_frame is not used: it does not say that rbp is saved.
 * Return: 0; -ENODATA: there is no CFI, frame pointers it is; -ENOTSUP: not a machine we have rules
 * for, 32-bit, or not linked; -EFBIG: more bytes, functions, rows or rules than any program has, or
 * text of more than 4 GiB; -EBADMSG: nothing in it is usable; -ENOMEM; or of I/O.
 */
int sb_cfi_new(const struct sb_elf *elf, const struct sb_elf *debug, struct sb_cfi **ret_cfi);
/* The same for stacks of processes: -ENOTSUP for a file of another machine than they run on. */
int sb_cfi_new_native(const struct sb_elf *elf, const struct sb_elf *debug,
		      struct sb_cfi **ret_cfi);
void sb_cfi_free(struct sb_cfi *cfi);

/* ELF addresses of one FDE: a function, or a piece of one. */
struct sb_cfi_function {
	uint64_t lo, hi;
};
/* All of @elf, ascending; the caller frees *@ret. Return: as sb_cfi_new(). */
int sb_cfi_functions(const struct sb_elf *elf, struct sb_cfi_function **ret, size_t *ret_nr);

void sb_cfi_info(const struct sb_cfi *cfi, struct sb_cfi_info *ret_info);

/* Return: how many words the table takes when its first word has the number @at_word (even). */
size_t sb_cfi_words(const struct sb_cfi *cfi, uint32_t at_word);
/*
 * Write it into @pool (word number 0) from @at_word on, and describe it; ret_bin->state is READY.
 * Exactly sb_cfi_words() words are written.
 */
void sb_cfi_place(const struct sb_cfi *cfi, uint32_t *pool, uint32_t at_word,
		  struct sb_uw_bin *ret_bin);

/*
 * To another process of ours, as it stands: the bytes of a table, and a table of bytes, which are hostile.
 * sb_cfi_restore() takes @bytes, from malloc(), if all is well. @machine: EM_*, whose rules it has to have.
 * Return: 0, -EPROTO (that is no table), -ENOMEM.
 */
size_t sb_cfi_saved_bytes(const struct sb_cfi *cfi);
void sb_cfi_save(const struct sb_cfi *cfi, void *to);
int sb_cfi_restore(void *bytes, size_t len, uint16_t machine, struct sb_cfi **ret_cfi);
/* No table has more. */
#define SB_CFI_SAVED_BYTES_MAX (128u << 20)

/* Rows in order of address, without the repetitions at granule starts; for sbsym and tests. */
struct sb_cfi_row {
	uint64_t addr; /* ELF address of its first byte; it holds up to the next row */
	struct sb_uw_rule rule;
};
int sb_cfi_each_row(const struct sb_cfi *cfi, int (*fn)(void *arg, const struct sb_cfi_row *row),
		    void *arg);
/* "rsp+8 rbp=*(cfa-16)" and the like; arm64: "sp+32 x29=*(cfa-32) x30=*(cfa-24)". @machine: EM_* */
void sb_uw_rule_format(uint16_t machine, const struct sb_uw_rule *rule, char *buf, size_t len);

#endif
