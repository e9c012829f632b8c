// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * View "io", layer "syscall": what is asked for through io_uring, which is no system call of its
 * own.
 *
 * A request is noted where it is submitted, by the thread whose code asked for it; its stack is
 * taken there. It is accounted where it is completed: that may be in another thread, so nothing but
 * the request itself is looked at. Its file is looked up there, too, where the request has found
 * and still holds it: when it is submitted it knows at best a descriptor, which the request before
 * it in a chain may be about to open.
 *
 * The arguments of the tracepoints have changed with kernels, so the programs are raw.
 */
#include <bpf/bpf_core_read.h>

#include "bpf/core/sb_io.bpf.h"
#include "bpf/core/sb_util.bpf.h"

/* <linux/splice.h>: the descriptor is one of the ring's own. */
#define SPLICE_F_FD_IN_FIXED (1u << 31)

const volatile struct sb_io_call cfg_io_uring_calls[SB_IO_URING_CALLS_MAX] = {};

/* Requests under way: struct io_kiocb * -> the sample in the making, taken where it was submitted.
 * key.object: the file read from, where it is not the request's own. Sized where they are looked
 * at. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct sb_capture);
} io_uring_requests SEC(".maps");

static const volatile struct sb_io_call *uring_call_of(const struct io_kiocb *req)
{
	__u32 opcode = BPF_CORE_READ(req, opcode);

	sb_opaque(opcode);
	if (opcode >= SB_IO_URING_CALLS_MAX)
		return NULL;
	return cfg_io_uring_calls[opcode].op ? &cfg_io_uring_calls[opcode] : NULL;
}

/* The two that have a descriptor beyond the request's file: it is looked up, and let go, before the
 * request is completed. */
static __u64 object_spliced(const struct io_kiocb *req)
{
	/* The request's first bytes belong to what is asked for: struct io_cmd_data. */
	const struct io_splice *splice = (void *)req;

	if (!bpf_core_type_exists(struct io_splice) ||
	    (BPF_CORE_READ(splice, flags) & SPLICE_F_FD_IN_FIXED))
		return 0;
	return sb_io_file(
		sb_io_file_of_fd(bpf_get_current_task_btf(), BPF_CORE_READ(splice, splice_fd_in)),
		SB_SCRATCH_CALL);
}

static int capture_request(void *ctx, const struct io_kiocb *req,
			   const volatile struct sb_io_call *call, struct sb_capture **ret_capture)
{
	struct sb_capture *capture;
	int err = sb_begin(SB_SCRATCH_CALL, 0, &capture);

	if (err)
		return err;
	sb_start_in_kernel(SB_SCRATCH_CALL);
	sb_take_stacks(ctx, SB_SCRATCH_CALL, SB_SIDE_USER);
	capture->key.op = call->op;
	if ((call->flags & SB_IO_CALL_SPLICES) && call->in_arg != SB_IO_NO_ARG)
		capture->key.object = object_spliced(req);
	*ret_capture = capture;
	return 0;
}

static int on_submit(void *ctx, const struct io_kiocb *req)
{
	const volatile struct sb_io_call *call = uring_call_of(req);
	__u64 key = (__u64)req;
	struct sb_capture *capture;
	int err;

	if (!call || capture_request(ctx, req, call, &capture)) {
		/* The memory of one whose end was not seen is used for another. */
		bpf_map_delete_elem(&io_uring_requests, &key);
		return 0;
	}
	err = bpf_map_update_elem(&io_uring_requests, &key, capture, BPF_NOEXIST);
	if (err == -EEXIST) {
		sb_stat_add(SB_STAT_URING_UNSEEN, 1);
		err = bpf_map_update_elem(&io_uring_requests, &key, capture, BPF_ANY);
	}
	if (err)
		sb_stat_add(SB_STAT_URING_FULL, 1);
	sb_spent(capture->now_ns);
	return 0;
}

/* The file that was opened: unless it is one of the ring's own, without a descriptor. */
static __u64 file_opened(const struct io_kiocb *req, __s32 result)
{
	const struct io_open *open = (void *)req;

	if (result < 0 || !bpf_core_type_exists(struct io_open) || BPF_CORE_READ(open, file_slot))
		return 0;
	return sb_io_file_of_fd(bpf_get_current_task_btf(), result);
}

/* Return: whether anything that is asked for was moved. */
static bool find_request_objects(struct sb_io_objects *ret, __u64 spliced,
				 const struct io_kiocb *req, const volatile struct sb_io_call *call,
				 __s32 result)
{
	__u64 file, object;

	file = call->flags & SB_IO_CALL_OPENS ? file_opened(req, result)
					      : (__u64)BPF_CORE_READ(req, file);
	object = sb_io_file(file, SB_SCRATCH_CALL);
	ret->in = ret->out = SB_IO_UNWANTED;
	if (call->in_arg != SB_IO_NO_ARG)
		ret->in = call->flags & SB_IO_CALL_SPLICES ? spliced : object;
	if (call->out_arg != SB_IO_NO_ARG)
		ret->out = object;
	return ret->in != SB_IO_UNWANTED || ret->out != SB_IO_UNWANTED;
}

static void account_request(struct sb_capture *capture, const struct io_kiocb *req,
			    const volatile struct sb_io_call *call, __u64 now_ns)
{
	__s32 result = BPF_CORE_READ(req, cqe.res);
	__u64 ns = now_ns - capture->now_ns, end_ns = sb_end_ns();
	struct sb_io_objects about;

	if ((end_ns && now_ns > end_ns) || (cfg_io_weight == SB_IO_BYTES && result <= 0))
		return;
	if (!sb_io_lasts(ns))
		return;
	if (!find_request_objects(&about, capture->key.object, req, call, result)) {
		sb_stat_add(SB_STAT_OTHER_STATE, 1);
		return;
	}
	capture->key.log2_ns = sb_log2_of(ns);
	sb_io_account(capture, &about, sb_io_weight(ns, result));
}

static int on_complete(const struct io_kiocb *req)
{
	const volatile struct sb_io_call *call;
	__u64 key = (__u64)req, now_ns = bpf_ktime_get_ns();
	struct sb_capture *capture;

	/* One more of those that a request can have: "multishot". It does not say whose it is. */
	if (!req) {
		if (sb_is_asked_for())
			sb_stat_add(SB_STAT_URING_UNNAMED, 1);
		return 0;
	}
	capture = bpf_map_lookup_elem(&io_uring_requests, &key);
	if (!capture)
		return 0;
	call = uring_call_of(req);
	/* Else its memory was used for one that is submitted by the kernel itself. */
	if (call && call->op == capture->key.op)
		account_request(capture, req, call, now_ns);
	bpf_map_delete_elem(&io_uring_requests, &key);
	sb_spent(now_ns);
	return 0;
}

/* Attached to io_uring_submit_req, which was io_uring_submit_sqe up to 6.3. */
SEC("?raw_tp")
int io_uring_submit(struct bpf_raw_tracepoint_args *ctx)
{
	/* Up to 5.18 the result is not in the request; user space does not attach it there. */
	if (!bpf_core_field_exists(struct io_kiocb, cqe))
		return 0;
	/* Up to 5.19 the ring comes first. */
	return on_submit(ctx, (void *)ctx->args[bpf_core_type_exists(struct io_cmd_data) ? 0 : 1]);
}

SEC("?raw_tp")
int io_uring_complete(struct bpf_raw_tracepoint_args *ctx)
{
	if (!bpf_core_field_exists(struct io_kiocb, cqe))
		return 0;
	return on_complete((void *)ctx->args[1]);
}
