// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The user half of bpf/views/io_uring.bpf.c: I/O that programs request through io_uring. */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/reason.h"
#include "base/str.h"
#include "views/skel.h"
#include "views/views.h"

/* Requests in flight. What is beyond is counted. */
#define REQUESTS_MAX 16384u

#define NONE	     SB_IO_NO_ARG
#define FROM	     .how = { .dirs = SB_IO_READ, .in_arg = 0, .out_arg = NONE }
#define TO	     .how = { .dirs = SB_IO_WRITE, .in_arg = NONE, .out_arg = 0 }
#define ON	     .how = { .dirs = SB_IO_NEITHER, .in_arg = 0, .out_arg = NONE }
#define OPENS                              \
	.how = {                           \
		.dirs = SB_IO_NEITHER,     \
		.in_arg = 0,               \
		.out_arg = NONE,           \
		.flags = SB_IO_CALL_OPENS, \
	}
#define MOVES                                     \
	.how = {                                  \
		.dirs = SB_IO_READ | SB_IO_WRITE, \
		.in_arg = 0,                      \
		.out_arg = 0,                     \
		.flags = SB_IO_CALL_SPLICES,      \
	}

/* By number, because headers may be older than the kernel: enum io_uring_op of
 * <linux/io_uring.h>. */
static const struct sb_io_row rows[] = {
	{ "uring_readv", 1, FROM },
	{ "uring_writev", 2, TO },
	{ "uring_fsync", 3, ON, .is_sync = true },
	{ "uring_read_fixed", 4, FROM },
	{ "uring_write_fixed", 5, TO },
	{ "uring_sync_file_range", 8, ON, .is_sync = true },
	{ "uring_sendmsg", 9, TO },
	{ "uring_recvmsg", 10, FROM },
	{ "uring_fallocate", 17, ON },
	{ "uring_openat", 18, OPENS },
	{ "uring_read", 22, FROM },
	{ "uring_write", 23, TO },
	{ "uring_send", 26, TO },
	{ "uring_recv", 27, FROM },
	{ "uring_openat2", 28, OPENS },
	{ "uring_splice", 30, MOVES },
	{ "uring_tee", 33, MOVES },
	{ "uring_send_zc", 47, TO },
	{ "uring_sendmsg_zc", 48, TO },
	{ "uring_read_multishot", 49, FROM },
	{ "uring_ftruncate", 55, ON },
	{ "uring_recv_zc", 58, FROM },
	{ "uring_readv_fixed", 60, FROM },
	{ "uring_writev_fixed", 61, TO },
};

/* Why requests are not seen in this run; NULL: they are. */
static const char *missing;

const char *sb_io_uring_missing(const struct sampler_bpf *skel)
{
	if (!missing && !bpf_program__autoload(skel->progs.io_uring_submit))
		return "this kernel rejects the BPF programs for it";
	return missing;
}

/* Return: whether a completion names its request, and the request has its result. */
static bool has_result(void)
{
	const struct btf_member *member;
	const struct btf_type *type;
	struct btf *btf;
	bool has = false;
	int id, i;

	/* The tracepoint has this name since 6.4, when this holds. Reading all types takes 15
	 * ms. */
	if (sb_can_access("/sys/kernel/tracing/events/io_uring/io_uring_submit_req", F_OK))
		return true;
	btf = btf__load_vmlinux_btf();
	id = btf ? btf__find_by_name_kind(btf, "io_kiocb", BTF_KIND_STRUCT) : -ENOENT;
	type = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	member = type ? btf_members(type) : NULL;
	for (i = 0; type && i < btf_vlen(type); i++)
		has |= sb_streq(btf__name_by_offset(btf, member[i].name_off), "cqe");
	btf__free(btf);
	return has;
}

int sb_io_uring_prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	struct sb_io_call *calls = (struct sb_io_call *)skel->rodata->cfg_io_uring_calls;
	struct bpf_program *const programs[] = { skel->progs.io_uring_submit,
						 skel->progs.io_uring_complete };
	struct sb_io_call how;
	size_t i;
	int err;

	missing = has_result() ? NULL : "Linux 5.19 or newer is needed";
	if (missing)
		return 0;
	for (i = 0; i < SB_ARRAY_SIZE(rows); i++)
		if (sb_io_is_wanted(&rows[i], opts, (uint8_t)(SB_IO_OP_URING + rows[i].nr), &how))
			calls[rows[i].nr] = how;
	err = bpf_map__set_max_entries(skel->maps.io_uring_requests, REQUESTS_MAX);
	return err ? err : sb_view_switch_on(programs, SB_ARRAY_SIZE(programs));
}

/* Return: 0, -ENOENT: no such tracepoint, or another negative errno. */
static int attach_one(const struct bpf_program *prog, const char *name, sb_vec_link *links)
{
	return sb_view_keep_link(links, bpf_program__attach_raw_tracepoint(prog, name));
}

/* Attach the end first: requests whose end was missed would stay in the map. */
int sb_io_uring_attach(struct sampler_bpf *skel, sb_vec_link *links, struct sb_reason *reason)
{
	const struct bpf_program *submit = skel->progs.io_uring_submit;
	int err;

	/* They are switched off in the layers below the system call, and when something is
	 * missing. */
	if (!bpf_program__autoload(submit))
		return 0;
	err = attach_one(skel->progs.io_uring_complete, "io_uring_complete", links);
	if (!err)
		err = attach_one(submit, "io_uring_submit_req", links);
	if (err == -ENOENT)
		err = attach_one(submit, "io_uring_submit_sqe", links);
	if (err != -ENOENT)
		return err ? sb_reason_set(
				     reason, err,
				     "cannot attach to the tracepoints of io_uring; 'stackbpf "
				     "doctor' shows what this kernel lacks")
			   : 0;
	missing = "this kernel does not have its tracepoints";
	return 0;
}

bool sb_io_uring_attaches(const struct sampler_bpf *skel, const struct bpf_program *prog)
{
	return prog == skel->progs.io_uring_submit || prog == skel->progs.io_uring_complete;
}

const char *sb_io_uring_op_name(uint32_t op)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(rows); i++)
		if (SB_IO_OP_URING + (uint32_t)rows[i].nr == op)
			return rows[i].frame;
	return NULL;
}
