/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks that were shipped as a copy of stack memory (struct sb_event_raw) because there was no
 * unwind table yet. They are kept until the symbolizer knows the mappings of their time, and are
 * then unwound in user space. Internal to capture. Order: a struct sb_rawstacks begins zeroed;
 * sb_rawstacks_add() for each record, sb_rawstacks_unwind(), sb_rawstacks_clear(), and so on; in
 * the end sb_rawstacks_release(). Thread: any, one at a time for each object. No pointer may be
 * NULL unless a comment says so.
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

/* Bytes that are kept at a time. Of stacks beyond it, only the leaf is kept. */
#define SB_RAWSTACKS_BYTES_MAX (64u << 20)

struct sb_rawstacks {
	SB_VEC(uint8_t) bytes; /* records, each aligned to 8 */
	SB_VEC(size_t) at;     /* their offsets */
};

/* Append a copy of one record, struct sb_event_raw and the stack that follows it, aligned to 8, of
 * @len bytes in all. Return: 0, also when only the leaf is kept; -EBADMSG when its sizes do not fit
 * together; -ENOMEM. On error nothing was added. */
int sb_rawstacks_add(struct sb_rawstacks *raw, const void *record, size_t len);
/* Remove all records; the memory is kept for reuse. */
void sb_rawstacks_clear(struct sb_rawstacks *raw);
/* Free the memory; the struct is empty then. */
void sb_rawstacks_release(struct sb_rawstacks *raw);

/* How stacks are unwound, and where the result goes. */
struct sb_rawstacks_into {
	uint32_t modes;		  /* SB_UNWIND_* */
	uint32_t depth_max;	  /* frames; 0: SB_USTACK_DEPTH_MAX */
	struct sb_interp *interp; /* borrowed, for what it knows of generated code; or NULL */
	bool is_asleep; /* the threads sleep: find interpreter frames on their native stacks, too */
	/* Called for each stack, which is valid during the call. It must not change the stacks that
	 * are being unwound. It returns 0; anything else ends the unwinding. */
	int (*add)(void *arg, const struct sb_batch_stack *stack);
	void *arg;
};

/*
 * Unwind all, and pass the stacks to @into->add. Each record gives one stack, whose status says how
 * far it was unwound. With @into->is_asleep, a stack of interpreter frames comes before it if there
 * is one. A stack is valid until add() returns. @raw is not changed: the caller clears it, after an
 * error, too. @into is only used during the call. @sym must know the mappings of the time of the
 * stacks; no other thread may use it meanwhile. Return: 0; -ENOMEM; or what add() returned, if not
 * 0. After both, the remaining stacks were not passed on.
 */
int sb_rawstacks_unwind(const struct sb_rawstacks *raw, struct sb_symbolizer *sym,
			const struct sb_rawstacks_into *into);

#endif
