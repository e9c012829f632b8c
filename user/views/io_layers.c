// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The layers of "io" below the system call: page cache, block devices, page faults. See
 * docs/io-layers.md. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "bpf/abi/sb_abi_io.h"
#include "views/skel.h"
#include "views/views.h"

/* Bios and requests in flight, and files with dirty pages. What is beyond is counted. */
#define BIOS_MAX     16384u
#define REQUESTS_MAX 8192u
#define DIRTIERS_MAX 16384u

const char *const sb_io_layer_trim[] = { "bpf_trampoline_*",
					 "bpf_trace_run*",
					 "__bpf_trace_*",
					 "__traceiter_*",
					 "*kretprobe_trampoline",
					 "arch_rethook_trampoline",
					 NULL };

static const char *cache_missing(void)
{
	if (sb_view_has_tracepoint("mm_filemap_add_to_page_cache"))
		return NULL;
	return "--layer cache needs the tracepoint filemap:mm_filemap_add_to_page_cache, which this "
	       "kernel does not have";
}

static int cache_prepare(struct sampler_bpf *skel)
{
	return bpf_program__set_autoload(skel->progs.io_cache_add, true);
}

static const char *block_missing(void)
{
	if (sb_view_has_tracepoint("block_rq_complete"))
		return NULL;
	return "--layer block needs the tracepoints of the block layer, which this kernel does not "
	       "have";
}

static int block_prepare(struct sampler_bpf *skel)
{
	struct bpf_program *const programs[] = {
		skel->progs.io_block_queue,
		skel->progs.io_block_split,
		skel->progs.io_block_issue,
		skel->progs.io_block_requeue,
		skel->progs.io_block_complete,
		skel->progs.io_block_bio_end,
		sb_view_has_tracepoint("writeback_dirty_folio") ? skel->progs.io_block_dirty
								: skel->progs.io_block_dirty_page,
	};
	int err;

	err = bpf_map__set_max_entries(skel->maps.io_block_bios, BIOS_MAX);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.io_block_requests, REQUESTS_MAX);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.io_block_dirtiers, DIRTIERS_MAX);
	return err ? err : sb_view_switch_on(programs, SB_ARRAY_SIZE(programs));
}

static const char *fault_missing(void)
{
	/* Kprobe programs have the same helpers, and can be tried. */
	if (libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_find_vma, NULL) != 1)
		return "--layer fault needs Linux 5.17 or newer (bpf_find_vma())";
	return NULL;
}

static int fault_prepare(struct sampler_bpf *skel)
{
	struct bpf_program *const programs[] = { skel->progs.io_fault_user,
						 skel->progs.io_fault_kernel };

	if (!sb_view_has_tracepoint("page_fault_user"))
		return bpf_program__set_autoload(skel->progs.io_fault_counter, true);
	return sb_view_switch_on(programs, SB_ARRAY_SIZE(programs));
}

static const struct sb_io_below layers[] = {
	{ SB_LAYER_CACHE, "folios",
	  "--layer cache has no durations, because adding a page to the page cache is a "
	  "single event; leave out --latency, --distr, -m and -M, or use --layer block",
	  cache_missing, cache_prepare },
	{ SB_LAYER_BLOCK, "requests", NULL, block_missing, block_prepare },
	{ SB_LAYER_FAULT, "faults",
	  "--layer fault has no durations, because the kernel reports only the start of a "
	  "page fault; leave out --latency, --distr, -m and -M",
	  fault_missing, fault_prepare },
};

const struct sb_io_below *sb_io_layer_find(uint32_t layer)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(layers); i++)
		if (layers[i].layer == layer)
			return &layers[i];
	return NULL;
}

int sb_io_layer_prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	skel->rodata->cfg_io_weight = opts->io_weight;
	skel->rodata->cfg_layer_dirs = opts->io_dirs;
	skel->rodata->cfg_layer_page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
	return sb_io_layer_find(opts->io_layer)->prepare(skel);
}

int sb_io_layer_check(const struct sb_view_opts *opts, const char **ret_why)
{
	const struct sb_io_below *layer = sb_io_layer_find(opts->io_layer);
	bool is_timed =
		opts->io_weight == SB_IO_LATENCY || opts->distr || opts->min_ns || opts->max_ns;

	if (!layer)
		return 0;
	if (layer->no_time && is_timed) {
		*ret_why = layer->no_time;
		return -EINVAL;
	}
	*ret_why = layer->missing();
	return *ret_why ? -EOPNOTSUPP : 0;
}

/* This program reads the user stack of the process, which may cause a page fault itself. */
bool sb_io_layer_nests(const struct sampler_bpf *skel, const struct bpf_program *prog)
{
	return prog == skel->progs.io_fault_kernel;
}

const char *sb_io_layer_op_name(uint32_t op)
{
	static const char *const names[] = {
		"cache_miss",  "readahead",	  "cache_fill",	 "cache_new",	  "block_read",
		"block_write", "block_writeback", "block_flush", "block_discard", "block_other",
		"fault_read",  "fault_write",	  "fault_exec",	 "kernel_read",	  "kernel_write",
	};

	_Static_assert(SB_ARRAY_SIZE(names) == SB_IO_OP_MAX - SB_IO_OP_LAYERS, "a name each");
	return op >= SB_IO_OP_LAYERS && op < SB_IO_OP_MAX ? names[op - SB_IO_OP_LAYERS] : NULL;
}
