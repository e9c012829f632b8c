// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Helpers of the views for BPF programs and links. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/str.h"
#include "views/skel.h"
#include "views/views.h"

int sb_view_switch_on(struct bpf_program *const *programs, size_t nr)
{
	size_t i;
	int err = 0;

	for (i = 0; i < nr && !err; i++)
		err = bpf_program__set_autoload(programs[i], true);
	return err;
}

/* Optional programs, by the beginning of their names. Those of one row are switched off
 * together. */
static const struct {
	const char *prefix, *lacks;
} optional[] = {
	{ "proc_mapped", "new mappings that replace others of the same size are noticed later" },
	{ "memory_mapped",
	  "pages of new mappings can be counted for what was mapped there before" },
	{ "kernel_name", "names of kernel functions are read from /proc/kallsyms" },
	{ "io_uring_", "I/O through io_uring is not recorded" },
	{ "io_kernel_", "I/O of kernel threads is not recorded" },
};

/* Return: its row, or SB_ARRAY_SIZE(optional). */
static size_t find_optional(const char *program)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(optional); i++)
		if (sb_begins(program, optional[i].prefix))
			break;
	return i;
}

const char *sb_view_lacks_without(const char *program)
{
	size_t i = find_optional(program);

	return i < SB_ARRAY_SIZE(optional) ? optional[i].lacks : NULL;
}

int sb_view_do_without(struct sampler_bpf *skel, const char *program)
{
	size_t row = find_optional(program);
	struct bpf_program *prog;
	int err = 0;

	if (row >= SB_ARRAY_SIZE(optional))
		return -ENOENT;
	bpf_object__for_each_program(prog, skel->obj)
		if (!err && sb_begins(bpf_program__name(prog), optional[row].prefix))
			err = bpf_program__set_autoload(prog, false);
	return err;
}

int sb_view_keep_link(sb_vec_link *links, struct bpf_link *link)
{
	int err = link ? sb_vec_push(links, ((struct sb_link){ .of_libbpf = link })) : -errno;

	if (err && link)
		bpf_link__destroy(link);
	return err;
}

int sb_view_keep_link_fd(sb_vec_link *links, int fd)
{
	int err = sb_vec_push(links, ((struct sb_link){ .fd = fd }));

	if (err)
		close(fd);
	return err;
}

int sb_view_link_fd(const struct sb_link *link)
{
	return link->of_libbpf ? bpf_link__fd(link->of_libbpf) : link->fd;
}

void sb_view_destroy_link(struct sb_link *link)
{
	if (link->of_libbpf)
		bpf_link__destroy(link->of_libbpf);
	else
		close(link->fd);
}

uint64_t sb_view_thin_events(struct sampler_bpf *skel, const struct sb_view_opts *opts,
			     uint32_t step, uint64_t mean)
{
	skel->bss->thin_weight = step ? mean << step : 0;
	return skel->bss->thin_weight;
}

bool sb_view_has_calls(void)
{
	return sb_can_access("/sys/kernel/tracing/events/syscalls/sys_enter_read/id", R_OK) ||
	       sb_can_access("/sys/kernel/debug/tracing/events/syscalls/sys_enter_read/id", R_OK);
}
