/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unwinding of a user stack in user space, with the same step as in BPF (sb_unwind_step.h). The
 * caller says where tables and memory come from. No table and no stack can make a walk longer than
 * @max frames. Order: sb_walk_table_init() for each file, on demand in @env->find; sb_walk_run();
 *	sb_walk_table_release(). Internal to the symbolizer. No pointer is NULL unless a contract
 *	says so.
 * Thread: any, in which callbacks are called, too.
 */
#ifndef SB_WALK_H
#define SB_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/sb_abi.h"
#include "bpf/abi/sb_abi_unwind.h"
#include "symbolizer/sb_sym.h"

/*
 * The table of one binary. @words is a pool as in sb_abi_unwind.h that holds nothing else; its
 * size is a multiple of SB_UW_CHUNK_WORDS, because a search reads any word of its chunk.
 */
struct sb_walk_table {
	uint32_t *words; /* owned */
	size_t nr_words;
	struct sb_uw_bin bin;
};

struct sb_elf;
struct sb_parser_seat;

/*
 * Compile @elf or, where it has no CFI, its debug file @debug (may be NULL), and make a table of
 * it, which the caller ends with sb_walk_table_release(); the files are not needed afterwards.
 * @table: zeroed by the caller; still so on error
 * @parser: who compiles, used during the call; NULL: this process. Threads that share one wait for
 *	each other
 *
 * Return: 0; -ENODATA when neither file has CFI; -ENOTSUP: files of another machine, 32-bit or not
 * linked; -EBADMSG: nothing in it is usable; -EFBIG: a bound, or the budget of @elf; others of
 * pread(2); -ECHILD, -ETIMEDOUT, -EPROTO: the parser process crashed, took too long or gave an
 * invalid answer; -ENOMEM, -EMFILE.
 */
int sb_walk_table_init(struct sb_walk_table *table, struct sb_parser_seat *parser,
		       const struct sb_elf *elf, const struct sb_elf *debug);
/* Free the table; afterwards it is empty. Accepts an object of zeroes. */
void sb_walk_table_release(struct sb_walk_table *table);

/* Return: the rule for ELF address @addr; outside of the table it is FP_CHAIN. sb_walk_run() calls
 * it for the tables that @env->find gives. */
struct sb_uw_rule sb_walk_table_rule(const struct sb_walk_table *table, uint64_t addr);

/*
 * The code at an address. @table: borrowed; ELF address = address - @bias. NULL: there is no
 * table.
 */
struct sb_walk_code {
	const struct sb_walk_table *table;
	uint64_t bias;
	bool is_generated; /* it is in memory without a file */
};

/* How a walk gets at the process. */
struct sb_walk_env {
	/* Find the code at @addr and fill in all of *ret_code, valid until the next call. Return:
	 * 1; 0 when nothing is mapped there; -ENOMEM. */
	int (*find)(void *arg, uint64_t addr, struct sb_walk_code *ret_code);
	/* Copy @len bytes of the process at @addr. Return: 0; anything else: not all of them can be
	 * read. */
	int (*read)(void *arg, void *buf, size_t len, uint64_t addr);
	void *arg;
	uint32_t modes;		  /* SB_UNWIND_* */
	struct sb_sym_rule known; /* of code without a file; zeroed: none */
	struct sb_sym_hook hook;  /* an interpreter's walker; zeroed: none */
};

/* Where the walk begins: the registers when the thread was interrupted. */
struct sb_walk_from {
	uint64_t pc;
	uint64_t regs[SB_UNWIND_REGS];
	uint64_t trampoline; /* see struct sb_event_raw; ends the walk */
};

/* The result. */
struct sb_walk_frames {
	uint64_t *ip; /* array of the caller, written leaf first, with SB_IP_* marks */
	size_t max;   /* its size, at least 1 */
	size_t nr;
	uint32_t status; /* enum sb_stack_status */
};

/*
 * Unwind; the caller has set ip and max of @frames. With frame pointers alone (modes without
 * SB_UNWIND_CFI) @env->find is not called; with no mode the leaf is the only frame, unless the
 * known rule or the hook leads on. A frame whose address is not mapped is not a frame and is left
 * out: the status is SB_STACK_BAD_FP when a frame pointer led there, else SB_STACK_BAD_PC. The leaf
 * is always kept. Return: 0; -ENOMEM from @env->find, and then *@frames has no result.
 */
int sb_walk_run(const struct sb_walk_env *env, const struct sb_walk_from *from,
		struct sb_walk_frames *frames);

#endif
