// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * store_text DIR: makes a store of lines of text on stdin, and adds to it:
 *
 *	BEGIN KIND UNIT KEY=VALUE[,KEY=VALUE...] WEIGHT ROOT;...;LEAF
 *
 * sorted by time and kind; one block for each two of them, with figures that follow from its lines: 10 s
 * sampled at 100 Hz on 4 CPUs, as many samples as there is weight, 1 lost for each line. Stacks with a frame
 * "[truncated: ...]" are truncated. Annotations of frames, as _[k], give their kind. Keys in upper case are wide ones.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "store/store.h"

#define LINE_MAX_ 4096
#define TAGS_MAX  8

struct line {
	char text[LINE_MAX_];
	long long begin_s;
	char *kind, *unit;
	struct sb_tag tags[TAGS_MAX];
	size_t nr_tags;
	unsigned long long weight;
	char *stack;
};

static void die(const char *what, int err)
{
	fprintf(stderr, "store_text: %s: %s\n", what, strerror(-err));
	exit(1);
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct sb_tag *)a)->key, ((const struct sb_tag *)b)->key);
}

static void parse_tags(struct line *line, char *text)
{
	char *save, *pair, *is;

	for (pair = strtok_r(text, ",", &save); pair && line->nr_tags < TAGS_MAX;
	     pair = strtok_r(NULL, ",", &save)) {
		is = strchr(pair, '=');
		if (!is)
			die(pair, -EINVAL);
		*is = '\0';
		line->tags[line->nr_tags++] =
			(struct sb_tag){ pair, is + 1, pair[0] >= 'A' && pair[0] <= 'Z' };
	}
	qsort(line->tags, line->nr_tags, sizeof(line->tags[0]), by_key);
}

static int read_line(struct line *line)
{
	char *at = line->text, *tags;

	line->nr_tags = 0;
	if (!fgets(line->text, sizeof(line->text), stdin))
		return 0;
	line->text[strcspn(line->text, "\n")] = '\0';
	line->begin_s = atoll(strsep(&at, " "));
	line->kind = strsep(&at, " ");
	line->unit = strsep(&at, " ");
	tags = strsep(&at, " ");
	line->weight = strtoull(at, &at, 10);
	if (!tags || *at != ' ')
		die(line->text, -EINVAL);
	line->stack = at + 1;
	parse_tags(line, tags);
	return 1;
}

/* Take the annotation off. */
static enum sb_frame_kind kind_of(char *name)
{
	static const struct {
		const char *annotation;
		enum sb_frame_kind kind;
	} rows[] = {
		{ "_[i]", SB_FRAME_INLINED }, { "_[j]", SB_FRAME_JIT },
		{ "_[k]", SB_FRAME_KERNEL },  { "_[f]", SB_FRAME_FILE },
		{ "_[p]", SB_FRAME_INTERP },  { "_[w]", SB_FRAME_WAKER },
	};
	size_t len = strlen(name), i;

	if (!strncmp(name, "[truncated: ", strlen("[truncated: ")))
		return SB_FRAME_MARK;
	for (i = 0; len > 4 && i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(name + len - 4, rows[i].annotation))
			continue;
		name[len - 4] = '\0';
		return rows[i].kind;
	}
	return strcmp(name, "--") ? SB_FRAME_USER : SB_FRAME_DELIMITER;
}

static void add_line(struct sb_profile *profile, const struct line *line, uint32_t series)
{
	char stack[LINE_MAX_], *save, *name;
	uint32_t frames[256];
	struct sb_row row = { .frames = frames, .series = series, .weight = line->weight };
	int err = 0;

	strcpy(stack, line->stack);
	for (name = strtok_r(stack, ";", &save); name && row.nr < 256 && !err;
	     name = strtok_r(NULL, ";", &save)) {
		struct sb_frame frame = { .name = name, .module = "prog", .kind = kind_of(name) };

		frame.mark = frame.kind == SB_FRAME_MARK ? SB_ATTR_TRUNCATED : SB_ATTR_NONE;

		err = sb_profile_frame(profile, &frame, &frames[row.nr++]);
	}
	if (!err)
		err = sb_profile_add_row(profile, &row);
	if (err)
		die(line->text, err);
}

static void put(struct sb_store *store, struct line *const *lines, size_t nr)
{
	SB_VEC(struct sb_store_series) series = {};
	struct sb_store_block block = {
		.begin_s = lines[0]->begin_s,
		.kind = lines[0]->kind,
		.unit = lines[0]->unit,
		.figure = { [SB_BLOCK_SAMPLED_MS] = 10000,
			    [SB_BLOCK_CPU_MS] = 40000,
			    [SB_BLOCK_HZ_MS] = strcmp(lines[0]->unit, "samples") ? 0 : 1000000,
			    [SB_BLOCK_OWN_US] = 1000 },
	};
	struct sb_profile *profile;
	size_t i;
	int err = sb_profile_new(&profile);

	for (i = 0; i < nr && !err; i++) {
		add_line(profile, lines[i], (uint32_t)i);
		err = sb_vec_push(&series,
				  (struct sb_store_series){ lines[i]->tags, lines[i]->nr_tags });
		block.figure[SB_BLOCK_SAMPLES] += lines[i]->weight;
		block.figure[SB_BLOCK_LOST]++;
	}
	block.series = series.at;
	block.nr = series.nr;
	block.profile = profile;
	if (!err)
		err = sb_profile_seal(profile) ?: sb_store_put(store, &block);
	if (err)
		die("put", err);
	sb_profile_free(profile);
	sb_vec_release(&series);
}

int main(int argc, char **argv)
{
	const struct sb_store_opts opts = { .no_sync = true };
	SB_VEC(struct line *) lines = {};
	struct sb_store *store;
	struct line *line;
	size_t nr = 0;
	int err;

	if (argc != 2)
		return 2;
	err = sb_store_open_to_write(argv[1], &opts, &store);
	if (err)
		die(argv[1], err);
	for (;;) {
		line = calloc(1, sizeof(*line));
		if (!line)
			die("line", -ENOMEM);
		nr = read_line(line);
		if (lines.nr && (!nr || line->begin_s != lines.at[0]->begin_s ||
				 strcmp(line->kind, lines.at[0]->kind))) {
			put(store, lines.at, lines.nr);
			while (lines.nr)
				free(lines.at[--lines.nr]);
		}
		if (!nr)
			break;
		if (sb_vec_push(&lines, line))
			die("line", -ENOMEM);
	}
	free(line);
	sb_vec_release(&lines);
	sb_store_close(store);
	return 0;
}
