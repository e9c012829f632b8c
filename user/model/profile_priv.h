/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The inside of a profile: profile.c adds to it and reads it, profile_seal.c sorts it. Internal to
 * profile*.c. Not thread-safe, as profile.h says.
 */
#ifndef SB_MODEL_PROFILE_PRIV_H
#define SB_MODEL_PROFILE_PRIV_H

#include "base/arena.h"
#include "base/index.h"
#include "base/str.h"
#include "base/vec.h"
#include "model/profile.h"

/* A frame with its strings interned: what makes two frames equal. */
struct frame_key {
	uint32_t name, module, file, line;
	uint64_t func_offset;
	uint32_t kind;
	uint16_t is_unnamed, attr_kind; /* of a mark without attribute: its mark */
};

struct stack {
	uint32_t first_frame, nr_frames; /* in stack_frames */
	uint32_t series;
	uint32_t log2; /* in log2s; 0: none */
	uint64_t weight, nr_samples;
};

struct log2 {
	uint64_t nr[SB_PROFILE_NR_LOG2];
};

struct meta {
	char *key, *value;
};

struct sb_profile {
	struct sb_strtab strings;
	/*
	 * Keys and index cover the first frames. Those that were pushed since are indexed at the
	 * next look-up.
	 */
	SB_VEC(struct frame_key) keys;
	SB_VEC(struct sb_frame) frames;
	struct sb_index frames_index;
	SB_VEC(struct sb_attr) attrs; /* from 1 on, see sb_frame.attr */
	struct sb_str text;
	SB_VEC(uint32_t) row_frames; /* scratch, of a row that is copied */
	SB_VEC(uint32_t) stack_frames;
	SB_VEC(struct stack) stacks;
	struct sb_index stacks_index;
	SB_VEC(struct log2) log2s; /* the first is of all stacks; empty: no durations were added */
	SB_VEC(double) squares;	   /* by stack; fewer: the others are 0 */
	struct sb_metadata metadata;
	struct sb_arena metadata_texts;
	SB_VEC(struct meta) metas;
	uint64_t weight;
	uint64_t nr_tiny, tiny_weight; /* left out by sb_profile_scale_by() */
};

#endif
