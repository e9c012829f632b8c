// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The user half of bpf/views/io_kernel.bpf.c: reads and writes of kernel threads. */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "views/skel.h"
#include "views/views.h"

static const char *const functions[] = { "vfs_iter_read", "vfs_iter_write", "kernel_read",
					 "kernel_write" };

/* Why kernel threads are not observed in this run; NULL: they are. */
static const char *missing;

const char *sb_io_kernel_missing(const struct sampler_bpf *skel)
{
	if (!missing && !bpf_program__autoload(skel->progs.io_kernel_read))
		return "this kernel rejects the BPF programs for it";
	return missing;
}

int sb_try_tracing(uint32_t btf_id, enum bpf_attach_type attach_type)
{
	/* r0 = 0; exit */
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = attach_type,
		    .attach_btf_id = btf_id);
	sb_cleanup(sb_closep) int link_fd = -1;
	sb_cleanup(sb_closep) int prog_fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "trial", "GPL",
							  insns, SB_ARRAY_SIZE(insns), &opts);

	if (prog_fd < 0)
		return prog_fd;
	link_fd = bpf_raw_tracepoint_open(NULL, prog_fd);
	return link_fd < 0 ? link_fd : 0;
}

/* Return: why programs cannot be attached to kernel functions; NULL: they can. */
static const char *try_it(void)
{
	struct btf *btf;
	size_t i;
	int id = 0;

	/* Without this file no function can be attached to, and trying takes longer. */
	if (sb_can_access("/sys/kernel/tracing/events", F_OK) &&
	    !sb_can_access("/sys/kernel/tracing/available_filter_functions", F_OK))
		return "this kernel does not support BPF programs at its functions (fentry)";
	btf = btf__load_vmlinux_btf();
	for (i = 0; i < SB_ARRAY_SIZE(functions) && id >= 0; i++)
		id = btf ? btf__find_by_name_kind(btf, functions[i], BTF_KIND_FUNC) : -ENOENT;
	btf__free(btf);
	if (id < 0)
		return "this kernel does not have the functions";
	return sb_try_tracing((uint32_t)id, BPF_TRACE_FEXIT)
		       ? "this kernel does not support BPF programs at its functions (fentry)"
		       : NULL;
}

int sb_io_kernel_prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	struct bpf_program *const programs[] = {
		skel->progs.io_kernel_iter_read,     skel->progs.io_kernel_iter_write,
		skel->progs.io_kernel_read,	     skel->progs.io_kernel_write,
		skel->progs.io_kernel_iter_read_end, skel->progs.io_kernel_iter_write_end,
		skel->progs.io_kernel_read_end,	     skel->progs.io_kernel_write_end,
	};

	missing = opts->io_layer == SB_LAYER_SYSCALL ? try_it()
						     : "only --layer syscall observes them";
	if (missing)
		return 0;
	skel->rodata->cfg_layer_dirs = opts->io_dirs;
	return sb_view_switch_on(programs, SB_ARRAY_SIZE(programs));
}
