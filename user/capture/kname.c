// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/kname.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "bpf/abi/sb_abi.h"
#include "symbolizer/sb_sym.h"
#include "views/skel.h"
#include "views/view.h"
#include "workers/privileges.h"

struct sb_kname_asker {
	struct sampler_bpf *skel;
	struct sb_symbolizer *sym;
	/* What is written to the first arrives at the second, whose filter is the program. */
	int fds[2];
};

static int ask(void *arg, uint64_t addr, char *text, size_t size)
{
	const struct sb_kname_asker *asker = arg;
	struct sb_kname *kname = &asker->skel->bss->kname;

	kname->addr = addr;
	kname->len = 0;
	if (write(asker->fds[0], "", 1) < 0)
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

int sb_kname_new(struct sampler_bpf *skel, struct sb_symbolizer *sym,
		 struct sb_kname_asker **ret_asker)
{
	int err = 0, prog_fd = bpf_program__fd(skel->progs.kernel_name);
	struct sb_kname_asker *asker;

	if (prog_fd < 0)
		return 0;
	asker = malloc(sizeof(*asker));
	if (!asker)
		return -ENOMEM;
	*asker = (struct sb_kname_asker){ .skel = skel, .sym = sym, .fds = { -1, -1 } };
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, asker->fds) ||
	    setsockopt(asker->fds[1], SOL_SOCKET, SO_ATTACH_BPF, &prog_fd, sizeof(prog_fd))) {
		/* What comes next needs descriptors, too. */
		if (errno == EMFILE)
			err = -EMFILE;
		else
			sb_warn("cannot make a socket whose filter names kernel functions (%s), "
				"so %s",
				strerror(errno), sb_view_lacks_without("kernel_name"));
		sb_kname_free(asker);
		return err;
	}
	sb_symbolizer_ask_kernel(sym, ask, asker);
	*ret_asker = asker;
	return 0;
}

void sb_kname_free(struct sb_kname_asker *asker)
{
	if (!asker)
		return;
	sb_symbolizer_ask_kernel(asker->sym, NULL, NULL);
	sb_closep(&asker->fds[0]);
	sb_closep(&asker->fds[1]);
	free(asker);
}
