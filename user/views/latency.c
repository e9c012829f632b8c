// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The view "latency": how long calls of functions take, by the stack of their beginning. */
#include <bpf/libbpf.h>
#include <errno.h>

#include "base/reason.h"
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

static int prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	struct bpf_program *const programs[] = {
		skel->progs.latency_begin,
		skel->progs.latency_end,
		skel->progs.latency_exit,
		skel->progs.latency_settle,
	};

	skel->rodata->cfg_latency_min_ns = opts->min_ns;
	skel->rodata->cfg_latency_max_ns = opts->max_ns ? opts->max_ns : UINT64_MAX;
	return sb_view_switch_on(programs, sizeof(programs) / sizeof(*programs));
}

/* The return first, so that no beginning is without its end. */
static int attach_call(struct sampler_bpf *skel, const struct sb_probes *probes, size_t idx,
		       sb_vec_link *links)
{
	struct sb_probe probe = probes->places.at[idx]; /* strings are borrowed */
	struct sb_probe_hook hook = { skel->progs.latency_end, idx, -1, 0 };
	int err;

	if (probes->is_of_tgid_only) {
		hook.pid = (pid_t)probes->tgid;
		hook.cpu = -1;
	}
	probe.is_return = true;
	err = sb_probe_attach(&probe, &hook, links);
	if (err)
		return err;
	probe.is_return = false;
	hook.program = skel->progs.latency_begin;
	return sb_probe_attach(&probe, &hook, links);
}

static int attach(struct sampler_bpf *skel, const struct sb_view_opts *opts, sb_vec_link *links,
		  struct sb_reason *reason)
{
	const struct sb_probes *probes = opts->probes;
	size_t i;
	int err;

	for (i = 0; i < probes->places.nr; i++) {
		err = attach_call(skel, probes, i, links);
		if (err)
			return sb_probe_explain(probes, &probes->places.at[i], err, reason);
	}
	return 0;
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
