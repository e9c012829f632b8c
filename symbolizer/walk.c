// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SB_STEP_READ(mem, dst, len, addr) step_read(mem, dst, len, addr)
static int step_read(void *mem, void *dst, size_t len, uint64_t addr);
#include "sb_unwind_step.h"

static int step_read(void *mem, void *dst, size_t len, uint64_t addr)
{
	const struct sb_walk_env *env = mem;

	return env->read(env->arg, dst, len, addr);
}

static struct sb_uw_rule rule_at(const struct sb_walk_table *table, uint32_t rule)
{
	struct sb_uw_rule ret;

	memcpy(&ret, &table->words[table->bin.rules_word + rule * 2], sizeof(ret));
	return ret;
}

struct sb_uw_rule sb_walk_table_rule(const struct sb_walk_table *table, uint64_t addr)
{
	const struct sb_uw_bin *bin = &table->bin;
	uint64_t granule = (addr - bin->text_lo) >> SB_UW_GRANULE_BITS;
	const uint32_t *index, *chunk;
	uint32_t row;

	/* Below text_lo the difference wraps and is too big, too. */
	if (bin->state != SB_UW_BIN_READY || granule >= bin->nr_granules)
		return (struct sb_uw_rule){ .cfa = SB_UW_CFA_FP_CHAIN };
	index = &table->words[bin->index_word + granule * 2];
	if (!index[1])
		return rule_at(table, index[0]);
	chunk = &table->words[index[0] / SB_UW_CHUNK_WORDS * SB_UW_CHUNK_WORDS];
	row = sb_uw_row_at(chunk, index[0] % SB_UW_CHUNK_WORDS, index[1],
			   addr & (SB_UW_GRANULE_BYTES - 1));
	return rule_at(table, row >> 16);
}

static enum sb_step step(struct sb_walk *walk, const struct sb_walk_env *env,
			 const struct sb_walk_code *code)
{
	struct sb_uw_rule rule = { .cfa = SB_UW_CFA_FP_CHAIN };
	enum sb_step step;

	if (code->is_generated)
		walk->flags |= SB_WALK_GENERATED;
	if (sb_walk_key(walk) >= env->known.begin && sb_walk_key(walk) < env->known.end)
		rule = env->known.rule;
	else if (code->table)
		rule = sb_walk_table_rule(code->table, sb_walk_key(walk) - code->bias);
	step = sb_cfi_step(walk, &rule, (void *)env);
	if (step != SB_STEP_FP_CHAIN)
		return step;
	if (!(env->modes & SB_UNWIND_FP))
		return sb_step_end(walk, env->modes ? SB_STACK_NO_RULE : SB_STACK_COMPLETE);
	return sb_fp_step(walk, (void *)env);
}

static int push(struct sb_walk_frames *frames, uint64_t ip)
{
	if (frames->nr >= frames->max)
		return -ENOSPC;
	frames->ip[frames->nr++] = ip;
	return 0;
}

int sb_walk_run(const struct sb_walk_env *env, const struct sb_walk_from *from,
		struct sb_walk_frames *frames)
{
	struct sb_walk walk = {
		.pc = from->pc,
		.sp = from->regs[SB_REG_SP],
		.fp = from->regs[SB_REG_FP],
		.user_end = SB_WALK_USER_END,
		.flags = SB_WALK_LEAF,
	};
	struct sb_walk_code code = {};
	int ret = 1;

	memcpy(walk.regs, from->regs, sizeof(walk.regs));
	frames->nr = 0;
	do {
		if (push(frames, walk.pc | walk.mark)) {
			walk.status = SB_STACK_DEPTH;
			break;
		}
		if (env->modes & SB_UNWIND_CFI)
			ret = env->find(env->arg, sb_walk_key(&walk), &code);
		if (ret < 0)
			return ret;
		if (!ret) {
			walk.status = walk.mark & SB_IP_BY_FP ? SB_STACK_BAD_FP : SB_STACK_BAD_PC;
			frames->nr -= frames->nr > 1;
			break;
		}
	} while (step(&walk, env, &code) == SB_STEP_GO_ON);
	frames->status = walk.status;
	return 0;
}
