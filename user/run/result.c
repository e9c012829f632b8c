// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Makes the profile of a run a result: weights in the unit that is shown, and metadata. */
#include <stdio.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "base/time.h"
#include "kinds/metadata.h"
#include "kinds/view_kind.h"
#include "run/run.h"

/* Weights as they are shown, and what is missing to the whole. */
static int weigh(const struct sb_run *run, const struct sb_run_figures *figures,
		 struct sb_profile *profile)
{
	const uint64_t known = figures->resolve.weight + figures->resolve.idle_weight;
	int err = 0;

	if (figures->session.expected > known)
		err = sb_resolver_add_residual(profile, figures->session.expected - known);
	/* The last slice does not stand for the time after it. What leaked came before that. */
	if (!err && figures->session.slices.covered_ns && !run->config->view_opts.fallback)
		return sb_profile_scale_by(profile, 1 + figures->wall_ns / 1000,
					   (1 + figures->session.slices.covered_ns / 1000) *
						   run->units[0].divisor);
	/* Pages that were held at a snapshot can be gone now: their stacks have no weight left. */
	if (!err &&
	    (run->units[0].divisor > 1 || run->config->views.at[figures->view]->follows_pages))
		err = sb_profile_scale_by(profile, 1, run->units[0].divisor);
	return err;
}

const char *sb_run_weight_text(const struct sb_run_unit *unit, uint64_t weight,
			       char text[SB_RUN_WEIGHT_BYTES])
{
	if (weight < unit->divisor)
		snprintf(text, SB_RUN_WEIGHT_BYTES, "%.3g", (double)weight / (double)unit->divisor);
	else
		snprintf(text, SB_RUN_WEIGHT_BYTES, "%llu",
			 (unsigned long long)(weight / unit->divisor));
	return text;
}

/* Metadata with the texts that are made for it. */
struct header {
	struct sb_metadata known;
	struct sb_str by, labels;
	char every[SB_RUN_WEIGHT_BYTES], rate_hz[32];
};

static void release_header(struct header *header)
{
	sb_str_release(&header->by);
	sb_str_release(&header->labels);
}

/* That it was sampled less, and how much less at the least, for so long. */
static void add_governed(const struct sb_run *run, const struct sb_thinning_stats *stats,
			 struct header *header)
{
	const uint32_t shown = sb_run_shown(run);

	if (!stats->governor.lowered_ns)
		return;
	header->known.governed_us = stats->governor.lowered_ns / 1000;
	if (!stats->weight) {
		snprintf(header->rate_hz, sizeof(header->rate_hz), "%.4g..%u", stats->rate_hz,
			 run->config->freq_hz);
		header->known.rate_hz = header->rate_hz;
	} else if (!sb_view_is_of_held(run->config->views.at[shown])) {
		/* Of allocations, one of so many, whose sizes differ. */
		header->known.every =
			sb_run_weight_text(&run->units[shown], stats->weight, header->every);
	}
}

/* What the root frames are: those of --by, and labels of threads that have any. */
static int add_roots(const struct sb_run *run, struct header *header)
{
	const struct sb_root_list *roots = &run->config->roots;
	size_t i;
	int err = roots->nr ? 0 : sb_str_add(&header->by, sb_root_names[SB_ATTR_COMM]);

	for (i = 0; i < roots->nr && !err; i++)
		err = sb_str_addf(&header->by, "%s%s", i ? "," : "", sb_root_names[roots->at[i]]);
	for (i = 0; i < run->config->nr_labels && !err; i++)
		err = sb_str_addf(&header->labels, "%s%s", i ? "," : "", run->config->labels[i]);
	header->known.by = header->by.s;
	header->known.labels = header->labels.s;
	return err;
}

/* What the weights mean, when they were recorded, and what is missing. */
static void add_figures(const struct sb_run *run, const struct sb_run_figures *figures,
			struct sb_metadata *metadata)
{
	const uint64_t ago_us = (sb_now_ns() - run->start_ns) / 1000, now_us = sb_real_us();
	const struct sb_run_unit *unit = &run->units[0];

	*metadata = (struct sb_metadata){
		.kind = run->config->views.at[0]->kind->name,
		.unit = unit->name,
		.dur_us = figures->wall_ns / 1000,
		.start_us = now_us > ago_us ? now_us - ago_us : 0,
		/* What a sample of the clock stands for. Other counters have other units. */
		.hz = sb_streq(unit->name, "samples") ? run->config->freq_hz : 0,
		.nr_samples = figures->nr_samples,
		.nr_lost = figures->session.err ? 0 : figures->nr_lost,
		.nr_truncated = figures->nr_cut,
		.nr_unnamed = figures->nr_unnamed,
		.idle_weight = figures->resolve.idle_weight / unit->divisor,
		.has_dur_us = true,
		.has_nr_samples = true,
		.has_nr_lost = !figures->session.err,
		.has_nr_truncated = true,
		.has_nr_unnamed = true,
		.has_accounted = figures->session.expected,
		.has_attached = figures->session.slices.nr,
	};
	if (metadata->has_accounted)
		metadata->accounted = sb_run_accounted(figures);
	if (metadata->has_attached)
		metadata->attached = sb_slicer_attached(&figures->session.slices, figures->wall_ns);
}

/* What the bytes are; NULL: the name of the view says it. */
static const char *const weights[SB_MEMORY_WHAT_MAX] = {
	[SB_MEMORY_HELD] = "held",
	[SB_MEMORY_CHURN] = "churn",
	[SB_MEMORY_SWAPPED] = "swapped",
};

/* What the bytes are, and of what is held, how much is accounted for. */
static void add_memory(const struct sb_run *run, const struct sb_run_figures *figures,
		       struct sb_metadata *metadata)
{
	const struct sb_resident_process *sum = &figures->session.resident.sum;
	const uint32_t what = run->config->view_opts.memory_what;
	const double came = (double)sum->held + (double)sum->unaccounted;

	if (!run->config->views.at[figures->view]->follows_pages)
		return;
	metadata->of = weights[what];
	if (what == SB_MEMORY_HELD && came > 0) {
		metadata->accounted = 100 * (double)sum->held / came;
		metadata->has_accounted = true;
	}
}

int sb_run_complete_profile(const struct sb_run *run, struct sb_profile *profile)
{
	sb_cleanup(release_header) struct header header = {};
	struct sb_run_figures figures;
	int err;

	sb_run_figures(run, sb_run_shown(run), &figures);
	err = weigh(run, &figures, profile) ?: sb_profile_seal(profile);
	if (err)
		return err;
	add_figures(run, &figures, &header.known);
	add_memory(run, &figures, &header.known);
	add_governed(run, &figures.session.thinning, &header);
	return add_roots(run, &header) ?: sb_profile_set_metadata(profile, &header.known);
}
