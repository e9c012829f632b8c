/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What latency.bpf.c knows about an open call or pair, and how it is accounted. A call lasts from
 * the entry of a function to its return; a pair lasts from an event of --from to the event of --to
 * that belongs to it. Both are open until they end, and are records of the map `latency_calls`. A
 * place (struct sb_trace_place) is where one event is hooked; it has the expressions of --when,
 * --weight and --key, and place->at_end says which of them are evaluated when the call or pair
 * ends.
 *
 * Only latency.bpf.c and the headers beside it include this: it defines maps. Everything runs in
 * BPF programs, for the current task. No pointer may be NULL, and none is kept. What is lost or
 * left out is counted where that happens. @slot: enum sb_scratch_slot of the calling program. Times
 * are CLOCK_MONOTONIC, in nanoseconds.
 *
 * Order at a beginning: sb_begin(); find_list() of a call, find_key() of a pair; choose();
 * stands_for(); sb_take_stacks(); a record, for which note_process() has made room. At the end: the
 * record is found in the same way; choose(); account(); then the caller removes the record.
 */
#ifndef SB_LATENCY_BPF_H
#define SB_LATENCY_BPF_H

#include "bpf/abi/sb_abi_latency.h"
#include "bpf/core/sb_expr.bpf.h"
#include "bpf/core/sb_sample.bpf.h"
#include "bpf/core/sb_util.bpf.h"

/* --min, --max. */
const volatile __u64 cfg_latency_min_ns = 0, cfg_latency_max_ns = ~0ull;

/* Only what is older than half of the run, in place of --min. */
const volatile __u32 cfg_latency_half = 0;
/* What a process holds when it ends counts as held until the end of the run. */
const volatile bool cfg_latency_keeps_ended = false;

/* The window of now, or the last one: sb_held_watch. 0: there was none, and each call is seen. */
__u32 latency_window = 0;
/* Pieces of memory that were given back in the window that saw them allocated. */
__u64 latency_nr_at_once = 0;

/* --slowest: how many; how long the slowest calls took so far, in no order. */
const volatile __u32 cfg_latency_slowest = 0;
__u64 latency_slowest[SB_LATENCY_SLOWEST_MAX] = {};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct sb_latency_call);
	__type(value, struct sb_latency_record);
} latency_calls SEC(".maps");

/* struct list.caller -> value of its newest call; 0: it has none. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct sb_latency_caller);
	__type(value, __u64);
} latency_newest SEC(".maps");

/* Processes that have had calls of goroutines, or have memory that is followed; the values mean
 * nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u32);
} latency_go_processes SEC(".maps");

/* A list of calls that are open. */
struct list {
	struct sb_latency_caller caller;
	__u64 stack; /* of functions of the kernel: the lowest address of the thread's own stack */
	__u64 is_of_kernel;
};

/* A call that begins or ends. */
struct call {
	struct sb_call_context context; /* what its expressions read */
	struct list list;		/* where it is, or will be */
	__u64 value;			/* sb_latency_call.value */
};

/* Where a call or an event is, and the record for its sample. */
struct event {
	void *ctx; /* of expressions */
	const struct sb_trace_place *place;
	__u32 idx, slot;
};

/* struct event.ctx of calls: of functions of programs, and of the kernel. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct call);
} latency_contexts SEC(".maps");

/* Scratch memory for an object, by slot. The room is for the verifier: sb_object_ship() gets the
 * size at run time. */
struct call_object {
	struct sb_event_object event;
	union {
		struct sb_object_call call;
		__u8 room[SB_OBJECT_BYTES_MAX];
	};
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SB_SCRATCH_MAX);
	__type(key, __u32);
	__type(value, struct call_object);
} latency_objects SEC(".maps");

/* Note that the process of a goroutine, or of memory, has open calls or pairs, so that they are
 * dropped when it ends. Does nothing if caller->tgid is 0: calls of a thread are dropped when that
 * ends. Return: 0; a negative errno of bpf_map_update_elem(): there is no room for the process, so
 * begin nothing, and count it (SB_STAT_CALLS_FULL). */
static int note_process(const struct sb_latency_caller *caller)
{
	__u32 tgid = caller->tgid, one = 1;

	if (!tgid || bpf_map_lookup_elem(&latency_go_processes, &tgid))
		return 0;
	return bpf_map_update_elem(&latency_go_processes, &tgid, &one, BPF_ANY);
}

/*
 * Return: how many calls or pairs one that begins now stands for (sb_latency_record.nr), because of
 * throttling and of slices; 0: it is left out, and not counted. Fractions are rounded by chance, so
 * that sums are unbiased. Call it once for each beginning.
 */
static __u64 stands_for(__u64 now_ns)
{
	const __u64 one = 1ull << SB_SLICE_SHIFT;
	__u64 nr = sb_thin(1);

	if (!cfg_slices || !nr)
		return nr;
	return (sb_slice(nr * one, now_ns) + (bpf_get_prandom_u32() & (one - 1))) >> SB_SLICE_SHIFT;
}

/* Evaluate --when and --weight, those that place->at_end assigns to this end of the call or pair.
 * @is_end: whether it is the later end; then the context of a call has its result and duration.
 * Return: false: leave it out, because --when is false or --weight is not positive, which is
 * counted; otherwise true. *@ret_weight becomes the value of --weight if that is evaluated here,
 * and is unchanged otherwise. */
static bool choose(const struct event *event, bool is_end, __u64 *ret_weight)
{
	const struct sb_trace_place *place = event->place;
	__u32 here = is_end ? place->at_end : ~place->at_end;

	if (here & SB_AT_END_WHEN &&
	    !sb_event_is_wanted(event->ctx, event->idx, place->when, event->slot))
		return false;
	if (!(here & SB_AT_END_WEIGH) || !place->weigh)
		return true;
	*ret_weight = sb_event_weight(event->ctx, event->idx, place->weigh, event->slot);
	return *ret_weight;
}

/* Return: whether a place is one of pairs that are accounted only if they are open at the end of
 * the run or at a snapshot, such as memory that is held. */
static bool is_held(const struct sb_trace_place *place)
{
	return place->roles & SB_EVENT_HELD;
}

/* Return: whether a pair belongs to the process that begins it, as memory of a program does, and
 * ends at the latest when that process ends. */
static bool is_of_process(const struct sb_trace_place *place)
{
	return (place->roles & (SB_EVENT_HELD | SB_EVENT_OF_KERNEL)) == SB_EVENT_HELD;
}

/* Set all of *@ret_key to what the two ends of a pair have in common: the value of --key, or
 * without it the current thread; the process, too, if is_of_process(). @nr: of the expression of
 * --key at this end of the pair; 0: there is none. */
static void find_key(const struct event *event, __u32 nr, struct sb_latency_call *ret_key)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();

	ret_key->value = sb_event_word(event->ctx, event->idx, nr, event->slot);
	ret_key->caller = (struct sb_latency_caller){
		.id = nr ? 0 : (__u32)pid_tgid,
		.tgid = is_of_process(event->place) ? pid_tgid >> 32 : 0,
	};
}

/* Return: whether a call that takes @ns as a whole is left out: because of --min or --max, which is
 * counted, so ask once; or, if cfg_latency_half is set, because it is shorter than half of the run,
 * whose end must be set then. */
static bool is_out_of_bounds(__u64 ns)
{
	if (cfg_latency_half)
		return ns < (sb_end_ns() - sb_begin_ns()) / 2;
	if (ns < cfg_latency_min_ns)
		sb_stat_add(SB_STAT_UNDER_MIN, 1);
	else if (ns > cfg_latency_max_ns)
		sb_stat_add(SB_STAT_OVER_MAX, 1);
	else
		return false;
	return true;
}

/* Return: whether --when or --weight of @call are evaluated only when it ends. */
static bool needs_end(const struct sb_latency_record *call)
{
	const struct sb_trace_place *place = sb_event_place(call->idx);

	return place && place->at_end & (SB_AT_END_WHEN | SB_AT_END_WEIGH);
}

/* Return: whether @now_ns has reached the end of the run that user space has set; false while none
 * is set. */
static bool has_run_ended(__u64 now_ns)
{
	return sb_end_ns() && now_ns >= sb_end_ns();
}

/* Return: whether a call that is still open, for @all_ns until now, is not to be accounted before
 * it ends: because --when or --weight is evaluated only then; or, at a snapshot, because --min or
 * --max may yet decide otherwise, or because its weight is not a time that passes. */
static bool is_for_its_end(const struct sb_latency_record *call, __u64 now_ns, __u64 all_ns)
{
	if (needs_end(call))
		return true;
	return !has_run_ended(now_ns) &&
	       (call->weight || all_ns < cfg_latency_min_ns || cfg_latency_max_ns != ~0ull);
}

/*
 * Return: 1 if a call that took @ns is among the slowest so far, and then it takes the place of the
 * fastest of them; else 0. Global, so that the verifier examines it once. If several CPUs take one
 * place at once, one of them is lost, and the fastest is faster than it should be: so a call may be
 * taken for a slow one, but no slow call is missed. User space has the last word.
 */
__noinline int sb_latency_is_slow(__u64 ns)
{
	__u64 fastest_ns = ~0ull;
	__u32 at = 0, i;

	for (i = 0; i < SB_LATENCY_SLOWEST_MAX && i < cfg_latency_slowest; i++) {
		if (latency_slowest[i] < fastest_ns) {
			fastest_ns = latency_slowest[i];
			at = i;
		}
	}
	if (ns <= fastest_ns)
		return 0;
	sb_opaque(at);
	latency_slowest[at & (SB_LATENCY_SLOWEST_MAX - 1)] = ns;
	return 1;
}

/* Ship what --slowest lists of a call that ends at @now_ns, or is open then, as an object. Return:
 * the object's ID, shipped or not, for sb_sample_key.object; 0: there is no such slot. */
static __u64 describe(const struct sb_latency_record *call, __u32 slot, __u64 now_ns)
{
	struct call_object *object = bpf_map_lookup_elem(&latency_objects, &slot);
	__u64 id = SB_OBJECT_CALL;

	if (!object)
		return 0;
	object->call.elapsed_ns = now_ns - call->begin_ns;
	object->call.end_ns = now_ns;
	object->call.tid = call->tid;
	object->call.reserved = 0;
	id = sb_hash_word(id, object->call.elapsed_ns);
	id = sb_hash_word(id, now_ns) ^ call->tid;
	object->event.kind = SB_OBJECT_CALL;
	object->event.nr_bytes = sizeof(object->call);
	object->event.id = id | 1;
	sb_object_ship(&object->event);
	return object->event.id;
}

/*
 * Account a call or pair with the stacks of its beginning, as of @now_ns: the time since it was
 * accounted last (call->from_ns, which becomes @now_ns), or its --weight, once. Accounts nothing if
 * it is to be accounted when it ends (is_for_its_end()), if --min or --max leaves it out, both of
 * which concern the whole call, or if another program accounts it at the same time. Overwrites the
 * capture of @slot. @op: 0: it has ended, and the caller removes the record next;
 * SB_LATENCY_OP_OPEN: it is open. from_ns becomes @now_ns also if --min or --max leaves it out.
 */
static void account(struct sb_latency_record *call, __u32 slot, __u64 now_ns, __u32 op)
{
	struct sb_capture *capture = sb_capture_of(slot);
	__u64 from_ns = call->from_ns, all_ns = now_ns - call->begin_ns;

	if (op == SB_LATENCY_OP_OPEN && is_for_its_end(call, now_ns, all_ns))
		return;
	if (!capture || from_ns >= now_ns || (call->weight && from_ns != call->begin_ns) ||
	    __sync_val_compare_and_swap(&call->from_ns, from_ns, now_ns) != from_ns ||
	    is_out_of_bounds(all_ns))
		return;
	*capture = call->capture;
	capture->now_ns = now_ns;
	if (op)
		capture->key.op = op;
	capture->key.log2_ns = sb_log2_of(all_ns);
	/* What is open is one of them at the end only. */
	if (cfg_latency_slowest && (!op || has_run_ended(now_ns)) && sb_latency_is_slow(all_ns))
		capture->key.object = describe(call, slot, now_ns);
	sb_account(capture, (call->weight ? call->weight : now_ns - from_ns) * call->nr);
}

#endif
