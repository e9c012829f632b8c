// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * View "io", layers "syscall" and "fsync": a sample for each system call that moves bytes of files.
 * What file it is about is looked up where the call begins, because it may be closed until it ends.
 *
 * The programs need nothing of their context but what the registers of the task say, so that the
 * same ones serve tracepoints of single calls and those of all calls.
 */
#include <bpf/bpf_core_read.h>

#include "bpf/core/sb_io.bpf.h"
#include "bpf/core/sb_util.bpf.h"

#define FMODE_WRITE	 2u /* <linux/fs.h> */
/* struct mmsghdr of recvmmsg(2), and UIO_MAXIOV, the most of a call. */
#define MESSAGE_BYTES	 64u
#define MESSAGE_LEN_AT	 56u
#define MESSAGES_MAX	 1024u
#define MESSAGES_AT_ONCE 16u

const volatile struct sb_io_call cfg_io_calls[SB_IO_CALLS_MAX] = {};
const volatile __u32 cfg_io_weight = SB_IO_BYTES;
/* Calls that began before are taken to have begun then. */
const volatile __u64 cfg_io_started_ns = 0;

/*
 * A call that is going on. Files are kept as where they are in memory: the call holds them, and
 * gives its hold up only after the tracepoint at its end (fput() of fs/file_table.c leaves that to
 * task_work), so what they are called can be looked up there, for calls that moved something.
 */
struct io_state {
	__u64 start_ns;
	__u64 in, out;	   /* struct file *, 0: none */
	__u32 nr;	   /* 1 + the number of the system call; 0: none is going on */
	__u32 is_left_out; /* by a task that is not asked for: noted, so that its end costs little */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct io_state);
} io_states SEC(".maps");

/* Programs of 32 bits have other numbers: sb_regs_are_compat(). */
static __always_inline __u32 call_nr(const struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return (__u32)regs->orig_ax;
#elif defined(__TARGET_ARCH_arm64)
	return (__u32)regs->syscallno;
#endif
}

static __always_inline __u64 call_arg(const struct pt_regs *regs, __u32 arg)
{
#if defined(__TARGET_ARCH_x86)
	return arg == 0 ? regs->di : arg == 1 ? regs->si : regs->dx;
#elif defined(__TARGET_ARCH_arm64)
	return arg == 0 ? regs->orig_x0 : arg == 1 ? regs->regs[1] : regs->regs[2];
#endif
}

static __always_inline long call_result(const struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->ax;
#elif defined(__TARGET_ARCH_arm64)
	return regs->regs[0];
#endif
}

static __always_inline __u64 file_of_arg(const struct task_struct *task, const struct pt_regs *regs,
					 __u32 arg)
{
	return arg == SB_IO_NO_ARG ? 0 : sb_io_file_of_fd(task, (__u32)call_arg(regs, arg));
}

static void find_files(struct io_state *state, const struct task_struct *task,
		       const struct pt_regs *regs, const volatile struct sb_io_call *call)
{
	state->in = file_of_arg(task, regs, call->in_arg);
	state->out =
		call->out_arg == call->in_arg ? state->in : file_of_arg(task, regs, call->out_arg);
}

static bool is_for_writing(__u64 file)
{
	return BPF_CORE_READ((const struct file *)file, f_mode) & FMODE_WRITE;
}

/* Return: whether anything that is asked for was moved. */
static bool find_objects(struct sb_io_objects *ret, const struct io_state *state,
			 const volatile struct sb_io_call *call)
{
	bool has_in = call->in_arg != SB_IO_NO_ARG || (call->flags & SB_IO_CALL_NO_FD);
	bool has_out = call->out_arg != SB_IO_NO_ARG;

	if (call->flags & SB_IO_CALL_BY_MODE) {
		has_out = is_for_writing(state->in);
		has_in = !has_out && (call->dirs & SB_IO_READ);
		has_out = has_out && (call->dirs & SB_IO_WRITE);
	}
	ret->in = ret->out = SB_IO_UNWANTED;
	if (has_in)
		ret->in = sb_io_file(state->in, SB_SCRATCH_CALL);
	if (has_out)
		ret->out = sb_io_file(state->out, SB_SCRATCH_CALL);
	return ret->in != SB_IO_UNWANTED || ret->out != SB_IO_UNWANTED;
}

static const volatile struct sb_io_call *call_of(__u32 nr)
{
	sb_opaque(nr);
	if (nr >= SB_IO_CALLS_MAX)
		return NULL;
	return cfg_io_calls[nr].op ? &cfg_io_calls[nr] : NULL;
}

static void on_enter(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	__u32 nr = call_nr(regs);
	const volatile struct sb_io_call *call = call_of(nr);
	struct io_state *state;

	if (!call || sb_regs_are_compat(regs))
		return;
	state = bpf_task_storage_get(&io_states, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!state) {
		sb_stat_add(SB_STAT_TASK_FULL, 1);
		return;
	}
	state->nr = nr + 1;
	state->is_left_out = !sb_is_asked_for();
	if (state->is_left_out)
		return;
	find_files(state, task, regs, call);
	state->start_ns = bpf_ktime_get_ns();
}

static int on_enter_measured(void)
{
	__u64 since_ns = sb_spent_begin();

	on_enter();
	sb_spent_end(since_ns);
	return 0;
}

/* Return: whether the beginning of the call was seen. */
static bool take_state(struct io_state *ret, struct task_struct *task, __u32 nr)
{
	struct io_state *state = bpf_task_storage_get(&io_states, task, NULL, 0);

	if (!state || state->nr != nr + 1)
		return false;
	*ret = *state;
	state->nr = 0;
	return true;
}

/*
 * The bytes of @nr messages from @vector on, at most MESSAGES_AT_ONCE. Global: the verifier looks
 * at it once, not once for each of the many rounds there can be.
 */
__noinline __u64 sb_io_messages(__u64 vector, __u32 nr)
{
	__u64 sum = 0;
	__u32 i, len;

	for (i = 0; i < MESSAGES_AT_ONCE && i < nr; i++) {
		len = 0;
		bpf_probe_read_user(&len, sizeof(len),
				    (void *)(vector + i * MESSAGE_BYTES + MESSAGE_LEN_AT));
		sum += len;
	}
	return sum;
}

static __u64 bytes_of_messages(__u64 vector, __u32 nr)
{
	__u64 sum = 0;
	__u32 i;

	for (i = 0; i < MESSAGES_MAX; i += MESSAGES_AT_ONCE) {
		if (i >= nr)
			break;
		sum += sb_io_messages(vector + i * MESSAGE_BYTES, nr - i);
	}
	return sum;
}

/* The current task's call is done. */
static __always_inline void on_done(void *ctx, struct task_struct *task, const struct pt_regs *regs,
				    __u32 nr)
{
	const volatile struct sb_io_call *call = call_of(nr);
	struct io_state state = { .start_ns = cfg_io_started_ns };
	struct sb_io_objects about;
	struct sb_capture *capture;
	long result = call_result(regs);
	bool has_begun = take_state(&state, task, nr);
	__u64 ns, weight;

	/* Nothing moved; often "try again", for which no more is to be paid. */
	if (!call || (cfg_io_weight == SB_IO_BYTES && result <= 0))
		return;
	if (state.is_left_out) {
		sb_stat_add(SB_STAT_FILTERED, 1);
		return;
	}
	/* What was asked for when it began still is. */
	if (sb_begin(SB_SCRATCH_CALL, has_begun ? SB_BEGIN_ANYBODY : 0, &capture))
		return;
	ns = capture->now_ns - state.start_ns;
	if (call->flags & SB_IO_CALL_MESSAGES)
		result = result > 0 ? bytes_of_messages(call_arg(regs, 1), result) : 0;
	if (!sb_io_lasts(ns))
		return;
	weight = sb_thin(sb_io_weight(ns, result));
	if (!weight) {
		sb_spent_some(capture->now_ns);
		return;
	}
	if (call->flags & SB_IO_CALL_OPENS)
		state.in = result < 0 ? 0 : sb_io_file_of_fd(task, (__u32)result);
	else if (!has_begun)
		find_files(&state, task, regs, call);
	if (!find_objects(&about, &state, call)) {
		sb_stat_add(SB_STAT_OTHER_STATE, 1);
		return;
	}
	capture->key.op = call->op;
	capture->key.log2_ns = sb_log2_of(ns);
	sb_start_in_kernel(SB_SCRATCH_CALL);
	sb_take_stacks(ctx, SB_SCRATCH_CALL, SB_SIDE_USER);
	sb_io_account(capture, &about, weight);
	sb_spent(capture->now_ns);
}

static __always_inline int on_exit(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	__u32 nr = call_nr(regs);

	if (call_of(nr) && !sb_regs_are_compat(regs))
		on_done(ctx, task, regs, nr);
	return 0;
}

/* Attached to the tracepoints of single calls. */
SEC("?tracepoint")
int io_enter(void *ctx)
{
	return on_enter_measured();
}

SEC("?tracepoint")
int io_exit(void *ctx)
{
	return on_exit(ctx);
}

/* All calls. */
SEC("?raw_tp/sys_enter")
int io_raw_enter(void *ctx)
{
	return on_enter_measured();
}

SEC("?raw_tp/sys_exit")
int io_raw_exit(void *ctx)
{
	return on_exit(ctx);
}
