// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Names a kernel address for user space, which would otherwise read all of /proc/kallsyms for it:
 * more than 100,000 lines. It is attached to nothing; user space runs it by bpf(2).
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/abi/sb_abi.h"

/* User space writes the address, runs the program, and reads the text. */
struct sb_kname kname;

SEC("?syscall")
int kernel_name(void *ctx)
{
	static const char format[] = "%pS";
	__u64 args[] = { kname.addr };
	long len = bpf_snprintf(kname.text, sizeof(kname.text), format, args, sizeof(args));

	/* The length that the whole text would have. */
	return len > 0 && len <= (long)sizeof(kname.text) ? 0 : 1;
}
