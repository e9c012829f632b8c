/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the numbers in one file mean. A row is a stack with the tags that it was seen with; a stack is the
 * leaf of a tree of frames, so that stacks share their roots; everything is there once, numbered in the
 * order in which it was first seen, so that what is frequent has small numbers. What is new is written
 * before the first block that uses it, so each beginning of a file says all that its blocks need.
 */
#ifndef SB_STORE_DICT_H
#define SB_STORE_DICT_H

#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/vec.h"
#include "model/profile.h"
#include "store/bytes.h"
#include "store/ids.h"
#include "store/share.h"

/*
 * Of one file. Near them owners have fair shares (share.h); what is beyond a share is "(other)" of its series, in what is
 * spare, and counted. A row of "(other)" is for a set of tags, SB_DICT_OTHER_MAX for each owner, then one for the owner.
 */
#define SB_DICT_SPARE	    1024u
#define SB_DICT_OTHER_MAX   240u
#define SB_DICT_SPARE_ROWS  (SB_SHARE_OWNERS_MAX * 256u)
#define SB_DICT_SPARE_TEXT  (1u << 20)
#define SB_DICT_ROWS_MAX    (1u << 20)
#define SB_DICT_NODES_MAX   (1u << 21)
#define SB_DICT_STRINGS_MAX (1u << 20)
#define SB_DICT_TEXT_MAX    (32u << 20)
/* Deeper stacks were not made by us. */
#define SB_DICT_DEPTH_MAX   4096u
/* Of one set of tags. */
#define SB_DICT_TAGS_MAX    32u
/* Bytes of a name, a module or a value of a tag. Longer ones are cut, end in "..." and are counted. */
#define SB_DICT_NAME_MAX    512u

/* What was in a record that is damaged. */
#define SB_DICT_NONE	    UINT32_MAX
#define SB_DICT_LOST	    "(lost)"

struct sb_dict_frame {
	uint32_t name, module; /* strings; module 0: none; name SB_DICT_NONE: lost */
	uint32_t kind;	       /* enum sb_frame_kind << 1 | is_unnamed */
};
struct sb_dict_node {
	uint32_t parent, frame; /* parent is less than its own number; frame SB_DICT_NONE: lost */
};
struct sb_dict_tags {
	uint32_t first, nr; /* in pairs, sorted by key; first SB_DICT_NONE: lost */
};
struct sb_dict_pair {
	uint32_t key, value; /* key: string << 1 | is_wide */
};
struct sb_dict_row {
	uint32_t tags, node; /* tags SB_DICT_NONE: lost */
};

/* What entries take of. */
enum sb_dict_part {
	SB_DICT_PART_STRINGS,
	SB_DICT_PART_TEXT,
	SB_DICT_PART_FRAMES,
	SB_DICT_PART_NODES,
	SB_DICT_PART_TAGS,
	SB_DICT_PART_ROWS,
	SB_DICT_PART_MAX,
};

/* Whose entries are whose; made when a bound comes near, from the rows that are there. */
struct sb_dict_shares {
	struct sb_share_owners owners;
	uint64_t nr[SB_SHARE_OWNERS_MAX][SB_DICT_PART_MAX];
	uint32_t nr_other[SB_SHARE_OWNERS_MAX]; /* rows of "(other)" */
};

struct sb_dict {
	struct sb_strtab strings; /* 0: "" */
	size_t nr_text_bytes;
	SB_VEC(struct sb_dict_frame) frames;
	SB_VEC(struct sb_dict_node) nodes; /* 0: the root */
	SB_VEC(struct sb_dict_tags) tags;
	SB_VEC(struct sb_dict_pair) pairs;
	SB_VEC(struct sb_dict_row) rows;
	struct sb_ids frames_ids, nodes_ids, tags_ids, rows_ids;
	/* Short cuts to what was looked up since: whole paths, and frames by their text. */
	struct sb_ids paths_ids, texts_ids;
	bool is_indexed; /* not after reading, until something is looked up to be added */
	bool may_use_spare;
	bool is_unbounded; /* of no file: whoever has it bounds it */
	uint64_t nr_lost;  /* entries whose record was damaged */
	uint64_t nr_names_cut;
	struct sb_dict_shares *shares; /* NULL: no bound is near */
	/* Who pays for what is added: the owner of these tags, borrowed. */
	const struct sb_tag *payer;
	size_t nr_payer;
	uint32_t payer_id; /* SB_DICT_NONE: not looked up yet */
	/* How much of each has been written. */
	struct sb_dict_mark {
		uint32_t strings, frames, nodes, tags, rows;
	} written;
};

int sb_dict_init(struct sb_dict *dict);
void sb_dict_release(struct sb_dict *dict);
/* Give back what only sb_dict_frame() and those below need; they make it anew. */
void sb_dict_rest(struct sb_dict *dict);
/*
 * Return: what it takes. With all that is needed to add to it, 120 bytes a row where each has three nodes that are no
 * other's, and every second a frame with a name of 30 bytes: 28 MiB for 245,000 rows. At its bounds 170 MiB, and 8 bytes
 * for each tag of a set of tags.
 */
size_t sb_dict_bytes(const struct sb_dict *dict);

/**
 * sb_dict_charge() - say who pays for what is added from here on
 * @tags: of the samples; borrowed until the next call, which may be with NULL: nobody in particular
 *
 * Thread: that of the dictionary.
 */
void sb_dict_charge(struct sb_dict *dict, const struct sb_tag *tags, size_t nr);
/* Return: whether a stack is "(other)": of what had no place. */
bool sb_dict_is_other(const struct sb_dict *dict, uint32_t node);
/* Return: the number of who pays (share.h), once something could not be added; before that 0. */
uint32_t sb_dict_payer(const struct sb_dict *dict);
/**
 * sb_dict_may_add_other() - may the payer have one more row of "(other)" for a set of tags
 *
 * The caller adds the row with may_use_spare set. Return: 1, which is counted; 0; -ENOMEM.
 */
int sb_dict_may_add_other(struct sb_dict *dict);

/* Each returns 0 and the number; -E2BIG at a bound, or at the share of who pays; -ENOMEM. */
int sb_dict_frame(struct sb_dict *dict, const struct sb_frame *frame, uint32_t *ret_id);
int sb_dict_node(struct sb_dict *dict, uint32_t parent, uint32_t frame, uint32_t *ret_id);
/* The node of a whole path, root first: one look-up if it was there before. */
int sb_dict_path(struct sb_dict *dict, const uint32_t *frames, size_t nr, uint32_t *ret_id);
/* @tags are sorted by key. */
int sb_dict_tags(struct sb_dict *dict, const struct sb_tag *tags, size_t nr, uint32_t *ret_id);
int sb_dict_row(struct sb_dict *dict, uint32_t tags, uint32_t node, uint32_t *ret_id);

/* A set of tags. Return: how many there are; pointers live as long as the dictionary. */
size_t sb_dict_tags_at(const struct sb_dict *dict, uint32_t id,
		       struct sb_tag ret_tags[SB_DICT_TAGS_MAX]);

/* A frame; of one that is lost, a name that says so. Pointers live as long as the dictionary. */
struct sb_frame sb_dict_frame_at(const struct sb_dict *dict, uint32_t id);

/* Append what has not been written yet; nothing if there is nothing. Return: 0 or -ENOMEM. */
int sb_dict_encode(const struct sb_dict *dict, struct sb_str *out);
/* What was appended is written. */
void sb_dict_mark(struct sb_dict *dict);
/* Take in what sb_dict_encode() has made. Return: 0, -EBADMSG (nothing of it is of use), -E2BIG, -ENOMEM. */
int sb_dict_decode(struct sb_dict *dict, struct sb_cursor *cursor);

#endif
