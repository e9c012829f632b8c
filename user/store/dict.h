/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The dictionary of one file of a store: it says what the numbers in blocks mean. A row is a stack
 * with the tags of its series. Stacks are leaves of a tree of frames, so that they share their
 * roots. Every entry is stored once, and is numbered in the order in which it was first seen, so
 * that frequent ones have small numbers. New entries are written before the first block that uses
 * them, so that any beginning of a file is complete. IDs are indexes of the arrays in struct
 * sb_dict, and are not checked where nothing else is said. Pointers are not NULL unless it says
 * so, or is of no elements. Not thread-safe.
 *
 * Order: sb_dict_init(). To read a file, sb_dict_decode() for each of its records. To write one,
 * for each series sb_dict_set_owner(), and its frames, nodes, tags and rows, in this order; then
 * sb_dict_encode(), and sb_dict_mark() when that is written. At the end sb_dict_release(). After an
 * error *ret_... is not to be used; the dictionary is valid, IDs stay as they are, and it can be
 * used on.
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
 * Bounds of one file. When one comes near, each owner of samples gets a fair share (share.h), and
 * new entries count against the share of the owner that sb_dict_set_owner() named: they are charged
 * to it. What exceeds the share becomes "(other)" of its series, in the spare room, and is counted.
 * Each owner can have SB_DICT_OTHER_MAX rows of "(other)", one for each set of tags, and one more
 * for all other sets of tags.
 */
#define SB_DICT_SPARE	    1024u
#define SB_DICT_OTHER_MAX   240u
#define SB_DICT_SPARE_ROWS  (SB_SHARE_OWNERS_MAX * 256u)
#define SB_DICT_SPARE_TEXT  (1u << 20)
#define SB_DICT_ROWS_MAX    (1u << 20)
#define SB_DICT_NODES_MAX   (1u << 21)
#define SB_DICT_STRINGS_MAX (1u << 20)
#define SB_DICT_TEXT_MAX    (32u << 20)
/* The writer does not make deeper stacks. */
#define SB_DICT_DEPTH_MAX   4096u
/* Tags of one series. */
#define SB_DICT_TAGS_MAX    32u
/*
 * Bytes of a name, module or tag's value. Longer ones are truncated, end in "...", and are counted.
 */
#define SB_DICT_NAME_MAX    512u

/* ID and name of entries whose record is damaged. */
#define SB_DICT_NONE	    UINT32_MAX
#define SB_DICT_LOST	    "(lost)"

struct sb_dict_frame {
	uint32_t name, module; /* strings; module 0: none; name SB_DICT_NONE: damaged */
	uint32_t
		kind; /* enum sb_frame_kind << 1 | is_unnamed | sb_frame.mark << SB_DICT_MARK_SHIFT */
};
#define SB_DICT_MARK_SHIFT 8
#define SB_DICT_KIND_MASK  0xffu /* without the mark */
struct sb_dict_node {
	uint32_t parent, frame; /* the parent has a lower ID; frame SB_DICT_NONE: damaged */
};
struct sb_dict_tags {
	uint32_t first, nr; /* of pairs, sorted by key; first SB_DICT_NONE: damaged */
};
struct sb_dict_pair {
	uint32_t key, value; /* key: string << 1 | is_wide */
};
struct sb_dict_row {
	uint32_t tags, node; /* tags SB_DICT_NONE: damaged */
};

/* Resources that are bounded and shared between owners. */
enum sb_dict_part {
	SB_DICT_PART_STRINGS,
	SB_DICT_PART_TEXT,
	SB_DICT_PART_FRAMES,
	SB_DICT_PART_NODES,
	SB_DICT_PART_TAGS,
	SB_DICT_PART_ROWS,
	SB_DICT_PART_MAX,
};

/* How much each owner uses. Computed from the rows when a bound comes near. */
struct sb_dict_shares {
	struct sb_share_owners owners;
	uint64_t nr[SB_SHARE_OWNERS_MAX][SB_DICT_PART_MAX];
	uint32_t nr_other[SB_SHARE_OWNERS_MAX]; /* rows of "(other)" */
};

struct sb_dict {
	struct sb_strtab strings; /* 0: "" */
	size_t nr_text_bytes;
	SB_VEC(struct sb_dict_frame) frames;
	SB_VEC(struct sb_dict_node) nodes; /* 0 is the root */
	SB_VEC(struct sb_dict_tags) tags;
	SB_VEC(struct sb_dict_pair) pairs;
	SB_VEC(struct sb_dict_row) rows;
	struct sb_ids frames_ids, nodes_ids, tags_ids, rows_ids;
	/* Caches of what was looked up: whole paths, and frames by their text. */
	struct sb_ids paths_ids, texts_ids;
	bool is_indexed; /* the hash tables exist; not after reading, until an entry is looked up */
	bool may_use_spare; /* set by the caller while it adds a row of "(other)" */
	bool is_unbounded;  /* it belongs to no file, and its user bounds it */
	uint64_t nr_lost;   /* entries whose record was damaged */
	uint64_t nr_names_cut;
	struct sb_dict_shares *shares; /* NULL: no bound is near */
	/* New entries are charged to the owner of these tags; borrowed. */
	const struct sb_tag *owner_tags;
	size_t nr_owner_tags;
	uint32_t owner_id; /* SB_DICT_NONE: not looked up yet */
	/* How many entries of each have been written to the file. */
	struct sb_dict_mark {
		uint32_t strings, frames, nodes, tags, rows;
	} written;
};

/* Make an empty dictionary with a root, which is node 0; what was in it is overwritten, not freed.
 * Return: 0 or -ENOMEM; release it in both cases. */
int sb_dict_init(struct sb_dict *dict);
/* Free all entries and tables. It can be used again only after sb_dict_init(). */
void sb_dict_release(struct sb_dict *dict);
/* Free the hash tables, which only adding entries needs. They are made again when needed. */
void sb_dict_drop_indexes(struct sb_dict *dict);
/*
 * Return: the memory it takes, in bytes. With all hash tables, 28 MiB for 245,000 rows (120 bytes
 * each, where a row has three nodes of its own and every second one a frame with a name of 30
 * bytes); at the bounds 170 MiB, and 8 bytes for each tag of a set of tags.
 */
size_t sb_dict_bytes(const struct sb_dict *dict);

/**
 * sb_dict_set_owner() - set the owner to whom new entries are charged
 * @tags: @nr tags of the samples, borrowed until the next call; NULL: owner 0, which is everybody
 *	without a share of their own
 */
void sb_dict_set_owner(struct sb_dict *dict, const struct sb_tag *tags, size_t nr);
/* Return: whether the stack that ends at @node is the one mark "(other)", which stands for stacks
 * that had no room. */
bool sb_dict_is_other(const struct sb_dict *dict, uint32_t node);
/* Return: the number of the owner that is charged (share.h); 0 while no bound is near, and from
 * sb_dict_set_owner() until the next new entry. */
uint32_t sb_dict_owner(const struct sb_dict *dict);
/*
 * Ask whether the owner that is charged may have one more row of "(other)". It computes all shares,
 * so call it only after a row was refused with -E2BIG. Return: 1, and the row counts as added: the
 * caller sets may_use_spare and calls sb_dict_row() for it; 0 if the owner has SB_DICT_OTHER_MAX of
 * them, so that the weight goes to its common row; -ENOMEM.
 */
int sb_dict_may_add_other(struct sb_dict *dict);

/*
 * Find an entry, or add it: a frame by its name, which is not empty, its module, which may be NULL,
 * its kind, mark and is_unnamed, all copied; a node by the IDs of its parent, which is 0 for the
 * root, and its frame; the node of a whole path of @nr frame IDs, root first, where no frames give
 * the root; a set of tags, which are sorted by key and copied; a row by the IDs of its tags and its
 * node. Long names, modules and values are truncated to SB_DICT_NAME_MAX, unless the dictionary is
 * unbounded, and a name of a frame with is_unnamed loses the address in it: "[anon+0x7f0102030405]"
 * becomes "[anon]". Return: 0; -E2BIG if it is new and there is no room, or the owner that is
 * charged (sb_dict_set_owner()) has used its share, or for more than SB_DICT_TAGS_MAX tags;
 * -ENOMEM. After an error, parts of the entry may be there, which does no harm.
 */
int sb_dict_frame(struct sb_dict *dict, const struct sb_frame *frame, uint32_t *ret_id);
int sb_dict_node(struct sb_dict *dict, uint32_t parent, uint32_t frame, uint32_t *ret_id);
int sb_dict_path(struct sb_dict *dict, const uint32_t *frames, size_t nr, uint32_t *ret_id);
int sb_dict_tags(struct sb_dict *dict, const struct sb_tag *tags, size_t nr, uint32_t *ret_id);
int sb_dict_row(struct sb_dict *dict, uint32_t tags, uint32_t node, uint32_t *ret_id);

/*
 * Find the frames of @profile that are in the dictionary under their whole text: set ids[ID in
 * @profile] to what sb_dict_frame() would find, or to SB_DICT_NONE for a frame that only
 * sb_dict_frame() can find, by its truncated name or without the address in it, or has to add.
 * Much faster than one by one. @ids has sb_profile_nr_frames() elements.
 */
void sb_dict_find_frames(const struct sb_dict *dict, const struct sb_profile *profile,
			 uint32_t *ids);

/* A path of frame IDs, root first, borrowed. */
struct sb_dict_path {
	const uint32_t *frames;
	size_t nr;
	uint32_t node; /* where it ends; SB_DICT_NONE: not found */
	uint32_t row;  /* of that node with the tags that are asked for; SB_DICT_NONE: not found */
};
#define SB_DICT_BATCH 16
/*
 * Set `node` of @nr paths, at most SB_DICT_BATCH, to what sb_dict_path() found for the same path
 * before, and `row` to what sb_dict_row() would find for it and @tags; or to SB_DICT_NONE: then
 * these functions have to find or add it. Much faster than calling them for each. @tags:
 * SB_DICT_NONE if they have no ID yet.
 */
void sb_dict_find_paths(const struct sb_dict *dict, uint32_t tags, struct sb_dict_path *paths,
			size_t nr);

/*
 * Get the set of tags @id, which sb_dict_tags() or a row has given. The tags are sorted by key,
 * which is not checked if they were read from a file. The texts are borrowed from the dictionary,
 * and live as long as it. Return: how many elements of @ret_tags are set; 0 for an empty set, a
 * damaged one, and if there is none.
 */
size_t sb_dict_tags_at(const struct sb_dict *dict, uint32_t id,
		       struct sb_tag ret_tags[SB_DICT_TAGS_MAX]);

/* Return: a frame; "(lost)" if it is damaged, or there is none with this ID. The texts are borrowed
 * and live as long as @dict. */
struct sb_frame sb_dict_frame_at(const struct sb_dict *dict, uint32_t id);

/* Append the entries that are not written yet to @out; nothing if there are none. They count as
 * written only after sb_dict_mark(). Return: 0; -ENOMEM, and a part may have been appended. */
int sb_dict_encode(const struct sb_dict *dict, struct sb_str *out);
/* Note that all present entries are in the file, so that sb_dict_encode() leaves them out. After
 * sb_dict_encode(), call it before any entry is added: a new one would count as written, too. */
void sb_dict_mark(struct sb_dict *dict);
/*
 * Add the entries of one sb_dict_encode(), which begin at @cursor and go up to its end; texts are
 * copied, and entries that are there already are skipped. Frames of older versions, which did not
 * write marks, get them by their names. If records between were lost, entries named "(lost)" take
 * their numbers. The entries do not count as written: to go on writing the same file, call
 * sb_dict_mark() when all its records are decoded. @cursor is left behind the entries; whether
 * bytes of later versions follow is not checked. Return: 0; -EBADMSG if the bytes are not valid;
 * -E2BIG at a bound; -ENOMEM. On error the entries before the failing one stay, @cursor may be
 * anywhere, and the next record can be decoded.
 */
int sb_dict_decode(struct sb_dict *dict, struct sb_cursor *cursor);

#endif
