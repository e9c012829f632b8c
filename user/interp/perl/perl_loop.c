// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Finds the callers of Perl's main loop, PL_runops. Most of them start a segment of frames:
 * call_sv(), amagic_call(), eval_sv() and perl_run(), which are exported; and sort and MULTICALL,
 * which are recognised by their segments.
 *
 * S_docatch() does not start a segment. It is called where an eval {} in code that C called gets a
 * setjmp() of its own, and continues in a new loop nested in the one that was there. It is static,
 * so it has no name in a stripped file. What is known is that pp_entertry() calls it, and that it
 * calls the loop.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "interp/perl/perl_priv.h"
#include "symbolizer/elf/disasm.h"

/* Places in the interpreter that call_sv() calls through. */
#define SLOTS_MAX   16u
#define TARGETS_MAX 64u
#define NOT_LOADED  INT64_MIN

/* Where the loop's address is: relative to the interpreter with threads, absolute without. */
struct slots {
	int64_t at[SLOTS_MAX];
	size_t nr;
};

/* What a function calls. */
struct calls {
	struct sb_range range; /* the function's own */
	struct slots through;
	/* Of each register, the offset that its value was loaded from, or NOT_LOADED. arm64 has no
	 * call through memory: ldr x1, [x19, #2384]; blr x1. */
	int64_t loaded[SB_INSN_REGS];
	uint64_t to[TARGETS_MAX]; /* called or jumped to, outside of it */
	size_t nr_to;
};

static bool has_slot(const struct slots *slots, int64_t at)
{
	size_t i;

	for (i = 0; i < slots->nr; i++)
		if (slots->at[i] == at)
			return true;
	return false;
}

static void note_load(struct calls *calls, const struct sb_insn *insn)
{
	int64_t *loaded = &calls->loaded[insn->reg % SB_INSN_REGS];

	if (insn->kind == SB_INSN_LOAD && !insn->has_index)
		*loaded = insn->disp;
	else if (insn->kind >= SB_INSN_LEA && insn->kind <= SB_INSN_ADD_IMM &&
		 insn->kind != SB_INSN_STORE)
		*loaded = NOT_LOADED;
}

static int note(void *arg, const struct sb_insn *insn)
{
	struct calls *calls = arg;
	struct slots *through = &calls->through;
	size_t i;

	note_load(calls, insn);
	if (insn->kind == SB_INSN_CALL_MEM && !insn->has_index) {
		int64_t at = insn->is_mem ? insn->disp : calls->loaded[insn->base % SB_INSN_REGS];

		if (at != NOT_LOADED && !has_slot(through, at) && through->nr < SLOTS_MAX)
			through->at[through->nr++] = at;
		return 0;
	}
	if ((insn->kind != SB_INSN_CALL && insn->kind != SB_INSN_JMP &&
	     insn->kind != SB_INSN_JCC) ||
	    (insn->target >= calls->range.begin && insn->target < calls->range.end))
		return 0;
	for (i = 0; i < calls->nr_to; i++)
		if (calls->to[i] == insn->target)
			return 0;
	if (calls->nr_to < TARGETS_MAX)
		calls->to[calls->nr_to++] = insn->target;
	return 0;
}

/* Look at the function around @addr. */
static int calls_of(struct sb_runtime *rt, uint64_t addr, struct calls *calls)
{
	struct sb_range *range = &calls->range;
	size_t i;
	int err;

	memset(calls, 0, sizeof(*calls));
	for (i = 0; i < SB_INSN_REGS; i++)
		calls->loaded[i] = NOT_LOADED;
	err = sb_image_function(rt->image, addr, &range->begin, &range->end);
	return err ? err : sb_image_each_insn(rt->image, range, note, calls);
}

static bool calls_loop(const struct calls *calls, const struct slots *loop)
{
	size_t i;

	for (i = 0; i < calls->through.nr; i++)
		if (has_slot(loop, calls->through.at[i]))
			return true;
	return false;
}

static void add_range(struct sb_range *to, size_t *nr, size_t max, const struct sb_range *range)
{
	size_t i;

	for (i = 0; i < *nr; i++)
		if (to[i].begin == range->begin)
			return;
	if (*nr < max)
		to[(*nr)++] = *range;
}

/* A function and what was moved out of it. */
static void add_function(struct sb_runtime *rt, struct sb_range *to, size_t *nr, size_t max,
			 const struct sb_range *range)
{
	add_range(to, nr, max, range);
	*nr += sb_image_cold_parts(rt->image, range->begin, range->end, to + *nr, max - *nr);
}

static void add_caller(struct sb_runtime *rt, const struct sb_range *range)
{
	add_function(rt, rt->callers, &rt->nr_callers, SB_RUNTIME_ANCHORS_MAX, range);
}

/* What call_sv() and amagic_call() both call through. */
static int find_slots(struct sb_runtime *rt, struct slots *loop)
{
	struct calls calls, others;
	uint64_t call_sv, amagic;
	size_t i;

	loop->nr = 0;
	if (sb_image_symbol(rt->image, "Perl_call_sv", &call_sv, NULL) ||
	    sb_image_symbol(rt->image, "Perl_amagic_call", &amagic, NULL) ||
	    calls_of(rt, call_sv, &calls) || calls_of(rt, amagic, &others))
		return -ENOENT;
	for (i = 0; i < calls.through.nr; i++)
		if (has_slot(&others.through, calls.through.at[i]))
			loop->at[loop->nr++] = calls.through.at[i];
	return loop->nr ? 0 : -ENOENT;
}

/* Functions called by @calls, and by name by nobody outside, that call the loop. */
static void each_inner(struct sb_runtime *rt, const struct calls *calls, const struct slots *loop,
		       void (*add)(struct sb_runtime *rt, const struct sb_range *range))
{
	struct calls callee;
	size_t i, at;

	for (i = 0; i < calls->nr_to; i++) {
		if (calls_of(rt, calls->to[i], &callee) || callee.range.begin != calls->to[i] ||
		    !calls_loop(&callee, loop))
			continue;
		for (at = 0; at < rt->nr_callers; at++)
			if (rt->callers[at].begin == callee.range.begin)
				break;
		if (at == rt->nr_callers)
			add(rt, &callee.range);
	}
}

static void add_inner(struct sb_runtime *rt, const struct sb_range *range)
{
	add_function(rt, rt->inner, &rt->nr_inner, SB_RUNTIME_ANCHORS_MAX, range);
}

static void find_callers(struct sb_runtime *rt, const struct slots *loop)
{
	static const char *const names[] = { "Perl_call_sv", "Perl_amagic_call", "Perl_eval_sv",
					     "perl_run" };
	struct calls calls;
	uint64_t addr;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (sb_image_symbol(rt->image, names[i], &addr, NULL) || calls_of(rt, addr, &calls))
			continue;
		add_caller(rt, &calls.range);
		/* S_run_body() is part of perl_run() in every build that was seen. */
		if (!calls_loop(&calls, loop))
			each_inner(rt, &calls, loop, add_caller);
	}
}

void sb_perl_find_loop(struct sb_runtime *rt)
{
	static const char *const names[] = { "Perl_runops_standard", "Perl_runops_debug" };
	struct slots loop;
	struct sb_range range;
	struct calls calls;
	uint64_t addr;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!sb_image_symbol(rt->image, names[i], &addr, NULL) &&
		    !sb_image_function(rt->image, addr, &range.begin, &range.end))
			add_function(rt, rt->anchors, &rt->nr_anchors, SB_RUNTIME_ANCHORS_MAX,
				     &range);
	if (find_slots(rt, &loop))
		return;
	find_callers(rt, &loop);
	if (!sb_perl_entertry(rt, &addr) && !calls_of(rt, addr, &calls))
		each_inner(rt, &calls, &loop, add_inner);
}
