// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Resolves one stack: each address becomes a frame with a name, or with the reason why it has
 * none. */
#include <string.h>

#include "base/cleanup.h"
#include "model/fold.h"
#include "resolve/resolve_priv.h"

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
static int stand_in(struct sb_resolver *resolver, const struct sb_sym_frame *frame)
{
	const bool is_start = frame->has_start && !resolver->opts.offsets;
	const uint64_t addr = frame->module_addr - (is_start ? frame->func_offset : 0);
	const bool is_shown = !frame->is_absolute || !resolver->opts.hides_addresses;

	sb_str_clear(&resolver->text);
	return sb_fold_unnamed(&resolver->text, frame->module, is_shown ? &addr : NULL);
}

static int push_sym(struct sb_resolver *resolver, const struct sb_sym_frame *sym)
{
	const struct sb_resolve_opts *opts = &resolver->opts;
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
		err = stand_in(resolver, sym);
		if (err)
			return err;
		frame.name = resolver->text.s;
		frame.func_offset = 0;
		frame.is_unnamed = true;
	}
	return sb_resolver_push_frame(resolver, &frame);
}

/* Note where the frames of one address begin, for merge.c. */
static int note_native(struct sb_resolver *resolver, size_t i, const struct sb_sym_frame *physical)
{
	const uint64_t ip = resolver->marks_at[resolver->reqs.nr - 1 - i];

	return sb_vec_push(
		&resolver->natives,
		(struct native_frame){
			.addr = resolver->reqs.at[i].addr,
			.func = physical->name ? resolver->reqs.at[i].addr - physical->func_offset
					       : 0,
			.first = resolver->frames.nr,
			.name = physical->name,
			.module = physical->module,
			.is_marked = ip & SB_IP_INTERP,
			.reason =
				physical->name || ip & SB_IP_INTERP ? SB_SYM_OK : physical->reason,
			.is_generated =
				physical->kind == SB_SYM_JIT || physical->reason == SB_SYM_ANON,
		});
}

/* Why a stack was cut, in words for the reader of the profile. */
static int push_cut(struct sb_resolver *resolver, uint32_t status)
{
	return sb_resolver_push_mark(resolver, SB_ATTR_TRUNCATED, sb_cut_names[status]);
}

static int on_address(void *arg, size_t i, const struct sb_sym_frame *frames, size_t nr_frames)
{
	struct sb_resolver *resolver = arg;
	const struct sb_sym_frame *physical = &frames[nr_frames - 1];
	int err = 0;

	/* A frame pointer that leads to no code was none, so what lies above it is wrong, too. */
	if (physical->reason == SB_SYM_UNMAPPED && i + 1 < resolver->reqs.nr) {
		memset(&resolver->counts, 0, sizeof(resolver->counts));
		resolver->frames.nr = resolver->part_start;
		resolver->natives.nr = 0;
		resolver->is_broken = true;
		resolver->hides_callers = false;
		return 0;
	}
	resolver->is_leaf_unmapped = physical->reason == SB_SYM_UNMAPPED;
	resolver->counts.nr++;
	if (resolver->marks_at)
		err = note_native(resolver, i, physical);
	if (err)
		return err;
	/* An interpreter frame will replace this one, and has a name. */
	if (!physical->name &&
	    !(resolver->marks_at && resolver->natives.at[resolver->natives.nr - 1].is_marked))
		resolver->counts.nr_unnamed[physical->reason]++;
	/* The mark that callers may be missing is pushed with this frame, because the frame of its
	 * caller may be left out. */
	if (!err && i && resolver->ips_at &&
	    resolver->ips_at[resolver->reqs.nr - i] & SB_IP_HIDES) {
		resolver->hides_callers = true;
		err = push_cut(resolver, SB_STACK_BAD_FP);
	}
	while (nr_frames-- && !err)
		err = push_sym(resolver, &frames[nr_frames]);
	return err;
}

/* The addresses of @stack as requests, root first. */
static int make_requests(struct sb_resolver *resolver, const struct sb_known_stack *stack)
{
	const uint64_t *ips = sb_stack_cache_ips(&resolver->stacks, stack);
	uint32_t at = stack->nr_ips;
	int err = 0;

	resolver->reqs.nr = 0;
	while (at-- && !err) {
		uint64_t ip = ips[at];
		uint64_t marks = stack->flags & SB_STACK_KERNEL ? 0 : ip & SB_IP_MARKS;
		bool is_caller = at > 0 || (stack->flags & SB_STACK_LEAF_RETURNS);

		is_caller = is_caller && !(marks & SB_IP_EXACT);
		err = sb_vec_push(&resolver->reqs, (struct sb_sym_req){ .addr = ip & ~marks,
									.is_caller = is_caller });
	}
	return err;
}

static void add_counts(struct sb_resolver *resolver, const struct sb_frame_counts *counts)
{
	int i;

	resolver->stats->nr_frames += counts->nr * resolver->nr_samples;
	for (i = 0; i < SB_SYM_REASON_MAX; i++)
		resolver->stats->nr_unnamed[i] += counts->nr_unnamed[i] * resolver->nr_samples;
}

static int push_missing(struct sb_resolver *resolver)
{
	resolver->stats->nr_missing_stacks += resolver->nr_samples;
	resolver->is_cut = true;
	return sb_resolver_push_mark(resolver, SB_ATTR_LOST_STACK, NULL);
}

static struct sb_sym_query query_of(struct sb_resolver *resolver)
{
	return (struct sb_sym_query){
		.reqs = resolver->reqs.at,
		.nr = resolver->reqs.nr,
		.emit = on_address,
		.arg = resolver,
	};
}

/* Push the mark that the stack was cut, in the place of its missing callers. */
static int mark_cut(struct sb_resolver *resolver, uint32_t status)
{
	size_t nr = resolver->frames.nr - resolver->part_start;
	int err = push_cut(resolver, status);
	uint32_t *at = resolver->frames.at + resolver->part_start, mark;

	if (err)
		return err;
	mark = at[nr];
	memmove(at + 1, at, nr * sizeof(*at));
	at[0] = mark;
	return 0;
}

static int resolve_user(struct sb_resolver *resolver, const struct user_part *part,
			const struct sb_known_stack *stack)
{
	struct sb_sym_query query;
	int err = make_requests(resolver, stack);

	if (err)
		return err;
	memset(&resolver->counts, 0, sizeof(resolver->counts));
	resolver->is_broken = resolver->is_leaf_unmapped = resolver->hides_callers = false;
	resolver->ips_at = sb_stack_cache_ips(&resolver->stacks, stack);
	if (resolver->opts.interp)
		resolver->marks_at = resolver->ips_at;
	query = query_of(resolver);
	err = sb_symbolizer_user(resolver->sym, part->tgid, part->time_ns, &query);
	resolver->marks_at = resolver->ips_at = NULL;
	return err;
}

/* Apply --depth to the merged stack as to a native one: keep the frames next to the leaf. Return:
 * whether any were cut. */
static bool shorten(struct sb_resolver *resolver)
{
	size_t nr = resolver->units.nr, max = resolver->opts.depth_max, nr_gone;
	uint32_t *at = resolver->frames.at + resolver->part_start;

	if (!max || nr <= max)
		return false;
	nr_gone = resolver->units.at[nr - max];
	resolver->frames.nr -= nr_gone;
	memmove(at, at + nr_gone, (resolver->frames.nr - resolver->part_start) * sizeof(*at));
	return true;
}

int sb_resolver_push_user(struct sb_resolver *resolver, const struct user_part *part)
{
	struct sb_known_stack *stack = sb_stack_cache_find(&resolver->stacks, part->ustack);
	uint32_t status, native_status;
	int err;

	resolver->stats->nr_user_stacks += resolver->nr_samples;
	if (!stack)
		return push_missing(resolver);
	stack->tgid = part->tgid;
	status = stack->status;
	resolver->part_start = resolver->frames.nr;
	resolver->natives.nr = 0;
	err = resolve_user(resolver, part, stack);
	if (err)
		return err;
	if (resolver->is_broken)
		status = SB_STACK_BAD_PC;
	native_status = status;
	/* A system call cannot come from where there is no code: exec has released the old memory,
	 * and the new program has not begun. There is no user stack at this moment. */
	if (resolver->is_leaf_unmapped && (stack->flags & SB_STACK_LEAF_RETURNS)) {
		resolver->frames.nr = resolver->part_start;
		resolver->natives.nr = 0;
		memset(&resolver->counts, 0, sizeof(resolver->counts));
		status = native_status = SB_STACK_NONE;
	}
	if (resolver->opts.interp) {
		err = sb_resolver_merge(resolver, part, &status);
		if (err)
			return err;
		if (shorten(resolver))
			status = native_status = SB_STACK_DEPTH;
	}
	add_counts(resolver, &resolver->counts);
	/* Both ends are known. The mark goes where callers are missing, which is not at the
	 * root. */
	if (resolver->hides_callers && !sb_cut_names[status])
		status = SB_STACK_BAD_FP;
	resolver->stats->nr_status[status] += resolver->nr_samples;
	resolver->is_cut |= sb_cut_names[status] != NULL;
	/* This is the mark of the native walk; that of the interpreter's is where its frames
	 * end. */
	return sb_cut_names[native_status] ? mark_cut(resolver, native_status) : 0;
}

static int resolve_kernel(struct sb_resolver *resolver, struct sb_known_stack *stack)
{
	size_t before = resolver->frames.nr;
	int err = make_requests(resolver, stack);
	struct sb_sym_query query = query_of(resolver);

	memset(&resolver->counts, 0, sizeof(resolver->counts));
	resolver->part_start = before;
	if (!err)
		err = sb_symbolizer_kernel(resolver->sym, &query);
	if (!err && resolver->view->trim)
		sb_resolver_trim(resolver, before);
	if (!err)
		err = sb_stack_cache_set_frames(&resolver->stacks, stack,
						resolver->frames.at + before,
						resolver->frames.nr - before, &resolver->counts);
	if (!err)
		add_counts(resolver, &stack->counts);
	return err;
}

/* Kernel addresses mean the same in every sample: each stack is resolved once. */
int sb_resolver_push_kernel(struct sb_resolver *resolver, struct sb_stack_id id)
{
	struct sb_known_stack *stack = sb_stack_cache_find(&resolver->stacks, id);
	int err;

	if (!stack)
		return push_missing(resolver);
	if (stack->nr_ips >= KERNEL_FRAMES_MAX) {
		resolver->stats->nr_kernel_cut += resolver->nr_samples;
		resolver->is_cut = true;
		err = push_cut(resolver, SB_STACK_DEPTH);
		if (err)
			return err;
	}
	if (!stack->is_resolved)
		return resolve_kernel(resolver, stack);
	err = sb_vec_reserve(&resolver->frames, resolver->frames.nr + stack->nr_frames);
	if (err)
		return err;
	memcpy(resolver->frames.at + resolver->frames.nr,
	       resolver->stacks.kernel_frames.at + stack->first_frame,
	       stack->nr_frames * sizeof(uint32_t));
	resolver->frames.nr += stack->nr_frames;
	add_counts(resolver, &stack->counts);
	return 0;
}

int sb_resolver_next_change(struct sb_resolver *resolver, const struct sb_batch_count *count,
			    uint64_t from_ns, uint64_t *ret_ns)
{
	const struct sb_known_stack *stack =
		sb_stack_cache_find(&resolver->stacks, count->key.ustack);
	struct sb_sym_query query;
	int err;

	*ret_ns = UINT64_MAX;
	if (!stack || stack->has_one_meaning || from_ns >= count->count.last_ns)
		return 0;
	err = make_requests(resolver, stack);
	query = query_of(resolver);
	if (!err)
		*ret_ns = sb_symbolizer_next_change(resolver->sym, count->key.tgid, from_ns,
						    count->count.last_ns, &query);
	return err;
}
