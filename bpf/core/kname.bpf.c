// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Names a kernel address for user space, which would otherwise read all of /proc/kallsyms for it:
 * more than 100,000 lines. It is the filter of a socket: user space runs it by writing a byte to
 * the other end, and the filter drops the byte. Other ways to run it are worse: a process that may
 * call BPF_PROG_TEST_RUN can run any program with any arguments, and so could an attacker who has
 * taken it over; and an iterator is a program of type tracing, which some machines refuse.
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "bpf/abi/sb_abi.h"

/* User space writes the address and a length of 0, runs the program, and reads the text. */
struct sb_kname kname;

SEC("?socket")
int kernel_name(struct __sk_buff *ctx)
{
	static const char format[] = "%pS";
	__u64 args[] = { kname.addr };

	kname.len = bpf_snprintf(kname.text, sizeof(kname.text), format, args, sizeof(args));
	return 0;
}
