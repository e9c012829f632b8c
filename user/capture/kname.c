// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/kname.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>

#include "bpf/abi/sb_abi.h"
#include "symbolizer/sb_sym.h"
#include "views/skel.h"
#include "workers/privileges.h"

static int ask(void *arg, uint64_t addr, char *text, size_t size)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	struct sampler_bpf *skel = arg;
	struct sb_kname *kname = &skel->bss->kname;
	int err;

	kname->addr = addr;
	err = bpf_prog_test_run_opts(bpf_program__fd(skel->progs.kernel_name), &opts);
	if (err)
		return err;
	if (opts.retval || (size_t)snprintf(text, size, "%s", kname->text) >= size)
		return -ENAMETOOLONG;
	return 0;
}

int sb_kname_prepare(struct sampler_bpf *skel, uint32_t sides)
{
	if (!(sides & SB_SIDE_KERNEL) || !(sb_privileges_have() >> CAP_SYSLOG & 1))
		return 0;
	return bpf_program__set_autoload(skel->progs.kernel_name, true);
}

void sb_kname_start(struct sampler_bpf *skel, struct sb_symbolizer *sym)
{
	if (bpf_program__fd(skel->progs.kernel_name) >= 0)
		sb_symbolizer_ask_kernel(sym, ask, skel);
}
