// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Names a kernel address for user space, which would otherwise read all of /proc/kallsyms for it:
 * more than 100,000 lines. User space runs it by reading an iterator over a map of one element,
 * which calls it for the element and at the end. (BPF_PROG_TEST_RUN would also run other programs,
 * with arguments that a process which was taken over could choose.)
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/abi/sb_abi.h"

/* User space writes the address and a length of 0, runs the program, and reads the text. */
struct sb_kname kname;

SEC("?iter/bpf_map_elem")
int kernel_name(void *ctx)
{
	static const char format[] = "%pS";
	__u64 args[] = { kname.addr };

	if (!kname.len)
		kname.len =
			bpf_snprintf(kname.text, sizeof(kname.text), format, args, sizeof(args));
	return 0;
}
