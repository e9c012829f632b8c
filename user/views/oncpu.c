// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <bpf/libbpf.h>

#include "events/counter.h"
#include "views/skel.h"
#include "views/views.h"

static bool is_counted(const struct sb_view_opts *opts)
{
	return opts->counter && !sb_counter_is_clock(opts->counter);
}

static int prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	int err = bpf_program__set_autoload(skel->progs.oncpu_tick, true);

	skel->rodata->cfg_oncpu_counts = is_counted(opts);
	if (!err && opts->is_replaceable)
		return bpf_program__set_autoload(skel->progs.oncpu_enter, true);
	return err ? err : bpf_map__set_autocreate(skel->maps.oncpu_ticks, false);
}

static struct bpf_program *timer(struct sampler_bpf *skel)
{
	return bpf_program__autoload(skel->progs.oncpu_enter) ? skel->progs.oncpu_enter
							      : skel->progs.oncpu_tick;
}

static struct bpf_program *replaceable(struct sampler_bpf *skel, struct bpf_map **ret_place)
{
	*ret_place = skel->maps.oncpu_ticks;
	return skel->progs.oncpu_tick;
}

/* That is, it calls it. */
static bool attaches(struct sampler_bpf *skel, const struct bpf_program *prog)
{
	return prog == skel->progs.oncpu_tick;
}

/* A sample of a clock stands for its period, of any other counter for what it has counted. */
static const char *unit_of(const struct sb_view_opts *opts, uint64_t *ret_divisor)
{
	return is_counted(opts) ? sb_counter_unit(opts->counter) : NULL;
}

const struct sb_view sb_view_oncpu = {
	.kind = SB_VIEW_KIND(oncpu),
	.slots = 1u << SB_SCRATCH_TIMER,
	.prefix = "oncpu_",
	.divisor = 1,
	.unit_of = unit_of,
	.prepare = prepare,
	.timer = timer,
	.replaceable = replaceable,
	.attaches = attaches,
};
