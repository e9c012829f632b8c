/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stages of the CFI compiler, in the order in which a file passes through them: load a section,
 * read its entries, then for each FDE get the rows. A section with its entries is needed until the
 * last row. Internal to cfi*.c. No pointer is NULL unless a contract says so. Thread: one at a time
 * for each object.
 */
#ifndef SB_CFI_PRIV_H
#define SB_CFI_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "symbolizer/elf/cursor.h"
#include "symbolizer/unwind/cfi.h"

/* cfi_section.c: find the bytes of CFI in a file. */

/* Where CFI may be, best place first. */
enum sb_cfi_place {
	SB_CFI_EH_SECTION,
	SB_CFI_EH_SEGMENT, /* for files without section headers */
	SB_CFI_DEBUG_SECTION,
	SB_CFI_OTHER_DEBUG_SECTION, /* in the separate debug file, as the next */
	SB_CFI_OTHER_EH_SECTION,
	SB_CFI_PLACE_MAX,
};

struct sb_cfi_machine;
struct sb_gopcln;

struct sb_cfi_section {
	const struct sb_gopcln *go; /* borrowed; NULL: not a Go program */
	const struct sb_cfi_machine *machine;
	const char *name;
	uint8_t *bytes; /* owned */
	size_t len;
	uint64_t addr; /* ELF address of the first byte */
	bool is_eh;
	bool ends_at_zero; /* @len is only an upper bound: the terminator is the end */
};

/*
 * Read the CFI of @elf, or of its debug file @debug (may be NULL), that is at @place. The caller
 * ends *ret_section with sb_cfi_section_release(); untouched on error.
 * Return: 0; -ENODATA (nothing there, or the .debug_frame of a Go program); -ENOTSUP (a machine
 * without rules); -EBADMSG; -EFBIG; -ENOMEM; others of pread(2).
 */
int sb_cfi_section_load(const struct sb_elf *elf, const struct sb_elf *debug,
			enum sb_cfi_place place, struct sb_cfi_section *ret_section);
/* Free the bytes, which are NULL then, so that it may be called again. Accepts an object of
 * zeroes. */
void sb_cfi_section_release(struct sb_cfi_section *section);

/* cfi_read.c: parse the bytes into CIEs and FDEs. */

/* Where a register of the caller is. */
enum sb_cfi_how {
	SB_CFI_HOW_DEFAULT, /* not mentioned: unchanged; the stack pointer: the CFA */
	SB_CFI_HOW_AT_CFA,  /* *(CFA + val) */
	SB_CFI_HOW_AT_FP,   /* *(frame pointer + val) */
	SB_CFI_HOW_REG,	    /* in the register number val */
	SB_CFI_HOW_UNDEF,
	SB_CFI_HOW_OTHER, /* cannot be expressed by a rule */
};

/* The registers that are followed. */
enum sb_cfi_reg {
	SB_CFI_BX, /* x86-64 */
	SB_CFI_FP,
	SB_CFI_SP,
	SB_CFI_RA,
	SB_CFI_REG_MAX
};

#define SB_CFI_CFA_NONE UINT64_MAX

/* What the CFI says at one address. */
struct sb_cfi_state {
	uint64_t cfa_reg; /* DWARF number, or SB_CFI_CFA_NONE */
	int64_t cfa_off;
	bool is_expr; /* the CFA is @expr; the two above count again after a change of register */
	struct sb_uw_rule expr;
	uint8_t how[SB_CFI_REG_MAX]; /* enum sb_cfi_how */
	int64_t val[SB_CFI_REG_MAX];
};

/* What depends on the machine: cfi_machine.c. */
#define SB_CFI_NUMBERS_MAX    35 /* DWARF numbers of followed registers are lower */
#define SB_CFI_TRAMPOLINE_MAX 9
struct sb_cfi_machine {
	uint16_t elf_machine; /* EM_* */
	uint8_t fp, sp, ra;   /* DWARF numbers */
	uint8_t nr_gprs;
	/* By DWARF number: 1 + enum sb_cfi_reg; 0: not followed. */
	uint8_t reg_of[SB_CFI_NUMBERS_MAX];
	bool has_signed_ra; /* there are CFI instructions that say so */
	/* The code that the kernel lets a signal handler return to, and the size of a nop before
	 * it. */
	uint8_t trampoline[SB_CFI_TRAMPOLINE_MAX];
	uint8_t trampoline_bytes, nop_bytes;
	/* Convert a DWARF expression for the CFA into @rule. Return: whether a rule can express it;
	 * if not, @rule is not to be used. NULL: none can. */
	bool (*match_cfa)(const uint8_t *bytes, size_t len, struct sb_uw_rule *rule);
	/* Add where the caller's registers are to @rule, whose CFA is set. Return: whether a rule
	 * can express it; if not, @rule is not to be used. */
	bool (*set_regs)(const struct sb_cfi_state *state, struct sb_uw_rule *rule);
	/*
	 * @code ends where a new thread begins. Return: the offset behind the system call that
	 * makes the thread, if a branch to the end follows for the result 0; 0: there is none.
	 */
	size_t (*find_clone)(const uint8_t *code, size_t len);
};
/* Return: the machine of that e_machine (EM_*), static; NULL: there are no rules for it, which
 * callers report as -ENOTSUP. */
const struct sb_cfi_machine *sb_cfi_machine_of(uint16_t elf_machine);
/* Return: @state as a rule; SB_UW_CFA_STOP at the root, SB_UW_CFA_UNSUP if no rule expresses it. */
struct sb_uw_rule sb_cfi_rule(const struct sb_cfi_machine *machine,
			      const struct sb_cfi_state *state);

struct sb_cfi_cie {
	uint64_t code_align;
	int64_t data_align;
	uint32_t offset;  /* in the section */
	uint8_t encoding; /* DW_EH_PE_* of addresses */
	bool has_data;	  /* FDEs have augmentation data, preceded by its length */
	bool is_signal;
	bool is_bad;
	struct sb_cfi_state init;
};

#define SB_CFI_CIE_GO UINT32_MAX
struct sb_cfi_fde {
	uint64_t lo, hi; /* ELF addresses */
	uint32_t insns,
		end;  /* offsets in the section; of Go: insns is the number of the function */
	uint32_t cie; /* index; SB_CFI_CIE_GO: a function of Go, without CIE */
};

struct sb_cfi_entries {
	SB_VEC(struct sb_cfi_cie) cies; /* ascending offset */
	SB_VEC(struct sb_cfi_fde) fdes; /* in the order of the file */
	uint32_t nr_bad;
};

/*
 * Append all CIEs and FDEs of @section. Broken ones are counted and left out; behind one whose
 * length is broken nothing is read. The caller releases @entries, zeroed before, after an error,
 * too.
 * Return: 0, -ENOMEM, -EFBIG (more entries than any program has).
 */
int sb_cfi_read(const struct sb_cfi_section *section, struct sb_cfi_entries *entries);
/* Free the two arrays, which are empty then. Accepts an object of zeroes. */
void sb_cfi_entries_release(struct sb_cfi_entries *entries);

/*
 * Read an ELF address in @encoding (DW_EH_PE_*). @cur reads in @section; it becomes bad if the
 * address cannot be read, and then 0 is returned. *@ret_is_null: the file has 0 there, before any
 * base is added.
 */
uint64_t sb_cfi_read_addr(const struct sb_cfi_section *section, struct sb_cursor *cur,
			  uint8_t encoding, bool *ret_is_null);

/* cfi_exec.c: run the instructions of an FDE, which gives rules. */

/* Receives the rows, of which @rule is valid during the call. row() returns 0; or a negative errno
 * other than -EBADMSG, which ends the run and is returned. */
struct sb_cfi_sink {
	int (*row)(void *arg, uint64_t addr, const struct sb_uw_rule *rule);
	void *arg;
};

/* Run the initial instructions of @cie, which begin at @cur (not moved), and set cie->init to their
 * result. Return: 0; -EBADMSG: they are broken, cie->init says nothing of any register, and the
 * caller sets cie->is_bad. */
int sb_cfi_exec_cie(const struct sb_cfi_section *section, const struct sb_cursor *cur,
		    struct sb_cfi_cie *cie);
/*
 * Pass the rows of one FDE to @sink, ascending. An address can come twice; the later row is valid.
 * @sink is used during the call. Return: 0; -EBADMSG: the FDE is broken, and the last row has the
 * rule UNSUP; or what the sink returned. Other FDEs can be run after any error.
 */
int sb_cfi_exec_fde(const struct sb_cfi_section *section, const struct sb_cfi_cie *cie,
		    const struct sb_cfi_fde *fde, const struct sb_cfi_sink *sink);

/*
 * cfi_go.c: entries and rows of functions that the Go linker describes in .gopclntab, instead of
 * CFI.
 */

/* Append an FDE for each function of a Go program's table; it has the index of the function in @go,
 * and no pointer. Broken ones are left out, and counted in entries->nr_bad. The caller releases
 * @entries, zeroed before or filled in by sb_cfi_read(), after an error, too. Return: 0 or
 * -ENOMEM. */
int sb_cfi_go_read(const struct sb_gopcln *go, struct sb_cfi_entries *entries);
/* Pass the rows of the function @fde to @sink, ascending; an address can come twice, and the later
 * row is valid. @machine: EM_X86_64 or EM_AARCH64. Return: 0; -EBADMSG: the function's entry is
 * broken, or nothing is known behind the last row (none with the rule UNSUP follows); or what the
 * sink returned. */
int sb_cfi_go_exec(const struct sb_gopcln *go, uint16_t machine, const struct sb_cfi_fde *fde,
		   const struct sb_cfi_sink *sink);

/* cfi.c: build the table; cfi_save.c: save and restore it. */

/* 4 GiB of text. Beyond it an index would cost more than any program is worth. */
#define SB_CFI_GRANULES_MAX (1u << 20)
/* 14 times as many as in the biggest program of a distribution, 6 times the most ever reported. */
#define SB_CFI_ROWS_MAX	    (1u << 24)
/* Words of rows: the row that is in force at the beginning of a granule is repeated there. */
#define SB_CFI_WORDS_MAX    (SB_CFI_ROWS_MAX + SB_CFI_GRANULES_MAX)

/* As in the pool, but @first_row is relative to the first row of this table. */
struct sb_cfi_granule {
	uint32_t first_row; /* without rows: the number of its rule */
	uint32_t nr_rows;
};

struct sb_cfi {
	struct sb_cfi_info info;
	uint64_t text_lo; /* address of the first granule */
	SB_VEC(struct sb_cfi_granule) granules;
	SB_VEC(uint32_t) rows;
	SB_VEC(struct sb_uw_rule) rules;
	void *saved; /* owned; of a restored table: the memory that the three vectors point into */
};

#endif
