/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CONTRACT between the BPF side and user space: the view "trace". Rules as in sb_abi.h. */
#ifndef SB_ABI_TRACE_H
#define SB_ABI_TRACE_H

#include "bpf/abi/sb_abi.h"

/* What a sample of one place is. Its index in the map `trace_places` is the cookie
 * (bpf_get_attach_cookie()) of the program that is attached there. */
struct sb_trace_place {
	__u64 weight; /* of one event; a counter's period */
	__u32 op;     /* sb_sample_key.op */
	__u32 reserved;
};

_Static_assert(sizeof(struct sb_trace_place) == 16, "layout is shared");

#endif
