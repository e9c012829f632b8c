// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * write_formats LIMIT [NAME=PATH...] < PROFILE: a profile in the format or formats of these names. PROFILE
 * has lines, bytes in hexadecimal, so that names may be anything:
 *
 *	meta KEY VALUE
 *	stack WEIGHT/SAMPLES KIND:NAME:MODULE:FILE:LINE|@KIND:KEY:TEXT:PID:TID:CPU ...
 *
 * The second form is a frame that shows an attribute, whose KIND is a number of enum sb_attr_kind.
 * SAMPLES is how many it stands for, 0: not known. KIND is a number of enum sb_frame_kind; MODULE and FILE may be empty: not known.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "output/output.h"
#include "read_meta.h"

#define FRAMES_MAX 1024

static void fail(const char *what)
{
	fprintf(stderr, "write_formats: %s\n", what);
	exit(2);
}

/* In place. */
static char *unhex(char *hex)
{
	size_t i, len = strlen(hex) / 2;
	unsigned int byte;

	for (i = 0; i < len; i++) {
		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			fail("not hexadecimal");
		hex[i] = (char)byte;
	}
	hex[len] = '\0';
	return hex;
}

static uint32_t add_attr(struct sb_profile *profile, char *text)
{
	char *fields[6];
	struct sb_attr attr = {};
	uint32_t id;
	size_t i;

	for (i = 0; i < 6; i++) {
		fields[i] = strsep(&text, ":");
		if (!fields[i])
			fail("an attribute has six fields");
	}
	attr.kind = (enum sb_attr_kind)atoi(fields[0]);
	attr.key = unhex(fields[1]);
	attr.text = unhex(fields[2]);
	attr.pid = (uint32_t)atoi(fields[3]);
	attr.tid = (uint32_t)atoi(fields[4]);
	attr.cpu = (uint32_t)atoi(fields[5]);
	if (attr.kind >= SB_ATTR_KIND_MAX || sb_profile_attr(profile, &attr, &id))
		fail("cannot add an attribute");
	return id;
}

static uint32_t add_frame(struct sb_profile *profile, char *text)
{
	char *fields[5];
	struct sb_frame frame = {};
	uint32_t id;
	size_t i;

	for (i = 0; i < 5; i++) {
		fields[i] = strsep(&text, ":");
		if (!fields[i])
			fail("a frame has five fields");
	}
	frame.kind = (enum sb_frame_kind)atoi(fields[0]);
	frame.name = unhex(fields[1]);
	frame.module = *fields[2] ? unhex(fields[2]) : NULL;
	frame.file = *fields[3] ? unhex(fields[3]) : NULL;
	frame.line = (uint32_t)atoi(fields[4]);
	if (frame.kind >= SB_FRAME_KIND_MAX || sb_profile_frame(profile, &frame, &id))
		fail("cannot add a frame");
	return id;
}

static void add_stack(struct sb_profile *profile, char *text)
{
	static uint32_t ids[FRAMES_MAX];
	char *numbers = strsep(&text, " ");
	uint64_t weight = strtoull(numbers, &numbers, 10);
	uint64_t nr_samples = *numbers == '/' ? strtoull(numbers + 1, NULL, 10) : 0;
	size_t nr = 0;
	char *frame;

	while ((frame = strsep(&text, " "))) {
		if (nr == FRAMES_MAX)
			fail("too many frames");
		ids[nr++] =
			*frame == '@' ? add_attr(profile, frame + 1) : add_frame(profile, frame);
	}
	if (sb_profile_add_row(profile, &(struct sb_row){ .frames = ids,
							  .nr = nr,
							  .weight = weight,
							  .nr_samples = nr_samples }))
		fail("cannot add a stack");
}

static void read_profile(struct sb_profile *profile)
{
	char *line = NULL, *at, *word;
	size_t cap = 0;
	ssize_t len;

	while ((len = getline(&line, &cap, stdin)) > 0) {
		line[len - 1] = '\0';
		at = line;
		word = strsep(&at, " ");
		if (sb_streq(word, "stack") && at) {
			add_stack(profile, at);
		} else if (sb_streq(word, "meta") && at) {
			word = strsep(&at, " ");
			if (read_meta(profile, word, at ? unhex(at) : ""))
				fail("cannot add a fact");
		} else {
			fail("neither meta nor stack");
		}
	}
	free(line);
}

static void write_as(const struct sb_profile *profile, const struct sb_output_opts *opts, char *arg)
{
	const char *name = strsep(&arg, "=");
	const struct sb_output *output = sb_output_find(name);
	FILE *out = arg ? fopen(arg, "w") : NULL;

	if (!output || !out)
		fail(name);
	if (output->write(profile, opts, out) || fclose(out))
		fail("cannot write");
}

int main(int argc, char **argv)
{
	struct sb_output_opts opts = {};
	struct sb_profile *profile;
	int i;

	if (argc < 2 || sb_profile_new(&profile))
		fail("usage: write_formats LIMIT [NAME=PATH...] < PROFILE");
	opts.fold.limit = strtoull(argv[1], NULL, 10);
	opts.title = getenv("TITLE");
	read_profile(profile);
	if (sb_profile_seal(profile))
		fail("cannot seal");
	for (i = 2; i < argc; i++)
		write_as(profile, &opts, argv[i]);
	sb_profile_free(profile);
	return 0;
}
