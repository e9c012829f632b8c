// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/rawstack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "interp/core/interp.h"
#include "interp/core/step.h"
#include "symbolizer/sb_sym.h"

/* A flag in struct sb_event_raw.flags of a kept record: its stack was not kept. It is no bit of
 * SB_STACK_*. */
#define NOT_KEPT (1u << 31)

int sb_rawstacks_add(struct sb_rawstacks *raw, const void *record, size_t len)
{
	const struct sb_event_raw *event = record;
	size_t at = raw->bytes.nr, nr_bytes;
	struct sb_event_raw *kept;
	bool is_kept;
	int err;

	if (len < sizeof(*event) || event->nr_stack_bytes > SB_RAW_BYTES_MAX ||
	    event->nr_stack_bytes > len - sizeof(*event))
		return -EBADMSG;
	is_kept = at < SB_RAWSTACKS_BYTES_MAX;
	nr_bytes = sizeof(*event) + (is_kept ? event->nr_stack_bytes : 0);
	err = sb_vec_reserve(&raw->bytes, at + (nr_bytes + 7) / 8 * 8);
	if (!err)
		err = sb_vec_push(&raw->at, at);
	if (err)
		return err;
	memcpy(raw->bytes.at + at, record, nr_bytes);
	raw->bytes.nr = at + (nr_bytes + 7) / 8 * 8;
	kept = (struct sb_event_raw *)(raw->bytes.at + at);
	kept->flags &= ~NOT_KEPT;
	if (!is_kept)
		kept->flags |= NOT_KEPT;
	return 0;
}

void sb_rawstacks_clear(struct sb_rawstacks *raw)
{
	sb_vec_clear(&raw->bytes);
	sb_vec_clear(&raw->at);
}

void sb_rawstacks_release(struct sb_rawstacks *raw)
{
	sb_vec_release(&raw->bytes);
	sb_vec_release(&raw->at);
}

/* Frames of interpreters of a thread that sleeps, by the name that sb_interp_name_asleep() gave
 * them. */
static int add_interps(const struct sb_event_raw *event, const struct sb_interp_walk *walk,
		       const struct sb_rawstacks_into *into)
{
	const struct sb_space_key space = SB_SPACE_KEY(event);
	const struct sb_batch_stack stack = {
		.id = { .lo = ~event->id.lo, .hi = event->id.hi },
		.status = walk->event.status,
		.flags = SB_STACK_INTERP,
		.is_single = true,
		.nr_frames = (uint32_t)walk->nr_frames * 2,
		.ip = (const uint64_t *)walk->frame,
	};

	/* Names that cannot be read now are tried again when the result is made. */
	(void)sb_interp_fetch(into->interp, &space, walk->frame, walk->nr_frames);
	return into->add(into->arg, &stack);
}

/* @walk: scratch for threads that sleep, or NULL. Return: 0, -ENOMEM, or of @into. */
static int unwind_piece(const struct sb_event_raw *event, struct sb_symbolizer *sym,
			struct sb_interp_walk *walk, const struct sb_rawstacks_into *into,
			struct sb_batch_stack *stack, uint64_t *ip)
{
	struct sb_interp_hook hook = {
		.interp = into->interp,
		.space = SB_SPACE_KEY(event),
		.walk = walk,
		.stack = event + 1,
		.stack_addr = event->stack_addr,
		.nr_stack_bytes = event->nr_stack_bytes,
	};
	struct sb_sym_unwind from = {
		.time_ns = event->now_ns,
		.tgid = event->tgid,
		.modes = into->modes,
		.pc = event->pc,
		.trampoline = event->trampoline,
		.stack_addr = event->stack_addr,
		.stack = event + 1,
		.stack_bytes = event->nr_stack_bytes,
	};
	size_t max = into->depth_max, nr;
	bool is_hooked = false;
	int err;

	if (!max || max > SB_USTACK_DEPTH_MAX)
		max = SB_USTACK_DEPTH_MAX;
	memcpy(from.regs, event->regs, sizeof(from.regs));
	if (into->interp)
		sb_interp_code_rule(into->interp, &hook.space, &from.known);
	if (walk) {
		walk->thread_pointer = event->thread_pointer;
		walk->pc = event->pc;
		walk->sp = event->regs[SB_REG_SP];
		memcpy(walk->regs, event->regs, sizeof(walk->regs));
		is_hooked = sb_interp_hook_begin(&hook, &from.hook);
	}
	err = sb_symbolizer_unwind(sym, &from, ip, max, &nr, &stack->status);
	if (err)
		return err;
	stack->nr_frames = (uint32_t)nr;
	return is_hooked && sb_interp_hook_end(&hook) ? add_interps(event, walk, into) : 0;
}

static int unwind(const struct sb_event_raw *event, struct sb_symbolizer *sym,
		  struct sb_interp_walk *walk, const struct sb_rawstacks_into *into)
{
	uint64_t ip[SB_USTACK_DEPTH_MAX];
	struct sb_batch_stack stack = {
		.id = event->id,
		.status = SB_STACK_NO_TABLE,
		.is_single = true,
		.flags = event->flags & ~NOT_KEPT,
		.nr_frames = 1,
		.ip = ip,
	};
	int err = 0;

	ip[0] = event->pc;
	if (event->flags & SB_STACK_32_BITS) {
		stack.status = SB_STACK_COMPAT;
		stack.flags &= ~(SB_STACK_32_BITS | SB_STACK_ASLEEP);
	} else if (event->flags & SB_STACK_ASLEEP) {
		stack.status = SB_STACK_RAN;
		stack.flags &= ~SB_STACK_ASLEEP;
	} else if (!(event->flags & NOT_KEPT)) {
		err = unwind_piece(event, sym, walk, into, &stack, ip);
	}
	return err ? err : into->add(into->arg, &stack);
}

int sb_rawstacks_unwind(const struct sb_rawstacks *raw, struct sb_symbolizer *sym,
			const struct sb_rawstacks_into *into)
{
	sb_cleanup(sb_freep) struct sb_interp_walk *walk = NULL;
	size_t i;
	int err = 0;

	if (into->is_asleep && into->interp && raw->at.nr) {
		walk = malloc(sizeof(*walk));
		if (!walk)
			return -ENOMEM;
	}
	for (i = 0; i < raw->at.nr && !err; i++)
		err = unwind((const struct sb_event_raw *)(raw->bytes.at + raw->at.at[i]), sym,
			     walk, into);
	return err;
}
