/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lists of open calls, one for each thread, goroutine, and idle task of a CPU: which list a
 * call belongs to, which of its calls have been left, and which one returns. A list is newest call
 * first. The value of a call (struct sb_latency_call) is the stack pointer of its caller, so calls
 * further out have greater values. See the essay of latency.bpf.c. Only that file includes this.
 * Everything runs in BPF programs, for the current task. Pointers are not NULL unless it says so,
 * none is kept, and one into a map that is returned is borrowed and valid until the program ends.
 * After an error *@ret is not to be used.
 *
 * Order: find_list() fills a struct call; a beginning calls newest_of(), and newest_of_new() if
 * there is no list yet, and adds its record, whose `outer` is the value in the entry, before it
 * writes its own value there; an end calls find_open(), account(), and remove_newest().
 */
#ifndef SB_LATENCY_LISTS_BPF_H
#define SB_LATENCY_LISTS_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/core/sb_returns.bpf.h"
#include "bpf/views/sb_latency.bpf.h"

/* Bits of sb_latency_caller.id beside a thread or CPU. */
#define LIST_OF_KERNEL (1ull << 32)
#define LIST_OF_IDLE   (1ull << 33)

/* How many calls of a list an event can drop one after the other: the kernel probes the returns of
 * no more calls of a thread at a time. */
#define DROPS_MAX      SB_RETURNS_MAX

/* Remove the newest call of @caller, whose value is *@newest, from the map, and set *@newest to the
 * value of the call around it; 0: none. Return: 0; -ENOENT: it is not in the map, and *@newest is
 * 0. */
static int remove_newest(const struct sb_latency_caller *caller, __u64 *newest)
{
	struct sb_latency_call key = { .value = *newest, .caller = *caller };
	struct sb_latency_record *call = bpf_map_lookup_elem(&latency_calls, &key);

	*newest = call ? call->outer : 0;
	return bpf_map_delete_elem(&latency_calls, &key);
}

/* Bytes of the kernel's stacks; there may be more. */
#define KERNEL_STACK_BYTES 16384

/* Return: whether the call with the value @newest is over, now that another call of the list, with
 * the value @value, begins or ends: whether its caller has left it by a jump. */
static __always_inline bool has_left(const struct list *list, __u64 newest, __u64 value)
{
	if (!list->is_of_kernel)
		return newest < value;
	if (value - list->stack < KERNEL_STACK_BYTES)
		return newest < value || newest - list->stack >= KERNEL_STACK_BYTES;
	return newest < value && value - newest < KERNEL_STACK_BYTES;
}

/* Drop the newest call of a list if its caller has left it by a jump, now that another call with
 * the value @value begins or ends (has_left()), and count it (SB_STAT_CALLS_JUMPED). Global, so
 * that the verifier examines it once. Return: 1: it was dropped, so look at the next one; 0: not,
 * or the list is empty or not known, or @list is NULL. */
__noinline int sb_latency_drop(const struct list *list, __u64 value)
{
	struct sb_latency_caller caller;
	__u64 *newest;

	if (!list)
		return 0;
	caller = list->caller; /* on the stack: Linux 5.15 takes no keys from arguments */
	newest = bpf_map_lookup_elem(&latency_newest, &caller);
	if (!newest || !*newest || !has_left(list, *newest, value))
		return 0;
	if (!remove_newest(&caller, newest))
		sb_stat_add(SB_STAT_CALLS_JUMPED, 1);
	return 1;
}

/* Drop the calls of the list of @now that were left by a jump, DROPS_MAX at most. Return: the entry
 * of the list, which has the value of its newest call, 0 if it has none; NULL: there is no such
 * list yet. */
static __u64 *newest_of(const struct call *now)
{
	__u32 i;

	for (i = 0; i < DROPS_MAX; i++)
		if (!sb_latency_drop(&now->list, now->value))
			break;
	return bpf_map_lookup_elem(&latency_newest, &now->list.caller);
}

/* Set ret->list to the list of the goroutine that runs, and ret->value to that of the call whose
 * return address is at @sp. @regs: the user registers. Return: 0; -EFAULT: no goroutine runs. */
static __always_inline int find_goroutine(const struct sb_regs *regs, __u64 sp, struct call *ret)
{
	struct sb_go_stack stack;

	ret->list.caller.id = sb_regs_goroutine(regs);
	ret->list.caller.tgid = bpf_get_current_pid_tgid() >> 32;
	if (bpf_probe_read_user(&stack, sizeof(stack), (const void *)ret->list.caller.id) ||
	    sp <= stack.lo || sp + SB_RETURN_BYTES >= stack.hi)
		return -EFAULT;
	/* Further down is less, as it is of threads. */
	ret->value = sp + SB_RETURN_BYTES - stack.hi;
	return 0;
}

/*
 * Set ret->list to the list of the current thread, of its goroutine, or of this CPU's idle task,
 * and ret->value to that of the call that begins or ends; other members stay as they are. Needs
 * nothing but the program's context @ctx: the registers, and the cookie, which says whether it is a
 * function of Go. @slot: SB_SCRATCH_TRACE for functions of the kernel, any other for those of
 * programs. @above: how many bytes the stack pointer is below that of the caller after the return:
 * SB_RETURN_BYTES at the beginning of a function, 0 at its return; not used for functions of Go,
 * where it is always at the return address. Return: 0; -EFAULT: no goroutine runs, so the caller
 * takes no sample of the call.
 */
static __always_inline int find_list(struct pt_regs *ctx, __u32 slot, __u64 above, struct call *ret)
{
	const struct sb_regs *regs = (const struct sb_regs *)ctx;
	__u64 sp = sb_regs_sp(regs);
	struct list *list = &ret->list;

	list->stack = 0;
	list->is_of_kernel = slot == SB_SCRATCH_TRACE;
	list->caller.reserved = 0;
	if (bpf_get_attach_cookie(ctx) & SB_COOKIE_GO)
		return find_goroutine(regs, sp, ret);
	ret->value = sp + above;
	list->caller.id = (__u32)bpf_get_current_pid_tgid();
	list->caller.tgid = 0;
	if (!list->is_of_kernel)
		return 0;
	list->stack = (__u64)BPF_CORE_READ(bpf_get_current_task_btf(), stack);
	list->caller.id = list->caller.id ? LIST_OF_KERNEL | list->caller.id
					  : LIST_OF_IDLE | bpf_get_smp_processor_id();
	return 0;
}

/* Make the list of @caller, for its first call. Return: the entry of the list, which is 0; NULL:
 * there is no room, or somebody else has made it: the call is lost, which the caller counts. */
static __u64 *newest_of_new(const struct sb_latency_caller *caller)
{
	__u64 none = 0;

	if (note_process(caller) ||
	    bpf_map_update_elem(&latency_newest, caller, &none, BPF_NOEXIST))
		return NULL;
	return bpf_map_lookup_elem(&latency_newest, caller);
}

/* Return: whether the call with the value @newest is the one that returns now (@now). */
static __always_inline bool is_returning(const struct call *now, __u64 newest)
{
	if (newest == now->value || !now->list.is_of_kernel)
		return newest == now->value;
#if defined(__TARGET_ARCH_x86)
	/* Since Linux 6.14 many functions are hooked by the function graph tracer (commit
	 * a3ed4157b7d8), whose return_to_handler() saves registers with the stack pointer below
	 * them. */
	return newest - now->value == sizeof(struct sb_regs) + SB_RETURN_BYTES;
#else
	/* There it does not save it. */
	return true;
#endif
}

/* Find the open call that returns now, which is the newest one of its list. @event: its ctx is a
 * struct call that find_list() has filled. Drops calls that were left by a jump. Return: its
 * record, valid until it is removed, and *@ret_newest is the entry of the list, for
 * remove_newest(); NULL: there is none, and *@ret_newest is not to be used. */
static struct sb_latency_record *find_open(const struct event *event, __u64 **ret_newest)
{
	const struct call *now = event->ctx;
	struct sb_latency_call key = { .caller = now->list.caller };
	__u64 *newest = newest_of(now);
	struct sb_latency_record *call;

	if (!newest || !is_returning(now, *newest))
		return NULL;
	key.value = *newest;
	*ret_newest = newest;
	call = bpf_map_lookup_elem(&latency_calls, &key);
	return call && (call->idx == event->idx || !now->list.is_of_kernel) ? call : NULL;
}

/* For bpf_for_each_map_elem(): drop a call of @caller. Return: 0: go on. */
static long drop_call(void *map, const struct sb_latency_call *key, void *call,
		      const struct sb_latency_caller *caller)
{
	struct sb_latency_call mine = *key;

	if (mine.caller.id == caller->id && mine.caller.tgid == caller->tgid &&
	    !bpf_map_delete_elem(&latency_calls, &mine))
		sb_stat_add(SB_STAT_CALLS_EXITED, 1);
	return 0;
}

/* Remove the list of @caller, which has ended, if it has one, and its open calls, each of which is
 * counted (SB_STAT_CALLS_EXITED). A recursion can leave more than DROPS_MAX calls open, since each
 * call has a record as soon as it begins, whether its return is probed or not. As the verifier
 * needs a bound for the loop along the list, the others are then looked for in the whole map. */
static void drop_all(const struct sb_latency_caller *caller)
{
	__u64 *newest = bpf_map_lookup_elem(&latency_newest, caller);
	struct sb_latency_caller of = *caller;
	__u32 i;

	if (!newest)
		return;
	for (i = 0; i < DROPS_MAX && *newest; i++)
		if (!remove_newest(caller, newest))
			sb_stat_add(SB_STAT_CALLS_EXITED, 1);
	if (*newest)
		bpf_for_each_map_elem(&latency_calls, drop_call, &of, 0);
	bpf_map_delete_elem(&latency_newest, caller);
}

#endif
