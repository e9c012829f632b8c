/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Declares sb_runtime_<name>, the struct sb_runtime_ops of each row of sb_runtimes.def. */
#ifndef SB_INTERP_RUNTIMES_H
#define SB_INTERP_RUNTIMES_H

struct sb_runtime_ops;

#define SB_RUNTIME(number, name, how) extern const struct sb_runtime_ops sb_runtime_##name;
#include "bpf/abi/sb_runtimes.def"
#undef SB_RUNTIME

#endif
