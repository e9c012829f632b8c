// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "bpf/core/sb_interp.bpf.h"

int sb_bpf_luajit_scan(struct sb_scratch *s, __u64 from);
#define SB_LUAJIT_SCAN_READ(mem, dst, len, addr) bpf_probe_read_user(dst, len, (const void *)(addr))
#define SB_LUAJIT_SCAN(w, walk, mem, from)	 sb_bpf_luajit_scan(mem, from)
#include "bpf/step/sb_step_luajit.h"

#ifdef SB_MACHINE_X86
__noinline int sb_bpf_luajit_scan(struct sb_scratch *s, __u64 from)
{
	if (SB_INTERP_HAS(luajit) && s)
		sb_luajit_scan(&s->interp.walk, &s->walk, s, from);
	return 0;
}
#endif

SB_INTERP_WALKER(luajit)
SB_INTERP_NATIVE(luajit)
