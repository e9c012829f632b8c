// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Links that attach a program to many functions at once: of one file since Linux 6.6
 * (bpf_uprobe_multi_link_attach()), of the kernel since 5.18 (bpf_kprobe_multi_link_attach(), both
 * in kernel/trace/bpf_trace.c). A perf event for each function takes up to 70 ms with a process ID,
 * and as long to detach. The attach type belongs to the loaded program: one that is loaded for many
 * functions cannot be attached to a perf event.
 *
 * Whether the kernel has them is found out by two links that cannot be made: what is wrong with
 * them is told by a different errno if the kernel looks at them at all. bpf(2) is called directly,
 * because libbpf has had links to user functions since 1.3 only.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "events/probe.h"
#include "views/views.h"

/* Of the kernel's enum bpf_attach_type; they are newer than headers that we build with. */
#define TRACE_KPROBE_MULTI 42
#define TRACE_UPROBE_MULTI 48
#define MULTI_RETURNS	   1u /* BPF_F_KPROBE_MULTI_RETURN, BPF_F_UPROBE_MULTI_RETURN */

/* union bpf_attr.link_create, of these two attach types. Addresses of arrays are 64-bit words. */
struct link_attr {
	uint32_t program_fd, target_fd, type, flags;
	union {
		struct {
			uint64_t path, offsets, semaphores, cookies;
			uint32_t nr, flags, pid, zero;
		} user;
		struct {
			uint32_t flags, nr;
			uint64_t names, addresses, cookies;
		} kernel;
	};
};

/* Return: the descriptor of the link, owned by the caller; or a negative errno. */
static int create_link(struct link_attr *attr)
{
	long fd = syscall(SYS_bpf, BPF_LINK_CREATE, attr, sizeof(*attr));

	return fd < 0 ? -errno : (int)fd;
}

/* Return: by which errno a link is refused; 0: it was made, which cannot be. */
static int refusal(struct link_attr *attr)
{
	int fd = create_link(attr);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* A directory is no file whose functions can be hooked (EBADF). */
static int refusal_of_directory(int program_fd, uint32_t pid)
{
	const uint64_t offset = 0;
	struct link_attr attr = { .program_fd = (uint32_t)program_fd, .type = TRACE_UPROBE_MULTI };

	attr.user.path = (uint64_t)(uintptr_t) "/";
	attr.user.offsets = (uint64_t)(uintptr_t)&offset;
	attr.user.nr = 1;
	attr.user.pid = pid;
	return refusal(&attr);
}

/*
 * Kernels before 6.10 filtered by thread where they were asked to filter by process, until commit
 * 46ba0e49b642. The same series checks the process ID before the file (libbpf,
 * probe_uprobe_multi_link()).
 */
static bool has_user_links(int program_fd)
{
	return refusal_of_directory(program_fd, 0) == -EBADF &&
	       refusal_of_directory(program_fd, UINT32_MAX) == -EINVAL;
}

/* An array that cannot be read (EFAULT). */
static bool has_kernel_links(int program_fd)
{
	struct link_attr attr = { .program_fd = (uint32_t)program_fd, .type = TRACE_KPROBE_MULTI };

	attr.kernel.addresses = 1;
	attr.kernel.nr = 1;
	return refusal(&attr) == -EFAULT;
}

/* Return: the attach type by which this kernel attaches a program to many places of a kind; 0:
 * none. */
static uint32_t multi_type(enum sb_probe_kind kind)
{
	uint32_t type = kind == SB_PROBE_KERNEL ? TRACE_KPROBE_MULTI : TRACE_UPROBE_MULTI;
	/* return 0; */
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = (enum bpf_attach_type)type);
	sb_cleanup(sb_closep) int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "sb_try_multi", "GPL",
						     insns, SB_ARRAY_SIZE(insns), &opts);

	if (fd < 0)
		return 0;
	return (kind == SB_PROBE_KERNEL ? has_kernel_links(fd) : has_user_links(fd)) ? type : 0;
}

bool sb_probe_multi_is_there(enum sb_probe_kind kind)
{
	return multi_type(kind);
}

bool sb_probe_multi_can(enum sb_probe_kind kind, const struct sb_probes *probes)
{
	bool is_kernel = kind == SB_PROBE_KERNEL;
	size_t nr = 0, i;

	if (!is_kernel && kind != SB_PROBE_USER && kind != SB_PROBE_USDT)
		return false;
	for (i = 0; i < probes->places.nr; i++) {
		if (probes->places.at[i].kind != kind)
			continue;
		/* Functions of the kernel are named, and hooked where they begin or return. */
		if (is_kernel && probes->places.at[i].offset)
			return false;
		nr++;
	}
	/* A single function of the kernel need not be one that ftrace can hook. */
	return nr > is_kernel;
}

int sb_probe_multi_prepare(struct bpf_program *program, enum sb_probe_kind kind)
{
	uint32_t type = multi_type(kind);

	return type ? bpf_program__set_expected_attach_type(program, (enum bpf_attach_type)type)
		    : 0;
}

bool sb_probe_multi_is_on(const struct bpf_program *program)
{
	uint32_t type = bpf_program__expected_attach_type(program);

	return type == TRACE_KPROBE_MULTI || type == TRACE_UPROBE_MULTI;
}

/* The arrays that a link is made of, with an element for each place, or for each return of it. */
struct arrays {
	uint64_t *offsets; /* of functions of the kernel: addresses of their names */
	uint64_t *semaphores, *cookies;
};

/* Return: how many elements a place takes. */
static size_t elements_of(const struct sb_attaching *job, const struct sb_probe *probe)
{
	return sb_probe_is_at_returns(job, probe) ? probe->returns.nr : 1;
}

/* Return: the element of arrays.offsets. */
static uint64_t offset_of(const struct sb_attaching *job, const struct sb_probe *probe, size_t i)
{
	if (probe->kind == SB_PROBE_KERNEL)
		return (uint64_t)(uintptr_t)probe->function;
	return sb_probe_is_at_returns(job, probe) ? probe->returns.at[i] : probe->offset;
}

static void fill(const struct sb_attaching *job, const uint32_t *idx, size_t nr,
		 const struct arrays *to)
{
	const struct sb_probe *probe;
	size_t i, k, at = 0;

	for (i = 0; i < nr; i++) {
		probe = &job->probes->places.at[idx[i]];
		for (k = 0; k < elements_of(job, probe); k++, at++) {
			to->offsets[at] = offset_of(job, probe, k);
			to->semaphores[at] = probe->semaphore;
			to->cookies[at] = sb_probe_cookie(probe, idx[i]);
		}
	}
}

static void set_attr(const struct sb_attaching *job, const struct sb_probe *probe, uint32_t nr,
		     const struct arrays *from, struct link_attr *attr)
{
	bool is_trampoline =
		(probe->is_return || job->at_returns) && !sb_probe_is_at_returns(job, probe);
	uint32_t flags = is_trampoline ? MULTI_RETURNS : 0;

	memset(attr, 0, sizeof(*attr));
	attr->program_fd = (uint32_t)bpf_program__fd(job->programs.of[probe->kind]);
	if (probe->kind == SB_PROBE_KERNEL) {
		attr->type = TRACE_KPROBE_MULTI;
		attr->kernel.flags = flags;
		attr->kernel.nr = nr;
		attr->kernel.names = (uint64_t)(uintptr_t)from->offsets;
		attr->kernel.cookies = (uint64_t)(uintptr_t)from->cookies;
		return;
	}
	attr->type = TRACE_UPROBE_MULTI;
	attr->user.path = (uint64_t)(uintptr_t)probe->link;
	attr->user.offsets = (uint64_t)(uintptr_t)from->offsets;
	attr->user.semaphores = (uint64_t)(uintptr_t)from->semaphores;
	attr->user.cookies = (uint64_t)(uintptr_t)from->cookies;
	attr->user.nr = nr;
	attr->user.flags = flags;
	attr->user.pid = job->probes->is_of_tgid_only ? job->probes->tgid : 0;
}

int sb_probe_multi_attach(const struct sb_attaching *job, const uint32_t *idx, size_t nr,
			  sb_vec_link *links)
{
	sb_cleanup(sb_freep) uint64_t *memory = NULL;
	struct link_attr attr;
	struct arrays arrays;
	size_t nr_elements = 0, i;
	int fd;

	for (i = 0; i < nr; i++)
		nr_elements += elements_of(job, &job->probes->places.at[idx[i]]);
	memory = calloc(3 * nr_elements, sizeof(*memory));
	if (!memory)
		return -ENOMEM;
	arrays = (struct arrays){ memory, memory + nr_elements, memory + 2 * nr_elements };
	fill(job, idx, nr, &arrays);
	set_attr(job, &job->probes->places.at[idx[0]], (uint32_t)nr_elements, &arrays, &attr);
	fd = create_link(&attr);
	return fd < 0 ? fd : sb_view_keep_link_fd(links, fd);
}
