/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks that came as a piece of memory (struct sb_event_raw), because there was no unwind table
 * yet: kept from their arrival until the symbolizer knows what was mapped then. Internal to capture.
 */
#ifndef SB_CAPTURE_RAWSTACK_H
#define SB_CAPTURE_RAWSTACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "capture/batch.h"

struct sb_interp;
struct sb_symbolizer;

/* Pieces kept at a time; of more, only the leaf is. */
#define SB_RAWSTACKS_BYTES_MAX (64u << 20)

struct sb_rawstacks {
	SB_VEC(uint8_t) bytes; /* records, each at a multiple of 8 */
	SB_VEC(size_t) at;     /* where they begin */
};

/* Keep a copy of one record. Return: 0, -EBADMSG: its sizes do not fit together; -ENOMEM. */
int sb_rawstacks_add(struct sb_rawstacks *raw, const void *record, size_t len);
void sb_rawstacks_clear(struct sb_rawstacks *raw);
void sb_rawstacks_release(struct sb_rawstacks *raw);

/* How they are unwound, and where they go. */
struct sb_rawstacks_into {
	uint32_t modes;		  /* SB_UNWIND_* */
	uint32_t depth_max;	  /* frames; 0: SB_USTACK_DEPTH_MAX */
	struct sb_interp *interp; /* borrowed; what it knows of generated code, or NULL */
	bool is_asleep; /* the threads sleep: frames of interpreters on their native stacks are found, too */
	/* stack->ip is valid during the call. A negative return value ends it. */
	int (*add)(void *arg, const struct sb_batch_stack *stack);
	void *arg;
};

/*
 * Each gives one stack, whose status tells what it is worth; and of a thread that sleeps, before it, the frames of
 * its interpreters, if some lie on its native stack. Return: 0, -ENOMEM, or of @into.
 */
int sb_rawstacks_unwind(const struct sb_rawstacks *raw, struct sb_symbolizer *sym,
			const struct sb_rawstacks_into *into);

#endif
