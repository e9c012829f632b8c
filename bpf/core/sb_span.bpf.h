/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For core: in which span a thread or a goroutine is. A span is a call, the time between two
 * events, or the time for which a label keeps its value; samples can be restricted to spans (--in).
 * Implemented in core/span.bpf.c; runs in BPF programs. The functions are global, so that the
 * verifier examines them once and not for each caller. @slot: enum sb_scratch_slot of the calling
 * program; without such a slot nothing is done, unless a function says otherwise. Times are
 * CLOCK_MONOTONIC in nanoseconds, thread IDs those of the initial PID namespace.
 *
 * Order: without SB_BEGIN_ANYWHERE, sb_begin() calls sb_span_look(), and with cfg_spans
 * sb_span_of_current(); sb_begin_task() calls sb_span_of() with sb_user_sp_of(). They write the
 * number into the key, or take no sample. Spans of calls and of events begin and end by programs of
 * core/span.bpf.c, those of labels by sb_span_look().
 */
#ifndef SB_SPAN_BPF_H
#define SB_SPAN_BPF_H

#include "bpf/core/sb_label.bpf.h"
#include "bpf/core/sb_sample.bpf.h"
#include "bpf/core/sb_util.bpf.h"

/* Samples are restricted to spans. */
extern const volatile bool cfg_spans;
/* Spans are of a label of threads (--in label:KEY). */
extern const volatile bool cfg_span_label;
/* Spans are calls of goroutines, perhaps among others. */
extern const volatile bool cfg_span_go;

/* Returned in place of a number: not in a span, so take no sample. */
#define SB_SPAN_OUTSIDE (~0ull)

/*
 * Find the span of a thread at @now_ns, and note that it goes on until then.
 * @tid: the ID of the thread, which need not be the current one
 * @sp: its stack pointer in user mode; 0: not known, and the thread is taken to be in the call
 * still
 *
 * Return: the number for sb_sample_key.span; 0: the sample counts, however long the span will be,
 * because it has lasted long enough (--slower-than) already; SB_SPAN_OUTSIDE: the thread is in no
 * span, has left it without a return, or is in one of a goroutine.
 */
__u64 sb_span_of(__u32 tid, __u64 sp, __u64 now_ns);

/*
 * Find the span of the current thread, or of the goroutine that it runs, at @now_ns, and note that
 * it goes on until then, as sb_span_of() does. Which goroutine that is, sb_span_look() has written
 * to the record of @slot. If there is no such record, no goroutine is looked for, and the span of
 * the thread is found.
 *
 * Return: the number for sb_sample_key.span; 0: the sample counts, because its span has lasted long
 * enough already; SB_SPAN_OUTSIDE: the thread or the goroutine is in no span or has left it, or the
 * bounds of the goroutine's stack cannot be read.
 */
__u64 sb_span_of_current(__u32 slot, __u64 now_ns);

/*
 * The label of the current thread or its goroutine, of which a record is in @slot, is @value now,
 * as sb_labels_span() returned it: begin or end its span if that has changed, at capture.now_ns of
 * the record. 0: there is no label, so no span begins; SB_LABELS_UNSURE: nothing is changed. The
 * span of a goroutine ends when it was last seen with its value. If the table of spans is full, no
 * span begins, which is counted (SB_STAT_SPANS_FULL). Return: 0.
 */
int sb_span_follow(__u32 slot, __u64 value);

/* Find out who runs, and with cfg_span_label, which label it has, and follow it. The key of the
 * record of @slot must say which process it is (tgid, start_ns, exec_id). Does nothing if spans are
 * of neither labels nor goroutines. */
static __always_inline void sb_span_look(__u32 slot)
{
	if (cfg_span_label)
		sb_span_follow(slot, sb_labels_span(slot));
	else if (cfg_span_go)
		sb_labels_find_goroutine(slot);
}

/* Return: the stack pointer in user mode of a task that is not running, not NULL; 0: not known, or
 * the task runs, and what the kernel has stored is from when it last entered the kernel. */
static __always_inline __u64 sb_user_sp_of(struct task_struct *task)
{
	const struct sb_regs *regs = (const void *)bpf_task_pt_regs(task);
	__u64 sp = 0;

	if (!sb_is_running(task))
		bpf_probe_read_kernel(&sp, sizeof(sp), &regs->sp);
	return sp;
}

#endif
