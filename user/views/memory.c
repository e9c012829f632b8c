// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The view "memory": which code brought the memory that is resident. The session makes the counts
 * of it (capture/resident.h). */
#include <bpf/libbpf.h>
#include <errno.h>
#include <unistd.h>

#include "base/log.h"
#include "bpf/abi/sb_abi_memory.h"
#include "views/skel.h"
#include "views/views.h"

/* IDs of owners that the BPF side remembers: 1.4 MB. */
#define OWNERS_MAX 16384u

/* They are defined together, and to look for one of them reads all types of the kernel. */
static bool has_tracepoints(void)
{
	return sb_view_has_tracepoint("page_fault_user");
}

static int check(const struct sb_view_opts *opts, const char **ret_why)
{
	if (!opts->memory_kinds || opts->memory_what != SB_MEMORY_CHURN)
		return 0;
	*ret_why =
		"--churn and --kind do not go together: of memory that has gone, nobody knows what "
		"kind it was";
	return -EINVAL;
}

/* What processes give back is needed only for what they hold at their end. */
static int follow_back(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	int err;

	if (!opts->has_command || opts->is_of_time || !sb_view_has_calls() ||
	    (opts->memory_what != SB_MEMORY_HELD && opts->memory_what != SB_MEMORY_OLD))
		return 0;
	err = bpf_program__set_autoload(skel->progs.memory_munmap, true);
	if (!err)
		err = bpf_program__set_autoload(skel->progs.memory_madvise, true);
	return err ? err : bpf_program__set_autoload(skel->progs.memory_brk, true);
}

static int prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	int err = bpf_map__set_max_entries(skel->maps.memory_owners, OWNERS_MAX);
	const int nr_cpus = libbpf_num_possible_cpus();

	if (!err && nr_cpus > 0)
		err = bpf_map__set_max_entries(skel->maps.memory_batches, (uint32_t)nr_cpus);
	if (!err)
		err = bpf_program__set_autoload(skel->progs.memory_mapped, true);
	if (!err)
		err = bpf_program__set_autoload(skel->progs.memory_exit, true);
	if (!err)
		err = follow_back(skel, opts);
	if (!err && !has_tracepoints())
		return bpf_program__set_autoload(skel->progs.memory_counter, true);
	if (!err)
		err = bpf_program__set_autoload(skel->progs.memory_user, true);
	return err ? err : bpf_program__set_autoload(skel->progs.memory_kernel, true);
}

static int attach(struct sampler_bpf *skel, const struct sb_view_opts *opts, sb_vec_link *links,
		  struct sb_reason *reason)
{
	struct bpf_link *link;
	int err = 0;

	(void)opts;
	/* Not every kernel has it: then pages that came along can be those of what was there
	 * before. */
	link = sb_view_attach(skel->progs.memory_mapped);
	if (link || errno != ENOENT)
		err = sb_view_keep_link(links, link);
	if (err || !bpf_program__autoload(skel->progs.memory_counter))
		return err;
	sb_info("this kernel has no tracepoints of page faults, so perf events are used, which cost more; "
		"a page that is read first and written to later counts as one that came and went");
	return sb_view_attach_faults(skel->progs.memory_counter, links, reason);
}

static bool attaches(struct sampler_bpf *skel, const struct bpf_program *prog)
{
	return prog == skel->progs.memory_counter || prog == skel->progs.memory_mapped;
}

/* This program reads the user stack of the process, which may cause a page fault itself. */
static bool nests(const struct sampler_bpf *skel, const struct bpf_program *prog)
{
	return prog == skel->progs.memory_kernel;
}

static uint64_t thin(struct sampler_bpf *skel, const struct sb_view_opts *opts, uint32_t step,
		     uint64_t mean)
{
	(void)opts;
	(void)mean;
	skel->bss->memory_shift_cost = step;
	return step ? (uint64_t)sysconf(_SC_PAGESIZE) << step : 0;
}

/* What is held is no number of events: blocks of a store add up to how long it was held. */
static const char *unit_of(const struct sb_view_opts *opts, uint64_t *ret_divisor)
{
	if (!opts->is_of_time || opts->memory_what == SB_MEMORY_CHURN)
		return NULL;
	*ret_divisor = 1;
	return "byte-seconds";
}

static const char *op_name(uint32_t op)
{
	switch (op) {
	case SB_MEMORY_OP_UNACCOUNTED:
		return "[unaccounted]";
	case SB_MEMORY_OP_ENDED:
		return "[held at its end]";
	default:
		return NULL;
	}
}

static const char *const trim[] = { "bpf_trampoline_*",	  "bpf_trace_run*",
				    "__bpf_trace_*",	  "__traceiter_*",
				    "exc_page_fault",	  "asm_exc_page_fault",
				    "do_user_addr_fault", NULL };

#define BY_PAGES(name, ends)                                                              \
	{                                                                                 \
		.kind = SB_VIEW_KIND(name), .slots = 1u << SB_SCRATCH_PAGE,               \
		.losses = 1ull << SB_STAT_FAULTS_FULL, .prefix = "memory_", .divisor = 1, \
		.follows_pages = true, .counts_ended = ends, .unit_of = unit_of,          \
		.op_name = op_name, .trim = trim, .check = check, .prepare = prepare,     \
		.attach = attach, .attaches = attaches, .nests = nests, .thin = thin,     \
		.thins_exactly = true                                                     \
	}

const struct sb_view sb_view_memory = BY_PAGES(memory, true);
const struct sb_view sb_view_heap_by_pages = BY_PAGES(heap, false);
const struct sb_view sb_view_leak_by_pages = BY_PAGES(leak, false);
