/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of kernel addresses, which a BPF program asks the kernel for (bpf/core/kname.bpf.c).
 * Internal to capture. Thread: the session's. No pointer may be NULL unless a contract says so. */
#ifndef SB_CAPTURE_KNAME_H
#define SB_CAPTURE_KNAME_H

#include <stdint.h>

struct sampler_bpf;
struct sb_kname_asker;
struct sb_symbolizer;

/* Before the programs are loaded: have the one that asks for names loaded, too, if samples have
 * kernel frames (@sides: SB_SIDE_*), and the process has CAP_SYSLOG: without it, kernel frames have
 * no names. Return: 0; or a negative errno of libbpf, and then @skel is not to be loaded. */
int sb_kname_prepare(struct sampler_bpf *skel, uint32_t sides);
/* After the programs are loaded: have @sym ask this one, if it is among them. *@ret_asker is
 * untouched otherwise; it borrows @skel and @sym, and is freed before either of them. Where
 * socketpair(2) or setsockopt(2) is refused, it warns, and @sym asks nothing. Return: 0, also after
 * the warning; -ENOMEM; -EMFILE. */
int sb_kname_new(struct sampler_bpf *skel, struct sb_symbolizer *sym,
		 struct sb_kname_asker **ret_asker);
/* From now on, the symbolizer asks nothing. NULL is allowed. */
void sb_kname_free(struct sb_kname_asker *asker);

#endif
