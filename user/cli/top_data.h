/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What `top` shows: the weight of the last periods and of all since the start, by path and by function. */
#ifndef SB_CLI_TOP_DATA_H
#define SB_CLI_TOP_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "model/profile.h"
#include "model/tree.h"

#define SB_TOP_SLOTS_MAX  100
/* Distinct stacks since the start. Beyond it the lighter half becomes one, "(other)". */
#define SB_TOP_STACKS_MAX 65536

/* A and B of the tree. */
enum sb_top_span { SB_TOP_RECENT = SB_TREE_A, SB_TOP_ALL = SB_TREE_B, SB_TOP_SPAN_MAX };

/* A function, in whatever places. Those that call themselves count once. */
struct sb_top_func {
	size_t node; /* one of its nodes: its name, module and kind */
	uint64_t self[SB_TOP_SPAN_MAX], total[SB_TOP_SPAN_MAX];
};

/* Zero-initialize, set nr_slots. */
struct sb_top_data {
	size_t nr_slots; /* periods that are the last ones */
	struct sb_profile *slots[SB_TOP_SLOTS_MAX];
	uint64_t slot_ns[SB_TOP_SLOTS_MAX];
	size_t next; /* slot to be written */
	struct sb_profile *all;
	uint64_t ns[SB_TOP_SPAN_MAX];	  /* that the spans are long */
	uint64_t weight[SB_TOP_SPAN_MAX]; /* after sb_top_data_sum() */
	struct sb_tree *tree;		  /* NULL: before sb_top_data_sum() */
	SB_VEC(struct sb_top_func) funcs; /* in no order */
	SB_VEC(size_t) path;		  /* scratch: nodes from the root's child on */
	size_t stacks_max;		  /* 0: SB_TOP_STACKS_MAX */
	uint64_t nr_shed;		  /* stacks that became "(other)" */
};

/* @profile is what a period of @ns brought. Return: 0, -ENOMEM, -E2BIG. */
int sb_top_data_add(struct sb_top_data *data, const struct sb_profile *profile, uint64_t ns);
/* Make tree and functions of what there is. Return: as above. */
int sb_top_data_sum(struct sb_top_data *data);
/* As at the start. */
void sb_top_data_reset(struct sb_top_data *data);

/* Return: whether frames of that kind are code, or a file: what a list of functions has. */
bool sb_top_is_func(enum sb_frame_kind kind);

#endif
