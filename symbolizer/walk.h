/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The walk up a user stack in user space, over the step that the BPF side takes, too
 * (sb_unwind_step.h). Where tables and memory come from is the caller's business. Internal to the
 * symbolizer; any thread. No table and no stack can make it run longer than @max frames.
 */
#ifndef SB_WALK_H
#define SB_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sb_abi.h"
#include "sb_abi_unwind.h"
#include "sb_sym.h"

/*
 * One binary's table in memory of its own. @words is the pool of sb_abi_unwind.h with nothing else
 * in it; whole chunks of SB_UW_CHUNK_WORDS, because a search looks at any word of its chunk.
 */
struct sb_walk_table {
	uint32_t *words;
	size_t nr_words;
	struct sb_uw_bin bin;
};

struct sb_cfi;
struct sb_elf;
struct sb_parser_seat;

/*
 * Have @parser (NULL: here) compile @elf, or @debug (may be NULL) where it has no CFI, and place the table. Return: 0 or as
 * sb_parser_cfi().
 */
int sb_walk_table_init(struct sb_walk_table *table, struct sb_parser_seat *parser,
		       const struct sb_elf *elf, const struct sb_elf *debug);
void sb_walk_table_release(struct sb_walk_table *table);

/* The rule for ELF address @addr; what lies outside of the table has the frame pointer's. */
struct sb_uw_rule sb_walk_table_rule(const struct sb_walk_table *table, uint64_t addr);

/* What lies at an address: the binary of @table, with ELF address = address - @bias; or, with
 * @table NULL, code without a table. */
struct sb_walk_code {
	const struct sb_walk_table *table;
	uint64_t bias;
	bool is_generated; /* memory without a file */
};

struct sb_walk_env {
	/* Return: 1 and the code at @addr, good until the next call; 0 when nothing is mapped
	 * there; or -ENOMEM. */
	int (*find)(void *arg, uint64_t addr, struct sb_walk_code *ret_code);
	/* Copy @len bytes of the process at @addr. Return: 0 when it worked. */
	int (*read)(void *arg, void *buf, size_t len, uint64_t addr);
	void *arg;
	uint32_t modes; /* SB_UNWIND_* */
	struct sb_sym_rule known;
	struct sb_sym_hook hook;
};

/* Where the walk begins: what was interrupted. */
struct sb_walk_from {
	uint64_t pc;
	uint64_t regs[SB_UNWIND_REGS];
};

/* Where the addresses go. */
struct sb_walk_frames {
	uint64_t *ip; /* leaf first, with SB_IP_* marks */
	size_t max;   /* 1 at least */
	size_t nr;
	uint32_t status; /* enum sb_stack_status */
};

/*
 * Walk. Frame pointers alone (modes without SB_UNWIND_CFI) ask for no mappings; with no mode at all
 * the leaf is all there is. A frame whose address lies in no mapping was none, and is left out: the status is
 * SB_STACK_BAD_FP when a frame pointer led there, else SB_STACK_BAD_PC. The leaf always stays.
 * Return: 0, or -ENOMEM of @env->find.
 */
int sb_walk_run(const struct sb_walk_env *env, const struct sb_walk_from *from,
		struct sb_walk_frames *frames);

#endif
