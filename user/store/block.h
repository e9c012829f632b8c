/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A block on its way from the process that samples, which looks at what others wrote, to the one that writes
 * the store, which believes nothing of it: a message of a stream, bounded and checked.
 *
 *	 0  4  magic, with the version		then varints, and strings with their lengths:
 *	 4  4  bytes that follow		kind, begin, lead, figures, strings, frames, series, stacks
 */
#ifndef SB_STORE_BLOCK_H
#define SB_STORE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "model/profile.h"
#include "store/store.h"

#define SB_BLOCK_HEAD_BYTES 8u
/* Longer ones are refused at both ends. */
#define SB_BLOCK_BYTES_MAX  (32u << 20)
/* Of one block; beyond them is "(other)". */
#define SB_BLOCK_SERIES_MAX 8192u
#define SB_BLOCK_STACKS_MAX 65536u
/* Of one stack: those of the kernel, of a process, of its interpreters, of a waker. */
#define SB_BLOCK_FRAMES_MAX 4096u
/* Longer names are cut; one byte more than a store keeps, so that the writer sees it, marks it and counts it. */
#define SB_BLOCK_STRING_MAX (SB_DICT_NAME_MAX + 1)

/* The tags of a series, sorted by key. */
struct sb_block_tags {
	const struct sb_tag *at;
	size_t nr;
	uint32_t kind; /* which of the sampler's kinds it is of */
};

struct sb_block_head {
	uint32_t kind; /* series of others are left out */
	int64_t begin_s;
	uint16_t lead_ms;		      /* after begin_s, when it began */
	uint64_t figure[SB_BLOCK_FIGURE_MAX]; /* SB_BLOCK_OTHER is added to */
	uint64_t divisor;		      /* of weights, see sb_profile_scale(); not 0 */
};

/*
 * Append the message. @profile is sealed; the outermost frame of each stack is the number of its series, in
 * decimal, and is left out. Stacks beyond SB_BLOCK_STACKS_MAX, or beyond fewer if the message would be too long, are one
 * stack of their series, "(other)"; they are the lightest. What weighs less than half of the unit is left out; @ret_tiny gets what it was.
 * Return: 0; -E2BIG: it would be too long; -EINVAL: no such series; -ENOMEM.
 */
int sb_block_encode(struct sb_str *out, const struct sb_block_head *head,
		    const struct sb_profile *profile, const struct sb_block_tags *series,
		    size_t nr_series, uint64_t *ret_tiny);

struct sb_block {
	uint32_t kind; /* below the number that the reader gave */
	int64_t begin_s;
	uint16_t lead_ms;
	uint64_t figure[SB_BLOCK_FIGURE_MAX];
	struct sb_store_series
		*series; /* those that have stacks; owned, as all that they point at */
	size_t nr_series;
	struct sb_arena arena;
};

/* How long the message is that begins with @len bytes. Return: 0; -EAGAIN: the head is not there yet; -EPROTO:
 * it is none, or too long. */
int sb_block_scan(const void *bytes, size_t len, size_t *ret_len);
/*
 * A whole message of a sampler of @nr_kinds. Tags are at most SB_DICT_TAGS_MAX - @nr_more, sorted by key, no two of
 * one key.
 * Return: 0; -EPROTO: it is not what sb_block_encode() makes; -ENOMEM.
 */
int sb_block_decode(const void *bytes, size_t len, size_t nr_more, uint32_t nr_kinds,
		    struct sb_block *ret_block);
void sb_block_release(struct sb_block *block);

#endif
