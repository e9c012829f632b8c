/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The message by which a sampler sends a block to the store writer. The sampler parses files of
 * other users, so the writer does not trust it: messages are bounded, and every field is checked
 * when it is read. Thread: any; nothing that is given is kept. Pointers are not NULL.
 *
 *	 0  4  magic, with the version	then varints, and strings with their lengths: kind,
 *	 4  4  bytes that follow	begin, lead, figures, strings, frames, series, stacks
 *
 * Order: the sampler calls sb_block_encode() and sends the message. The writer collects bytes until
 * it has as many as sb_block_scan() says, then calls sb_block_decode(), sb_store_put() and
 * sb_block_release(). After -EPROTO nothing more of that sampler is to be believed.
 */
#ifndef SB_STORE_BLOCK_H
#define SB_STORE_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "model/profile.h"
#include "store/store.h"

#define SB_BLOCK_HEAD_BYTES  8u
/* Longer messages are refused by both sides. */
#define SB_BLOCK_BYTES_MAX   (32u << 20)
/* Bounds of one block; further stacks become "(other)". */
#define SB_BLOCK_SERIES_MAX  8192u
#define SB_BLOCK_STACKS_MAX  65536u
/*
 * Distinct strings, and frames, of one block. A file of the store may have as many strings. Because
 * of this bound and that of the message's length, decoding takes less than 256 MiB of memory.
 */
#define SB_BLOCK_ENTRIES_MAX (1u << 20)
/* Frames of one stack, including those of the kernel, interpreters and the waker. */
#define SB_BLOCK_FRAMES_MAX  4096u
/*
 * Longer names are truncated. This is one byte more than a store keeps, so that the writer notices,
 * marks the name and counts it.
 */
#define SB_BLOCK_STRING_MAX  (SB_DICT_NAME_MAX + 1)

/* The tags of a series, sorted by key. */
struct sb_block_tags {
	const struct sb_tag *at;
	size_t nr;
	uint32_t kind; /* index of the sampler's kind that the series belongs to */
};

struct sb_block_head {
	uint32_t kind; /* series of other kinds are left out */
	int64_t begin_s;
	uint16_t lead_ms;		      /* sampling began this long after begin_s */
	uint64_t figure[SB_BLOCK_FIGURE_MAX]; /* what encoding moves to "(other)" is added */
	uint64_t divisor;		      /* of weights, see sb_profile_scale_by(); not 0 */
};

/**
 * sb_block_encode() - append the message of one block to @out
 * @out: on error it is as before
 * @profile: sealed; the series of its rows are indexes of @series
 * @nr_series: not checked, but sb_block_decode() refuses messages in which more than
 *	SB_BLOCK_SERIES_MAX series have stacks
 * @ret_tiny: total weight, before division, of stacks that round to 0 when divided by
 *	head->divisor; they are left out. Untouched on error.
 *
 * The heaviest SB_BLOCK_STACKS_MAX stacks are kept, or fewer if the message would be too long or
 * have too many strings or frames. The others become one stack "(other)" for each series.
 *
 * Return: 0; -E2BIG if the message does not fit even with one stack; -EINVAL if a row has no series
 * or the divisor is 0; -ENOMEM.
 */
int sb_block_encode(struct sb_str *out, const struct sb_block_head *head,
		    const struct sb_profile *profile, const struct sb_block_tags *series,
		    size_t nr_series, uint64_t *ret_tiny);

struct sb_block {
	uint32_t kind; /* less than the @nr_kinds of sb_block_decode() */
	int64_t begin_s;
	uint16_t lead_ms;
	uint64_t figure[SB_BLOCK_FIGURE_MAX];
	/* Owned by the block: the series that have stacks, and a sealed profile, whose rows have
	 * indexes of these. */
	struct sb_store_series *series;
	size_t nr_series;
	struct sb_profile *profile;
	struct sb_arena arena;
};

/*
 * Find the length, with its header, of the message that starts with these @len bytes; the message
 * need not be complete. Return: 0; -EAGAIN if there are fewer than SB_BLOCK_HEAD_BYTES; -EPROTO if
 * it is not a header, or the message is longer than SB_BLOCK_BYTES_MAX. On error *ret_len is
 * untouched.
 */
int sb_block_scan(const void *bytes, size_t len, size_t *ret_len);
/**
 * sb_block_decode() - parse one whole message
 * @len: the length that sb_block_scan() gives; any other is -EPROTO
 * @nr_more: how many tags the caller will add to each series, at most SB_DICT_TAGS_MAX; the
 *	message may have SB_DICT_TAGS_MAX minus these
 * @nr_kinds: how many kinds the sampler has; a kind from this on is -EPROTO
 * @ret_block: owned by the caller, released by sb_block_release(); copies all that it needs of
 *	@bytes
 *
 * Tags are accepted only if they are sorted by key, and no key occurs twice, is empty or has more
 * than 64 bytes; frames only if they have a name. The texts are otherwise as the sampler wrote
 * them.
 *
 * Return: 0; -EPROTO if the message is not valid; -EINVAL if @nr_more is too large; -ENOMEM. On
 * error *ret_block is untouched.
 */
int sb_block_decode(const void *bytes, size_t len, size_t nr_more, uint32_t nr_kinds,
		    struct sb_block *ret_block);
/* Free what the block owns, with all strings, and zero it; a zeroed one is allowed. After an error
 * of sb_block_decode() there is nothing to release. */
void sb_block_release(struct sb_block *block);

#endif
