/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Includes the generated skeleton of the BPF object, after the types that it names but does not
 * define. */
#ifndef SB_VIEWS_SKEL_H
#define SB_VIEWS_SKEL_H

#include "bpf/abi/sb_abi.h"
#include "bpf/abi/sb_abi_io.h"
/* Generated. */
#include "sampler.skel.h"

/* To be called after a map was changed in what it says about process @tgid, in a loaded object:
 * programs look it up anew. Any thread may call it. */
static inline void sb_skel_changed(struct sampler_bpf *skel, uint32_t tgid)
{
	__atomic_fetch_add(&skel->bss->proc_changes[tgid % SB_PROC_CHANGES], 1, __ATOMIC_SEQ_CST);
}

#endif
