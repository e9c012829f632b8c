// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Detaching a program from a perf tracepoint takes some 40 ms, because the kernel waits until no
 * CPU runs the program. With up to 66 tracepoints of system calls, one after the other, that is
 * seconds. Whoever closes the last descriptor of a link waits; but if the last reference is in a
 * BPF filesystem, a worker of the kernel drops it (bpf_link_put() in kernel/bpf/syscall.c). So each
 * link is pinned in a BPF filesystem that nobody else sees, and that filesystem is then closed.
 */
#include "capture/detach.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/mount.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"

/* A BPF filesystem that is mounted nowhere. Return: its root, or a negative errno. */
static int make_filesystem(void)
{
	int context = (int)syscall(SYS_fsopen, "bpf", FSOPEN_CLOEXEC), root = -1, err;

	if (context < 0)
		return -errno;
	if (!syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		root = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
	err = root < 0 ? -errno : 0;
	close(context);
	return err ? err : root;
}

int sb_links_prepare(void)
{
	int root = make_filesystem();

	if (root < 0)
		sb_debug("no BPF filesystem of our own: taking programs off will take longer");
	return root < 0 ? -1 : root;
}

void sb_links_release(sb_vec_link *links, int root)
{
	char path[64];
	size_t i;

	for (i = 0; i < links->nr; i++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d/%zu", root, i);
		if (root >= 0 && bpf_obj_pin(sb_view_link_fd(&links->at[i]), path))
			sb_debug("cannot pin a link: it is taken off now");
		sb_view_destroy_link(&links->at[i]);
	}
	links->nr = 0;
}
