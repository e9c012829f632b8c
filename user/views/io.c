// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The view "io": which code reads and writes which files, and how long it waits for that. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/reason.h"
#include "base/str.h"
#include "base/time.h"
#include "bpf/abi/sb_abi_io.h"
#include "views/skel.h"
#include "views/views.h"

/* Distinct files that the BPF side remembers as described. */
#define FILES_MAX 65536u

#define NONE	  SB_IO_NO_ARG
#define R	  SB_IO_READ
#define W	  SB_IO_WRITE
#define N	  SB_IO_NEITHER

#define CALL(name, ...)                                               \
	{                                                             \
		.frame = "sys_" #name, .nr = __NR_##name, __VA_ARGS__ \
	}
#define FROM(arg)	.how = { .dirs = R, .in_arg = (arg), .out_arg = NONE }
#define TO(arg)		.how = { .dirs = W, .in_arg = NONE, .out_arg = (arg) }
#define ON(arg)		.how = { .dirs = N, .in_arg = (arg), .out_arg = NONE }
#define MOVES(from, to) .how = { .dirs = R | W, .in_arg = (from), .out_arg = (to) }
#define OPENS                     \
	.how = { .dirs = N,       \
		 .in_arg = NONE,  \
		 .out_arg = NONE, \
		 .flags = SB_IO_CALL_OPENS | SB_IO_CALL_NO_FD }
/* For calls that have no file descriptor among their arguments. */
#define NO_FILE .how = { .dirs = N, .in_arg = NONE, .out_arg = NONE, .flags = SB_IO_CALL_NO_FD }

/* sb_sample_key.op of a call is its index in this table plus one. Frames are named like the
 * tracepoints. */
static const struct sb_io_row calls[] = {
	CALL(read, FROM(0)),
	CALL(write, TO(0)),
	CALL(pread64, FROM(0)),
	CALL(pwrite64, TO(0)),
	CALL(readv, FROM(0)),
	CALL(writev, TO(0)),
	CALL(preadv, FROM(0)),
	CALL(pwritev, TO(0)),
	CALL(preadv2, FROM(0)),
	CALL(pwritev2, TO(0)),
	{ .frame = "sys_sendfile64", .nr = __NR_sendfile, MOVES(1, 0) },
	CALL(splice, MOVES(0, 2)),
	CALL(tee, MOVES(0, 1)),
	{ .frame = "sys_vmsplice",
	  .nr = __NR_vmsplice,
	  .how = { .dirs = R | W, .in_arg = 0, .out_arg = 0, .flags = SB_IO_CALL_BY_MODE } },
	CALL(copy_file_range, MOVES(0, 2)),
	CALL(recvfrom, FROM(0)),
	CALL(sendto, TO(0)),
	CALL(recvmsg, FROM(0)),
	CALL(sendmsg, TO(0)),
	{ .frame = "sys_recvmmsg",
	  .nr = __NR_recvmmsg,
	  .how = { .dirs = R, .in_arg = 0, .out_arg = NONE, .flags = SB_IO_CALL_MESSAGES } },
	{ .frame = "sys_sendmmsg",
	  .nr = __NR_sendmmsg,
	  .how = { .dirs = W, .in_arg = NONE, .out_arg = 0, .flags = SB_IO_CALL_MESSAGES } },
#ifdef __NR_getdents
	CALL(getdents, FROM(0)),
#endif
	CALL(getdents64, FROM(0)),
	CALL(fsync, ON(0), .is_sync = true),
	CALL(fdatasync, ON(0), .is_sync = true),
	CALL(sync_file_range, ON(0), .is_sync = true),
	CALL(sync, NO_FILE, .is_sync = true),
	CALL(syncfs, ON(0), .is_sync = true),
	CALL(msync, NO_FILE, .is_sync = true),
#ifdef __NR_open
	CALL(open, OPENS),
#endif
	CALL(openat, OPENS),
#ifdef __NR_openat2
	CALL(openat2, OPENS),
#endif
	CALL(ftruncate, ON(0)),
	CALL(truncate, NO_FILE),
	CALL(fallocate, ON(0)),
};

_Static_assert(SB_ARRAY_SIZE(calls) < SB_IO_OP_URING, "numbers of calls end there");

/* How calls are observed in this run, for report(). */
static struct {
	bool is_raw;
	unsigned int nr_attached, nr_missing;
	bool is_missing[SB_ARRAY_SIZE(calls)]; /* it has no tracepoint */
} how;

static bool is_in_layer(const struct sb_io_row *call, uint32_t layer)
{
	return layer == SB_LAYER_SYSCALL || (layer == SB_LAYER_FSYNC && call->is_sync);
}

/* The weight that the options ask for. fsync moves no bytes that could be counted. */
static uint32_t weight_of(const struct sb_view_opts *opts)
{
	if (opts->io_layer == SB_LAYER_FSYNC && opts->io_weight == SB_IO_BYTES)
		return SB_IO_LATENCY;
	return opts->io_weight;
}

bool sb_io_is_wanted(const struct sb_io_row *call, const struct sb_view_opts *opts, uint8_t op,
		     struct sb_io_call *ret_how)
{
	uint32_t dirs = opts->io_dirs;

	if (!is_in_layer(call, opts->io_layer))
		return false;
	*ret_how = call->how;
	ret_how->op = op;
	if (weight_of(opts) == SB_IO_BYTES && (call->how.dirs & N))
		return false;
	if (!dirs || call->is_sync)
		return true;
	if (!(call->how.dirs & dirs))
		return false;
	ret_how->dirs &= dirs;
	if (call->how.flags & SB_IO_CALL_BY_MODE)
		return true; /* the direction depends on the file's mode */
	if (!(dirs & R))
		ret_how->in_arg = NONE;
	if (!(dirs & W))
		ret_how->out_arg = NONE;
	return true;
}

static bool is_wanted(const struct sb_io_row *call, const struct sb_view_opts *opts,
		      struct sb_io_call *ret_how)
{
	return sb_io_is_wanted(call, opts, (uint8_t)(call - calls + 1), ret_how);
}

static void set_filters(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	skel->rodata->cfg_io_kinds = opts->io_kinds;
	skel->rodata->cfg_io_dev = opts->io_dev;
	skel->rodata->cfg_io_ino = opts->io_ino;
	skel->rodata->cfg_io_min_ns = opts->min_ns;
	skel->rodata->cfg_io_max_ns = opts->max_ns;
	if (opts->io_fs) {
		skel->rodata->cfg_io_has_fs = 1;
		snprintf((char *)skel->rodata->cfg_io_fs, sizeof(skel->rodata->cfg_io_fs), "%s",
			 opts->io_fs);
	}
}

static int prepare_calls(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	struct sb_io_call *rows = (struct sb_io_call *)skel->rodata->cfg_io_calls;
	struct sb_io_call row;
	size_t i;
	int err;

	for (i = 0; i < SB_ARRAY_SIZE(calls); i++)
		if (is_wanted(&calls[i], opts, &row))
			rows[calls[i].nr] = row;
	skel->rodata->cfg_io_weight = weight_of(opts);
	skel->rodata->cfg_io_started_ns = sb_now_ns();
	memset(&how, 0, sizeof(how));
	how.is_raw = !sb_view_has_calls();
	err = bpf_program__set_autoload(
		how.is_raw ? skel->progs.io_raw_enter : skel->progs.io_enter, true);
	if (!err)
		err = bpf_program__set_autoload(
			how.is_raw ? skel->progs.io_raw_exit : skel->progs.io_exit, true);
	if (!err)
		err = sb_io_uring_prepare(skel, opts);
	return err ? err : sb_io_kernel_prepare(skel, opts);
}

static int prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	int err;

	set_filters(skel, opts);
	err = bpf_map__set_max_entries(skel->maps.io_descriptions, SB_SCRATCH_MAX);
	if (err)
		return err;
	if (sb_io_layer_find(opts->io_layer))
		return sb_io_layer_prepare(skel, opts);
	return prepare_calls(skel, opts);
}

static int attach_one(const struct bpf_program *prog, const char *side,
		      const struct sb_io_row *call, sb_vec_link *links)
{
	char name[64];

	snprintf(name, sizeof(name), "sys_%s_%s", side, call->frame + strlen("sys_"));
	return sb_view_keep_link(links, bpf_program__attach_tracepoint(prog, "syscalls", name));
}

/* Attach the end first: a call of which only the beginning was seen would not be accounted. */
static int attach_call(struct sampler_bpf *skel, const struct sb_io_row *call, sb_vec_link *links,
		       struct sb_reason *reason)
{
	int err = attach_one(skel->progs.io_exit, "exit", call, links);

	if (!err)
		err = attach_one(skel->progs.io_enter, "enter", call, links);
	if (err == -ENOENT) {
		how.nr_missing++;
		how.is_missing[call - calls] = true;
		return 0;
	}
	if (err)
		return sb_reason_set(reason, err,
				     "cannot attach to the tracepoint of '%s'; 'stackbpf doctor' "
				     "shows what this kernel lacks",
				     call->frame);
	how.nr_attached++;
	return 0;
}

static int attach(struct sampler_bpf *skel, const struct sb_view_opts *opts, sb_vec_link *links,
		  struct sb_reason *reason)
{
	struct sb_io_call row;
	size_t i;
	int err;

	if (opts->io_layer == SB_LAYER_FAULT && bpf_program__autoload(skel->progs.io_fault_counter))
		return sb_view_attach_faults(skel->progs.io_fault_counter, links, reason);
	err = sb_io_uring_attach(skel, links, reason);
	if (how.is_raw)
		return err;
	for (i = 0; i < SB_ARRAY_SIZE(calls) && !err; i++)
		if (is_wanted(&calls[i], opts, &row))
			err = attach_call(skel, &calls[i], links, reason);
	return err;
}

static bool attaches(struct sampler_bpf *skel, const struct bpf_program *prog)
{
	return prog == skel->progs.io_enter || prog == skel->progs.io_exit ||
	       prog == skel->progs.io_fault_counter || sb_io_uring_attaches(skel, prog);
}

static const char *unit_of(const struct sb_view_opts *opts, uint64_t *ret_divisor)
{
	static const struct {
		const char *unit;
		uint64_t divisor;
	} units[SB_IO_WEIGHT_MAX] = {
		[SB_IO_BYTES] = { "bytes", 1 },
		[SB_IO_LATENCY] = { "us", 1000 },
		[SB_IO_COUNT] = { "calls", 1 },
	};
	uint32_t weight = weight_of(opts);

	*ret_divisor = units[weight].divisor;
	if (weight == SB_IO_COUNT && sb_io_layer_find(opts->io_layer))
		return sb_io_layer_find(opts->io_layer)->count_unit;
	return units[weight].unit;
}

static const char *op_name(uint32_t op)
{
	if (op >= SB_IO_OP_LAYERS)
		return sb_io_layer_op_name(op);
	if (op >= SB_IO_OP_URING)
		return sb_io_uring_op_name(op);
	return op && op <= SB_ARRAY_SIZE(calls) ? calls[op - 1].frame : NULL;
}

static void report_missing_calls(void (*row)(const char *name, const char *value))
{
	sb_cleanup(sb_str_release) struct sb_str list = {};
	size_t i;
	int err = 0;

	for (i = 0; i < SB_ARRAY_SIZE(calls) && !err; i++)
		if (how.is_missing[i])
			err = sb_str_addf(&list, "%s%s", list.len ? " " : "", calls[i].frame);
	row("calls without tracepoint", err ? "out of memory" : list.s);
}

static void report(const struct sampler_bpf *skel, uint64_t wall_ns,
		   void (*row)(const char *name, const char *value))
{
	const char *missing;
	char text[160];

	if (!how.is_raw && !how.nr_attached && !how.nr_missing)
		return; /* a layer that does not observe calls */
	snprintf(text, sizeof(text), "tracepoints of %u system calls", how.nr_attached);
	row("calls observed by",
	    how.is_raw ? "raw tracepoints of all calls, as tracefs is unreadable" : text);
	if (how.nr_missing)
		report_missing_calls(row);
	missing = sb_io_uring_missing(skel);
	snprintf(text, sizeof(text), "not: %s", missing ? missing : "");
	row("io_uring observed by", missing ? text : "tracepoints of requests");
	missing = sb_io_kernel_missing(skel);
	snprintf(text, sizeof(text), "not: %s", missing ? missing : "");
	row("kernel threads observed by", missing ? text : "BPF programs at kernel functions");
	row("not observed", "Linux AIO, programs of 32 bits");
}

static const char *cannot_thin(const struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	if (opts->io_layer != SB_LAYER_BLOCK)
		return NULL;
	return "--layer block takes the stack before the duration of a request is known";
}

static int pending(const struct sampler_bpf *skel, sb_vec_stack_id *ids)
{
	const struct bpf_map *const maps[] = { skel->maps.io_block_bios,
					       skel->maps.io_block_dirtiers,
					       skel->maps.io_uring_requests };
	size_t i;
	int err = 0;

	for (i = 0; i < SB_ARRAY_SIZE(maps) && !err; i++)
		err = sb_pending_of_map(maps[i], ids);
	return err;
}

const struct sb_view sb_view_io = {
	.kind = SB_VIEW_KIND(io),
	.needs_file_object = true,
	.slots = 1u << SB_SCRATCH_CALL | 1u << SB_SCRATCH_FAULT,
	.objects_max = FILES_MAX,
	.other_slots = 1u << SB_SCRATCH_KERNEL,
	.losses = 1ull << SB_STAT_BLOCK_FULL | 1ull << SB_STAT_VMA_BUSY |
		  1ull << SB_STAT_URING_FULL | 1ull << SB_STAT_URING_UNSEEN |
		  1ull << SB_STAT_URING_UNNAMED | 1ull << SB_STAT_KERNEL_BUSY,
	.prefix = "io_",
	.divisor = 1,
	.unit_of = unit_of,
	.op_name = op_name,
	.trim = sb_io_layer_trim,
	.check = sb_io_layer_check,
	.prepare = prepare,
	.attach = attach,
	.attaches = attaches,
	.nests = sb_io_layer_nests,
	.pending = pending,
	.thin = sb_view_thin_events,
	.cannot_thin = cannot_thin,
	.report = report,
};
