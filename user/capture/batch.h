/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What capture hands to resolve with each drain: counts, and the stacks, objects and labels that
 * they reference. It is the only header of capture/ that resolve/ includes.
 */
#ifndef SB_CAPTURE_BATCH_H
#define SB_CAPTURE_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/sb_abi.h"

struct sb_batch_count {
	struct sb_sample_key key;
	struct sb_count count;
};

/* With SB_STACK_INTERP, nr_frames counts the words in @ip: two for each struct sb_interp_frame. */
struct sb_batch_stack {
	struct sb_stack_id id;
	uint32_t status; /* enum sb_stack_status */
	uint32_t flags;	 /* SB_STACK_KERNEL, ... */
	uint32_t nr_frames;
	bool is_single;	    /* no other sample references it */
	uint32_t list;	    /* not 0: all of its samples had the same mappings */
	const uint64_t *ip; /* leaf first; SB_STACK_INTERP: struct sb_interp_frame */
};

struct sb_batch_object {
	uint64_t id;
	uint32_t kind; /* enum sb_object_kind */
	uint32_t nr_bytes;
	const void *data; /* what follows struct sb_event_object in the record; aligned to 8 */
};

/* Labels of threads, by the ID in sb_sample_key. */
struct sb_batch_labels {
	uint64_t id;
	uint32_t nr_bytes; /* 0: the thread had none */
	const char *text;  /* for each key of the run its value or nothing, and a NUL */
};

/* Read-only; valid until the next drain. Stacks, objects and labels are those that came since the
 * last batch. */
struct sb_batch {
	const struct sb_batch_count *counts;
	size_t nr_counts;
	const struct sb_batch_stack *stacks;
	size_t nr_stacks;
	const struct sb_batch_object *objects;
	size_t nr_objects;
	const struct sb_batch_labels *labels;
	size_t nr_labels;
};

/*
 * The way back: what the resolving side evicted after a batch. The BPF side must forget it as well,
 * or it would not ship it again. Also objects of which no samples are wanted. Valid until the next
 * batch.
 */
struct sb_batch_evicted {
	const struct sb_stack_id *stacks;
	size_t nr_stacks;
	const uint64_t *labels;
	size_t nr_labels;
	const uint64_t *unwanted; /* IDs of objects */
	size_t nr_unwanted;
};

#endif
