// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * View "latency": the elapsed time of calls of functions, or of pairs of events. The stack is that
 * of the beginning.
 *
 * A begin and an end of a call belong together if they are of the same thread and of the same stack
 * pointer: that of the caller, which is the same before the call and after the return. So recursion
 * needs no counting, and what was lost in between does no harm. The open calls of a thread are a
 * list, newest first. The stack grows down: when a thread begins or ends a call at a stack pointer,
 * it has left all of its calls whose callers are further down, whether they returned or not.
 * longjmp() and exceptions leave calls in that way. Such calls are dropped and counted
 * (SB_STAT_CALLS_JUMPED). The kernel does the same with its own list of pending returns
 * (kernel/events/uprobes.c, cleanup_return_instances()), so a signal stack of its own or a
 * coroutine, whose addresses are not those of the thread's stack, lose the calls around them here
 * as there.
 *
 * Calls of functions of the kernel are in a list of their own for each thread, and in one for the
 * idle task of each CPU. Interrupts bring other stacks: a call on the stack of the interrupt says
 * nothing of those on the stack of the thread, but a call on the stack of the thread proves that
 * the interrupt is over. See has_left() and is_returning().
 *
 * A goroutine of Go goes from thread to thread, and its stack moves when it grows. So its calls are
 * told apart by the address of the runtime's `g`, which is in a register wherever Go code runs, and
 * by how far the stack pointer is from the end of the stack, which is the same before and after a
 * move. What a panic leaves is left by a jump. The kernel must not touch the stack there, so the
 * returns are probed at the return instructions (symbolizer/elf/goreturns.h).
 *
 * Memory that is held (SB_EVENT_HELD) is a pair by address and process, which begins where a call
 * of malloc() returns, with the stack and the arguments of its beginning, or at an event that has
 * the address. The end of such a pair only removes it. If calls are traced in windows of time, an
 * end, or another beginning, at an address proves that memory of an earlier window was given back.
 * But the address is watched on, because how often that is seen again tells how much such proof was
 * missed: user/views/survival.c.
 *
 * What is open when the run ends, or at a snapshot, is accounted by the iterator `latency_settle`
 * with SB_LATENCY_OP_OPEN. from_ns is the time up to which a call was accounted, and whoever
 * advances it by an atomic exchange accounts the time in between, as in sched.bpf.c.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/core/sb_expr.bpf.h"
#include "bpf/core/sb_sample.bpf.h"
#include "bpf/core/sb_util.bpf.h"
#include "bpf/views/sb_latency.bpf.h"
#include "bpf/views/sb_latency_lists.bpf.h"

/* Not inlined: up to 6.12 what it has on the stack would count for the walk, too. */
static __noinline int open_call(const struct event *event, __u64 nr, __u64 weight)
{
	const struct sb_capture *capture = sb_capture_of(event->slot);
	const struct call *now = event->ctx;
	struct sb_latency_record call = { .nr = nr, .weight = weight, .idx = event->idx };
	struct sb_latency_call key = { .value = now->value, .caller = now->list.caller };
	__u64 *newest = newest_of(now);

	/* A call that was left by a jump, or by a jump to another function, in the same place. */
	if (newest && *newest == key.value && !remove_newest(&key.caller, newest))
		sb_stat_add(SB_STAT_CALLS_JUMPED, 1);
	if (!newest)
		newest = newest_of_new(&key.caller);
	if (!newest || !capture)
		return -E2BIG;
	call.tid = (__u32)bpf_get_current_pid_tgid();
	call.capture = *capture;
	call.outer = *newest;
	__builtin_memcpy(call.arg, now->context.arg, sizeof(call.arg));
	/* After the stack was taken, which took time. */
	call.begin_ns = call.from_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&latency_calls, &key, &call, BPF_ANY))
		return -E2BIG;
	*newest = key.value;
	return 0;
}

/* Find the place of a call, and scratch memory for what is known of it. Return: whether there
 * are. */
static __always_inline bool find_call(struct pt_regs *ctx, __u32 slot, struct event *ret)
{
	__u32 kind = slot == SB_SCRATCH_TRACE;

	ret->ctx = bpf_map_lookup_elem(&latency_contexts, &kind);
	ret->idx = (__u32)bpf_get_attach_cookie(ctx);
	ret->slot = slot;
	ret->place = sb_event_place(ret->idx);
	return ret->ctx && ret->place;
}

static __always_inline void read_args(const struct sb_regs *regs, struct sb_call_context *ret)
{
#if defined(__TARGET_ARCH_x86)
	ret->arg[0] = regs->di;
	ret->arg[1] = regs->si;
	ret->arg[2] = regs->dx;
	ret->arg[3] = regs->cx;
	ret->arg[4] = regs->r8;
	ret->arg[5] = regs->r9;
#elif defined(__TARGET_ARCH_arm64)
#pragma unroll
	for (__u32 i = 0; i < SB_CALL_ARGS; i++)
		ret->arg[i] = regs->regs[i];
#endif
}

static __always_inline __u64 result_of(const struct sb_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->ax;
#elif defined(__TARGET_ARCH_arm64)
	return regs->regs[0];
#endif
}

/* The caller has started the sample in @slot. */
static __always_inline void begin_call(struct pt_regs *ctx, __u32 slot)
{
	struct sb_capture *capture;
	__u64 nr = 0, weight = 0;
	struct event event;

	if (!find_call(ctx, slot, &event) ||
	    sb_begin(slot, slot == SB_SCRATCH_TRACE ? SB_BEGIN_IDLE : 0, &capture))
		return;
	read_args((const struct sb_regs *)ctx, event.ctx);
	if (!find_list(ctx, slot, SB_RETURN_BYTES, event.ctx) && choose(&event, false, &weight))
		nr = stands_for(capture->now_ns);
	if (!nr) {
		sb_spent_some(capture->now_ns);
		return;
	}
	if (event.place->value && !(event.place->at_end & SB_AT_END_VALUE))
		capture->key.object =
			sb_event_value(event.ctx, event.idx, event.place->value, slot);
	if (!sb_take_stacks(ctx, slot, SB_SIDE_USER | SB_SIDE_KERNEL) &&
	    open_call(&event, nr, weight))
		sb_stat_add(SB_STAT_CALLS_FULL, 1);
	sb_spent(capture->now_ns);
}

/* The programs at user functions are given the user's registers, which begin like those of a
 * perf_event program. */
SEC("?uprobe")
int latency_begin(struct pt_regs *ctx)
{
	if (!sb_probe_take())
		return 0;
	sb_start_at((const struct bpf_perf_event_data *)ctx, SB_SCRATCH_PROBE);
	begin_call(ctx, SB_SCRATCH_PROBE);
	sb_probe_give_back();
	return 0;
}

SEC("?kprobe")
int latency_kernel_begin(struct pt_regs *ctx)
{
	sb_start_in_kernel(SB_SCRATCH_TRACE);
	begin_call(ctx, SB_SCRATCH_TRACE);
	return 0;
}

/* Evaluate what is about the end. Return: whether the call is wanted. */
static bool choose_ended(const struct event *event, struct sb_latency_record *call, __u64 retval,
			 __u64 now_ns)
{
	struct sb_call_context *context = event->ctx;

	__builtin_memcpy(context->arg, call->arg, sizeof(call->arg));
	context->retval = retval;
	context->elapsed_ns = now_ns - call->begin_ns;
	if (!choose(event, true, &call->weight))
		return false;
	if (event->place->at_end & SB_AT_END_VALUE)
		call->capture.key.object =
			sb_event_value(event->ctx, event->idx, event->place->value, event->slot);
	return true;
}

/* Return: whether memory was allocated in an earlier window, and may have been given back between
 * two of them. */
static bool is_older(const struct sb_latency_record *pair)
{
	return latency_window && pair->watch.window != latency_window;
}

/* Return: whether memory can be in the result of "leak", as far as it is known when the run ends.
 * What cannot has no use as proof either. */
static bool may_count(const struct sb_latency_record *pair)
{
	const __u64 begin_ns = sb_begin_ns(), end_ns = sb_end_ns();

	return !cfg_latency_half || !end_ns || pair->begin_ns <= end_ns - (end_ns - begin_ns) / 2;
}

/* The address of such memory was given back or handed out now. */
static void see_address(struct sb_held_watch *watch)
{
	if (!watch->proof)
		watch->proof = latency_window;
	watch->last = latency_window;
}

/* Memory is allocated at the address of older memory, which was given back, then: its record is
 * moved to a key of its own. */
static void set_aside(const struct sb_latency_call *key)
{
	struct sb_latency_record *old = bpf_map_lookup_elem(&latency_calls, key);
	struct sb_latency_call aside = *key;

	if (!old || !is_older(old) || !may_count(old))
		return;
	see_address(&old->watch);
	old->watch.until = latency_window;
	aside.caller.id = latency_window;
	if (bpf_map_update_elem(&latency_calls, &aside, old, BPF_ANY))
		sb_stat_add(SB_STAT_CALLS_FULL, 1);
}

/* A call that returns has begun a pair, whose key is known now. */
static __noinline void hold(const struct event *event, struct sb_latency_record *call, __u64 retval)
{
	struct sb_call_context *context = event->ctx;
	struct sb_latency_call key;

	__builtin_memcpy(context->arg, call->arg, sizeof(context->arg));
	context->retval = retval;
	find_key(event, event->place->begin_key, &key);
	if (!key.value)
		return;
	if (latency_window)
		set_aside(&key);
	call->watch = (struct sb_held_watch){ .window = latency_window };
	if (note_process(&key.caller) || bpf_map_update_elem(&latency_calls, &key, call, BPF_ANY))
		sb_stat_add(SB_STAT_CALLS_FULL, 1);
}

static __always_inline void end_call(struct pt_regs *ctx, __u32 slot, __u64 now_ns)
{
	__u64 retval = result_of((const struct sb_regs *)ctx), *newest = NULL;
	struct sb_latency_record *call = NULL;
	const struct call *now;
	struct event event;

	if (!find_call(ctx, slot, &event))
		return;
	now = event.ctx;
	if (!find_list(ctx, slot, 0, event.ctx))
		call = find_open(&event, &newest);
	if (!call || !newest) {
		/* It began before the run, was not sampled, or there was no room for it. */
		if (sb_is_asked_for())
			sb_stat_add(SB_STAT_CALLS_UNSEEN, 1);
		return;
	}
	if (is_held(event.place))
		hold(&event, call, retval);
	else if (!event.place->at_end || choose_ended(&event, call, retval, now_ns))
		account(call, slot, now_ns, 0);
	remove_newest(&now->list.caller, newest);
	if (!*newest)
		bpf_map_delete_elem(&latency_newest, &now->list.caller);
	sb_spent(now_ns);
}

/* After the return of a function, or at a return instruction of Go. */
SEC("?uretprobe")
int latency_end(struct pt_regs *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns();

	if (!sb_probe_take())
		return 0;
	end_call(ctx, SB_SCRATCH_PROBE, now_ns);
	sb_probe_give_back();
	return 0;
}

SEC("?kretprobe")
int latency_kernel_end(struct pt_regs *ctx)
{
	end_call(ctx, SB_SCRATCH_TRACE, bpf_ktime_get_ns());
	return 0;
}

/* With --key a pair can begin in an interrupt of an idle CPU. */
static __u32 how_to_begin(const struct sb_trace_place *place)
{
	return place->begin_key && !bpf_get_current_pid_tgid() && sb_is_asked_for()
		       ? SB_BEGIN_ANYBODY
		       : 0;
}

/* A pair that begins, until its stacks are taken. */
struct beginning {
	struct sb_latency_call key;
	__u64 nr;	 /* as in struct sb_latency_record; 0: nothing begins here */
	__u64 weight;	 /* the same */
	__u32 is_taking; /* its stacks are being taken */
	__u32 tid;
	__u32 idx; /* of its place, if memory is held; 0 */
	__u32 reserved;
};

/* Of this CPU: in a thread at a user function, and all others. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct beginning);
} latency_beginnings SEC(".maps");

static struct beginning *beginning_of(__u32 slot)
{
	__u32 idx = slot == SB_SCRATCH_PROBE;

	return bpf_map_lookup_elem(&latency_beginnings, &idx);
}

/* Not inlined, as open_call(). */
static __noinline int open_pair(const struct beginning *beginning, const struct sb_capture *capture)
{
	struct sb_latency_record pair = {
		.nr = beginning->nr,
		.weight = beginning->weight,
		.idx = beginning->idx,
		.tid = (__u32)bpf_get_current_pid_tgid(),
	};

	pair.capture = *capture;
	pair.begin_ns = pair.from_ns = bpf_ktime_get_ns();
	if (note_process(&beginning->key.caller))
		return -E2BIG;
	return bpf_map_update_elem(&latency_calls, &beginning->key, &pair, BPF_ANY);
}

/* All that a beginning is but its stacks. @slot: of its sample. */
static __always_inline void note_pair(const struct event *event, struct beginning *beginning,
				      __u32 slot)
{
	struct sb_capture *capture;

	if (sb_begin(slot, how_to_begin(event->place), &capture))
		return;
	find_key(event, event->place->begin_key, &beginning->key);
	/* What allocates by a function that allocates, too, is told twice of the same memory. */
	if (!bpf_map_delete_elem(&latency_calls, &beginning->key) && !is_held(event->place))
		sb_stat_add(SB_STAT_CALLS_REPLACED, 1);
	beginning->weight = 0;
	if ((beginning->key.value || !is_held(event->place)) &&
	    choose(event, false, &beginning->weight))
		beginning->nr = stands_for(capture->now_ns);
	if (!beginning->nr) {
		sb_spent_some(capture->now_ns);
		return;
	}
	beginning->idx = is_held(event->place) ? event->idx : 0;
	capture->key.op = event->place->op;
	if (event->place->value)
		capture->key.object =
			sb_event_value(event->ctx, event->idx, event->place->value, event->slot);
}

/* Take the stacks of a beginning that was noted, if there is one. */
static __always_inline void begin_noted(void *ctx, struct beginning *beginning, __u32 slot)
{
	struct sb_capture *capture = sb_capture_of(slot);

	if (!beginning->nr || !capture)
		return;
	if (!sb_take_stacks(ctx, slot, SB_SIDE_USER | SB_SIDE_KERNEL) &&
	    open_pair(beginning, capture))
		sb_stat_add(SB_STAT_CALLS_FULL, 1);
	sb_spent(capture->now_ns);
	beginning->nr = 0;
}

static __noinline void end_pair(const struct event *event, __u64 now_ns)
{
	struct sb_latency_record *pair;
	struct sb_latency_call key;

	find_key(event, event->place->end_key, &key);
	pair = bpf_map_lookup_elem(&latency_calls, &key);
	if (!pair) {
		if (sb_is_asked_for())
			sb_stat_add(SB_STAT_CALLS_UNSEEN, 1);
		sb_spent_some(now_ns);
		return;
	}
	if (!is_held(event->place))
		account(pair, event->slot, now_ns, 0);
	else if (latency_window && !is_older(pair))
		__sync_fetch_and_add(&latency_nr_at_once, 1);
	if (is_held(event->place) && is_older(pair) && may_count(pair))
		see_address(&pair->watch);
	else
		bpf_map_delete_elem(&latency_calls, &key);
	sb_spent(now_ns);
}

/* Return: whether there is such an event, which becomes *@ret. */
static __always_inline bool find_event(void *ctx, __u32 slot, struct event *ret)
{
	ret->ctx = ctx;
	ret->idx = (__u32)bpf_get_attach_cookie(ctx);
	ret->slot = slot;
	ret->place = sb_event_place(ret->idx);
	return ret->place;
}

static __always_inline void begin_now(void *ctx, struct beginning *beginning)
{
	beginning->is_taking = 1;
	sb_start_in_kernel(SB_SCRATCH_BEGIN);
	begin_noted(ctx, beginning, SB_SCRATCH_BEGIN);
	beginning->is_taking = 0;
}

/*
 * The kernel skips programs at tracepoints and functions of its own while another one runs on the
 * CPU (bpf_prog_active of kernel/trace/bpf_trace.c), and an interrupt that ends a pair often comes
 * soon after others have begun. So the stacks, which take most of the time of a beginning, are left
 * to latency_stacks at the same tracepoint if there is one: programs at raw tracepoints are skipped
 * only while they run themselves. The kernel calls it right after this one, which was attached
 * first.
 */
static __always_inline void take_kernel_event(void *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns();
	struct beginning *beginning = beginning_of(SB_SCRATCH_BEGIN);
	struct event event;

	if (!beginning || !find_event(ctx, SB_SCRATCH_TRACE, &event))
		return;
	if (event.place->roles & SB_EVENT_ENDS)
		end_pair(&event, now_ns);
	if (!(event.place->roles & SB_EVENT_BEGINS))
		return;
	/* This interrupts a program that takes stacks. */
	if (beginning->is_taking) {
		if (sb_is_asked_for())
			sb_stat_add(SB_STAT_TRACE_BUSY, 1);
		return;
	}
	beginning->nr = 0;
	beginning->tid = (__u32)bpf_get_current_pid_tgid();
	note_pair(&event, beginning, SB_SCRATCH_BEGIN);
	if (!(event.place->roles & SB_EVENT_SPLIT))
		begin_now(ctx, beginning);
	else if (beginning->nr)
		/* Until its stacks are taken: whatever comes in between, it is counted. */
		sb_stat_add(SB_STAT_TRACE_BUSY, 1);
}

SEC("?tracepoint")
int latency_tracepoint(void *ctx)
{
	take_kernel_event(ctx);
	return 0;
}

SEC("?kprobe")
int latency_kernel(struct pt_regs *ctx)
{
	take_kernel_event(ctx);
	return 0;
}

SEC("?raw_tracepoint")
int latency_stacks(void *ctx)
{
	struct beginning *beginning = beginning_of(SB_SCRATCH_BEGIN);

	if (beginning && !beginning->is_taking && beginning->nr &&
	    beginning->tid == (__u32)bpf_get_current_pid_tgid()) {
		sb_stat_add(SB_STAT_TRACE_BUSY, -1);
		begin_now(ctx, beginning);
	}
	return 0;
}

/* The caller has taken SB_SCRATCH_PROBE. */
static __always_inline void take_user_event(struct pt_regs *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns();
	struct beginning *beginning = beginning_of(SB_SCRATCH_PROBE);
	struct event event;

	sb_start_at((const struct bpf_perf_event_data *)ctx, SB_SCRATCH_PROBE);
	if (!beginning || !find_event(ctx, SB_SCRATCH_PROBE, &event))
		return;
	if (event.place->roles & SB_EVENT_ENDS)
		end_pair(&event, now_ns);
	if (event.place->roles & SB_EVENT_BEGINS) {
		beginning->nr = 0;
		note_pair(&event, beginning, SB_SCRATCH_PROBE);
		begin_noted(ctx, beginning, SB_SCRATCH_PROBE);
	}
}

SEC("?uprobe")
int latency_user(struct pt_regs *ctx)
{
	if (!sb_probe_take())
		return 0;
	take_user_event(ctx);
	sb_probe_give_back();
	return 0;
}

/* For bpf_for_each_map_elem(). Return: 0: go on. */
static long forget_call(void *map, struct sb_latency_call *key, struct sb_latency_record *call,
			__u32 *tgid)
{
	struct sb_latency_call mine = *key;
	const struct sb_trace_place *place;
	__u32 idx = call->idx;

	if (mine.caller.tgid != *tgid || bpf_map_delete_elem(&latency_calls, &mine))
		return 0;
	/* Memory is given back with its process, so nothing is lost then. */
	place = sb_event_place(idx);
	if (!place || !is_held(place))
		sb_stat_add(SB_STAT_CALLS_EXITED, 1);
	return 0;
}

static long forget_goroutine(void *map, struct sb_latency_caller *key, void *newest, __u32 *tgid)
{
	struct sb_latency_caller mine = *key;

	if (mine.tgid == *tgid)
		bpf_map_delete_elem(&latency_newest, &mine);
	return 0;
}

/* The last thread of a process has ended: forget the calls of its goroutines, and what it held. */
static void forget_process(__u32 tgid)
{
	if (bpf_map_delete_elem(&latency_go_processes, &tgid))
		return;
	bpf_for_each_map_elem(&latency_calls, forget_call, &tgid, 0);
	bpf_for_each_map_elem(&latency_newest, forget_goroutine, &tgid, 0);
}

/* What it held stays, if that counts, but its place among the processes is free again. */
static void end_process(__u32 tgid)
{
	if (cfg_latency_keeps_ended)
		bpf_map_delete_elem(&latency_go_processes, &tgid);
	else
		forget_process(tgid);
}

/* A thread has ended inside of its calls: forget them, because its ID is given to another one. */
SEC("?tp_btf/sched_process_exit")
int BPF_PROG(latency_exit, struct task_struct *task)
{
	struct sb_latency_call pair = { .caller.id = task->pid };

	if (!BPF_CORE_READ(task, signal, live.counter))
		end_process(task->tgid);
	if (!bpf_map_delete_elem(&latency_calls, &pair))
		sb_stat_add(SB_STAT_CALLS_EXITED, 1);
	drop_all(&pair.caller);
	pair.caller.id |= LIST_OF_KERNEL;
	drop_all(&pair.caller);
	return 0;
}

/* A new program has none of the memory that the one before held. */
SEC("?tp_btf/sched_process_exec")
int BPF_PROG(latency_exec, struct task_struct *task)
{
	forget_process(task->tgid);
	return 0;
}

/* For bpf_for_each_map_elem(). Return: 0: go on. */
static long settle_call(void *map, struct sb_latency_call *key, struct sb_latency_record *call,
			__u64 *now_ns)
{
	const struct sb_trace_place *place = sb_event_place(call->idx);

	/* A call that may still be inside of malloc() holds nothing yet, and what was given back
	 * nothing any more. */
	if (place && is_held(place) && (key->caller.id || call->watch.proof))
		return 0;
	account(call, SB_SCRATCH_ITER, *now_ns, SB_LATENCY_OP_OPEN);
	return 0;
}

/* All calls at once, when the iterator has passed the last thread. */
SEC("?iter/task")
int latency_settle(struct bpf_iter__task *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns();

	if (ctx->task)
		return 0;
	if (sb_end_ns() && now_ns > sb_end_ns())
		now_ns = sb_end_ns();
	bpf_for_each_map_elem(&latency_calls, settle_call, &now_ns, 0);
	return 0;
}
