// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Title and subtitle of a picture: what was measured, and what is missing. */
#include <string.h>

#include "base/cleanup.h"
#include "flamegraph/diff.h"
#include "flamegraph/label.h"
#include "flamegraph/layout.h"
#include "flamegraph/opts.h"
#include "flamegraph/svg_priv.h"
#include "kinds/view_kind.h"

#define FEW_SAMPLES 100

int sb_svg_open_attr(struct sb_str *out, const char *name)
{
	return sb_str_addc(out, ' ') ?: sb_str_add(out, name) ?: sb_str_add(out, "=\"");
}

int sb_svg_add_px_attr(struct sb_str *out, const char *name, double px)
{
	return sb_svg_open_attr(out, name) ?: sb_fg_label_add_px(out, px) ?: sb_str_addc(out, '"');
}

int sb_svg_add_xml(struct sb_svg *picture, struct sb_str *out, const char *s)
{
	return sb_fg_label_add_xml(out, s, strlen(s), &picture->nr_repaired);
}

int sb_svg_add_title(struct sb_svg *picture, struct sb_str *out)
{
	const struct sb_fg_opts *opts = picture->opts;
	const char *shape = opts->flamechart	      ? "chart"
			    : picture->opts->inverted ? "icicle graph"
						      : "graph";
	const char *flame = picture->opts->inverted && !opts->flamechart ? "" : "flame ";
	const char *title = opts->title;

	if (title)
		return sb_svg_add_xml(picture, out, title);
	if (picture->is_diff)
		return sb_str_addf(out, "%s%s: what changed from A to B%s",
				   picture->view ? picture->view->title : "",
				   picture->view ? " flame graph" : "Flame graph",
				   opts->reverse ? ", by leaf" : "");
	if (picture->view)
		return sb_str_addf(out, "%s %s%s%s", picture->view->title, flame, shape,
				   opts->reverse ? ", by leaf" : "");
	if (sb_streq(flame, ""))
		return sb_str_addf(out, "Icicle graph%s", opts->reverse ? ", by leaf" : "");
	return sb_str_addf(out, "Flame %s%s", shape, opts->reverse ? ", by leaf" : "");
}

int sb_svg_add_weight(const struct sb_svg *picture, struct sb_str *out, double weight)
{
	return sb_fg_label_add_weight(out, weight * picture->factor, picture->unit.s);
}

/* " · " between parts */
static int add_dot(struct sb_str *out)
{
	return out->len ? sb_str_add(out, " \xc2\xb7 ") : 0;
}

static int add_share(struct sb_str *out, double share)
{
	return sb_str_add(out, " (") ?: sb_fg_label_add_share(out, share) ?: sb_str_addc(out, ')');
}

int sb_svg_add_losses(const struct sb_svg *picture, struct sb_str *out)
{
	const struct sb_metadata *known = picture->known;
	const struct {
		bool is_known;
		uint64_t nr, nr_of; /* of so many; 0: it has no share */
		const char *one, *many;
	} losses[] = {
		{ known->has_nr_lost, known->nr_lost,
		  known->nr_samples ? known->nr_samples + known->nr_lost : 0, " lost", " lost" },
		{ known->has_nr_truncated, known->nr_truncated, known->nr_samples,
		  " stack truncated", " stacks truncated" },
		{ known->has_nr_unnamed, known->nr_unnamed, 0, " frame unnamed",
		  " frames unnamed" },
	};
	int err = 0;

	for (size_t i = 0; i < SB_ARRAY_SIZE(losses) && !err; i++) {
		const uint64_t nr = losses[i].nr, nr_of = losses[i].nr_of;

		if (!losses[i].is_known)
			continue;
		err = add_dot(out) ?: sb_fg_label_add_number(out, (double)nr);
		err = err ?: sb_str_add(out, nr == 1 ? losses[i].one : losses[i].many);
		if (!err && nr && nr <= nr_of)
			err = add_share(out, (double)nr / (double)nr_of);
	}
	return err;
}

int sb_svg_add_left_out(const struct sb_svg *picture, struct sb_str *out)
{
	const struct {
		uint64_t weight;
		const char *what;
	} parts[] = { { picture->known->limited_weight, " left out by --limit" },
		      { picture->known->idle_weight, " idle left out" } };
	int err = 0;

	for (size_t i = 0; i < SB_ARRAY_SIZE(parts) && !err; i++) {
		if (!parts[i].weight)
			continue;
		err = add_dot(out) ?: sb_svg_add_weight(picture, out, (double)parts[i].weight);
		err = err ?: sb_str_add(out, parts[i].what);
	}
	return err;
}

/* "99.7% accounted for": of threads x time, or of the memory that came. */
static int add_accounted(const struct sb_svg *picture, struct sb_str *out)
{
	if (!picture->known->has_accounted)
		return 0;
	return add_dot(out) ?: sb_fg_label_add_share(out, picture->known->accounted / 100) ?:
			       sb_str_add(out, " accounted for");
}

/* "sampled less for 3.2 s": to limit the overhead; weights are corrected for it. */
static int add_governed(const struct sb_svg *picture, struct sb_str *out)
{
	const uint64_t us = picture->known->governed_us;

	if (!us)
		return 0;
	return add_dot(out) ?: sb_str_add(out, "sampled less for ") ?:
			       sb_fg_label_add_weight(out, (double)us, "us");
}

static int add_few_samples(const struct sb_svg *picture, struct sb_str *out)
{
	const bool is_counted = picture->known->has_nr_samples;
	const uint64_t nr = is_counted ? picture->known->nr_samples
				       : (uint64_t)picture->tree->nodes.at[0].total;
	const bool is_sum = sb_streq(picture->unit.s, "samples") && picture->factor == 1;

	if (!(is_counted || is_sum) || nr >= FEW_SAMPLES ||
	    (picture->view && !picture->view->is_estimate))
		return 0;
	return add_dot(out) ?: sb_str_add(out, "few samples: shares are rough");
}

/* "960 frames hatched: narrower than 0.05%, above level 50" */
static int add_cuts(const struct sb_svg *picture, struct sb_str *out)
{
	const struct sb_fg_layout *layout = &picture->layout;
	bool has_narrow = layout->nr_cut > layout->nr_cut_deep;
	int err = 0;

	if (!layout->nr_cut)
		return 0;
	err = add_dot(out) ?: sb_fg_label_add_number(out, (double)layout->nr_cut);
	err = err
		      ?: sb_str_add(out,
				    layout->nr_cut == 1 ? " frame hatched: " : " frames hatched: ");
	if (!err && has_narrow) {
		err = sb_str_add(out, "narrower than ");
		err = err ?: sb_fg_label_add_share(out, layout->min_weight / picture->total);
	}
	if (!err && layout->is_raised)
		err = sb_str_addf(out, " so that at most %u are drawn", picture->opts->max_rects);
	if (!err && layout->nr_cut_deep)
		err = sb_str_addf(out, "%sabove level %u", has_narrow ? ", " : "",
				  picture->opts->max_depth);
	if (!err && picture->is_partly_kept)
		err = sb_str_add(out, "; not kept in this file");
	return err;
}

static int add_repairs(const struct sb_svg *picture, struct sb_str *out)
{
	if (!picture->nr_repaired)
		return 0;
	return add_dot(out) ?: sb_fg_label_add_number(out, (double)picture->nr_repaired) ?:
			       sb_str_add(out, " bytes of names replaced");
}

/* "95.6 MiB held, of what came in 9 s": what the weight is, of memory, and of how long. */
static int add_duration(const struct sb_svg *picture, struct sb_str *out)
{
	static const struct {
		const char *of, *words;
	} weights[] = {
		{ "held", " held, of what came in " },
		{ "churn", " came and went in " },
		{ "swapped", " in swap, of what came in " },
	};
	const struct sb_metadata *known = picture->known;
	const char *of = known->of, *words = " in ";

	if (!known->has_dur_us)
		return 0;
	for (size_t i = 0; of && i < SB_ARRAY_SIZE(weights); i++)
		if (sb_streq(of, weights[i].of))
			words = weights[i].words;
	return sb_str_add(out, words) ?: sb_fg_label_add_weight(out, (double)known->dur_us, "us");
}

int sb_svg_add_subtitle(struct sb_svg *picture, struct sb_str *out)
{
	const struct sb_metadata *known = picture->known;
	int err;

	if (picture->is_diff) {
		err = sb_fg_diff_add_subtitle(&picture->diff, out, picture->unit.s, known);
		return err ?: add_cuts(picture, out) ?: add_repairs(picture, out);
	}
	err = sb_svg_add_weight(picture, out, picture->tree->nodes.at[0].total);
	err = err ?: add_duration(picture, out);
	if (!err && !sb_streq(picture->unit.s, "samples") && known->has_nr_samples) {
		err = add_dot(out) ?: sb_fg_label_add_number(out, (double)known->nr_samples);
		err = err
			      ?: sb_str_addf(out, " %s",
					     picture->view ? picture->view->event : "samples");
	}
	err = err ?: add_accounted(picture, out) ?: sb_svg_add_left_out(picture, out);
	err = err ?: sb_svg_add_losses(picture, out);
	err = err ?: add_governed(picture, out) ?: add_few_samples(picture, out);
	err = err ?: add_cuts(picture, out);
	return err ?: add_repairs(picture, out);
}
