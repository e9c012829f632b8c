// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/rawstack.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "interp/interp.h"
#include "sb_sym.h"

/* How struct sb_event_raw.flags says, from here on, that the piece was not kept. No bit of
 * SB_STACK_* is this. */
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

static int unwind(const struct sb_event_raw *event, struct sb_symbolizer *sym,
		  const struct sb_rawstacks_into *into)
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
	struct sb_sym_unwind from = {
		.time_ns = event->now_ns,
		.tgid = event->tgid,
		.modes = into->modes,
		.pc = event->pc,
		.stack_addr = event->stack_addr,
		.stack = event + 1,
		.stack_bytes = event->nr_stack_bytes,
	};
	size_t max = into->depth_max, nr;
	int err;

	if (!max || max > SB_USTACK_DEPTH_MAX)
		max = SB_USTACK_DEPTH_MAX;
	ip[0] = event->pc;
	if (event->flags & SB_STACK_ASLEEP) {
		stack.status = SB_STACK_RAN;
		stack.flags &= ~SB_STACK_ASLEEP;
	} else if (!(event->flags & NOT_KEPT)) {
		memcpy(from.regs, event->regs, sizeof(from.regs));
		if (into->interp)
			sb_interp_code_rule(into->interp,
					    &(struct sb_interp_space){
						    .start_ns = event->start_ns,
						    .tgid = event->tgid,
						    .exec_id = event->exec_id,
					    },
					    &from.known);
		err = sb_symbolizer_unwind(sym, &from, ip, max, &nr, &stack.status);
		if (err)
			return err;
		stack.nr_frames = (uint32_t)nr;
	}
	return into->add(into->arg, &stack);
}

int sb_rawstacks_unwind(const struct sb_rawstacks *raw, struct sb_symbolizer *sym,
			const struct sb_rawstacks_into *into)
{
	size_t i;
	int err = 0;

	for (i = 0; i < raw->at.nr && !err; i++)
		err = unwind((const struct sb_event_raw *)(raw->bytes.at + raw->at.at[i]), sym,
			     into);
	return err;
}
