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
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "views/skel.h"
#include "views/view.h"

#define VERIFIED_INSNS_MAX 64000u /* up to 61,400, on 5.15 */

/* Of each program, what the verifier says when it is done. */
#define PROGRAMS_MAX	   128
#define LOG_STATS	   4 /* BPF_LOG_STATS of the kernel's bpf_verifier.h: this and no more */
#define LOG_BYTES	   65536
static char logs[PROGRAMS_MAX][LOG_BYTES];

static bool keep_log(struct bpf_program *prog, size_t i)
{
	return i < PROGRAMS_MAX && !bpf_program__set_log_level(prog, LOG_STATS) &&
	       !bpf_program__set_log_buf(prog, logs[i], LOG_BYTES);
}

/* Up to 5.15 the kernel does not have it in struct bpf_prog_info. Return: 0: not known. */
static uint32_t verified_by_log(const char *log)
{
	const char *said = strstr(log, "processed ");

	return said ? (uint32_t)strtoul(said + strlen("processed "), NULL, 10) : 0;
}

/* Return: how many instructions the verifier has followed; 0: not known, which is printed. */
static uint32_t verified(const struct bpf_program *prog, const char *log)
{
	struct bpf_prog_info info = {};
	uint32_t len = sizeof(info), nr;

	if (bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &len)) {
		printf("%s: no info: %d\n", bpf_program__name(prog), errno);
		return 0;
	}
	nr = info.verified_insns ? info.verified_insns : verified_by_log(log);
	printf("%-16s %6u instructions verified, %5u bytes of machine code\n",
	       bpf_program__name(prog), nr, info.jited_prog_len);
	return nr;
}

static void set_all(struct sampler_bpf *skel)
{
	/* What offcpu is loaded with: both of its ways to treat a wait. */
	skel->rodata->cfg_sched_is_governed = 1;
	/* And each view: with walks of all kinds. */
	skel->rodata->cfg_unwind = SB_UNWIND_CFI | SB_UNWIND_FP;
	skel->rodata->cfg_memo = true;
	skel->rodata->cfg_last_walk = true;
	skel->rodata->cfg_interp = true;
	skel->rodata->cfg_interp_lines = true;
	skel->rodata->cfg_labels = true;
	skel->rodata->cfg_spans = true;
	skel->rodata->cfg_span_label = true;
	skel->rodata->cfg_span_go = true;
}

/* The verifier must not follow walkers that are left out. Return: 0; 1: it has, or an error. */
static int check_left_out(uint32_t nr_all)
{
	struct sampler_bpf *skel = sampler_bpf__open();
	uint32_t nr = 0;

	if (!skel)
		return 1;
	set_all(skel);
	skel->rodata->cfg_interp_walkers = 0;
	bpf_program__set_autoload(skel->progs.oncpu_tick, true);
	*logs[0] = '\0';
	if (keep_log(skel->progs.oncpu_tick, 0) && !sampler_bpf__load(skel)) {
		printf("without walkers of interpreters:\n");
		nr = verified(skel->progs.oncpu_tick, logs[0]);
	}
	sampler_bpf__destroy(skel);
	return !nr || nr > nr_all / 3 * 2;
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
	static const char prefix[] = "io_fault_";

	if (strncmp(bpf_program__name(prog), prefix, strlen(prefix)))
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

/* What the verifier said last of the program that it refused, which is the last one that it was
 * given. */
static void print_refusal(void)
{
	size_t i, len;

	for (i = PROGRAMS_MAX; i--;)
		if (*logs[i])
			break;
	if (i == (size_t)-1)
		return;
	len = strlen(logs[i]);
	printf("%s\n", logs[i] + (len > 400 ? len - 400 : 0));
}

int main(void)
{
	struct bpf_program *prog;
	struct sampler_bpf *skel;
	uint32_t nr, nr_all = 0;
	size_t i = 0;
	int nr_bad = 0;

	if (geteuid()) {
		printf("skipped: loading BPF programs needs root\n");
		return 77;
	}
	skel = sampler_bpf__open();
	if (!skel)
		return 1;
	bpf_object__for_each_program(prog, skel->obj) {
		bpf_program__set_autoload(prog, !is_of_other_kernels(prog) && !is_refused(prog) &&
							!lacks_helper(prog));
		nr_bad += !keep_log(prog, i++);
	}
	set_all(skel);
	if (sampler_bpf__load(skel)) {
		print_refusal();
		return 1;
	}
	i = 0;
	bpf_object__for_each_program(prog, skel->obj) {
		nr = bpf_program__autoload(prog) ? verified(prog, logs[i]) : 1;
		nr_bad += !nr || nr > VERIFIED_INSNS_MAX;
		if (prog == skel->progs.oncpu_tick)
			nr_all = nr;
		i++;
	}
	sampler_bpf__destroy(skel);
	nr_bad += check_left_out(nr_all);
	return nr_bad ? 1 : 0;
}
