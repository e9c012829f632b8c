// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The view "latency": how long calls of functions and pairs of events take, by the stack of their
 * beginning. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/reason.h"
#include "bpf/abi/sb_abi_latency.h"
#include "events/probe.h"
#include "views/skel.h"
#include "views/views.h"

/* Of this run, for op_name(); borrowed. */
static const struct sb_probes *probes;

static int check(const struct sb_view_opts *opts, const char **ret_why)
{
	if (opts->probes && opts->probes->places.nr)
		return 0;
	*ret_why = "there is nothing to measure; name a function, such as 'stackbpf latency "
		   "c:fsync', or two events with --from and --to";
	return -EINVAL;
}

static struct sb_programs programs_of(const struct sampler_bpf *skel)
{
	return (struct sb_programs){ .of = {
					     [SB_PROBE_TRACEPOINT] = skel->progs.latency_tracepoint,
					     [SB_PROBE_KERNEL] = skel->progs.latency_kernel,
					     [SB_PROBE_USER] = skel->progs.latency_user,
					     [SB_PROBE_USDT] = skel->progs.latency_user,
				     } };
}

static struct sb_programs begins_of(const struct sampler_bpf *skel)
{
	return (struct sb_programs){ .of = {
					     [SB_PROBE_USER] = skel->progs.latency_begin,
					     [SB_PROBE_KERNEL] = skel->progs.latency_kernel_begin,
				     } };
}

static struct sb_programs ends_of(const struct sampler_bpf *skel)
{
	return (struct sb_programs){ .of = {
					     [SB_PROBE_USER] = skel->progs.latency_end,
					     [SB_PROBE_KERNEL] = skel->progs.latency_kernel_end,
				     } };
}

static int prepare_pairs(struct sampler_bpf *skel)
{
	const struct sb_programs programs = programs_of(skel);
	int err = sb_tracepoint_pairs_prepare(skel, probes);

	return err ? err : sb_places_prepare(skel, probes, &programs);
}

static int prepare_calls(struct sampler_bpf *skel)
{
	const struct sb_programs begins = begins_of(skel);
	const struct sb_attaching ends = { .probes = probes, .programs = ends_of(skel) };
	int err = sb_places_prepare(skel, probes, &begins);

	return err ? err : sb_attach_prepare(&ends);
}

static int prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	struct bpf_program *const always[] = {
		skel->progs.latency_exit,
		skel->progs.latency_settle,
	};
	int err = sb_view_switch_on(always, SB_ARRAY_SIZE(always));

	probes = opts->probes;
	skel->rodata->cfg_latency_slowest = opts->slowest;
	skel->rodata->cfg_latency_min_ns = opts->min_ns;
	skel->rodata->cfg_latency_max_ns = opts->max_ns ? opts->max_ns : UINT64_MAX;
	if (err)
		return err;
	return probes->is_of_calls ? prepare_calls(skel) : prepare_pairs(skel);
}

/* The returns first, so that no beginning is without its end. */
static int attach_calls(struct sampler_bpf *skel, sb_vec_link *links, struct sb_reason *reason)
{
	struct sb_attaching job = { .probes = probes, .programs = ends_of(skel) };
	int err = sb_places_write(skel, probes, reason);

	job.at_returns = true;
	err = err ?: sb_attach(&job, links, reason);
	if (err)
		return err;
	job.at_returns = false;
	job.programs = begins_of(skel);
	err = sb_attach(&job, links, reason);
	return err ? err : sb_attach_tell(&job, reason);
}

/* At each tracepoint the program that notes a beginning first, so that it is called first. */
static int attach_pairs(struct sampler_bpf *skel, sb_vec_link *links, struct sb_reason *reason)
{
	struct sb_attaching job = { .probes = probes, .programs = programs_of(skel) };
	int err = sb_places_attach(skel, &job, links, reason);

	return err ? err : sb_tracepoint_pairs_attach(skel, probes, links, reason);
}

static int attach(struct sampler_bpf *skel, const struct sb_view_opts *opts, sb_vec_link *links,
		  struct sb_reason *reason)
{
	return probes->is_of_calls ? attach_calls(skel, links, reason)
				   : attach_pairs(skel, links, reason);
}

static bool attaches(struct sampler_bpf *skel, const struct bpf_program *prog)
{
	const struct sb_programs of[] = { programs_of(skel), begins_of(skel), ends_of(skel) };

	return prog == skel->progs.latency_stacks || sb_programs_have(&of[0], prog) ||
	       sb_programs_have(&of[1], prog) || sb_programs_have(&of[2], prog);
}

/* Where this one is skipped, latency_tracepoint was there before, and has counted it. */
static bool nests(const struct sampler_bpf *skel, const struct bpf_program *prog)
{
	return prog == skel->progs.latency_stacks;
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

/* With --weight, of whatever the expression is. */
static const char *unit_of(const struct sb_view_opts *opts, uint64_t *ret_divisor)
{
	if (!sb_places_have_weight(opts->probes))
		return NULL;
	*ret_divisor = 1;
	return "units";
}

static const char *op_name(uint32_t op)
{
	if (op == SB_LATENCY_OP_OPEN)
		return "[open]";
	return op ? sb_places_op_name(probes, op - SB_LATENCY_OP_OPEN) : NULL;
}

const struct sb_view sb_view_latency = {
	.kind = SB_VIEW_KIND(latency),
	.slots = 1u << SB_SCRATCH_BEGIN | 1u << SB_SCRATCH_PROBE,
	.other_slots = 1u << SB_SCRATCH_TRACE | 1u << SB_SCRATCH_ITER,
	.objects_max = SB_VALUES_MAX,
	.losses = 1ull << SB_STAT_TRACE_BUSY | 1ull << SB_STAT_CALLS_FULL |
		  1ull << SB_STAT_CALLS_JUMPED | 1ull << SB_STAT_CALLS_EXITED |
		  1ull << SB_STAT_CALLS_REPLACED,
	.prefix = "latency_",
	.divisor = 1000,
	.unit_of = unit_of,
	.op_name = op_name,
	.trim = sb_io_layer_trim,
	.check = check,
	.prepare = prepare,
	.attach = attach,
	.attaches = attaches,
	.nests = nests,
	.settle = settle,
	.pending = pending,
	.thin = thin,
};
