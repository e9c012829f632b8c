/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes profiles as folded text: "root;...;leaf weight", and names the frames in it. Functions
 * with a @str, which the caller initialized and releases, append to it and return 0 or -ENOMEM; on
 * error a part may have been appended, and the text is to be discarded. Pointers are not NULL
 * unless it says so, and nothing is kept. Thread: any, one at a time for each @str, while nobody
 * modifies the profile.
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
	uint64_t limit; /* sb_fold() only: so many of the heaviest stacks; 0: all */
};

/* Append the name of the frame that shows @attr, which is not SB_ATTR_NONE and has the strings of
 * its kind: "nginx-12/13", "[idle: epoll]". Nothing in it is replaced, not even ';':
 * sb_fold_frame() does that when it writes the frame. */
int sb_fold_attr(struct sb_str *str, const struct sb_attr *attr);

/*
 * Return: the kind, from SB_ATTR_IDLE on, of the mark to which sb_fold_attr() gives this name
 * ("[blocked]", "[idle: epoll]"); SB_ATTR_NONE if @name is no mark's.
 */
enum sb_attr_kind sb_fold_mark_kind(const char *name);

/*
 * Append a name for code without a symbol: "[libc.so.6+0x1234]"; "[libc.so.6]" if @addr, the
 * address in the module, is NULL; "[unknown]" if @module, which is not NULL, is "". Brackets that
 * @module has already are not doubled.
 */
int sb_fold_unnamed(struct sb_str *str, const char *module, const uint64_t *addr);

/* Append a frame's name and what @opts adds to it, without the ';' between frames. In names ';'
 * becomes ':' and control characters '?', because they would end the frame or the line. */
int sb_fold_frame(struct sb_str *str, const struct sb_frame *frame,
		  const struct sb_fold_opts *opts);

/* A piece of metadata as text. Zero-initialize. */
struct sb_fold_meta {
	const char *key, *value; /* borrowed from the profile and from here */
	struct sb_metadatum known;
	bool is_other; /* what struct sb_metadata has comes first */
	size_t next;
};

/* Get the next piece of metadata: first what is known of struct sb_metadata, such as "dur_us", and
 * then what sb_profile_meta() added. Return: whether there is one; not to be called again then. */
bool sb_fold_next_meta(const struct sb_profile *profile, struct sb_fold_meta *meta);

/* Append the names of the frames of a row of @profile, with what @opts adds to them, root first and
 * with ';' between, without the weight; see sb_fold_frame(). */
int sb_fold_frames(struct sb_str *str, const struct sb_profile *profile, const struct sb_row *row,
		   const struct sb_fold_opts *opts);

/* Append one line of sb_fold(), without a newline: the header "#stackbpf;v=1;KEY=VALUE..." with all
 * metadata, blanks in values as '_', ';' as ':'; or the stack with index @i, below
 * sb_profile_nr_stacks(), a blank, and its weight. A '#' at the beginning of a stack becomes '?',
 * because the line would be a comment. */
int sb_fold_header(struct sb_str *str, const struct sb_profile *profile);
int sb_fold_stack(struct sb_str *str, const struct sb_profile *profile, size_t i,
		  const struct sb_fold_opts *opts);

/*
 * Call @fn with each line, without a newline: the header if opts->header, then the stacks, up to
 * opts->limit. @line is valid during the call. Stacks come in the order of @profile, which is
 * sealed if the heaviest are to come first. Those that look equal with these options are separate
 * lines, which readers sum up. Return: 0; -ENOMEM; or what @fn returned if that is negative, which
 * ends it.
 */
int sb_fold(const struct sb_profile *profile, const struct sb_fold_opts *opts,
	    int (*fn)(void *arg, const char *line, size_t len), void *arg);

#endif
