// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The view "latency": how long calls of functions take, by the stack of their beginning. */
#include <bpf/libbpf.h>
#include <errno.h>

#include "bpf/abi/sb_abi_latency.h"
#include "events/probe.h"
#include "views/skel.h"
#include "views/views.h"

static int check(const struct sb_view_opts *opts, const char **ret_why)
{
	if (opts->probes && opts->probes->places.nr)
		return 0;
	*ret_why = "there is no function to measure; name one, such as 'stackbpf latency c:fsync'";
	return -EINVAL;
}

static struct sb_attaching job_of(const struct sb_probes *probes, struct bpf_program *program)
{
	return (struct sb_attaching){ .probes = probes,
				      .programs.of = { [SB_PROBE_USER] = program } };
}

static int prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	struct bpf_program *const programs[] = {
		skel->progs.latency_exit,
		skel->progs.latency_settle,
	};
	const struct sb_attaching begin = job_of(opts->probes, skel->progs.latency_begin);
	const struct sb_attaching end = job_of(opts->probes, skel->progs.latency_end);
	int err;

	skel->rodata->cfg_latency_min_ns = opts->min_ns;
	skel->rodata->cfg_latency_max_ns = opts->max_ns ? opts->max_ns : UINT64_MAX;
	err = sb_view_switch_on(programs, sizeof(programs) / sizeof(*programs));
	if (!err)
		err = sb_attach_prepare(&begin);
	return err ? err : sb_attach_prepare(&end);
}

/* The returns first, so that no beginning is without its end. */
static int attach(struct sampler_bpf *skel, const struct sb_view_opts *opts, sb_vec_link *links,
		  struct sb_reason *reason)
{
	struct sb_attaching job = job_of(opts->probes, skel->progs.latency_end);
	int err;

	job.at_returns = true;
	err = sb_attach(&job, links, reason);
	if (err)
		return err;
	job.at_returns = false;
	job.programs.of[SB_PROBE_USER] = skel->progs.latency_begin;
	err = sb_attach(&job, links, reason);
	return err ? err : sb_attach_tell(&job, reason);
}

static bool attaches(struct sampler_bpf *skel, const struct bpf_program *prog)
{
	return prog == skel->progs.latency_begin || prog == skel->progs.latency_end;
}

static struct bpf_program *settle(struct sampler_bpf *skel)
{
	return skel->progs.latency_settle;
}

static int pending(const struct sampler_bpf *skel, sb_vec_stack_id *ids)
{
	return sb_pending_of_map(skel->maps.latency_calls, ids);
}

/* A call is chosen when it begins, whatever it will weigh: one of 2^step. */
static uint64_t thin(struct sampler_bpf *skel, const struct sb_view_opts *opts, uint32_t step,
		     uint64_t mean)
{
	skel->bss->thin_weight = step ? 1ull << step : 0;
	return step ? mean << step : 0;
}

static const char *op_name(uint32_t op)
{
	return op == SB_LATENCY_OP_OPEN ? "[open]" : NULL;
}

const struct sb_view sb_view_latency = {
	.kind = SB_VIEW_KIND(latency),
	.slots = 1u << SB_SCRATCH_PROBE,
	.other_slots = 1u << SB_SCRATCH_ITER,
	.losses = 1ull << SB_STAT_TRACE_BUSY | 1ull << SB_STAT_CALLS_FULL |
		  1ull << SB_STAT_CALLS_JUMPED | 1ull << SB_STAT_CALLS_EXITED,
	.prefix = "latency_",
	.divisor = 1000,
	.op_name = op_name,
	.trim = sb_io_layer_trim,
	.check = check,
	.prepare = prepare,
	.attach = attach,
	.attaches = attaches,
	.settle = settle,
	.pending = pending,
	.thin = thin,
};
