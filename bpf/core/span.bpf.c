// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Spans: samples are taken only of threads that are in a certain call, or between two events (--in,
 * --until), and count only if that took at least cfg_span_slow_ns (--slower-than). How long a span
 * is turns out at its end, but samples are taken before. So each span has a number, which is part
 * of the key of its samples, and user space keeps their counts until it knows
 * (user/capture/spans.c).
 *
 * A thread is in one span at a time. Of calls it is the outermost: the stack grows down, so a call
 * whose caller has its stack pointer further down than that of the open span is a call within it. A
 * call that begins at the same place or above proves that the open span was left by a jump or an
 * exception, without a return. Until then no sample of the thread is in the span where its stack
 * pointer is not below that of the span's caller, or where another call has replaced the return
 * address of the span's call on the stack. What is said of other stacks in views/latency.bpf.c
 * holds here, too: a coroutine or a signal handler with a stack of its own may be taken for one
 * that has left the call.
 *
 * A goroutine of Go goes from thread to thread, so it is in a span itself, as in
 * views/latency.bpf.c: it is known by the address of the runtime's `g`, and its stack pointers are
 * relative to the end of the stack, which moves. Which goroutine a thread runs is read by way of
 * its thread-local pointer (step/sb_step_label.h). While the thread is on a stack of the runtime,
 * the goroutine is in its calls.
 *
 * With a label of threads (--in label:KEY), a span is the time for which the label of a thread
 * keeps one value. Nothing happens when a program sets a label, so span_switch looks at it whenever
 * the thread leaves a CPU, and sb_begin() for each sample. Between two looks the thread runs on a
 * CPU. So the beginning and the end are noted by up to one period of the timer too late, and a
 * value that is gone again by the next look is not seen. A goroutine may wait for long without a
 * thread, so its span ends when it was last seen with the value.
 *
 * User space reads counts first, then spans_open, then spans_slow. A span that is slow is written
 * to spans_slow before it is taken out of spans_open. So a span of which a count was read is in one
 * of them, unless it was fast or has not ended properly. It was slow for certain once a sample
 * found the thread in it after that time (seen_ns), and from then on samples need no number.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/abi/sb_abi_span.h"
#include "bpf/abi/sb_abi_trace.h"
#include "bpf/core/sb_label.bpf.h"
#include "bpf/core/sb_returns.bpf.h"
#include "bpf/core/sb_sample.bpf.h"
#include "bpf/core/sb_span.bpf.h"
#include "bpf/core/sb_util.bpf.h"

const volatile bool cfg_spans = false;
const volatile bool cfg_span_label = false;
const volatile bool cfg_span_go = false;
const volatile __u64 cfg_span_slow_ns = 0;

__u32 span_numbers = 0; /* the last one that was given */
/* Entries of spans_slow. The BPF side adds to it, user space subtracts what it deletes. */
__u32 span_nr_slow = 0;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* SB_SPANS_OPEN_MAX with spans; set before load */
	__type(key, struct sb_span_owner);
	__type(value, struct sb_open_span);
} spans_open SEC(".maps");

/* Processes that have had goroutines in spans; the values mean nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* SB_SPANS_GO_MAX where there can be any; set before load */
	__type(key, __u32);
	__type(value, __u32);
} span_go_processes SEC(".maps");

/* Number of a span -> when it ended. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* SB_SPANS_SLOW_MAX with a threshold; set before load */
	__type(key, __u32);
	__type(value, __u64);
} spans_slow SEC(".maps");

/* How long spans were that have ended. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1); /* SB_SPAN_BUCKETS with spans; set before load */
	__type(key, __u32);
	__type(value, struct sb_span_bucket);
} span_durations SEC(".maps");

#if SB_RETURN_BYTES
/*
 * Return: the lower half of the return address of the call whose caller has its stack pointer at
 * @sp; 0: it cannot be read. Half of it is enough to tell calls apart, and it is all that a 32-bit
 * program has there.
 */
static __u32 read_ret_low(__u64 sp)
{
	__u32 low = 0;

	bpf_probe_read_user(&low, sizeof(low), (const void *)(sp - SB_RETURN_BYTES));
	return low;
}
#else
#define read_ret_low(sp) 0
#endif

/* Return: whether who runs has left the call of @span, because its place on the stack has the
 * return address of another call now. The return probe has replaced the address by its own. @end:
 * of the stack of a goroutine, 0 of a thread. */
static bool is_left(const struct sb_open_span *span, __u64 end)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 low;

	if (!span->sp || !span->ret_low)
		return false;
	low = read_ret_low(span->sp + end);
	return low && low != span->ret_low &&
	       low != (__u32)BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
}

/* Who runs, and where. */
struct runner {
	struct sb_span_owner owner;
	__u64 sp;  /* as in struct sb_open_span; 0: it is not known, or below all calls */
	__u64 end; /* of the stack of a goroutine; 0: a thread */
};

static __u64 find_span(const struct runner *runner, bool is_current, __u64 now_ns)
{
	struct sb_open_span *span = bpf_map_lookup_elem(&spans_open, &runner->owner);
	__u32 number = span ? span->number : 0;

	if (!span || !number)
		return SB_SPAN_OUTSIDE;
	/* A thread that is just returning is not in the call any more, but its return will come. */
	if (span->sp && runner->sp + SB_RETURN_BYTES > span->sp)
		return SB_SPAN_OUTSIDE;
	if (is_current && is_left(span, runner->end))
		return SB_SPAN_OUTSIDE;
	span->seen_ns = now_ns;
	return now_ns - span->begin_ns >= cfg_span_slow_ns ? 0 : number;
}

__noinline __u64 sb_span_of(__u32 tid, __u64 sp, __u64 now_ns)
{
	const struct runner runner = { .owner.id = tid, .sp = sp };

	return find_span(&runner, tid == (__u32)bpf_get_current_pid_tgid(), now_ns);
}

/* Find where the goroutine is. While its thread is on another stack, that is below its calls.
 * Return: 0 or
 * -EFAULT. */
static __always_inline int find_on_stack(__u64 goroutine, __u64 sp, struct runner *ret)
{
	struct sb_go_stack stack;

	ret->owner.id = goroutine;
	ret->owner.tgid = bpf_get_current_pid_tgid() >> 32;
	if (bpf_probe_read_user(&stack, sizeof(stack), (const void *)goroutine))
		return -EFAULT;
	ret->end = stack.hi;
	ret->sp = sp > stack.lo && sp < stack.hi ? sp - stack.hi : 0;
	return 0;
}

__noinline __u64 sb_span_of_current(__u32 slot, __u64 now_ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct sb_regs *regs = (const void *)bpf_task_pt_regs(task);
	struct runner runner = { .owner.id = task->pid };
	struct sb_scratch *s = sb_scratch_get(slot);

	/* Where it cannot be read, it stays 0. */
	bpf_probe_read_kernel(&runner.sp, sizeof(runner.sp), &regs->sp);
	if ((cfg_span_go || cfg_span_label) && s && s->labels.goroutine &&
	    find_on_stack(s->labels.goroutine, runner.sp, &runner))
		return SB_SPAN_OUTSIDE;
	return find_span(&runner, true, now_ns);
}

/* Index of struct sb_span_bucket. Global, so that the verifier does not tell the results apart. */
__noinline __u32 sb_span_bucket_of(__u64 ns)
{
	__u32 log2 = sb_log2(ns);

	if (log2 < SB_SPAN_STEP_BITS)
		return ns;
	return log2 << SB_SPAN_STEP_BITS |
	       (__u32)(ns >> (log2 - SB_SPAN_STEP_BITS) & (SB_SPAN_STEPS - 1));
}

static void count_duration(__u64 ns)
{
	__u32 idx = sb_span_bucket_of(ns);
	struct sb_span_bucket *bucket = bpf_map_lookup_elem(&span_durations, &idx);

	if (!bucket)
		return;
	/* Programs at user functions may be preempted. */
	__sync_fetch_and_add(&bucket->nr, 1);
	__sync_fetch_and_add(&bucket->sum_ns, ns);
}

static void report_slow(__u32 number, __u64 now_ns)
{
	if (bpf_map_update_elem(&spans_slow, &number, &now_ns, BPF_ANY))
		sb_stat_add(SB_STAT_SPANS_FULL, 1);
	else
		__sync_fetch_and_add(&span_nr_slow, 1);
}

/* Close a span that took @ns for certain. */
static void close_span(struct sb_open_span *span, __u64 ns, __u64 now_ns)
{
	if (ns >= cfg_span_slow_ns) {
		sb_stat_add(SB_STAT_SPANS_SLOW, 1);
		/* Spans of labels begin with the first sample. */
		if (cfg_span_slow_ns && (cfg_span_label || span->seen_ns != span->begin_ns))
			report_slow(span->number, now_ns);
	}
	/* A barrier, too: whoever sees this sees the above. */
	__sync_lock_test_and_set(&span->number, 0);
}

/* The span has no end, for the reason @stat. */
static void abandon(struct sb_open_span *span, __u32 stat)
{
	if (!span->number)
		return;
	sb_stat_add(stat, 1);
	close_span(span, span->seen_ns - span->begin_ns, span->seen_ns);
}

static __u32 new_number(void)
{
	__u32 number = __sync_fetch_and_add(&span_numbers, 1) + 1;

	return number ? number : __sync_fetch_and_add(&span_numbers, 1) + 1;
}

/* Note that the process has goroutines in spans, which are to be forgotten when it ends. Return: 0,
 * or a negative errno when there is no room. */
static int note_go_process(__u32 tgid)
{
	__u32 one = 1;

	if (!tgid || bpf_map_lookup_elem(&span_go_processes, &tgid))
		return 0;
	return bpf_map_update_elem(&span_go_processes, &tgid, &one, BPF_ANY);
}

/* Return: the entry of a thread or goroutine, which is made if it has none; NULL: there is no
 * room. */
static struct sb_open_span *span_for(const struct sb_span_owner *owner)
{
	struct sb_open_span *span = bpf_map_lookup_elem(&spans_open, owner), fresh = {};

	if (span)
		return span;
	if (note_go_process(owner->tgid) ||
	    bpf_map_update_elem(&spans_open, owner, &fresh, BPF_NOEXIST))
		sb_stat_add(SB_STAT_SPANS_FULL, 1);
	return bpf_map_lookup_elem(&spans_open, owner);
}

/* Goroutines come and go, and nothing is heard of their ends. */
static void free_span(const struct sb_span_owner *owner)
{
	if (owner->tgid)
		bpf_map_delete_elem(&spans_open, owner);
}

static void begin_span(const struct runner *runner)
{
	struct sb_open_span *span;

	if (!sb_is_asked_for())
		return;
	span = span_for(&runner->owner);
	if (!span || (span->number && runner->sp < span->sp && !is_left(span, runner->end)))
		return;
	abandon(span, SB_STAT_SPANS_LEFT);
	span->sp = runner->sp;
	span->ret_low = runner->sp ? read_ret_low(runner->sp + runner->end) : 0;
	span->begin_ns = span->seen_ns = bpf_ktime_get_ns();
	__sync_lock_test_and_set(&span->number, new_number());
}

static void finish_span(const struct runner *runner)
{
	struct sb_open_span *span = bpf_map_lookup_elem(&spans_open, &runner->owner);
	__u64 now_ns = bpf_ktime_get_ns();

	/* It returns within the span; or the span began before the run. */
	if (!span || !span->number || runner->sp < span->sp)
		return;
	if (runner->sp > span->sp) {
		abandon(span, SB_STAT_SPANS_LEFT);
		return free_span(&runner->owner);
	}
	count_duration(now_ns - span->begin_ns);
	close_span(span, now_ns - span->begin_ns, now_ns);
	free_span(&runner->owner);
}

/*
 * Find who begins or ends a call. @above: how many bytes the stack pointer is below that of the
 * caller after the return; at a function of Go it is always at the return address. Return: 0;
 * -EFAULT: no goroutine runs.
 */
static __always_inline int find_caller(struct pt_regs *ctx, __u64 above, struct runner *ret)
{
	const struct sb_regs *regs = (const struct sb_regs *)ctx;
	__u64 sp = sb_regs_sp(regs);

	if (cfg_span_go && bpf_get_attach_cookie(ctx) & SB_COOKIE_GO) {
		if (find_on_stack(sb_regs_goroutine(regs), sp, ret) || !ret->sp)
			return -EFAULT;
		ret->sp += SB_RETURN_BYTES;
		return 0;
	}
	ret->owner.id = (__u32)bpf_get_current_pid_tgid();
	ret->sp = sp + above;
	return 0;
}

/* The thread comes to an event at which spans begin, or end. */
static void begin_between(void)
{
	const struct runner runner = { .owner.id = (__u32)bpf_get_current_pid_tgid() };

	begin_span(&runner);
}

static void finish_between(void)
{
	const struct runner runner = { .owner.id = (__u32)bpf_get_current_pid_tgid() };

	finish_span(&runner);
}

static void finish_value(struct sb_open_span *span, __u64 now_ns)
{
	if (!span->number)
		return;
	count_duration(now_ns - span->begin_ns);
	close_span(span, now_ns - span->begin_ns, now_ns);
}

static void begin_value(const struct sb_span_owner *owner, __u64 value, __u64 now_ns)
{
	struct sb_open_span *span = span_for(owner);

	if (!span)
		return;
	span->sp = 0;
	span->value = value;
	span->begin_ns = span->seen_ns = now_ns;
	__sync_lock_test_and_set(&span->number, new_number());
}

__noinline int sb_span_follow(__u32 slot, __u64 value)
{
	struct sb_span_owner owner = { .id = (__u32)bpf_get_current_pid_tgid() };
	struct sb_scratch *s = sb_scratch_get(slot);
	struct sb_open_span *span;
	__u64 now_ns;

	if (!s || !cfg_span_label || value == SB_LABELS_UNSURE)
		return 0;
	now_ns = s->capture.now_ns;
	if (s->labels.goroutine) {
		owner.id = s->labels.goroutine;
		owner.tgid = bpf_get_current_pid_tgid() >> 32;
	}
	span = bpf_map_lookup_elem(&spans_open, &owner);
	if (span && span->number && span->value == value) {
		span->seen_ns = now_ns;
		return 0;
	}
	if (span)
		finish_value(span, owner.tgid ? span->seen_ns : now_ns);
	if (value)
		begin_value(&owner, value, now_ns);
	else if (span)
		free_span(&owner);
	return 0;
}

/* The thread leaves its CPU: with what is its label now, it will come back. */
SEC("?tp_btf/sched_switch")
int span_switch(void *ctx)
{
	struct sb_capture *capture;

	if (sb_is_asked_for() &&
	    !sb_begin(SB_SCRATCH_SWITCH, SB_BEGIN_ANYBODY | SB_BEGIN_ANYWHERE, &capture))
		sb_span_look(SB_SCRATCH_SWITCH);
	return 0;
}

SEC("?uprobe")
int span_call(struct pt_regs *ctx)
{
	struct runner runner = {};

	if (!find_caller(ctx, SB_RETURN_BYTES, &runner))
		begin_span(&runner);
	return 0;
}

/* After the return of a function, or at a return instruction of Go. */
SEC("?uretprobe")
int span_return(struct pt_regs *ctx)
{
	struct runner runner = {};

	if (!find_caller(ctx, 0, &runner))
		finish_span(&runner);
	return 0;
}

/* Each kind of place has programs of its own, since the kernel attaches each kind in a way of its
 * own (user/views/attach.c). */
SEC("?uprobe")
int span_begin_user(struct pt_regs *ctx)
{
	begin_between();
	return 0;
}

SEC("?uprobe")
int span_end_user(struct pt_regs *ctx)
{
	finish_between();
	return 0;
}

SEC("?kprobe")
int span_begin_kernel(struct pt_regs *ctx)
{
	begin_between();
	return 0;
}

SEC("?kprobe")
int span_end_kernel(struct pt_regs *ctx)
{
	finish_between();
	return 0;
}

SEC("?tracepoint")
int span_begin_tracepoint(void *ctx)
{
	begin_between();
	return 0;
}

SEC("?tracepoint")
int span_end_tracepoint(void *ctx)
{
	finish_between();
	return 0;
}

/* For bpf_for_each_map_elem(). Return: 0: go on. */
static long forget_span(void *map, struct sb_span_owner *key, struct sb_open_span *span,
			__u32 *tgid)
{
	struct sb_span_owner mine = *key;

	if (mine.tgid != *tgid)
		return 0;
	abandon(span, SB_STAT_SPANS_EXITED);
	bpf_map_delete_elem(&spans_open, &mine);
	return 0;
}

/* The last thread of a process has ended, or it has begun another program. */
static void forget_go_process(__u32 tgid)
{
	if (!bpf_map_delete_elem(&span_go_processes, &tgid))
		bpf_for_each_map_elem(&spans_open, forget_span, &tgid, 0);
}

/* The current thread ends, or has begun another program. Its ID may be given to another one. */
static int leave_for_good(__u32 tid)
{
	struct sb_span_owner owner = { .id = tid };
	struct sb_open_span *span = bpf_map_lookup_elem(&spans_open, &owner);

	if (!span)
		return 0;
	abandon(span, SB_STAT_SPANS_EXITED);
	return bpf_map_delete_elem(&spans_open, &owner);
}

SEC("?tp_btf/sched_process_exit")
int BPF_PROG(span_exit, struct task_struct *task)
{
	__u64 sp = 0;
	const struct sb_regs *regs = (const void *)bpf_task_pt_regs(task);

	bpf_probe_read_kernel(&sp, sizeof(sp), &regs->sp);
	sb_span_of(task->pid, sp, bpf_ktime_get_ns());
	if ((cfg_span_go || cfg_span_label) && !BPF_CORE_READ(task, signal, live.counter))
		forget_go_process(task->tgid);
	return leave_for_good(task->pid);
}

/* Its new registers say nothing of its span. */
SEC("?tp_btf/sched_process_exec")
int BPF_PROG(span_exec, struct task_struct *task)
{
	if (cfg_span_go || cfg_span_label)
		forget_go_process(task->tgid);
	return leave_for_good(task->pid);
}

/* At the end of the run: note which threads are still in their spans. */
SEC("?iter/task")
int span_settle(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (task)
		sb_span_of(task->pid, sb_user_sp_of(task), bpf_ktime_get_ns());
	return 0;
}
