// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "views/span.h"

#include <bpf/libbpf.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/reason.h"
#include "bpf/abi/sb_abi_span.h"
#include "events/probe.h"
#include "views/skel.h"
#include "views/views.h"

/* What is attached where spans begin, or where they end. */
static struct sb_attaching job_of(const struct sampler_bpf *skel, const struct sb_view_opts *opts,
				  bool is_end)
{
	struct bpf_program *user = is_end ? skel->progs.span_end_user : skel->progs.span_begin_user;
	struct bpf_program *call = is_end ? skel->progs.span_return : skel->progs.span_call;
	struct sb_attaching job = {
		.probes = is_end && opts->until ? opts->until : opts->in,
		.at_returns = is_end && !opts->until,
	};

	job.programs.of[SB_PROBE_USER] = opts->until ? user : call;
	job.programs.of[SB_PROBE_USDT] = user;
	job.programs.of[SB_PROBE_KERNEL] =
		is_end ? skel->progs.span_end_kernel : skel->progs.span_begin_kernel;
	job.programs.of[SB_PROBE_TRACEPOINT] =
		is_end ? skel->progs.span_end_tracepoint : skel->progs.span_begin_tracepoint;
	return job;
}

bool sb_view_has_goroutines(const struct sb_view_opts *opts)
{
	size_t i;

	for (i = 0; opts->in && i < opts->in->places.nr; i++)
		if (opts->in->places.at[i].returns.nr)
			return true;
	return false;
}

static int resize_maps(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	int err = bpf_map__set_max_entries(skel->maps.spans_open, SB_SPANS_OPEN_MAX);

	if (!err && opts->slower_than_ns)
		err = bpf_map__set_max_entries(skel->maps.spans_slow, SB_SPANS_SLOW_MAX);
	if (!err && (opts->in_label || sb_view_has_goroutines(opts)))
		err = bpf_map__set_max_entries(skel->maps.span_go_processes, SB_SPANS_GO_MAX);
	return err ? err : bpf_map__set_max_entries(skel->maps.span_durations, SB_SPAN_BUCKETS);
}

int sb_span_prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	struct bpf_program *const programs[] = {
		skel->progs.span_exit,
		skel->progs.span_exec,
		skel->progs.span_settle,
	};
	const struct sb_attaching begin = job_of(skel, opts, false);
	const struct sb_attaching end = job_of(skel, opts, true);
	int err;

	if (!sb_view_has_spans(opts))
		return 0;
	skel->rodata->cfg_spans = true;
	skel->rodata->cfg_span_slow_ns = opts->slower_than_ns;
	skel->rodata->cfg_span_label = opts->in_label;
	skel->rodata->cfg_span_go = sb_view_has_goroutines(opts);
	err = resize_maps(skel, opts);
	if (!err && opts->in)
		err = sb_attach_prepare(&end);
	if (!err && opts->in)
		err = sb_attach_prepare(&begin);
	if (!err && opts->in_label)
		err = sb_view_switch_on(&skel->progs.span_switch, 1);
	return err ? err : sb_view_switch_on(programs, SB_ARRAY_SIZE(programs));
}

static int attach_switch(struct sampler_bpf *skel, const char *label, sb_vec_link *links,
			 struct sb_reason *reason)
{
	const struct bpf_program *prog = skel->progs.span_switch;
	int err = sb_view_keep_link(links, sb_view_attach(prog));

	return err ? sb_reason_set(reason, err,
				   "--in label:%s: cannot attach the BPF program '%s' to task "
				   "switches; 'stackbpf doctor' shows what this kernel lacks",
				   label, bpf_program__name(prog))
		   : 0;
}

/* The ends first, so that no beginning is without its end. */
int sb_span_attach(struct sampler_bpf *skel, const struct sb_view_opts *opts, sb_vec_link *links,
		   struct sb_reason *reason)
{
	struct sb_attaching begin = job_of(skel, opts, false), end = job_of(skel, opts, true);
	int err;

	if (opts->in_label)
		return attach_switch(skel, opts->in_label, links, reason);
	if (!opts->in)
		return 0;
	err = sb_attach(&end, links, reason);
	if (!err && !opts->until) {
		memcpy(begin.is_left_out, end.is_left_out, sizeof(begin.is_left_out));
		begin.why = end.why;
	}
	if (!err)
		err = sb_attach(&begin, links, reason);
	if (!err && opts->until)
		err = sb_attach_tell(&end, reason);
	return err ? err : sb_attach_tell(&begin, reason);
}

bool sb_span_attaches(const struct sampler_bpf *skel, const struct bpf_program *prog)
{
	const struct bpf_program *const programs[] = {
		skel->progs.span_call,
		skel->progs.span_return,
		skel->progs.span_begin_user,
		skel->progs.span_end_user,
		skel->progs.span_begin_kernel,
		skel->progs.span_end_kernel,
		skel->progs.span_begin_tracepoint,
		skel->progs.span_end_tracepoint,
		skel->progs.span_switch,
	};
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(programs); i++)
		if (prog == programs[i])
			return true;
	return false;
}
