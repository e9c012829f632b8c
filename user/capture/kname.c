// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/kname.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "bpf/abi/sb_abi.h"
#include "symbolizer/sb_sym.h"
#include "views/skel.h"
#include "workers/privileges.h"

static int ask(void *arg, uint64_t addr, char *text, size_t size)
{
	struct sampler_bpf *skel = arg;
	struct sb_kname *kname = &skel->bss->kname;
	sb_cleanup(sb_closep) int fd = bpf_iter_create(bpf_link__fd(skel->links.kernel_name));
	char nothing;

	if (fd < 0)
		return fd;
	kname->addr = addr;
	kname->len = 0;
	if (read(fd, &nothing, sizeof(nothing)) < 0)
		return -errno;
	if (kname->len <= 0 || (size_t)kname->len > sizeof(kname->text) ||
	    (size_t)snprintf(text, size, "%s", kname->text) >= size)
		return -ENAMETOOLONG;
	return 0;
}

int sb_kname_prepare(struct sampler_bpf *skel, uint32_t sides)
{
	if (!(sides & SB_SIDE_KERNEL) || !(sb_privileges_have() >> CAP_SYSLOG & 1))
		return 0;
	return bpf_program__set_autoload(skel->progs.kernel_name, true);
}

int sb_kname_start(struct sampler_bpf *skel, struct sb_symbolizer *sym)
{
	/* Any map of one element would do. */
	union bpf_iter_link_info over = { .map.map_fd = (__u32)bpf_map__fd(skel->maps.bss) };
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &over, .link_info_len = sizeof(over));

	if (bpf_program__fd(skel->progs.kernel_name) < 0)
		return 0;
	skel->links.kernel_name = bpf_program__attach_iter(skel->progs.kernel_name, &opts);
	if (!skel->links.kernel_name)
		return -errno;
	sb_symbolizer_ask_kernel(sym, ask, skel);
	return 0;
}
