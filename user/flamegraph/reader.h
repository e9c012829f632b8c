/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside the library: input formats. A new format is one file read_<name>.c and one row of the
 * table in fg.c. Readers get one line at a time, clean (text.h) and without its end; what they
 * cannot take they name with sb_fg_complain() and leave out.
 */
#ifndef SB_FLAMEGRAPH_READER_H
#define SB_FLAMEGRAPH_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/vec.h"
#include "flamegraph/tree.h"

/* A line of 10,000 frames of 1 kB has 10 MB; what is longer is no stack. */
#define SB_FG_LINE_MAX_BYTES (64u << 20)

enum sb_fg_problem {
	SB_FG_NO_COUNT,
	SB_FG_NO_COUNTS, /* of a comparison, with two on a line */
	SB_FG_NO_STACK,
	SB_FG_NO_FRAME,	    /* a line of another kind than the format has */
	SB_FG_NO_END,	    /* the input ends in the middle of a stack */
	SB_FG_OTHER_EVENT,  /* perf script: samples of a second event */
	SB_FG_LONG_LINE,    /* SB_FG_LINE_MAX_BYTES */
	SB_FG_TOO_MANY,	    /* SB_FG_NODES_MAX */
	SB_FG_BAD_BYTES,    /* replaced by U+FFFD */
	SB_FG_DEEP_STACK,   /* SB_FG_DEPTH_MAX */
	SB_FG_LONG_NAME,    /* SB_FG_NAME_MAX */
	SB_FG_BAD_HEADER,   /* "#stackbpf" line with parts that are no facts */
	SB_FG_UNITS_DIFFER, /* of two "#stackbpf" lines */
	SB_FG_NO_ORDER,	    /* of a comparison: --flamechart */
	SB_FG_PROBLEM_MAX,
};

struct sb_fg;

struct sb_fg_reader {
	const char *name;
	/* Do the first bytes of an input look like this format? The last row takes everything. */
	bool (*sniff)(const char *head, size_t len);
	/* Return: 0, -EINVAL: complained and left out, -E2BIG: too many nodes, -ENOMEM. */
	int (*feed)(struct sb_fg *fg, const char *line, size_t len);
	/* The input is over. NULL: nothing can be pending. */
	int (*finish)(struct sb_fg *fg);
};

extern const struct sb_fg_reader sb_fg_reader_folded, sb_fg_reader_bt, sb_fg_reader_perf;
extern const struct sb_fg_reader sb_fg_reader_diff; /* in read_folded.c */

/* The last folded stack and its nodes: neighbours share most of their frames. */
struct sb_fg_last_stack {
	struct sb_str text;
	size_t tail; /* from here on frames had their kind from being the last ones */
	SB_VEC(struct sb_fg_level {
		uint32_t node;
		uint32_t end;	      /* where its frame ends in the text */
		enum sb_fg_kind kind; /* what plain frames below it are: see sb_fg_frame_after() */
	})
	levels;
};

/* A stack that is collected leaf first, one line per frame. */
struct sb_fg_pending {
	struct sb_str names;
	SB_VEC(struct sb_fg_pending_frame {
		size_t at;
		size_t len;
		enum sb_fg_kind kind;
	})
	frames;
	uint64_t nr_cut; /* frames at the root's end beyond SB_FG_DEPTH_MAX */
};

struct sb_fg {
	struct sb_fg_tree tree;
	struct sb_fg_facts facts;
	bool reverse;
	double total;
	uint64_t nr_ignored;

	/* The input that is being read. */
	const struct sb_fg_reader *reader;
	uint64_t line_nr;
	struct {
		uint64_t nr, first_line_nr;
	} problems[SB_FG_PROBLEM_MAX];
	bool has_files;	  /* stacks end in a file, as "kind=io" in their header says */
	const char *hint; /* what the input is instead of text */
	struct sb_str complaint, clean;
	SB_VEC(struct sb_fg_tree_frame) frames; /* scratch */
	struct sb_fg_last_stack last;
	struct sb_fg_pending pending;
	struct sb_fg_pair pair; /* of the line that is being read */
	double nr_samples[2];	/* "#n;" said so of the next line; has_samples: there was one */
	bool has_samples;
	struct sb_str perf_event; /* the first that was met; empty: none yet */
	struct sb_str perf_comm;  /* of the pending sample; empty: it is not wanted */
};

void sb_fg_complain(struct sb_fg *fg, enum sb_fg_problem problem);

/* Add a stack, root first, the way --reverse wants it. Return: 0, -E2BIG, -ENOMEM. */
int sb_fg_take_stack(struct sb_fg *fg, struct sb_fg_tree_frame *frames, size_t nr, double weight);

/* Collect a frame below the ones before. Return: 0 or -ENOMEM. */
int sb_fg_pending_add(struct sb_fg_pending *pending, const struct sb_fg_tree_frame *frame);
/* Add what was collected, under @root unless it is NULL, and forget it. Return: 0, -E2BIG, -ENOMEM. */
int sb_fg_pending_take(struct sb_fg *fg, const char *root, double weight);

/* "#stackbpf;k=v;...": remember the facts. Return: 0 or -ENOMEM. */
int sb_fg_facts_add(struct sb_fg *fg, const char *line, size_t len);
void sb_fg_facts_release(struct sb_fg_facts *facts);

#endif
