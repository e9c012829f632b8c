// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What each program costs the verifier. The kernel's limit is one million instructions; ours is far
 * below, because older kernels need several times more for the same program.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "views/skel.h"
#include "views/view.h"

#define VERIFIED_INSNS_MAX 60000u /* 6.1 goes a quarter further than 6.18 */

static int check(const struct bpf_program *prog)
{
	struct bpf_prog_info info = {};
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &len)) {
		printf("%s: no info: %d\n", bpf_program__name(prog), errno);
		return 1;
	}
	printf("%-16s %6u instructions verified, %5u bytes of machine code\n",
	       bpf_program__name(prog), info.verified_insns, info.jited_prog_len);
	return info.verified_insns > VERIFIED_INSNS_MAX;
}

/* One of two names of a tracepoint, in kernels of different age. */
static bool is_of_other_kernels(const struct bpf_program *prog)
{
	static const char prefix[] = "tp_btf/";
	const char *section = bpf_program__section_name(prog);

	if (strncmp(section, prefix, strlen(prefix)))
		return false;
	if (libbpf_find_vmlinux_btf_id(section + strlen(prefix), BPF_TRACE_RAW_TP) > 0)
		return false;
	printf("%-16s not loaded: no such tracepoint in this kernel\n", bpf_program__name(prog));
	return true;
}

/* The view asks the same, and says so: user/views/io_layers.c. */
static bool lacks_helper(const struct bpf_program *prog)
{
	static const char prefix[] = "tp_btf/page_fault_";

	if (strncmp(bpf_program__section_name(prog), prefix, strlen(prefix)))
		return false;
	if (libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_find_vma, NULL) == 1)
		return false;
	printf("%-16s not loaded: no bpf_find_vma() in this kernel\n", bpf_program__name(prog));
	return true;
}

/* At functions: not all kernels take that. */
static bool is_refused(const struct bpf_program *prog)
{
	const char *section = bpf_program__section_name(prog);
	int id;

	if (strncmp(section, "fentry/", strlen("fentry/")) &&
	    strncmp(section, "fexit/", strlen("fexit/")))
		return false;
	id = libbpf_find_vmlinux_btf_id(strchr(section, '/') + 1, BPF_TRACE_FENTRY);
	if (id > 0 && !sb_try_tracing((uint32_t)id, BPF_TRACE_FENTRY))
		return false;
	printf("%-16s not loaded: this kernel takes no programs there\n", bpf_program__name(prog));
	return true;
}

int main(void)
{
	struct bpf_program *prog;
	struct sampler_bpf *skel;
	int nr_bad = 0;

	if (geteuid()) {
		printf("skipped: loading BPF programs needs root\n");
		return 77;
	}
	skel = sampler_bpf__open();
	if (!skel)
		return 1;
	bpf_object__for_each_program(prog, skel->obj)
		bpf_program__set_autoload(prog, !is_of_other_kernels(prog) && !is_refused(prog) &&
							!lacks_helper(prog));
	/* What offcpu is loaded with: both of its ways to treat a wait. */
	skel->rodata->cfg_sched_is_governed = 1;
	/* And each view: with walks of all kinds. */
	skel->rodata->cfg_unwind = SB_UNWIND_CFI | SB_UNWIND_FP;
	skel->rodata->cfg_memo = true;
	skel->rodata->cfg_interp = true;
	skel->rodata->cfg_interp_lines = true;
	if (sampler_bpf__load(skel))
		return 1;
	bpf_object__for_each_program(prog, skel->obj)
		if (bpf_program__autoload(prog))
			nr_bad += check(prog);
	sampler_bpf__destroy(skel);
	return nr_bad ? 1 : 0;
}
