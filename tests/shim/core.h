/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* All of bpf/core as host code. Settings, which BPF code sees as constants, can be written. */
#ifndef SHIM_CORE_H
#define SHIM_CORE_H

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "shim.h"

#define const
#include "core/filter.bpf.c"
#include "core/interp.bpf.c"
#include "core/memo.bpf.c"
#include "core/object.bpf.c"
#include "core/proc.bpf.c"
#include "core/raw.bpf.c"
#include "core/sample.bpf.c"
#include "core/stack.bpf.c"
#include "core/stats.bpf.c"
#include "core/thin.bpf.c"
#include "core/unwind.bpf.c"
#include "interp/hotspot.bpf.c"
#include "interp/lua.bpf.c"
#include "interp/luajit.bpf.c"
#include "interp/perl.bpf.c"
#include "interp/php.bpf.c"
#include "interp/python.bpf.c"
#include "interp/ruby.bpf.c"
#include "interp/table.bpf.c"
#include "interp/v8.bpf.c"
#undef const

#endif
