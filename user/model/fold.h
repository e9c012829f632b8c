/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes profiles as folded text: "root;...;leaf weight", and names the frames in it. Thread: any.
 */
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

/*
 * Append the name of the frame that shows @attr: "nginx-12/13", "[idle: epoll]". Return: 0 or
 * -ENOMEM.
 */
int sb_fold_attr(struct sb_str *str, const struct sb_attr *attr);

/* Return: the kind of the mark that sb_fold_attr() would name so; SB_ATTR_NONE if there is none. */
enum sb_attr_kind sb_fold_mark_kind(const char *name);

/*
 * Append a name for code without a symbol: "[libc.so.6+0x1234]"; "[libc.so.6]" if @addr, the
 * address in the module, is NULL; "[unknown]" if @module is empty. Return: 0 or -ENOMEM.
 */
int sb_fold_unnamed(struct sb_str *str, const char *module, const uint64_t *addr);

/* Append a frame, with its ';' and line breaks replaced. Return: 0 or -ENOMEM. */
int sb_fold_frame(struct sb_str *str, const struct sb_frame *frame,
		  const struct sb_fold_opts *opts);

/* Append the frames of a row of @profile, root first, with ; between them. Return: 0 or -ENOMEM. */
int sb_fold_frames(struct sb_str *str, const struct sb_profile *profile, const struct sb_row *row,
		   const struct sb_fold_opts *opts);

/*
 * Append one line of sb_fold(), without a newline: the header, or stack @i. Return: 0 or -ENOMEM.
 */
int sb_fold_header(struct sb_str *str, const struct sb_profile *profile);
int sb_fold_stack(struct sb_str *str, const struct sb_profile *profile, size_t i,
		  const struct sb_fold_opts *opts);

/*
 * Call @fn with each line, the header first, without its newline. @line is valid during the call.
 * Stacks that look equal with these options are separate lines, which readers sum up. Return: 0;
 * -ENOMEM; or what @fn returned if that is negative.
 */
int sb_fold(const struct sb_profile *profile, const struct sb_fold_opts *opts,
	    int (*fn)(void *arg, const char *line, size_t len), void *arg);

#endif
