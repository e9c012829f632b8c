// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Modules of allocations.c that make results: profiles, outputs, comparisons, exports, pictures. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "allocations.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "export/export.h"
#include "flamegraph/fg.h"
#include "folded_line.h"
#include "model/calltree.h"
#include "model/fold.h"
#include "output/comparison.h"
#include "output/input.h"
#include "output/output.h"
#include "read_meta.h"

static int add_stacks(struct sb_profile *profile)
{
	uint32_t ids[8], i, k;
	char name[16];
	int err = 0;

	for (i = 0; i < 60 && !err; i++) {
		for (k = 0; k < SB_ARRAY_SIZE(ids) && !err; k++) {
			const struct sb_frame frame = { .name = name,
							.module = "m",
							.file = k % 2 ? "/f.c" : NULL,
							.kind = k % SB_FRAME_KIND_MAX };

			snprintf(name, sizeof(name), "f%u", i * k);
			err = sb_profile_frame(profile, &frame, &ids[k]);
		}
		if (!err)
			err = sb_profile_add_row(profile,
						 &(struct sb_row){ .frames = ids,
								   .nr = 1 + i % SB_ARRAY_SIZE(ids),
								   .log2_ns = 1 + i,
								   .weight = 1000 * i,
								   .nr_samples = 3 });
	}
	return err;
}

int profiles(void)
{
	struct sb_profile *profile = NULL, *other = NULL;
	int err = sb_profile_new(&profile);

	if (!err)
		err = sb_profile_new(&other);
	if (!err)
		err = add_stacks(other);
	if (!err)
		err = read_meta(profile, "kind", "offcpu");
	if (!err)
		err = sb_profile_merge(profile, other);
	if (!err)
		err = sb_profile_scale_by(profile, 1, 1000);
	if (!err)
		err = sb_profile_seal(profile);
	sb_profile_free(other);
	sb_profile_free(profile);
	return err;
}

int outputs(void)
{
	const struct sb_output_opts opts = {
		.fold = { .annotate = true, .lines = true, .header = true }, .title = "t"
	};
	const struct sb_output *output;
	struct sb_profile *profile;
	int err = sb_profile_new(&profile);
	size_t i;

	if (err)
		return err;
	err = add_stacks(profile);
	if (!err)
		err = read_meta(profile, "kind", "offcpu");
	if (!err)
		err = sb_profile_seal(profile);
	for (i = 0; !err && (output = sb_output_at(i)); i++)
		err = output->write(profile, &opts, nowhere);
	sb_profile_free(profile);
	return err;
}

/* What is sent elsewhere. */

/* Compare two profiles, of which the second was read from text, and write the result in every format
 * that comparisons have. */
static int compare(const struct sb_profile *a, const struct sb_profile *b)
{
	static const struct sb_comparison_opts opts = { .nr_rows = 10 };
	struct sb_comparison comparison = { .sides = { a, b }, .what = { "a", "b" } };
	const struct sb_comparison_output *output;
	struct sb_tree *tree = NULL;
	size_t i;
	int err = sb_calltree_new(a, b, &tree);

	comparison.tree = tree;
	err = err ?: sb_tree_prune(tree, 60, SB_FRAME_MARK);
	err = err ?: sb_calltree_diff(&comparison.diff, tree, a, b, SB_DIFF_SHARE);
	for (i = 0; !err && (output = sb_comparison_output_at(i)); i++)
		err = output->write(&comparison, &opts, nowhere);
	sb_tree_free(tree);
	return err;
}

int comparisons(void)
{
	static const char *const lines[] = { "#stackbpf;v=1;unit=samples;n=9", "f0;f1;f2 5",
					     "f0;g_[k] 4" };
	struct sb_profile *a = NULL, *b = NULL;
	struct sb_fg *fg = NULL;
	uint64_t nr_rounded;
	size_t i;
	int err = sb_profile_new(&a);

	err = err ?: add_stacks(a);
	err = err ?: sb_profile_seal(a);
	err = err ?: sb_fg_new(&fg);
	for (i = 0; i < SB_ARRAY_SIZE(lines) && !err; i++)
		err = add_folded(fg, lines[i], strlen(lines[i]));
	err = err ?: sb_input_profile(fg, &b, &nr_rounded);
	err = err ?: compare(a, b);
	sb_fg_free(fg);
	sb_profile_free(a);
	sb_profile_free(b);
	return err;
}

static int export_to(const char *to, const struct sb_export_period *period)
{
	/* As if all had been sent before: it is put together nevertheless. */
	struct sb_export_state state = { .nr_part_pieces = UINT64_MAX };
	struct sb_export_link link = { .state = &state };
	struct sb_export_opts opts = {};
	const struct sb_export_kind *kind = sb_export_find(to, &opts.address);
	const char *why;
	void *dest = NULL;
	int err = kind->open(&opts, &dest, &why);

	if (!err)
		err = kind->send(dest, &link, period);
	kind->close(dest);
	return err;
}

static int export_profile(const struct sb_profile *profile)
{
	static const char *const keys[] = { "service" };
	struct sb_export_period *period = NULL;
	struct sb_profile *one = NULL;
	int err = sb_export_period_new(profile, keys, 1, 0, 60, &period);

	if (!err)
		err = sb_export_series_profile(period, &period->series[0], &one);
	if (!err)
		err = export_to("otlp:http://h", period);
	if (!err)
		err = export_to("pyroscope:http://h", period);
	sb_profile_free(one);
	sb_export_period_free(period);
	return err;
}

int exports(void)
{
	struct sb_profile *profile;
	int err = sb_profile_new(&profile);

	if (err)
		return err;
	err = add_stacks(profile);
	if (!err)
		err = sb_profile_seal(profile);
	if (!err)
		err = export_profile(profile);
	sb_profile_free(profile);
	return err;
}

/* Pictures of text. */

static int draw(const char *text)
{
	sb_cleanup(sb_closep) int fd = memfd_create("text", MFD_CLOEXEC);
	struct sb_fg_opts *opts = NULL;
	struct sb_fg *fg = NULL;
	int err = sb_write_all(fd, text, strlen(text));

	lseek(fd, 0, SEEK_SET);
	if (!err)
		err = sb_fg_opts_new(&opts);
	if (!err)
		err = sb_fg_opts_set(opts, "title", "some title");
	if (!err)
		err = sb_fg_new(&fg);
	if (!err) {
		sb_fg_shape(fg, opts);
		err = sb_fg_read(fg, fd);
	}
	if (!err)
		err = sb_fg_render(fg, opts, nowhere);
	sb_fg_free(fg);
	sb_fg_opts_free(opts);
	return err;
}

int pictures(void)
{
	static const char *const texts[] = {
		"#stackbpf;v=1;kind=io;unit=bytes\nmain;read;/etc/passwd 10\nmain;g_[k];h_[k] 20\nno weight\n",
		"@[\n    f+10\n    g+20\n    main+30\n]: 7\n@[\n    h\n]: 8\n",
		"prog 12/13 [001] 100.5: 999 cpu-clock:\n\t 4004f0 f+0x10 (/a)\n\t 4005f0 main+0x20 (/a)\n\n"
		"prog 12/13 [001] 100.6: 999 cpu-clock:\n\t 4005f0 main+0x20 (/a)\n\n",
	};
	size_t i;
	int err = 0;

	for (i = 0; i < SB_ARRAY_SIZE(texts) && !err; i++)
		err = draw(texts[i]);
	return err;
}
