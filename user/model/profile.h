/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The product of a run: stacks of named frames and their weights. Append, seal, then read.
 * Names are interned, frames are interned, equal stacks are one stack. Not thread-safe.
 */
#ifndef SB_MODEL_PROFILE_H
#define SB_MODEL_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct sb_profile;

/* What a frame is; outputs colour and annotate by it. */
enum sb_frame_kind {
	SB_FRAME_ROOT, /* process, thread, CPU, ...: not code */
	SB_FRAME_USER,
	SB_FRAME_INLINED,
	SB_FRAME_JIT,
	SB_FRAME_KERNEL,
	SB_FRAME_KERNEL_INLINED,
	SB_FRAME_DELIMITER, /* between user and kernel part */
	SB_FRAME_MARK, /* "[truncated: ...]", "[blocked]", "[idle: epoll]": not code, but said of it */
	SB_FRAME_FILE,	 /* what the code read or wrote: a path, "[pipe]" */
	SB_FRAME_INTERP, /* code that an interpreter runs, compiled by it or not */
	SB_FRAME_WAKER,	 /* code of the thread that ended a wait */
	SB_FRAME_KIND_MAX,
};

/* What a function is: inlined or not is a matter of the frame. */
enum sb_frame_kind sb_function_kind(enum sb_frame_kind kind);

struct sb_frame {
	const char *name;   /* never NULL: a name, "[module+0x1234]" or "[unknown]" */
	const char *module; /* or NULL */
	const char *file;   /* or NULL */
	uint32_t line;
	uint64_t func_offset;
	enum sb_frame_kind kind;
	bool is_unnamed; /* the name is a stand-in */
};

int sb_profile_new(struct sb_profile **ret_profile);
void sb_profile_free(struct sb_profile *profile);

/* Intern a frame; strings are copied. Return: 0 and its number, -ENOMEM, -E2BIG. */
int sb_profile_frame(struct sb_profile *profile, const struct sb_frame *frame, uint32_t *ret_id);

/* The same of one that is none of those before, which is not looked up: a quarter of the time. Nothing tells if it is. */
int sb_profile_push_frame(struct sb_profile *profile, const struct sb_frame *frame,
			  uint32_t *ret_id);

/* Have room for so many more frames, stacks, and frames of these in all: to be pushed. Return: 0 or -ENOMEM. */
int sb_profile_reserve(struct sb_profile *profile, size_t nr_frames, size_t nr_stacks,
		       size_t nr_stack_frames);

/* Add @weight to the stack of these frames, root first. Return: 0, -ENOMEM, -E2BIG. */
int sb_profile_add(struct sb_profile *profile, const uint32_t *frame_ids, size_t nr,
		   uint64_t weight);

/* The same of a stack that is none of those before, which is not looked up. Nothing tells if it is. */
int sb_profile_push(struct sb_profile *profile, const uint32_t *frame_ids, size_t nr,
		    uint64_t weight);

/* sb_profile_add(), and that these are @nr_samples samples, waits or calls, where that is not the weight. */
int sb_profile_add_samples(struct sb_profile *profile, const uint32_t *frame_ids, size_t nr,
			   uint64_t weight, uint64_t nr_samples);

/*
 * Durations by their logarithm: bucket k counts those from 2^k to 2^(k+1) - 1 ns, bucket 0 also
 * those of 0 ns. Kept for each stack that has any, and for all together.
 */
#define SB_PROFILE_NR_LOG2 64

/*
 * sb_profile_add_samples(), and count @nr_events durations in bucket @log2_ns of that stack.
 * Return: 0, -EINVAL: there is no such bucket, -ENOMEM, -E2BIG.
 */
int sb_profile_add_log2(struct sb_profile *profile, const uint32_t *frame_ids, size_t nr,
			uint64_t weight, uint32_t log2_ns, uint64_t nr_events);

/*
 * Add the stacks of @from, which may grow on afterwards; facts are not taken over, nor what
 * sb_profile_scale() has left out of it. 0, -ENOMEM, -E2BIG.
 */
int sb_profile_merge(struct sb_profile *profile, const struct sb_profile *from);

/*
 * What the squares of the weights of its samples add up to, of stack @i as they are numbered before the seal; above 0.
 * When all stacks are there, as they are to be written. Return: 0 or -ENOMEM.
 */
int sb_profile_set_squares(struct sb_profile *profile, size_t i, double squares);

/* Fact about the run: "kind", "unit", "lost", ...; shown in headers in the order they came. */
int sb_profile_meta(struct sb_profile *profile, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Before the seal, once, when all stacks are there: divide weights by @divisor, which makes us of
 * ns, each rounded to the nearest. Stacks whose weight becomes 0 are left out; how many these were,
 * and their weight before, sb_profile_nr_tiny() says. Their durations remain in the total.
 * Return: 0, -EINVAL: divisor 0.
 */
int sb_profile_scale(struct sb_profile *profile, uint64_t divisor);
uint64_t sb_profile_nr_tiny(const struct sb_profile *profile, uint64_t *ret_unscaled_weight);

/*
 * Forget the stacks, their durations and what was scaled away; frames keep their numbers, facts stay. It is as
 * before the first stack, whether it was sealed or not.
 */
void sb_profile_clear(struct sb_profile *profile);

/* Sort stacks heaviest first, ties by their frames' names: the same run gives the same bytes. Return: 0, or -ENOMEM: they
 * are all there, in the order in which they came. */
int sb_profile_seal(struct sb_profile *profile);

/* After seal, or before it in the order in which they came. Pointers are valid until the profile is freed, or grows. */
size_t sb_profile_nr_stacks(const struct sb_profile *profile);
size_t sb_profile_nr_frames(const struct sb_profile *profile);
/* Return: what names, modules and files take, before the seal, too. */
size_t sb_profile_text_bytes(const struct sb_profile *profile);
uint64_t sb_profile_weight(const struct sb_profile *profile);
const struct sb_frame *sb_profile_frame_at(const struct sb_profile *profile, uint32_t id);
/* Return: the frame numbers of stack @i, root first. */
const uint32_t *sb_profile_stack_at(const struct sb_profile *profile, size_t i, size_t *ret_nr,
				    uint64_t *ret_weight);
/* Return: of how many samples, waits or calls the weight of stack @i is; 0: not known. */
uint64_t sb_profile_nr_samples_at(const struct sb_profile *profile, size_t i);
/* Return: what sb_profile_set_squares() said; 0: nothing. */
double sb_profile_squares_at(const struct sb_profile *profile, size_t i);
/* Return: the SB_PROFILE_NR_LOG2 counts of stack @i, NULL: none were added. */
const uint64_t *sb_profile_log2_at(const struct sb_profile *profile, size_t i);
/* Return: the counts of all stacks together, NULL: none were added. */
const uint64_t *sb_profile_log2_total(const struct sb_profile *profile);
/* Return: the i-th fact, or NULL past the end. */
const char *sb_profile_meta_at(const struct sb_profile *profile, size_t i, const char **ret_value);
/* Return: the value of @key, or NULL. */
const char *sb_profile_meta_get(const struct sb_profile *profile, const char *key);

#endif
