/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stages of the CFI compiler, in the order in which a file passes through them. Internal to
 * cfi*.c; everything here is one thread's.
 */
#ifndef SB_CFI_PRIV_H
#define SB_CFI_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "cfi.h"
#include "dwarf_cursor.h"

/* cfi_section.c: from a file, the bytes of CFI. */

/* Where CFI may be, the best place first. */
enum sb_cfi_place {
	SB_CFI_EH_SECTION,
	SB_CFI_EH_SEGMENT, /* no section headers */
	SB_CFI_DEBUG_SECTION,
	SB_CFI_OTHER_DEBUG_SECTION, /* of the separate debug file */
	SB_CFI_OTHER_EH_SECTION,
	SB_CFI_PLACE_MAX,
};

struct sb_cfi_machine;
struct sb_gopcln;

struct sb_cfi_section {
	const struct sb_gopcln *go; /* borrowed; NULL: not of a Go program */
	const struct sb_cfi_machine *machine;
	const char *name;
	uint8_t *bytes;
	size_t len;
	uint64_t addr; /* ELF address of the first byte */
	bool is_eh;
	bool ends_at_zero; /* @len is only a bound: the terminator is the end */
};

/* Return: 0, -ENODATA (nothing there), -EBADMSG, -EFBIG, -ENOMEM, or of I/O. */
int sb_cfi_section_load(const struct sb_elf *elf, const struct sb_elf *debug,
			enum sb_cfi_place place, struct sb_cfi_section *ret_section);
void sb_cfi_section_release(struct sb_cfi_section *section);

/* cfi_read.c: from the bytes, CIEs and FDEs. */

/* Where a register of the caller is. */
enum sb_cfi_how {
	SB_CFI_HOW_DEFAULT, /* nothing said: untouched, or the CFA if it is the stack pointer */
	SB_CFI_HOW_AT_CFA,  /* *(CFA + val) */
	SB_CFI_HOW_AT_FP,   /* *(frame pointer + val) */
	SB_CFI_HOW_REG,	    /* in register val */
	SB_CFI_HOW_UNDEF,
	SB_CFI_HOW_OTHER, /* no rule of ours says this */
};

/* Those we follow. */
enum sb_cfi_reg {
	SB_CFI_BX, /* x86-64 */
	SB_CFI_FP,
	SB_CFI_SP,
	SB_CFI_RA,
	SB_CFI_REG_MAX
};

#define SB_CFI_CFA_NONE UINT64_MAX

struct sb_cfi_state {
	uint64_t cfa_reg; /* DWARF number, or SB_CFI_CFA_NONE */
	int64_t cfa_off;
	bool is_expr; /* the CFA is @expr; what stands above waits for a change of register */
	struct sb_uw_rule expr;
	uint8_t how[SB_CFI_REG_MAX]; /* enum sb_cfi_how */
	int64_t val[SB_CFI_REG_MAX];
};

/* What differs by machine: cfi_machine.c. */
#define SB_CFI_NUMBERS_MAX    35 /* DWARF numbers of registers we follow are below */
#define SB_CFI_TRAMPOLINE_MAX 9
struct sb_cfi_machine {
	uint16_t elf_machine; /* EM_* */
	uint8_t fp, sp, ra;   /* DWARF numbers */
	uint8_t nr_gprs;
	/* By DWARF number: 1 + enum sb_cfi_reg; 0: not followed. */
	uint8_t reg_of[SB_CFI_NUMBERS_MAX];
	bool has_signed_ra; /* there are instructions which say that it is */
	/* What the kernel has a signal handler return to, and the bytes of a nop before it. */
	uint8_t trampoline[SB_CFI_TRAMPOLINE_MAX];
	uint8_t trampoline_bytes, nop_bytes;
	/* An expression for the CFA as a rule, if it is one of ours; NULL: there are none. */
	bool (*match_cfa)(const uint8_t *bytes, size_t len, struct sb_uw_rule *rule);
	struct sb_uw_rule (*to_rule)(const struct sb_cfi_state *state);
	/* In @code, which ends where a new thread begins: what lies behind the system call that makes
	 * it, if that is followed by a branch to the end when the result is 0. 0: there is none. */
	size_t (*find_clone)(const uint8_t *code, size_t len);
};
/* Return: NULL: none we have rules for. */
const struct sb_cfi_machine *sb_cfi_machine_of(uint16_t elf_machine);

struct sb_cfi_cie {
	uint64_t code_align;
	int64_t data_align;
	uint32_t offset;  /* in the section */
	uint8_t encoding; /* of addresses: DW_EH_PE_* */
	bool has_data;	  /* FDEs have augmentation data, with its length before it */
	bool is_signal;
	bool is_bad;
	struct sb_cfi_state init;
};

#define SB_CFI_CIE_GO UINT32_MAX
struct sb_cfi_fde {
	uint64_t lo, hi;     /* ELF addresses */
	uint32_t insns, end; /* offsets in the section; insns: or the number of a function of Go */
	uint32_t cie;	     /* index; SB_CFI_CIE_GO: of none */
};

struct sb_cfi_entries {
	SB_VEC(struct sb_cfi_cie) cies; /* ascending offset */
	SB_VEC(struct sb_cfi_fde) fdes; /* as the file has them */
	uint32_t nr_bad;
};

/* Return: 0, -ENOMEM, -EFBIG (more entries than any program has); what is broken is counted and
 * left out. */
int sb_cfi_read(const struct sb_cfi_section *section, struct sb_cfi_entries *entries);
void sb_cfi_entries_release(struct sb_cfi_entries *entries);

/* An address; @cur reads in @section. *@ret_is_null: the file has 0 there, before any base. */
uint64_t sb_cfi_read_addr(const struct sb_cfi_section *section, struct sb_cursor *cur,
			  uint8_t encoding, bool *ret_is_null);

/* cfi_exec.c: from the instructions of an FDE, rules. */

struct sb_cfi_sink {
	int (*row)(void *arg, uint64_t addr, const struct sb_uw_rule *rule);
	void *arg;
};

/* Instructions @cur of a CIE. Return: 0 and its state, -EBADMSG. */
int sb_cfi_exec_cie(const struct sb_cfi_section *section, const struct sb_cursor *cur,
		    struct sb_cfi_cie *cie);
/*
 * Rows of one FDE, ascending (an address can come twice: the later one counts).
 * Return: 0, -EBADMSG (from there on the rule is UNSUP), or what the sink said.
 */
int sb_cfi_exec_fde(const struct sb_cfi_section *section, const struct sb_cfi_cie *cie,
		    const struct sb_cfi_fde *fde, const struct sb_cfi_sink *sink);

/* cfi_go.c: the same of functions that the Go linker describes, in the place of CFI, for x86-64. */

/* Append FDEs of all functions. Return: 0, -ENOMEM, -EFBIG; what is broken is counted and left out. */
int sb_cfi_go_read(const struct sb_gopcln *go, struct sb_cfi_entries *entries);
/* Rows of one, as sb_cfi_exec_fde(). */
int sb_cfi_go_exec(const struct sb_gopcln *go, const struct sb_cfi_fde *fde,
		   const struct sb_cfi_sink *sink);

/* cfi.c: the table; cfi_save.c: the same as bytes. */

/* 4 GiB of text: beyond it an index would cost more than any program is worth. */
#define SB_CFI_GRANULES_MAX (1u << 20)
/* 14 times the biggest of a distribution, 6 times the biggest that was heard of. */
#define SB_CFI_ROWS_MAX	    (1u << 24)
/* Words of rows: in each granule, the one in force at its beginning is there again. */
#define SB_CFI_WORDS_MAX    (SB_CFI_ROWS_MAX + SB_CFI_GRANULES_MAX)

/* As in the pool, but that @first_row counts from the binary's own first one. */
struct sb_cfi_granule {
	uint32_t first_row; /* its rule when there is no row */
	uint32_t nr_rows;
};

struct sb_cfi {
	struct sb_cfi_info info;
	uint64_t text_lo; /* of the first granule */
	SB_VEC(struct sb_cfi_granule) granules;
	SB_VEC(uint32_t) rows;
	SB_VEC(struct sb_uw_rule) rules;
	void *saved; /* what the three lie in, if they were restored from it; owned */
};

#endif
