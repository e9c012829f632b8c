/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CONTRACT between the CFI compiler (symbolizer/unwind/cfi.c), which writes unwind tables, and the
 * walkers that read them: in the kernel (core/unwind_tables.bpf.c) and in user space
 * (symbolizer/unwind/walk.c).
 *
 * For each address of a binary, a table has a rule that says how the caller is found from the
 * registers of the frame. All tables, and the lists of which binary lies where in a process, are
 * in one pool of 32-bit words, addressed by number:
 *
 *	bin	struct sb_uw_bin: one binary
 *	index	two words for each granule of 4 KiB of its text: the number of its first row and how
 *		many rows there are, or, if there are none, the rule of the whole granule. It starts
 *		at an even word.
 *	rules	two words for each distinct rule of the binary: struct sb_uw_rule. Even word, too.
 *	rows	one word each: rule << 16 | offset of the first byte in the granule, ascending. The
 *		first row of a granule has offset 0. The rows of one granule lie in one chunk.
 *	segs	eight words for each executable mapping of a process: struct sb_uw_seg,
 *		ascending, all of one process in one chunk
 *
 * Chunks and parts are the units of the pool's memory; see the map `uw_pool`.
 */
#ifndef SB_ABI_UNWIND_H
#define SB_ABI_UNWIND_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define SB_UW_GRANULE_BITS   12
#define SB_UW_GRANULE_BYTES  (1u << SB_UW_GRANULE_BITS)
#define SB_UW_CHUNK_WORDS    8192u /* 32 KiB: one array element, which a search does not leave */
#define SB_UW_PART_CHUNKS    128u  /* 4 MiB: one array */
#define SB_UW_PART_WORDS     (SB_UW_PART_CHUNKS * SB_UW_CHUNK_WORDS)
#define SB_UW_PARTS_MAX	     256u /* 1 GiB */
#define SB_UW_BINS_MAX	     16384u
#define SB_UW_PROCS_MAX	     8192u
/* Executable mappings of one process; 8 words each, one chunk. Higher ones are not known. */
#define SB_UW_SEGS_MAX	     1024u
#define SB_UW_SEG_WORDS	     8u
#define SB_UW_RULES_MAX	     65536u
/* Value: a row: the index of its rule, and the offset of its first byte in the granule. */
#define SB_UW_ROW(rule, off) ((__u32)(rule) << 16 | (__u32)(off))

/*
 * How the canonical frame address (CFA: sp as it was before the call) is found. rbp stands for the
 * frame pointer, which is x29 on arm64. There only FP_CHAIN, STOP, SP, FP, CLONE, SWITCH, UNSUP,
 * GO_* and REG are used.
 */
enum sb_uw_cfa {
	SB_UW_CFA_FP_CHAIN, /* no rule (a gap, JIT code): try the frame pointer */
	SB_UW_CFA_STOP,	    /* the root of the thread: it has no caller */
	SB_UW_CFA_SP,	    /* sp + cfa_off */
	SB_UW_CFA_FP,	    /* rbp + cfa_off */
	SB_UW_CFA_PLT10,    /* sp + 8 + ((pc & 15) >= 10) * 8: a stub with endbr64 */
	SB_UW_CFA_PLT11,    /* sp + 8 + ((pc & 15) >= 11) * 8 */
	SB_UW_CFA_AT_SP,    /* *(sp + (s16)cfa_off) + (u16)(cfa_off >> 16) */
	SB_UW_CFA_AT_FP,    /* *(rbp + (s16)cfa_off) + (u16)(cfa_off >> 16) */
	SB_UW_CFA_AT_SP_R9, /* *(sp + 8 * r9 + (s16)cfa_off) + (u16)(cfa_off >> 16) (a leaf only):
			       bignum multiplication of OpenSSL */
	SB_UW_CFA_SIGNAL,   /* the registers are in the signal frame at sp */
	SB_UW_CFA_RA_REG,   /* sp + cfa_off; return address in register fp_off (a leaf only) */
	SB_UW_CFA_CLONE,    /* sp + cfa_off; but a leaf with 0 in the result register (rax, x0) is a
			       new thread after the system call that made it, and so a root */
	SB_UW_CFA_SWITCH, /* rbp + cfa_off, on another stack, which may lie anywhere: Go's switches
			       to the system stack. 0 in rbp: the root */
	SB_UW_CFA_UNSUP,  /* there is a rule that cannot be expressed here */
	/* arm64: Go's switches to the system stack that do not keep x29, see sb_go_find(). */
	SB_UW_CFA_GO_SYSTEM, /* sp + cfa_off, where the goroutine's `g` has its sp */
	SB_UW_CFA_GO_C,	     /* the same; the `g`, and how deep its stack was, are at sp */
	SB_UW_CFA_GO_PUSHED, /* sp + cfa_off; the caller was interrupted, its x30 is at CFA - 16 */
	SB_UW_CFA_GO_GROW,   /* the `g` has the caller's pc, sp, x29 and x30 */
	/* + DWARF number of a register, lower than SB_UNWIND_REGS: reg + cfa_off (a leaf only; rbx
	   anywhere) */
	SB_UW_CFA_REG = 0x20
};

/*
 * Where the caller's frame pointer register is. The return address is at CFA - 8 on x86-64 (except
 * for RA_REG), and where @bx says on arm64.
 */
enum sb_uw_fp {
	SB_UW_FP_SAME,	 /* unchanged */
	SB_UW_FP_AT_CFA, /* *(CFA + fp_off) */
	SB_UW_FP_AT_FP,	 /* *(rbp + fp_off), of the frame itself; on arm64 *(base + fp_off), where
			    the base is what the CFA is found by, sp or x29 */
	SB_UW_FP_UNDEF,	 /* lost */
};

/*
 * x86-64: rbx is saved at CFA - 8 * slot. The code for lazy binding of functions finds its CFA by
 * it.
 */
#define SB_UW_BX_SAME	  0 /* unchanged */
#define SB_UW_BX_LOST	  1 /* saved where no slot can say */
#define SB_UW_BX_SLOT_MAX 63

/* arm64: the return address is at CFA - 8 * slot, or one of these. */
#define SB_UW_RA_LR	  0 /* in x30 (a leaf only) */
#define SB_UW_RA_SLOT_MAX 62
#define SB_UW_RA_PAIR \
	63 /* after the frame pointer (fp AT_CFA, AT_FP), otherwise at base + fp_off + 8 */

struct sb_uw_rule {
	__u8 cfa;    /* enum sb_uw_cfa */
	__u8 fp : 2; /* enum sb_uw_fp */
	__u8 bx : 6; /* x86-64: a slot, or SB_UW_BX_*; arm64: a slot, or SB_UW_RA_* */
	/* Bytes on x86-64. 8-byte words on arm64, where the frame pointer is saved below the locals
	   of a function, however many they are. */
	__s16 fp_off;
	__s32 cfa_off;
};

/* The first two rules of each table. */
enum {
	SB_UW_RULE_FP_CHAIN, /* .cfa = SB_UW_CFA_FP_CHAIN */
	SB_UW_RULE_STOP,     /* .cfa = SB_UW_CFA_STOP */
	SB_UW_RULE_FIRST,    /* the first one that depends on the binary */
};

enum sb_uw_bin_state {
	SB_UW_BIN_ABSENT,   /* there is no table (yet, or it was evicted): ask for it */
	SB_UW_BIN_READY,    /* index, rules and rows are in the pool */
	SB_UW_BIN_FP_CHAIN, /* the binary has no CFI: frame pointers */
};

/* One binary; index in the map `uw_bins`. User space writes all but @used_s. */
struct sb_uw_bin {
	__u64 text_lo;	   /* ELF address of the first granule, a multiple of its size */
	__u32 index_word;  /* number of the first word of the index */
	__u32 nr_granules; /* addresses beyond have no rule: the frame pointer */
	__u32 rules_word;
	__u32 nr_rules;
	__u32 state;  /* enum sb_uw_bin_state; written last */
	__u32 used_s; /* CLOCK_MONOTONIC >> 30 when it was last used; the walker writes it */
};

/* Bits of sb_uw_seg.flags. */
enum {
	SB_UW_SEG_ANON = 1u << 0, /* generated code without a file: the frame pointer */
};

/* One executable mapping: ELF address = address - bias. */
struct sb_uw_seg {
	__u64 begin, end;
	__u64 bias;
	__u32 bin;
	__u32 flags; /* SB_UW_SEG_* */
};

#define SB_UW_EXEC_VM_STALE (~0ull)

/* One process; value of the map `uw_procs`, whose key is the tgid. */
struct sb_uw_proc {
	__u64 start_ns; /* with exec_id: the address space, see struct sb_sample_key. 0: the first
			   one that is sampled, which the walker fills in */
	__u64 exec_vm;	/* pages of executable mappings when the list was read. If the process has
			   another number now, the list is out of date; the walker makes it so by
			   SB_UW_EXEC_VM_STALE */
	__u32 exec_id;
	__u32 segs_word;
	__u32 nr_segs;
	__u32 nr_confirmed; /* how often the walker doubted the list, and reading it again gave the
			       same one */
};

/* What the walker asks user space for. */
enum sb_uw_need {
	SB_UW_NEED_PROC,   /* the mappings of a process, which is not known or has changed them */
	SB_UW_NEED_BIN,	   /* the table of the binary at @addr */
	SB_UW_NEED_TOUCH,  /* the page at @addr, which could not be read: bring it into memory */
	SB_UW_NEED_INTERP, /* which interpreters are in it; or by the ring `interp_events` */
};

/* Record of the ring buffer `uw_needs`. */
struct sb_uw_need_event {
	__u64 start_ns;
	__u64 addr;
	__u32 tgid;
	__u32 exec_id;
	__u32 need; /* enum sb_uw_need */
	__u32 bin;  /* NEED_BIN: index in `uw_bins` */
};

_Static_assert(sizeof(struct sb_uw_rule) == 8, "two words");
_Static_assert(sizeof(struct sb_uw_bin) == 32, "layout is shared");
_Static_assert(sizeof(struct sb_uw_seg) == SB_UW_SEG_WORDS * 4, "layout is shared");
_Static_assert(SB_UW_SEGS_MAX *SB_UW_SEG_WORDS <= SB_UW_CHUNK_WORDS, "one chunk");

#endif /* SB_ABI_UNWIND_H */
