/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the files of the dictionary share: dict.c, dict_shares.c (bounds), dict_code.c (bytes). Not
 * thread-safe: one thread at a time for each dictionary. Whoever adds an entry asks for room, adds
 * it, and charges it; the functions of dict.h and sb_dict_push_...() do all three. Pointers are not
 * NULL, unless they are of no elements.
 */
#ifndef SB_STORE_DICT_PRIV_H
#define SB_STORE_DICT_PRIV_H

#include "store/dict.h"

/* While no part has more than this, no bound is near and no share matters. */
#define SB_DICT_PLENTY	    (1u << 19)
#define SB_DICT_PLENTY_TEXT (SB_DICT_TEXT_MAX / 2)

/* Return: how many entries of @part there are; of SB_DICT_PART_TEXT, bytes. */
static inline uint64_t sb_dict_nr(const struct sb_dict *dict, enum sb_dict_part part)
{
	const uint64_t nr[SB_DICT_PART_MAX] = {
		[SB_DICT_PART_STRINGS] = dict->strings.strs.nr,
		[SB_DICT_PART_TEXT] = dict->nr_text_bytes,
		[SB_DICT_PART_FRAMES] = dict->frames.nr,
		[SB_DICT_PART_NODES] = dict->nodes.nr,
		[SB_DICT_PART_TAGS] = dict->tags.nr,
		[SB_DICT_PART_ROWS] = dict->rows.nr,
	};

	return nr[part];
}

/*
 * For sb_dict_need_room() and sb_dict_charge() alone, which do what their names say when a bound
 * may be near: need_share() computes the shares if necessary, and returns 0; -E2BIG: there is no
 * room, or the owner that is charged has used its share; -ENOMEM. charge_owner() charges that owner
 * with @nr entries of @part (bytes of SB_DICT_PART_TEXT).
 */
int sb_dict_need_share(struct sb_dict *dict, enum sb_dict_part part, uint64_t nr_more);
void sb_dict_charge_owner(struct sb_dict *dict, enum sb_dict_part part, uint64_t nr);

/*
 * Check that there is room for @nr_more entries (bytes of SB_DICT_PART_TEXT), one at least, and
 * that the owner that is charged (sb_dict_set_owner()) has not used its share. With may_use_spare
 * or is_unbounded shares do not count. Inlined, because a file is read by some hundred thousand
 * calls with a constant @part. Return: 0; -E2BIG if not; -ENOMEM.
 */
static inline int sb_dict_need_room(struct sb_dict *dict, enum sb_dict_part part, uint64_t nr_more)
{
	const uint64_t plenty = part == SB_DICT_PART_TEXT ? SB_DICT_PLENTY_TEXT : SB_DICT_PLENTY;

	if (!dict->shares && sb_dict_nr(dict, part) + nr_more <= plenty)
		return 0;
	return sb_dict_need_share(dict, part, nr_more);
}

/* Charge the owner with @nr entries of @part, for which sb_dict_need_room() found room, and which
 * were added since. */
static inline void sb_dict_charge(struct sb_dict *dict, enum sb_dict_part part, uint64_t nr)
{
	if (dict->shares)
		sb_dict_charge_owner(dict, part, nr);
}

/*
 * Append an entry from a file without looking for a duplicate: nothing relies on entries being
 * unique. What is given is copied, and the entry is charged: the caller has nothing to add. @s:
 * @len bytes, without a NUL. A string longer than SB_DICT_NAME_MAX is truncated, ends in "...", and
 * is counted, unless the dictionary is unbounded. @pairs: their IDs of strings are not checked. The
 * ID of the entry is the number of entries before. Return: 0; -E2BIG as for sb_dict_need_room();
 * -ENOMEM; on error nothing is appended.
 */
int sb_dict_push_string(struct sb_dict *dict, const char *s, size_t len);
int sb_dict_push_tags(struct sb_dict *dict, const struct sb_dict_pair *pairs, uint32_t nr);

#endif
