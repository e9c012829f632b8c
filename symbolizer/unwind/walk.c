// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/unwind/walk.h"

#include <errno.h>
#include <string.h>

#define SB_STEP_READ(mem, dst, len, addr) step_read(mem, dst, len, addr)
static int step_read(void *mem, void *dst, size_t len, uint64_t addr);
#include "bpf/step/sb_unwind_step.h"

static int step_read(void *mem, void *dst, size_t len, uint64_t addr)
{
	const struct sb_walk_env *env = mem;

	return env->read(env->arg, dst, len, addr);
}

#ifdef __aarch64__
uint64_t sb_sym_user_end(void)
{
	/* Stacks are at the top of the address space: Documentation/arch/arm64/memory.rst. */
	uint64_t addr = (uintptr_t)__builtin_frame_address(0);
	int nr_bits = 64 - __builtin_clzll(addr);

	return 1ull << (nr_bits > 48 ? 48 : nr_bits < 39 ? 39 : nr_bits);
}
#else
uint64_t sb_sym_user_end(void)
{
#ifdef SB_MACHINE_ARM64
	return 1ull << 48;
#else
	return 1ull << 47;
#endif
}
#endif

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

	/* Below text_lo the difference wraps around, and is too big, too. */
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

static struct sb_uw_rule find_rule(const struct sb_walk_env *env, uint64_t addr,
				   const struct sb_walk_code *code)
{
	if (addr >= env->known.begin && addr < env->known.end)
		return env->known.rule;
	if (code->table)
		return sb_walk_table_rule(code->table, addr - code->bias);
	return (struct sb_uw_rule){ .cfa = SB_UW_CFA_FP_CHAIN };
}

/* The counterpart of look_at_lr() in core/unwind.bpf.c. Return: 0 or -ENOMEM. */
static int look_at_lr(struct sb_walk *walk, const struct sb_walk_env *env)
{
#ifdef SB_MACHINE_ARM64
	uint64_t addr = sb_code_addr(walk, walk->regs[SB_REG_LR]) - 1;
	struct sb_walk_code code = {};
	int ret;

	ret = env->find(env->arg, addr, &code);
	if (ret > 0 && sb_is_callers_rule(find_rule(env, addr, &code).cfa))
		walk->flags |= SB_WALK_LR_IS_CALLER;
	/* And back, because what is read next is code at pc. */
	ret = ret < 0 ? ret : env->find(env->arg, walk->pc, &code);
	return ret < 0 ? ret : 0;
#else
	return 0;
#endif
}

/*
 * The counterpart of sb_unwind_hides() in core/unwind_tables.bpf.c; less code can be read here.
 * Return: 1, 0 or -ENOMEM.
 */
static int hides(const struct sb_walk *walk, const struct sb_walk_env *env)
{
#ifdef SB_MACHINE_X86
	struct sb_walk_code code;
	uint64_t at = walk->sp, word, before;
	int ret = 0, i;

	for (i = 0; i < SB_HIDDEN_WORDS_MAX && at < walk->fp && ret >= 0; i++, at += 8) {
		if (env->read(env->arg, &word, sizeof(word), at))
			break;
		code = (struct sb_walk_code){};
		ret = word < SB_PC_MIN || word >= walk->user_end
			      ? 0
			      : env->find(env->arg, word - 1, &code);
		if (ret <= 0 || (!code.table && !code.is_generated))
			continue;
		if (env->read(env->arg, &before, sizeof(before), word - 8)
			    ? code.is_generated
			    : sb_ends_in_call(before))
			return 1;
	}
	return ret < 0 ? ret : 0;
#else
	return 0;
#endif
}

/* Call the interpreter's walker for the current frame. Return: enum sb_step. */
static int hook_step(struct sb_walk *walk, const struct sb_walk_env *env, uint64_t *ip)
{
	bool has_frames = false;
	int step = env->hook.step(env->hook.arg, walk, &has_frames);

	if (has_frames)
		*ip |= SB_IP_INTERP;
	return step;
}

/* Return: enum sb_step, or -ENOMEM. */
static int fp_step(struct sb_walk *walk, const struct sb_walk_env *env)
{
	bool is_generated = (walk->flags & SB_WALK_GENERATED) && !env->hook.step;
	struct sb_walk_code code;
	uint64_t fp = walk->fp, pc = sb_walk_key(walk);
	int step, hidden = is_generated ? hides(walk, env) : 0;

	/* And back, because what is read next is code at pc. */
	if (is_generated && hidden >= 0) {
		step = env->find(env->arg, pc, &code);
		hidden = step < 0 ? step : hidden;
	}
	if (hidden < 0)
		return hidden;
	step = sb_fp_step(walk, (void *)env);
	if (hidden && walk->sp == fp + 16)
		walk->mark |= SB_IP_HIDES;
	return step;
}

/*
 * The counterpart of sb_unwind_step() in core/unwind.bpf.c. @ip: the address of this frame.
 * Return: enum sb_step, or -ENOMEM.
 */
static int step(struct sb_walk *walk, const struct sb_walk_env *env,
		const struct sb_walk_code *code, uint64_t *ip)
{
	uint64_t key = sb_walk_key(walk);
	bool is_hooked = env->hook.step && key >= env->hook.begin && key < env->hook.end;
	struct sb_uw_rule rule = find_rule(env, key, code);
	int step = SB_STEP_FP_CHAIN, err;

	if (is_hooked)
		step = hook_step(walk, env, ip);
	if (code->is_generated && step == SB_STEP_FP_CHAIN)
		walk->flags |= SB_WALK_GENERATED;
	if (step == SB_STEP_FP_CHAIN)
		step = sb_cfi_step(walk, &rule, (void *)env);
	if (step == SB_STEP_FP_CHAIN && env->hook.step && !is_hooked)
		step = hook_step(walk, env, ip);
	if (step != SB_STEP_FP_CHAIN)
		return step;
	if (!(env->modes & SB_UNWIND_FP))
		return sb_step_end(walk, env->modes ? SB_STACK_NO_RULE : SB_STACK_COMPLETE);
	if ((env->modes & SB_UNWIND_CFI) && (walk->flags & SB_WALK_LEAF)) {
		err = look_at_lr(walk, env);
		if (err)
			return err;
	}
	return fp_step(walk, env);
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
		.user_end = sb_user_end_with(sb_sym_user_end(), from->trampoline),
		.flags = SB_WALK_LEAF,
	};
	struct sb_walk_code code = {};
	int ret;

	memcpy(walk.regs, from->regs, sizeof(walk.regs));
	frames->nr = 0;
	do {
		if (push(frames, walk.pc | walk.mark)) {
			walk.status = SB_STACK_DEPTH;
			break;
		}
		ret = 1;
		if (env->modes & SB_UNWIND_CFI)
			ret = env->find(env->arg, sb_walk_key(&walk), &code);
		if (ret < 0)
			return ret;
		if (!ret) {
			walk.status = walk.mark & SB_IP_BY_FP ? SB_STACK_BAD_FP : SB_STACK_BAD_PC;
			frames->nr -= frames->nr > 1;
			break;
		}
		ret = step(&walk, env, &code, &frames->ip[frames->nr - 1]);
		if (ret < 0)
			return ret;
		if (ret == SB_STEP_GO_ON && walk.pc == from->trampoline)
			ret = sb_step_end(&walk, SB_STACK_RETURN_PROBE);
	} while (ret == SB_STEP_GO_ON);
	frames->status = walk.status;
	return 0;
}
