// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Resolves one stack: each address becomes a frame with a name, or with the reason why it has
 * none. */
#include <string.h>

#include "base/cleanup.h"
#include "model/fold.h"
#include "resolve/assembly.h"

/* sysctl kernel.perf_event_max_stack: the kernel hands out no more, and does not say so. */
#define KERNEL_FRAMES_MAX 127

const char *const sb_cut_names[] = {
	[SB_STACK_COMPLETE] = NULL,
	[SB_STACK_NONE] = NULL,
	[SB_STACK_DEPTH] = "too deep",
	[SB_STACK_FAULT] = "unreadable stack",
	[SB_STACK_BAD_FP] = "no frame pointer",
	[SB_STACK_BAD_PC] = "bad return address",
	[SB_STACK_COMPAT] = "32-bit process",
	[SB_STACK_NO_REGS] = "no registers",
	[SB_STACK_NO_TABLE] = "unwind table not ready",
	[SB_STACK_NO_RULE] = "no unwind rule",
	[SB_STACK_BAD_CFA] = "bad unwind rule",
	[SB_STACK_PIECE] = "longer than its first piece",
	[SB_STACK_RAN] = "ran before it was looked at",
	[SB_STACK_RETURN_PROBE] = "return probe",
	[SB_STACK_INTERRUPTED] = "interrupted waker",
};
_Static_assert(SB_ARRAY_SIZE(sb_cut_names) == SB_STACK_STATUS_MAX, "a row for each status");

static enum sb_frame_kind kind_of(const struct sb_sym_frame *frame)
{
	switch (frame->kind) {
	case SB_SYM_KERNEL:
	case SB_SYM_KMOD:
	case SB_SYM_BPF:
		return frame->is_inlined ? SB_FRAME_KERNEL_INLINED : SB_FRAME_KERNEL;
	case SB_SYM_JIT:
		return SB_FRAME_JIT;
	default:
		return frame->is_inlined ? SB_FRAME_INLINED : SB_FRAME_USER;
	}
}

/*
 * Make the name of a frame without a symbol: "[libc.so.6+0x1234]", with the offset of its function,
 * so that a function is one frame; or with the offset of the address itself if that is not known,
 * or offsets are asked for. A symbol that does not cover the address is never used. Readers of a
 * store may not be allowed to know where a process or the kernel has its memory, so there it is
 * "[anon]".
 */
static int stand_in(struct sb_str *text, const struct sb_resolve_opts *opts,
		    const struct sb_sym_frame *frame)
{
	const bool is_start = frame->has_start && !opts->offsets;
	const uint64_t addr = frame->module_addr - (is_start ? frame->func_offset : 0);
	const bool is_shown = !frame->is_absolute || !opts->hides_addresses;

	sb_str_clear(text);
	return sb_fold_unnamed(text, frame->module, is_shown ? &addr : NULL);
}

static int push_sym(struct assembly *assembly, const struct sb_sym_frame *sym)
{
	const struct sb_resolve_opts *opts = assembly->opts;
	struct sb_frame frame = {
		.name = sym->name,
		.kind = kind_of(sym),
		.module = opts->modules ? sym->module : NULL,
		.file = opts->lines ? sym->file : NULL,
		.line = opts->lines ? sym->line : 0,
		.func_offset = opts->offsets ? sym->func_offset : 0,
	};
	int err;

	if (!sym->name) {
		err = stand_in(&assembly->text, opts, sym);
		if (err)
			return err;
		frame.name = assembly->text.s;
		frame.func_offset = 0;
		frame.is_unnamed = true;
	}
	return sb_assembly_push_frame(assembly, &frame);
}

/* Note where the frames of one address begin, for merge.c. */
static int note_native(struct assembly *assembly, uint64_t addr, bool is_marked,
		       const struct sb_sym_frame *physical)
{
	return sb_vec_push(
		&assembly->merge.natives,
		(struct native_frame){
			.addr = addr,
			.func = physical->name ? addr - physical->func_offset : 0,
			.first = assembly->frames.nr,
			.name = physical->name,
			.module = physical->module,
			.is_marked = is_marked,
			.reason = physical->name || is_marked ? SB_SYM_OK : physical->reason,
			.is_generated =
				physical->kind == SB_SYM_JIT || physical->reason == SB_SYM_ANON,
		});
}

/* Add a mark frame that tells the reader of the profile why the stack was cut. */
static int push_cut(struct assembly *assembly, uint32_t status)
{
	return sb_assembly_push_mark(assembly, SB_ATTR_TRUNCATED, sb_cut_names[status]);
}

/* Drop the frames of the stack that were resolved so far. */
static void restart_part(struct assembly *assembly)
{
	memset(&assembly->part.counts, 0, sizeof(assembly->part.counts));
	assembly->frames.nr = assembly->part.start;
	assembly->merge.natives.nr = 0;
}

static int on_address(void *arg, size_t i, const struct sb_sym_frame *frames, size_t nr_frames)
{
	struct assembly *assembly = arg;
	struct stack_part *part = &assembly->part;
	const struct sb_sym_frame *physical = &frames[nr_frames - 1];
	const size_t nr = part->reqs.nr; /* requests are root first, addresses leaf first */
	const bool has_interp = part->ips && assembly->opts->interp;
	const bool is_marked = has_interp && part->ips[nr - 1 - i] & SB_IP_INTERP;
	int err = 0;

	/* A frame pointer that leads to no code was none, so what lies above it is wrong, too. */
	if (physical->reason == SB_SYM_UNMAPPED && i + 1 < nr) {
		restart_part(assembly);
		part->is_broken = true;
		part->hides_callers = false;
		return 0;
	}
	part->is_leaf_unmapped = physical->reason == SB_SYM_UNMAPPED;
	part->counts.nr++;
	if (has_interp)
		err = note_native(assembly, part->reqs.at[i].addr, is_marked, physical);
	/* An interpreter frame will replace a marked one, and has a name. */
	if (!physical->name && !is_marked)
		part->counts.nr_unnamed[physical->reason]++;
	/* The mark that callers may be missing is pushed with this frame, because the frame of its
	 * caller may be left out. */
	if (!err && i && part->ips && part->ips[nr - i] & SB_IP_HIDES) {
		part->hides_callers = true;
		err = push_cut(assembly, SB_STACK_BAD_FP);
	}
	if (part->is_of_calls)
		nr_frames = 1;
	while (nr_frames-- && !err)
		err = push_sym(assembly, &frames[nr_frames]);
	return err;
}

/* Make a request of each address of a stack. */
static int make_query(struct assembly *assembly, const struct sb_known_stack *stack,
		      struct sb_sym_query *ret_query)
{
	struct stack_part *part = &assembly->part;
	uint32_t at = stack->nr_ips;
	int err = 0;

	part->reqs.nr = 0;
	while (at-- && !err) {
		uint64_t ip = stack->ips[at];
		uint64_t marks = stack->flags & SB_STACK_KERNEL ? 0 : ip & SB_IP_MARKS;
		bool is_caller = at > 0 || (stack->flags & SB_STACK_LEAF_RETURNS);

		is_caller = is_caller && !(marks & SB_IP_EXACT);
		err = sb_vec_push(&part->reqs, (struct sb_sym_req){ .addr = ip & ~marks,
								    .is_caller = is_caller });
	}
	*ret_query = (struct sb_sym_query){
		.reqs = part->reqs.at,
		.nr = part->reqs.nr,
		.emit = on_address,
		.arg = assembly,
	};
	return err;
}

/* Push the frames of a stack. @user: NULL for a kernel stack. */
static int resolve_part(struct assembly *assembly, const struct sb_known_stack *stack,
			const struct user_stack *user)
{
	struct stack_part *part = &assembly->part;
	struct sb_sym_query query;
	int err = make_query(assembly, stack, &query);

	if (err)
		return err;
	part->ips = user ? stack->ips : NULL;
	part->start = assembly->frames.nr;
	part->is_of_calls = stack->flags & SB_STACK_CALLS;
	part->is_broken = part->is_leaf_unmapped = part->hides_callers = false;
	restart_part(assembly);
	return user ? sb_symbolizer_user(assembly->sym, user->tgid, user->time_ns, &query)
		    : sb_symbolizer_kernel(assembly->sym, &query);
}

static void add_counts(struct assembly *assembly, const struct sb_frame_counts *counts)
{
	int i;

	assembly->stats->nr_frames += counts->nr * assembly->nr_samples;
	for (i = 0; i < SB_SYM_REASON_MAX; i++)
		assembly->stats->nr_unnamed[i] += counts->nr_unnamed[i] * assembly->nr_samples;
}

static int push_missing(struct assembly *assembly)
{
	assembly->stats->nr_missing_stacks += assembly->nr_samples;
	assembly->is_cut = true;
	return sb_assembly_push_mark(assembly, SB_ATTR_LOST_STACK, NULL);
}

/* Apply --depth to the merged stack as to a native one: keep the frames next to the leaf. Return:
 * whether any were cut. */
static bool shorten(struct assembly *assembly)
{
	const size_t nr = assembly->merge.units.nr, max = assembly->opts->depth_max;
	const size_t start = assembly->part.start;
	uint32_t *at = assembly->frames.at + start;
	size_t nr_cut;

	if (!max || nr <= max)
		return false;
	nr_cut = assembly->merge.units.at[nr - max];
	assembly->frames.nr -= nr_cut;
	memmove(at, at + nr_cut, (assembly->frames.nr - start) * sizeof(*at));
	return true;
}

int sb_assembly_push_user(struct assembly *assembly, struct sb_stack_cache *stacks,
			  const struct user_stack *user)
{
	struct sb_known_stack *stack = sb_stack_cache_find(stacks, user->ustack);
	const struct stack_part *part = &assembly->part;
	uint32_t status, native_status;
	int err;

	assembly->stats->nr_user_stacks += assembly->nr_samples;
	if (!stack)
		return push_missing(assembly);
	stack->tgid = user->tgid;
	err = resolve_part(assembly, stack, user);
	if (err)
		return err;
	status = native_status = part->is_broken ? SB_STACK_BAD_PC : stack->status;
	/* A system call cannot come from where there is no code: exec has released the old memory,
	 * and the new program has not begun. There is no user stack at this moment. */
	if (part->is_leaf_unmapped && (stack->flags & SB_STACK_LEAF_RETURNS)) {
		restart_part(assembly);
		status = native_status = SB_STACK_NONE;
	}
	if (assembly->opts->interp) {
		err = sb_assembly_merge(assembly, stacks, user, &status);
		if (err)
			return err;
		if (shorten(assembly))
			status = native_status = SB_STACK_DEPTH;
	}
	add_counts(assembly, &part->counts);
	/* Both ends are known; the mark is where callers are missing, which is not at the root. */
	if (part->hides_callers && !sb_cut_names[status])
		status = SB_STACK_BAD_FP;
	assembly->user_count = &assembly->stats->nr_status[status];
	*assembly->user_count += assembly->nr_samples;
	assembly->is_cut |= sb_cut_names[status] != NULL;
	/* This is the mark of the native walk, in the place of the missing callers; that of the
	 * interpreter's is where its frames end. */
	if (!sb_cut_names[native_status])
		return 0;
	err = push_cut(assembly, native_status);
	if (!err)
		sb_assembly_move_last(assembly, part->start);
	return err;
}

static int resolve_kernel(struct assembly *assembly, struct sb_known_stack *stack)
{
	const size_t start = assembly->frames.nr;
	int err = resolve_part(assembly, stack, NULL);

	if (err)
		return err;
	if (assembly->view->trim)
		sb_assembly_trim(assembly, start);
	add_counts(assembly, &assembly->part.counts);
	stack->counts = assembly->part.counts;
	return sb_frame_ids_set(&stack->frames, assembly->frames.at + start,
				assembly->frames.nr - start);
}

/* Kernel addresses mean the same in every sample: each stack is resolved once. */
int sb_assembly_push_kernel(struct assembly *assembly, struct sb_stack_cache *stacks,
			    struct sb_stack_id id)
{
	struct sb_known_stack *stack = sb_stack_cache_find(stacks, id);
	int err = 0;

	if (!stack)
		return push_missing(assembly);
	if (stack->nr_ips >= KERNEL_FRAMES_MAX) {
		assembly->stats->nr_kernel_cut += assembly->nr_samples;
		assembly->is_cut = true;
		err = push_cut(assembly, SB_STACK_DEPTH);
	}
	if (err || !stack->frames.at)
		return err ? err : resolve_kernel(assembly, stack);
	add_counts(assembly, &stack->counts);
	return sb_assembly_push_ids(assembly, stack->frames.at, stack->frames.nr);
}

int sb_assembly_next_change(struct assembly *assembly, struct sb_stack_cache *stacks,
			    const struct sb_batch_count *count, uint64_t from_ns, uint64_t *ret_ns)
{
	const struct sb_known_stack *stack = sb_stack_cache_find(stacks, count->key.ustack);
	struct sb_sym_query query;
	int err;

	*ret_ns = UINT64_MAX;
	if (!stack || stack->has_one_meaning || from_ns >= count->count.last_ns)
		return 0;
	err = make_query(assembly, stack, &query);
	if (!err)
		*ret_ns = sb_symbolizer_next_change(assembly->sym, count->key.tgid, from_ns,
						    count->count.last_ns, &query);
	return err;
}
