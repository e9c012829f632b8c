// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/doctor_trial.h"

#include <poll.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/index.h"
#include "base/log.h"
#include "base/time.h"
#include "capture/session.h"
#include "interp/core/interp.h"
#include "process/process.h"
#include "symbolizer/sb_sym.h"
#include "symbolizer/unwind/parser.h"
#include "views/view.h"

#define TRIAL_NS      500000000ull
#define TRIAL_FREQ_HZ 499
#define DRAIN_MS      100

SB_DEFINE_CLEANUP(struct sb_symbolizer, sb_symbolizer_free)
SB_DEFINE_CLEANUP(struct sb_interp, sb_interp_free)
SB_DEFINE_CLEANUP(struct sb_processes, sb_processes_free)
SB_DEFINE_CLEANUP(struct sb_session, sb_session_free)

/* A stack is shipped once, and counted in each drain after. */
struct kept_stack {
	struct sb_stack_id id;
	uint32_t status;
	uint32_t runtimes; /* of an interpreter stack: bits of enum sb_runtime_kind */
	size_t first_ip, nr_ips;
};

struct stacks {
	SB_VEC(struct kept_stack) stacks;
	SB_VEC(uint64_t) ips;
};

void sb_trial_release(struct sb_trial *trial)
{
	sb_vec_release(&trial->mappings);
}

static struct sb_trial_mapping *mapping_at(struct sb_trial *trial, uint64_t addr)
{
	size_t i;

	for (i = 0; i < trial->mappings.nr; i++)
		if (addr >= trial->mappings.at[i].start && addr < trial->mappings.at[i].end)
			return &trial->mappings.at[i];
	return &trial->elsewhere;
}

/* What is above a frame says how its caller was found. */
static void count_stack(struct sb_trial *trial, const struct kept_stack *stack, const uint64_t *ips,
			uint64_t nr)
{
	size_t i;

	trial->nr_samples += nr;
	trial->nr_status[stack->status] += nr;
	trial->nr_complete += stack->status == SB_STACK_COMPLETE ? nr : 0;
	for (i = 0; i < stack->nr_ips; i++) {
		struct sb_trial_mapping *mapping = mapping_at(trial, ips[i] & ~SB_IP_MARKS);
		bool is_last = i + 1 == stack->nr_ips;

		if (is_last && stack->status != SB_STACK_COMPLETE)
			mapping->nr_cut += nr;
		else if (!is_last && (ips[i + 1] & SB_IP_BY_FP))
			mapping->nr_by_fp += nr;
		else
			mapping->nr_by_table += nr;
	}
}

static uint32_t runtimes_of(const struct sb_batch_stack *stack)
{
	const struct sb_interp_frame *frames = (const void *)stack->ip;
	uint32_t runtimes = 0;
	size_t i;

	for (i = 0; i < stack->nr_frames / 2; i++)
		runtimes |= 1u << sb_where_runtime(frames[i].where);
	return runtimes;
}

static int keep_interp(struct stacks *stacks, const struct sb_batch_stack *stack)
{
	return sb_vec_push(&stacks->stacks, (struct kept_stack){
						    .id = stack->id,
						    .runtimes = runtimes_of(stack),
					    });
}

static int keep_stacks(struct stacks *stacks, const struct sb_batch *batch)
{
	size_t i, j;
	int err = 0;

	for (i = 0; i < batch->nr_stacks && !err; i++) {
		const struct sb_batch_stack *stack = &batch->stacks[i];

		if (stack->flags & SB_STACK_INTERP) {
			err = keep_interp(stacks, stack);
			continue;
		}
		if (stack->flags & SB_STACK_KERNEL || stack->status >= SB_STACK_STATUS_MAX)
			continue;
		err = sb_vec_push(&stacks->stacks, (struct kept_stack){
							   .id = stack->id,
							   .status = stack->status,
							   .first_ip = stacks->ips.nr,
							   .nr_ips = stack->nr_frames,
						   });
		for (j = 0; j < stack->nr_frames && !err; j++)
			err = sb_vec_push(&stacks->ips, stack->ip[j]);
	}
	return err;
}

static const struct kept_stack *find_stack(const struct stacks *stacks, struct sb_stack_id id)
{
	size_t i;

	for (i = 0; i < stacks->stacks.nr; i++)
		if (!memcmp(&stacks->stacks.at[i].id, &id, sizeof(id)))
			return &stacks->stacks.at[i];
	return NULL;
}

static void count_runtimes(struct sb_trial *trial, uint32_t runtimes, uint64_t nr)
{
	size_t i;

	for (i = 0; i < SB_RUNTIME_MAX; i++)
		trial->nr_runtime[i] += runtimes & 1u << i ? nr : 0;
}

static int count_batch(struct sb_trial *trial, struct stacks *stacks, const struct sb_batch *batch)
{
	const struct kept_stack *stack;
	size_t i;
	int err = keep_stacks(stacks, batch);

	for (i = 0; i < batch->nr_counts && !err; i++) {
		stack = find_stack(stacks, batch->counts[i].key.ustack);
		if (stack)
			count_stack(trial, stack, stacks->ips.at + stack->first_ip,
				    batch->counts[i].count.nr_samples);
		stack = find_stack(stacks, batch->counts[i].key.istack);
		if (stack)
			count_runtimes(trial, stack->runtimes, batch->counts[i].count.nr_samples);
	}
	return err;
}

static int sample(struct sb_trial *trial, struct sb_session *session)
{
	struct pollfd full = { .fd = sb_session_poll_fd(session), .events = POLLIN };
	const uint64_t end_ns = sb_now_ns() + TRIAL_NS;
	const struct sb_batch *batch;
	struct stacks stacks = {};
	bool is_last;
	int err;

	do {
		/* A signal or a full ring makes this round shorter, which does no harm. */
		(void)poll(&full, 1, DRAIN_MS);
		is_last = sb_now_ns() >= end_ns;
		err = is_last ? sb_session_stop(session) : 0;
		if (!err)
			err = sb_session_drain(session, &batch);
		if (!err)
			err = count_batch(trial, &stacks, batch);
	} while (!err && !is_last);
	sb_vec_release(&stacks.stacks);
	sb_vec_release(&stacks.ips);
	return err;
}

int sb_trial_run(struct sb_trial *trial, uint32_t tgid, struct sb_parser *parser)
{
	const struct sb_symbolizer_opts sym_opts = {
		.parser = sb_parser_seat(parser, SB_PARSER_NAMES),
	};
	struct sb_interp_opts interp_opts = {
		.parser = sb_parser_seat(parser, SB_PARSER_INTERP),
	};
	sb_cleanup(sb_symbolizer_freep) struct sb_symbolizer *sym = NULL;
	sb_cleanup(sb_processes_freep) struct sb_processes *processes = NULL;
	sb_cleanup(sb_interp_freep) struct sb_interp *interp = NULL;
	sb_cleanup(sb_session_freep) struct sb_session *session = NULL;
	struct sb_targets targets = {};
	struct sb_reason reason = {};
	struct sb_session_opts opts = {
		.views = { .at = { sb_view_at(0) }, .nr = 1 },
		.targets = &targets,
		.freq_hz = TRIAL_FREQ_HZ,
		.sides = SB_SIDE_USER,
		.unwind = SB_UNWIND_CFI | SB_UNWIND_FP,
		.parser = parser,
		.reason = &reason,
	};
	int err;

	err = sb_vec_push(&targets.tgids,
			  (struct sb_pid_rule){ .pid = tgid, .rule = SB_RULE_ALLOW });
	if (!err)
		err = sb_symbolizer_new(&sym_opts, &sym);
	if (!err)
		err = sb_processes_new(NULL, &processes);
	opts.processes = interp_opts.processes = processes;
	if (!err)
		err = sb_interp_new(&interp_opts, &interp);
	opts.symbolizer = sym;
	opts.interp = interp;
	if (!err)
		err = sb_session_new(&opts, &session);
	if (!err)
		err = sb_session_start(session);
	if (!err)
		err = sample(trial, session);
	if (sb_reason_is_set(&reason))
		sb_err(reason.err, "%s", reason.text);
	sb_targets_release(&targets);
	return err;
}
