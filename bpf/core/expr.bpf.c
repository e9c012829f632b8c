// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Expressions over the arguments of an event, for all views that take events. */
#include "bpf/core/sb_expr.bpf.h"
#include "bpf/core/sb_sample.bpf.h"
#include "bpf/core/sb_util.bpf.h"

#include "bpf/step/sb_expr_step.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set before load */
	__type(key, __u32);
	__type(value, struct sb_trace_place);
} event_places SEC(".maps");

/* --when, --weight, --value and --key, compiled for the places that they are evaluated at. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set before load */
	__type(key, __u32);
	__type(value, struct sb_expr);
} event_exprs SEC(".maps");

/* The evaluations of a CPU: one for each slot, since one can interrupt the other. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct sb_expr_run);
} event_runs SEC(".maps");

/* Scratch memory for an object, for each slot. The room is for the verifier: sb_object_ship() gets
 * the size at run time. */
struct value_object {
	struct sb_event_object event;
	union {
		struct sb_object_value value;
		__u8 room[SB_OBJECT_BYTES_MAX];
	};
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct value_object);
} event_objects SEC(".maps");

/* The functions from here to sb_expr_evaluate() are global, because the verifier examines such a
 * function once. @run_idx: in event_runs; @expr_idx: in event_exprs. */
__noinline int sb_expr_run_step(__u32 run_idx, __u32 expr_idx)
{
	struct sb_expr_run *run = bpf_map_lookup_elem(&event_runs, &run_idx);
	const struct sb_expr *expr = bpf_map_lookup_elem(&event_exprs, &expr_idx);

	return run && expr ? sb_expr_step(run, expr, NULL) : 0;
}

/* Return: the register whose 8 bytes are at offset @at of the context; 0 for SB_TRACE_NO_REG. */
static __u64 read_register(struct sb_expr_run *run, __u32 at)
{
	__u64 val = 0;

	if (at != SB_TRACE_NO_REG &&
	    bpf_probe_read_kernel(&val, sizeof(val), (const void *)(run->context + at)))
		run->flags |= SB_EXPR_BAD_READ;
	return val;
}

/* Supply argument @i of the USDT probe @place_idx. */
__noinline int sb_expr_read_arg(__u32 run_idx, __u32 place_idx, __u32 i)
{
	struct sb_expr_run *run = bpf_map_lookup_elem(&event_runs, &run_idx);
	const struct sb_trace_place *place = bpf_map_lookup_elem(&event_places, &place_idx);
	const struct sb_trace_arg *arg;
	__u64 val, size, read = 0;

	if (!run || !place || i >= SB_TRACE_ARGS_MAX)
		return 0;
	arg = &place->arg[i];
	val = arg->add + read_register(run, arg->base) +
	      (read_register(run, arg->index) << (arg->shift & 63));
	size = arg->size;
	sb_opaque(size);
	if (size > sizeof(read))
		size = sizeof(read);
	if (size && bpf_probe_read_user(&read, size, (const void *)val)) {
		run->flags |= SB_EXPR_BAD_READ;
		read = 0;
	}
	run->value[SB_EXPR_ARG0 + i] = size ? read : val;
	return 0;
}

static void supply_values(struct sb_expr_run *run, const struct sb_expr *expr)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();

	run->value[SB_EXPR_TGID] = pid_tgid >> 32;
	run->value[SB_EXPR_TID] = (__u32)pid_tgid;
	run->value[SB_EXPR_CPU] = bpf_get_smp_processor_id();
	if (expr->needs_comm) {
		run->comm[0] = run->comm[1] = 0;
		bpf_get_current_comm(run->comm, sizeof(run->comm));
	}
}

static void count_flags(__u32 flags)
{
	if (flags & SB_EXPR_DIV_ZERO)
		sb_stat_add(SB_STAT_EXPR_DIV_ZERO, 1);
	if (flags & SB_EXPR_BAD_READ)
		sb_stat_add(SB_STAT_EXPR_BAD_READ, 1);
	if (flags & SB_EXPR_CUT)
		sb_stat_add(SB_STAT_EXPR_CUT, 1);
}

/* Evaluate an expression at a place; the caller has set run->context. The result is in
 * run->ints[0]. */
__noinline int sb_expr_evaluate(__u32 run_idx, __u32 place_idx, __u32 expr_idx)
{
	struct sb_expr_run *run = bpf_map_lookup_elem(&event_runs, &run_idx);
	const struct sb_expr *expr = bpf_map_lookup_elem(&event_exprs, &expr_idx);
	__u32 i;

	if (!run)
		return 0;
	sb_expr_begin(run);
	if (!expr)
		return 0;
	supply_values(run, expr);
	for (i = 0; i < SB_TRACE_ARGS_MAX; i++)
		if (expr->values >> i & 1)
			sb_expr_read_arg(run_idx, place_idx, i);
	for (i = 0; i < SB_EXPR_INSNS_MAX; i++)
		if (!sb_expr_run_step(run_idx, expr_idx))
			break;
	count_flags(run->flags);
	return 0;
}

/* Return: the evaluations of a slot. */
static __u32 run_of(__u32 slot)
{
	return slot == SB_SCRATCH_PROBE;
}

__hidden const struct sb_trace_place *sb_event_place(__u32 idx)
{
	return bpf_map_lookup_elem(&event_places, &idx);
}

/* Evaluate the expression @nr of a place. Not inlined: up to 6.12 what it has on the stack would
 * count for the walk, too. Return: NULL: there is none. */
static __noinline struct sb_expr_run *evaluate(void *ctx, __u32 place_idx, __u32 nr, __u32 slot)
{
	__u32 run_idx = run_of(slot);
	struct sb_expr_run *run = bpf_map_lookup_elem(&event_runs, &run_idx);

	if (!run || !nr)
		return NULL;
	run->context = (__u64)ctx;
	sb_expr_evaluate(run_idx, place_idx, nr - 1);
	return run;
}

__hidden bool sb_event_is_wanted(void *ctx, __u32 place_idx, __u32 nr, __u32 slot)
{
	const struct sb_expr_run *run;

	if (!nr)
		return true;
	run = evaluate(ctx, place_idx, nr, slot);
	if (run && run->ints[0])
		return true;
	sb_stat_add(SB_STAT_WHEN_FALSE, 1);
	return false;
}

__hidden __u64 sb_event_weight(void *ctx, __u32 place_idx, __u32 nr, __u32 slot)
{
	const struct sb_expr_run *run;

	if (!nr)
		return 1;
	run = evaluate(ctx, place_idx, nr, slot);
	if (run && (__s64)run->ints[0] > 0)
		return run->ints[0];
	sb_stat_add(SB_STAT_WEIGHT_NONE, 1);
	return 0;
}

__hidden __u64 sb_event_word(void *ctx, __u32 place_idx, __u32 nr, __u32 slot)
{
	__u32 expr_idx = nr - 1, i;
	const struct sb_expr_run *run = evaluate(ctx, place_idx, nr, slot);
	const struct sb_expr *expr = bpf_map_lookup_elem(&event_exprs, &expr_idx);
	__u64 word = 0;

	if (!run || !expr)
		return 0;
	if (expr->kind != SB_EXPR_STRING)
		return run->ints[0];
	for (i = 0; i < SB_EXPR_STRING_WORDS; i++)
		word = sb_hash_word(word, run->strings[0][i]);
	return word;
}

/* Set the value's kind, and what the evaluation resulted in. Return: the ID of this object. */
static __u64 set_value(struct sb_object_value *value, const struct sb_expr_run *run,
		       const struct sb_expr *expr)
{
	bool is_text = expr->kind == SB_EXPR_STRING;
	__u64 id = SB_OBJECT_VALUE;
	__u32 i;

	value->kind = expr->kind;
	value->is_signed = expr->result_is_signed;
	value->number = is_text ? 0 : run->ints[0];
	id = sb_hash_word(id, value->kind | (__u64)value->is_signed << 32);
	id = sb_hash_word(id, value->number);
	for (i = 0; i < SB_EXPR_STRING_WORDS; i++) {
		value->text[i] = is_text ? run->strings[0][i] : 0;
		id = sb_hash_word(id, value->text[i]);
	}
	return id | 1;
}

__hidden __u64 sb_event_value(void *ctx, __u32 place_idx, __u32 nr, __u32 slot)
{
	__u32 run_idx = run_of(slot), expr_idx = nr - 1;
	const struct sb_expr_run *run = evaluate(ctx, place_idx, nr, slot);
	const struct sb_expr *expr = bpf_map_lookup_elem(&event_exprs, &expr_idx);
	struct value_object *object = bpf_map_lookup_elem(&event_objects, &run_idx);

	if (!run || !expr || !object)
		return 0;
	object->event.kind = SB_OBJECT_VALUE;
	object->event.nr_bytes = sizeof(object->value);
	object->event.id = set_value(&object->value, run, expr);
	if (sb_object_known(object->event.id) == SB_OBJECT_UNSEEN)
		sb_object_ship(&object->event);
	return object->event.id;
}
