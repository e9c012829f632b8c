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
#include "core/label.bpf.c"
#include "core/last_walk.bpf.c"
#include "core/memo.bpf.c"
#include "core/object.bpf.c"
#include "core/proc.bpf.c"
#include "core/proc_cache.bpf.c"
#include "core/rawstack.bpf.c"
#include "core/sample.bpf.c"
#include "core/span.bpf.c"
#include "core/stack.bpf.c"
#include "core/stats.bpf.c"
#include "core/thin.bpf.c"
#include "core/unwind.bpf.c"
#include "core/unwind_tables.bpf.c"
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

/* The pool of unwind tables: one part. */
static struct uw_part shim_part;

/* All that a sample of a user stack goes through. @ring_bytes: of `events`. */
static inline void shim_core_maps(uint32_t ring_bytes)
{
	SHIM_MAP(scratch);
	SHIM_MAP(stats);
	SHIM_MAP(raw_records);
	SHIM_MAP(raw_full_ns);
	SHIM_MAP(stacks_seen);
	SHIM_MAP(proc_caches);
	shim_map_add((struct shim_map_def){ &memos, BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(uint32_t),
					    sizeof(struct memo), NR_PLACES });
	shim_map_add((struct shim_map_def){ &last_walks, BPF_MAP_TYPE_PERCPU_ARRAY,
					    sizeof(uint32_t), sizeof(struct last_walk),
					    LAST_PLACES });
	SHIM_MAP(this_walks);
	shim_map_add((struct shim_map_def){ &uw_rules, BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(uint32_t),
					    sizeof(struct found_rules),
					    RULES_PLACES / RULES_AT_ONCE });
	SHIM_MAP(uw_bins);
	SHIM_MAP(uw_procs);
	SHIM_MAP(uw_asked);
	SHIM_MAP_OF_MAPS(uw_pool);
	SHIM_MAP_OF_BYTES(shim_part, SB_UW_PART_CHUNKS);
	shim_set_inner(&uw_pool, 0, &shim_part);
	SHIM_RING(uw_needs, 64 << 10);
	SHIM_RING(events, ring_bytes);
	shim_map_add((struct shim_map_def){ &interp_procs, BPF_MAP_TYPE_HASH, sizeof(uint32_t),
					    sizeof(struct sb_interp_proc), 4 });
	shim_map_add((struct shim_map_def){ &interp_confs, BPF_MAP_TYPE_ARRAY, sizeof(uint32_t),
					    sizeof(struct sb_interp_conf), SB_INTERP_PER_PROC });
	SHIM_MAP(interp_pieces);
	SHIM_RING(interp_events, 256 << 10);
	shim_map_add((struct shim_map_def){ &labels_seen, BPF_MAP_TYPE_HASH, sizeof(uint64_t),
					    sizeof(uint8_t), 64 });
}

#endif
