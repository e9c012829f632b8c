/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Input formats; inside the library only. To add a format, write a file read_<name>.c and add a row
 * to the table in fg.c. For each input the first reader whose sniff() says so gets one line at a
 * time by feed(), cleaned (text.h) and without its end, and at last finish(). Readers add stacks by
 * sb_fg_take_stack(), or frame by frame by sb_fg_pending_add() and sb_fg_pending_take(). They
 * report lines that are not valid with sb_fg_complain(), and leave them out. Names of frames that
 * are given to the functions below are copied. -E2BIG means that the tree would have more than
 * SB_TREE_NODES_MAX nodes or 2^31 bytes of names: no weight is added, and a reader returns it,
 * because its caller counts it as SB_FG_TOO_MANY. After -ENOMEM the picture can only be freed.
 * Pointers are not NULL unless it says so. Not thread-safe.
 */
#ifndef SB_FLAMEGRAPH_READER_H
#define SB_FLAMEGRAPH_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/vec.h"
#include "flamegraph/tree.h"

/* Longest line. 10,000 frames of 1 kB take 10 MB; a longer line is not a stack. */
#define SB_FG_LINE_MAX_BYTES (64u << 20)

/* Problems of the input, counted for sb_fg_complaint(). Those before SB_FG_BAD_BYTES leave out
 * something. */
enum sb_fg_problem {
	SB_FG_NO_COUNT,
	SB_FG_NO_COUNTS, /* in a comparison, whose lines have two */
	SB_FG_NO_STACK,
	SB_FG_NO_FRAME,	    /* a line that the format does not have */
	SB_FG_NO_END,	    /* the input ends within a stack */
	SB_FG_OTHER_EVENT,  /* perf script: samples of a second event */
	SB_FG_LONG_LINE,    /* more than SB_FG_LINE_MAX_BYTES */
	SB_FG_TOO_MANY,	    /* more than SB_TREE_NODES_MAX nodes */
	SB_FG_BAD_BYTES,    /* replaced by U+FFFD */
	SB_FG_DEEP_STACK,   /* more than SB_FG_DEPTH_MAX frames */
	SB_FG_LONG_NAME,    /* more than SB_TREE_NAME_MAX bytes */
	SB_FG_BAD_HEADER,   /* parts of a "#stackbpf" line that are not valid */
	SB_FG_UNITS_DIFFER, /* two "#stackbpf" lines with different units */
	SB_FG_NO_ORDER,	    /* --flamechart with a comparison */
	SB_FG_PROBLEM_MAX,
};

struct sb_fg;

struct sb_fg_reader {
	const char *name;
	/* Return: whether an input begins like this format. NULL: the last row, which takes all. */
	bool (*sniff)(const char *head, size_t len);
	/*
	 * Take one line, borrowed during the call. Return: 0; -EINVAL if it was reported and left
	 * out; -E2BIG; -ENOMEM.
	 */
	int (*feed)(struct sb_fg *fg, const char *line, size_t len);
	/*
	 * The input has ended. NULL: the format has nothing to finish. Return: 0; -E2BIG; -ENOMEM.
	 */
	int (*finish)(struct sb_fg *fg);
};

extern const struct sb_fg_reader sb_fg_reader_folded, sb_fg_reader_bt, sb_fg_reader_perf;
extern const struct sb_fg_reader sb_fg_reader_diff; /* in read_folded.c */

/* The last folded stack and its nodes, because neighbours share most of their frames. */
struct sb_fg_last_stack {
	struct sb_str text;
	size_t tail; /* from here on frames got their kind because they are the last ones */
	SB_VEC(struct sb_fg_level {
		uint32_t node;
		uint32_t end; /* of its frame in the text */
		enum sb_fg_kind
			kind; /* what it implies for frames below: see sb_fg_frame_place() */
	})
	levels;
};

/* A stack that is collected from lines, one for each frame, leaf first. */
struct sb_fg_pending {
	struct sb_str names;
	SB_VEC(struct sb_fg_pending_frame {
		size_t at;
		size_t len;
		enum sb_fg_kind kind;
	})
	frames;
	uint64_t nr_cut; /* root frames that exceed SB_FG_DEPTH_MAX */
};

struct sb_fg {
	struct sb_tree tree;
	struct sb_fg_metadata metadata;
	bool reverse;
	double total;

	/* The current input. */
	const struct sb_fg_reader *reader;
	uint64_t line_nr;
	struct {
		uint64_t nr, first_line_nr;
	} problems[SB_FG_PROBLEM_MAX];
	bool has_files;	  /* stacks end in a file: its header names such a view */
	const char *hint; /* if the input is not text: what to do instead */
	struct sb_str complaint, clean;
	SB_VEC(struct sb_tree_frame) frames; /* scratch */
	struct sb_fg_last_stack last;
	struct sb_fg_pending pending;
	struct sb_tree_pair pair;	   /* of the current line */
	const struct sb_tree_pair *adding; /* pair of the stack that is being added; NULL: none */
	double nr_samples[2];		   /* from "#n;" for the next line, if has_samples */
	bool has_samples;
	struct sb_str perf_event; /* the first event; empty: none yet */
	struct sb_str perf_comm;  /* of the pending sample; empty: it is left out */
};

/* Count a problem of the current line, and note the line if it is the first with this problem. */
void sb_fg_complain(struct sb_fg *fg, enum sb_fg_problem problem);

/*
 * Add a stack of @nr frames, which may be 0, root first, with @weight to fg->tree and fg->total;
 * their kinds are taken as they are. The reader of a comparison sets fg->adding during the call.
 * With --reverse the order of @frames is reversed in place. Return: 0; -E2BIG; -ENOMEM.
 */
int sb_fg_take_stack(struct sb_fg *fg, struct sb_tree_frame *frames, size_t nr, double weight);

/* Append the caller of the frame that was added last, or the leaf; ';' in its name becomes ':'.
 * After SB_FG_DEPTH_MAX - 2 frames it is only counted in nr_cut. When @pending, which is that of a
 * picture, has all frames of a stack, sb_fg_pending_take() adds it. Return: 0 or -ENOMEM. */
int sb_fg_pending_add(struct sb_fg_pending *pending, const struct sb_tree_frame *frame);
/* Drop the frames that were added, and their count. */
void sb_fg_pending_clear(struct sb_fg_pending *pending);
/*
 * Add the stack in fg->pending as sb_fg_take_stack() does, below a root frame @root (of kind
 * SB_FG_PLAIN) unless it is NULL, and clear it, also on error. Without pending frames the stack is
 * @root alone or empty, and its weight counts all the same. Return: 0; -E2BIG; -ENOMEM.
 */
int sb_fg_pending_take(struct sb_fg *fg, const char *root, double weight);

/*
 * Copy the metadata of a line "#stackbpf;k=v;..." to fg->metadata; other comments are ignored.
 * Parts that are not valid are reported by sb_fg_complain(): a key has lower-case letters, digits
 * and '_', the value of a number is one, and key, '=' and value have 255 bytes at most. Further
 * keys are reported, too, when 64 unknown ones are kept. Return: 0 or -ENOMEM.
 */
int sb_fg_read_header(struct sb_fg *fg, const char *line, size_t len);
/* Free all metadata; there is none then, and some can be added again. */
void sb_fg_metadata_release(struct sb_fg_metadata *metadata);

#endif
