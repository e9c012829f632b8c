// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Spans: samples are taken only of threads that are in a certain call, or between two events (--in,
 * --until), and count only if that took at least cfg_span_slow_ns (--slower-than). How long a span is
 * turns out at its end, but samples are taken before. So each span has a number, which is part of the
 * key of its samples, and user space keeps their counts until it knows (user/capture/spans.c).
 *
 * A thread is in one span at a time. Of calls it is the outermost: the stack grows down, so a call
 * whose caller has its stack pointer further down than that of the open span is a call within it. A
 * call that begins at the same place or above proves that the open span was left by a jump or an
 * exception, without a return. Until then no sample of the thread is in the span where its stack
 * pointer is not below that of the span's caller, or where another call has replaced the return
 * address of the span's call on the stack. What is said of other stacks in views/latency.bpf.c holds
 * here, too: a coroutine or a signal handler with a stack of its own may be taken for one that has
 * left the call.
 *
 * With a label of threads (--in label:KEY), a span is the time for which the label of a thread keeps
 * one value. Nothing happens when a program sets a label, so span_switch looks at it whenever the
 * thread leaves a CPU, and sb_begin() for each sample. Between two looks the thread runs on a CPU. So
 * the beginning and the end are noted by up to one period of the timer too late, and a value that is
 * gone again by the next look is not seen.
 *
 * User space reads counts first, then spans_open, then spans_slow. A span that is slow is written to
 * spans_slow before it is taken out of spans_open. So a span of which a count was read is in one of
 * them, unless it was fast or has not ended properly. It was slow for certain once a sample found the
 * thread in it after that time (seen_ns), and from then on samples need no number.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/abi/sb_abi_span.h"
#include "bpf/core/sb_label.bpf.h"
#include "bpf/core/sb_returns.bpf.h"
#include "bpf/core/sb_sample.bpf.h"
#include "bpf/core/sb_span.bpf.h"
#include "bpf/core/sb_util.bpf.h"

const volatile bool cfg_spans = false;
const volatile bool cfg_span_label = false;
const volatile __u64 cfg_span_slow_ns = 0;

__u32 span_numbers = 0; /* the last one that was given */
/* Entries of spans_slow. The BPF side adds to it, user space subtracts what it deletes. */
__u32 span_nr_slow = 0;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* SB_SPANS_OPEN_MAX with spans; set before load */
	__type(key, __u32);
	__type(value, struct sb_open_span);
} spans_open SEC(".maps");

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
 * Return: the lower half of the return address of the call whose caller has its stack pointer at @sp;
 * 0: it cannot be read. Half of it is enough to tell calls apart, and it is all that a 32-bit program
 * has there.
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

/* Return: whether the current thread has left the call of @span, because its place on the stack has
 * the return address of another call now. The return probe has replaced the address by its own. */
static bool is_left(const struct sb_open_span *span)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 low;

	if (!span->sp || !span->ret_low)
		return false;
	low = read_ret_low(span->sp);
	return low && low != span->ret_low &&
	       low != (__u32)BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
}

__noinline __u64 sb_span_of(__u32 tid, __u64 sp, __u64 now_ns)
{
	struct sb_open_span *span = bpf_map_lookup_elem(&spans_open, &tid);
	__u32 number = span ? span->number : 0;

	if (!span || !number)
		return SB_SPAN_OUTSIDE;
	/* A thread that is just returning is not in the call any more, but its return will come. */
	if (span->sp && sp + SB_RETURN_BYTES > span->sp)
		return SB_SPAN_OUTSIDE;
	if (tid == (__u32)bpf_get_current_pid_tgid() && is_left(span))
		return SB_SPAN_OUTSIDE;
	span->seen_ns = now_ns;
	return now_ns - span->begin_ns >= cfg_span_slow_ns ? 0 : number;
}

__noinline __u64 sb_span_of_current(__u64 now_ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct sb_regs *regs = (const void *)bpf_task_pt_regs(task);
	__u64 sp = 0;

	/* Where it cannot be read, it stays 0. */
	bpf_probe_read_kernel(&sp, sizeof(sp), &regs->sp);
	return sb_span_of(task->pid, sp, now_ns);
}

static __u32 bucket_of(__u64 ns)
{
	__u32 log2 = sb_log2(ns);

	if (log2 < SB_SPAN_STEP_BITS)
		return ns;
	return log2 << SB_SPAN_STEP_BITS |
	       (__u32)(ns >> (log2 - SB_SPAN_STEP_BITS) & (SB_SPAN_STEPS - 1));
}

static void count_duration(__u64 ns)
{
	__u32 idx = bucket_of(ns);
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

/* Return: the entry of the current thread, which is made if it has none; NULL: there is no room. */
static struct sb_open_span *span_of_thread(__u32 tid)
{
	struct sb_open_span *span = bpf_map_lookup_elem(&spans_open, &tid), fresh = {};

	if (span)
		return span;
	if (bpf_map_update_elem(&spans_open, &tid, &fresh, BPF_NOEXIST))
		sb_stat_add(SB_STAT_SPANS_FULL, 1);
	return bpf_map_lookup_elem(&spans_open, &tid);
}

/* @sp: of the caller, 0 for spans that are no calls */
static void begin_span(__u64 sp)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct sb_open_span *span;

	if (!sb_is_asked_for())
		return;
	span = span_of_thread(tid);
	if (!span || (span->number && sp < span->sp && !is_left(span)))
		return;
	abandon(span, SB_STAT_SPANS_LEFT);
	span->sp = sp;
	span->ret_low = sp ? read_ret_low(sp) : 0;
	span->begin_ns = span->seen_ns = bpf_ktime_get_ns();
	__sync_lock_test_and_set(&span->number, new_number());
}

/* @sp: of the caller after the return; 0 for spans that are no calls */
static void finish_span(__u64 sp)
{
	__u64 now_ns = bpf_ktime_get_ns();
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct sb_open_span *span = bpf_map_lookup_elem(&spans_open, &tid);

	/* It returns within the span; or the span began before the run. */
	if (!span || !span->number || sp < span->sp)
		return;
	if (sp > span->sp) {
		abandon(span, SB_STAT_SPANS_LEFT);
		return;
	}
	count_duration(now_ns - span->begin_ns);
	close_span(span, now_ns - span->begin_ns, now_ns);
}

static void finish_value(struct sb_open_span *span, __u64 now_ns)
{
	if (!span->number)
		return;
	count_duration(now_ns - span->begin_ns);
	close_span(span, now_ns - span->begin_ns, now_ns);
}

static void begin_value(__u32 tid, __u64 value, __u64 now_ns)
{
	struct sb_open_span *span = span_of_thread(tid);

	if (!span)
		return;
	span->sp = 0;
	span->value = value;
	span->begin_ns = span->seen_ns = now_ns;
	__sync_lock_test_and_set(&span->number, new_number());
}

__noinline int sb_span_follow(__u32 slot, __u64 value)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct sb_capture *capture = sb_capture_of(slot);
	struct sb_open_span *span;

	if (!capture || !cfg_span_label)
		return 0;
	span = bpf_map_lookup_elem(&spans_open, &tid);
	if (value == SB_LABELS_UNSURE || (span && span->number && span->value == value))
		return 0;
	if (span)
		finish_value(span, capture->now_ns);
	if (value)
		begin_value(tid, value, capture->now_ns);
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
	begin_span(sb_regs_sp((const struct sb_regs *)ctx) + SB_RETURN_BYTES);
	return 0;
}

SEC("?uretprobe")
int span_return(struct pt_regs *ctx)
{
	finish_span(sb_regs_sp((const struct sb_regs *)ctx));
	return 0;
}

/* Each kind of place has programs of its own, since the kernel attaches each kind in a way of its
 * own (user/views/attach.c). */
SEC("?uprobe")
int span_begin_user(struct pt_regs *ctx)
{
	begin_span(0);
	return 0;
}

SEC("?uprobe")
int span_end_user(struct pt_regs *ctx)
{
	finish_span(0);
	return 0;
}

SEC("?kprobe")
int span_begin_kernel(struct pt_regs *ctx)
{
	begin_span(0);
	return 0;
}

SEC("?kprobe")
int span_end_kernel(struct pt_regs *ctx)
{
	finish_span(0);
	return 0;
}

SEC("?tracepoint")
int span_begin_tracepoint(void *ctx)
{
	begin_span(0);
	return 0;
}

SEC("?tracepoint")
int span_end_tracepoint(void *ctx)
{
	finish_span(0);
	return 0;
}

/* The current thread ends, or has begun another program. Its ID may be given to another one. */
static int leave_for_good(__u32 tid)
{
	struct sb_open_span *span = bpf_map_lookup_elem(&spans_open, &tid);

	if (!span)
		return 0;
	abandon(span, SB_STAT_SPANS_EXITED);
	return bpf_map_delete_elem(&spans_open, &tid);
}

SEC("?tp_btf/sched_process_exit")
int BPF_PROG(span_exit, struct task_struct *task)
{
	sb_span_of_current(bpf_ktime_get_ns());
	return leave_for_good(task->pid);
}

/* Its new registers say nothing of its span. */
SEC("?tp_btf/sched_process_exec")
int BPF_PROG(span_exec, struct task_struct *task)
{
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
