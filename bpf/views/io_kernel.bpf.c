// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * View "io", layer "syscall": files that threads of the kernel read and write (loop devices, nfsd),
 * for which there is no system call. Only where the kernel takes programs at its functions.
 *
 * These functions call one another where filesystems are stacked: the outermost counts.
 *
 * Unlike at tracepoints, preemption is on here, though the CPU stays the same: another thread may
 * come in between, so the scratch record is taken and given back.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/core/sb_io.bpf.h"
#include "bpf/core/sb_io_layers.bpf.h"
#include "bpf/core/sb_util.bpf.h"

/* What a thread is in. */
struct kernel_state {
	__u64 start_ns;
	__u32 depth;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct kernel_state);
} io_kernel_states SEC(".maps");

/* Whether the scratch record of this CPU is in use. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} io_kernel_busy SEC(".maps");

static int on_begin(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct kernel_state *state;

	if (!(task->flags & PF_KTHREAD))
		return 0;
	state = bpf_task_storage_get(&io_kernel_states, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!state) {
		sb_stat_add(SB_STAT_TASK_FULL, 1);
		return 0;
	}
	if (!state->depth++)
		state->start_ns = bpf_ktime_get_ns();
	return 0;
}

static void sample(void *ctx, __u64 file, const struct kernel_state *state, __u32 op, long result)
{
	struct sb_capture *capture;
	struct sb_io_objects about = { .in = SB_IO_UNWANTED, .out = SB_IO_UNWANTED };
	__u64 ns, weight;

	if (sb_begin(SB_SCRATCH_KERNEL, 0, &capture))
		return;
	ns = capture->now_ns - state->start_ns;
	if (!sb_io_lasts(ns))
		return;
	weight = sb_thin(sb_io_weight(ns, result));
	if (!weight)
		return;
	about.in = sb_io_file(file, SB_SCRATCH_KERNEL);
	if (about.in == SB_IO_UNWANTED) {
		sb_stat_add(SB_STAT_OTHER_STATE, 1);
		return;
	}
	capture->key.op = op;
	capture->key.log2_ns = sb_log2_of(ns);
	sb_start_in_kernel(SB_SCRATCH_KERNEL);
	sb_take_stacks(ctx, SB_SCRATCH_KERNEL, SB_SIDE_KERNEL);
	sb_io_account(capture, &about, weight);
	sb_spent(capture->now_ns);
}

static __always_inline int on_end(void *ctx, __u32 op, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct kernel_state *state;
	__u32 zero = 0, *busy;
	__u64 file = 0;

	if (!(task->flags & PF_KTHREAD))
		return 0;
	state = bpf_task_storage_get(&io_kernel_states, task, NULL, 0);
	/* What began before the run has no beginning. */
	if (!state || !state->depth || --state->depth)
		return 0;
	if (cfg_io_weight == SB_IO_BYTES && result <= 0)
		return 0;
	if (!sb_io_layer_wants(op == SB_IO_OP_KERNEL_READ ? SB_IO_READ : SB_IO_WRITE))
		return 0;
	busy = bpf_map_lookup_elem(&io_kernel_busy, &zero);
	if (!busy || *busy) {
		sb_stat_add(SB_STAT_KERNEL_BUSY, 1);
		return 0;
	}
	*busy = 1;
	/* The first argument, as a number: what takes it is a global function. */
	bpf_probe_read_kernel(&file, sizeof(file), ctx);
	sample(ctx, file, state, op, result);
	*busy = 0;
	return 0;
}

/* Programs are attached in this order, the ends first: each beginning that is seen has an end. */
SEC("?fexit/vfs_iter_read")
int BPF_PROG(io_kernel_iter_read_end, struct file *file, void *iter, void *pos, u64 flags,
	     long result)
{
	return on_end(ctx, SB_IO_OP_KERNEL_READ, result);
}

SEC("?fexit/vfs_iter_write")
int BPF_PROG(io_kernel_iter_write_end, struct file *file, void *iter, void *pos, u64 flags,
	     long result)
{
	return on_end(ctx, SB_IO_OP_KERNEL_WRITE, result);
}

SEC("?fexit/kernel_read")
int BPF_PROG(io_kernel_read_end, struct file *file, void *buf, u64 nr_bytes, void *pos, long result)
{
	return on_end(ctx, SB_IO_OP_KERNEL_READ, result);
}

SEC("?fexit/kernel_write")
int BPF_PROG(io_kernel_write_end, struct file *file, void *buf, u64 nr_bytes, void *pos,
	     long result)
{
	return on_end(ctx, SB_IO_OP_KERNEL_WRITE, result);
}

SEC("?fentry/vfs_iter_read")
int io_kernel_iter_read(void *ctx)
{
	return on_begin();
}

SEC("?fentry/vfs_iter_write")
int io_kernel_iter_write(void *ctx)
{
	return on_begin();
}

SEC("?fentry/kernel_read")
int io_kernel_read(void *ctx)
{
	return on_begin();
}

SEC("?fentry/kernel_write")
int io_kernel_write(void *ctx)
{
	return on_begin();
}
