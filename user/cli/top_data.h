/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The data of `top`: weights of the last periods and since the start, by call path and by function.
 * A period is one refresh of the screen. For each one: sb_top_data_add(), then sb_top_data_sum(),
 * whose results are valid until it is called again. After an error only sb_top_data_reset() may
 * follow. One thread. Pointers are not NULL. */
#ifndef SB_CLI_TOP_DATA_H
#define SB_CLI_TOP_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "model/profile.h"
#include "tree/tree.h"

#define SB_TOP_SLOTS_MAX  100
/* Distinct stacks that are kept since the start. Beyond that, the lighter half is merged into
 * "(other)". */
#define SB_TOP_STACKS_MAX 65536

/* The two spans: the last periods, and since the start. They are A and B of the tree. */
enum sb_top_span { SB_TOP_RECENT = SB_TREE_A, SB_TOP_ALL = SB_TREE_B, SB_TOP_SPAN_MAX };

/* A function, at all its places. Recursive calls count once. */
struct sb_top_func {
	uint32_t name, module; /* in the tree's string table; module 0: not known */
	enum sb_frame_kind kind;
	uint64_t self[SB_TOP_SPAN_MAX], total[SB_TOP_SPAN_MAX];
};

/* Zero-initialise it and set nr_slots. */
struct sb_top_data {
	size_t nr_slots; /* how many periods are "the last ones"; 1 to SB_TOP_SLOTS_MAX */
	struct sb_profile *slots[SB_TOP_SLOTS_MAX];
	uint64_t slot_ns[SB_TOP_SLOTS_MAX];
	size_t next; /* the slot to overwrite next */
	struct sb_profile *all;
	uint64_t ns[SB_TOP_SPAN_MAX];	  /* duration of the spans */
	uint64_t weight[SB_TOP_SPAN_MAX]; /* valid after sb_top_data_sum() */
	struct sb_tree *tree;		  /* NULL before sb_top_data_sum() */
	SB_VEC(struct sb_top_func) funcs; /* unsorted */
	size_t stacks_max;		  /* 0: SB_TOP_STACKS_MAX */
	uint64_t nr_shed;		  /* stacks that were merged into "(other)" */
};

/* Add the samples of a period of @ns nanoseconds; @profile, sealed or not, is copied, and replaces
 * that of the oldest period of nr_slots. Return: 0; -ENOMEM; -E2BIG if they do not fit into a
 * profile. */
int sb_top_data_add(struct sb_top_data *data, const struct sb_profile *profile, uint64_t ns);
/* Make the tree and the functions anew from what was added, which may be nothing; the old ones are
 * freed. Return: 0; -ENOMEM; -E2BIG if the data do not fit into a tree. */
int sb_top_data_sum(struct sb_top_data *data);
/* Free all data; nr_slots and stacks_max stay, and it can be used again. */
void sb_top_data_reset(struct sb_top_data *data);

#endif
