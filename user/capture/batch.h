/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the capture side hands to the resolving side: counts, and the stacks they name. The one
 * thing of capture/ that resolve/ may know.
 */
#ifndef SB_CAPTURE_BATCH_H
#define SB_CAPTURE_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sb_abi.h"

struct sb_batch_count {
	struct sb_sample_key key;
	struct sb_count count;
};

struct sb_batch_stack {
	struct sb_stack_id id;
	uint32_t status; /* enum sb_stack_status */
	uint32_t flags;	 /* SB_STACK_KERNEL, ... */
	uint32_t nr_frames;
	bool is_single;	    /* no other sample will name it */
	uint32_t list;	    /* not 0: the same mappings lay below all of its samples */
	const uint64_t *ip; /* leaf first */
};

struct sb_batch_object {
	uint64_t id;
	uint32_t kind; /* enum sb_object_kind */
	uint32_t nr_bytes;
	const void *data; /* what follows struct sb_event_object; at a multiple of 8 */
};

/* Labels of threads, by the name that sb_sample_key has. */
struct sb_batch_labels {
	uint64_t id;
	uint32_t nr_bytes; /* 0: the thread had none */
	const char *text;  /* for each key that is asked for its value, or nothing, and a NUL */
};

/* Read-only; valid until the next drain. @stacks are those that came since the last batch. */
struct sb_batch {
	const struct sb_batch_count *counts;
	size_t nr_counts;
	const struct sb_batch_stack *stacks;
	size_t nr_stacks;
	const struct sb_batch_object *objects; /* that came since the last batch */
	size_t nr_objects;
	const struct sb_batch_labels *labels; /* that came since the last batch */
	size_t nr_labels;
};

#endif
