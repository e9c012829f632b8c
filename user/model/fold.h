/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A profile as folded text: "root;...;leaf weight". */
#ifndef SB_MODEL_FOLD_H
#define SB_MODEL_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "model/profile.h"

/* How frames are written. */
struct sb_fold_opts {
	bool annotate;	/* append _[k], _[i], _[j], _[f], _[p], _[w] by kind */
	bool lines;	/* append " file.c:12" */
	bool modules;	/* append " [libc.so.6]" */
	bool offsets;	/* append "+0x12" */
	bool header;	/* begin with "#stackbpf;v=1;..." */
	uint64_t limit; /* heaviest stacks only; 0: all */
};

/* Append frame @frame as one frame of folded text: without ; and line breaks in it. 0 or -ENOMEM. */
int sb_fold_frame(struct sb_str *str, const struct sb_frame *frame,
		  const struct sb_fold_opts *opts);

/* Append the lines of sb_fold(), without a newline: the header; stack @i. Return: 0 or -ENOMEM. */
int sb_fold_header(struct sb_str *str, const struct sb_profile *profile);
int sb_fold_stack(struct sb_str *str, const struct sb_profile *profile, size_t i,
		  const struct sb_fold_opts *opts);

/*
 * Call @fn with each line, header first, without its newline; stacks that the options make equal
 * stay separate lines, which every reader adds up.
 * Return: 0, -ENOMEM, or what @fn returned when negative.
 */
int sb_fold(const struct sb_profile *profile, const struct sb_fold_opts *opts,
	    int (*fn)(void *arg, const char *line, size_t len), void *arg);

#endif
