/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Includes the generated skeleton of the BPF object, after the types that it names but does not
 * define. */
#ifndef SB_VIEWS_SKEL_H
#define SB_VIEWS_SKEL_H

#include "bpf/abi/sb_abi.h"
#include "bpf/abi/sb_abi_io.h"
/* Generated. */
#include "sampler.skel.h"

#endif
