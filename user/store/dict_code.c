// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The entries of a dictionary as bytes: strings, frames, nodes, tags and rows, each as the first ID
 * and the number of entries, and then the entries as variable-length integers. Marks come last,
 * where older versions do not read: their number, and for each the ID of the frame and which mark
 * it is, 1 + the distance from SB_ATTR_IDLE.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/fold.h"
#include "store/dict_priv.h"

static bool is_mark(const struct sb_dict_frame *frame)
{
	return frame->name != SB_DICT_NONE && frame->kind >> SB_DICT_MARK_SHIFT;
}

static bool may_be_mark(const struct sb_dict_frame *frame)
{
	return frame->name != SB_DICT_NONE && frame->kind >> 1 == SB_FRAME_MARK;
}

static struct sb_dict_mark all_of(const struct sb_dict *dict)
{
	return (struct sb_dict_mark){
		.strings = (uint32_t)dict->strings.strs.nr,
		.frames = (uint32_t)dict->frames.nr,
		.nodes = (uint32_t)dict->nodes.nr,
		.tags = (uint32_t)dict->tags.nr,
		.rows = (uint32_t)dict->rows.nr,
	};
}

void sb_dict_mark(struct sb_dict *dict)
{
	dict->written = all_of(dict);
}

/* Write the first ID, and how many entries follow. */
static int put_range(struct sb_str *out, uint32_t first, uint32_t end)
{
	int err = sb_put_varint(out, first);

	return err ? err : sb_put_varint(out, end - first);
}

static int put_two(struct sb_str *out, uint64_t a, uint64_t b)
{
	int err = sb_put_varint(out, a);

	return err ? err : sb_put_varint(out, b);
}

static int encode_strings(const struct sb_dict *dict, struct sb_str *out)
{
	uint32_t i, end = (uint32_t)dict->strings.strs.nr;
	int err = put_range(out, dict->written.strings, end);

	for (i = dict->written.strings; i < end && !err; i++) {
		err = sb_put_varint(out, dict->strings.strs.at[i].len);
		if (!err)
			err = sb_str_addn(out, dict->strings.strs.at[i].s,
					  dict->strings.strs.at[i].len);
	}
	return err;
}

static int encode_tree(const struct sb_dict *dict, struct sb_str *out)
{
	uint32_t i;
	int err = put_range(out, dict->written.frames, (uint32_t)dict->frames.nr);

	for (i = dict->written.frames; i < dict->frames.nr && !err; i++) {
		err = put_two(out, dict->frames.at[i].name, dict->frames.at[i].module);
		if (!err)
			err = sb_put_varint(out, dict->frames.at[i].kind & SB_DICT_KIND_MASK);
	}
	if (!err)
		err = put_range(out, dict->written.nodes, (uint32_t)dict->nodes.nr);
	/* Most nodes are children of the one before, which is 0 here. */
	for (i = dict->written.nodes; i < dict->nodes.nr && !err; i++)
		err = put_two(out, i - dict->nodes.at[i].parent - 1, dict->nodes.at[i].frame);
	return err;
}

static int encode_rows(const struct sb_dict *dict, struct sb_str *out)
{
	uint32_t i, k;
	int err = put_range(out, dict->written.tags, (uint32_t)dict->tags.nr);

	for (i = dict->written.tags; i < dict->tags.nr && !err; i++) {
		const struct sb_dict_tags *tags = &dict->tags.at[i];

		err = sb_put_varint(out, tags->nr);
		for (k = 0; k < tags->nr && !err; k++)
			err = put_two(out, dict->pairs.at[tags->first + k].key,
				      dict->pairs.at[tags->first + k].value);
	}
	if (!err)
		err = put_range(out, dict->written.rows, (uint32_t)dict->rows.nr);
	for (i = dict->written.rows; i < dict->rows.nr && !err; i++)
		err = put_two(out, dict->rows.at[i].tags, dict->rows.at[i].node);
	return err;
}

static int encode_marks(const struct sb_dict *dict, struct sb_str *out)
{
	uint32_t i, nr = 0;
	int err;

	for (i = dict->written.frames; i < dict->frames.nr; i++)
		nr += is_mark(&dict->frames.at[i]);
	err = sb_put_varint(out, nr);
	for (i = dict->written.frames; i < dict->frames.nr && !err; i++)
		if (is_mark(&dict->frames.at[i]))
			err = put_two(out, i,
				      (dict->frames.at[i].kind >> SB_DICT_MARK_SHIFT) -
					      SB_ATTR_IDLE + 1);
	return err;
}

int sb_dict_encode(const struct sb_dict *dict, struct sb_str *out)
{
	const struct sb_dict_mark all = all_of(dict);
	int err;

	if (!memcmp(&all, &dict->written, sizeof(all)))
		return 0;
	err = encode_strings(dict, out);
	if (!err)
		err = encode_tree(dict, out);
	if (!err)
		err = encode_rows(dict, out);
	return err ? err : encode_marks(dict, out);
}

/* Reading. Entries of a damaged record get names, so that their weight is not lost. */

struct range {
	uint32_t first, nr;
};

static struct range get_range(struct sb_cursor *cursor)
{
	struct range range;

	range.first = sb_get_u32(cursor);
	range.nr = sb_get_u32(cursor);
	/* Each entry takes a byte or more. */
	if (range.nr > (size_t)(cursor->end - cursor->p) || range.first > UINT32_MAX - range.nr)
		cursor->is_bad = true;
	if (cursor->is_bad)
		memset(&range, 0, sizeof(range));
	return range;
}

static int lose_strings(struct sb_dict *dict, uint32_t first)
{
	char name[32];
	int err = 0;

	if (first > SB_DICT_STRINGS_MAX)
		return -E2BIG;
	/* With its ID, so that they are different strings. */
	while (dict->strings.strs.nr < first && !err) {
		snprintf(name, sizeof(name), SB_DICT_LOST " %zu", dict->strings.strs.nr);
		err = sb_dict_push_string(dict, name, strlen(name));
		dict->nr_lost++;
	}
	return err;
}

static int decode_strings(struct sb_dict *dict, struct sb_cursor *cursor)
{
	struct range range = get_range(cursor);
	uint32_t i;
	int err = lose_strings(dict, range.first);

	for (i = 0; i < range.nr && !err; i++) {
		size_t len = sb_get_varint(cursor);
		const char *s = sb_get_bytes(cursor, len);

		if (!s)
			return -EBADMSG;
		if (range.first + i < dict->strings.strs.nr)
			continue;
		err = sb_dict_push_string(dict, s, len);
	}
	return err;
}

static int lose_frames(struct sb_dict *dict, uint32_t first)
{
	const struct sb_dict_frame frame = { .name = SB_DICT_NONE };
	int err = 0;

	if (first > SB_DICT_NODES_MAX)
		return -E2BIG;
	for (; dict->frames.nr < first && !err; dict->nr_lost++)
		err = sb_vec_push(&dict->frames, frame);
	return err;
}

static int decode_frames(struct sb_dict *dict, struct sb_cursor *cursor)
{
	struct range range = get_range(cursor);
	uint32_t i;
	int err = lose_frames(dict, range.first);

	for (i = 0; i < range.nr && !err; i++) {
		struct sb_dict_frame frame;

		frame.name = sb_get_u32(cursor);
		frame.module = sb_get_u32(cursor);
		frame.kind = sb_get_u32(cursor);
		if (cursor->is_bad || frame.kind >> 1 >= SB_FRAME_KIND_MAX ||
		    frame.name >= dict->strings.strs.nr || frame.module >= dict->strings.strs.nr)
			return -EBADMSG;
		if (range.first + i < dict->frames.nr)
			continue;
		err = sb_dict_need_room(dict, SB_DICT_PART_FRAMES, 1);
		if (!err)
			err = sb_vec_push(&dict->frames, frame);
	}
	return err;
}

static int decode_nodes(struct sb_dict *dict, struct sb_cursor *cursor)
{
	struct range range = get_range(cursor);
	uint32_t i;
	int err = 0;

	if (range.first > SB_DICT_NODES_MAX)
		return -E2BIG;
	for (; dict->nodes.nr < range.first && !err; dict->nr_lost++)
		err = sb_vec_push(&dict->nodes, (struct sb_dict_node){ 0, SB_DICT_NONE });
	for (i = 0; i < range.nr && !err; i++) {
		uint32_t at = range.first + i;
		uint64_t back = sb_get_varint(cursor);
		uint32_t frame = sb_get_u32(cursor);

		if (cursor->is_bad || back >= at || frame >= dict->frames.nr)
			return -EBADMSG;
		if (at < dict->nodes.nr)
			continue;
		err = sb_dict_need_room(dict, SB_DICT_PART_NODES, 1);
		if (!err)
			err = sb_vec_push(&dict->nodes,
					  (struct sb_dict_node){ at - (uint32_t)back - 1, frame });
	}
	return err;
}

static int decode_one_tags(struct sb_dict *dict, struct sb_cursor *cursor, uint32_t at)
{
	struct sb_dict_pair pairs[SB_DICT_TAGS_MAX];
	uint32_t i, nr = sb_get_u32(cursor);

	if (nr > SB_DICT_TAGS_MAX)
		return -EBADMSG;
	for (i = 0; i < nr; i++) {
		pairs[i].key = sb_get_u32(cursor);
		pairs[i].value = sb_get_u32(cursor);
		if (pairs[i].key >> 1 >= dict->strings.strs.nr ||
		    pairs[i].value >= dict->strings.strs.nr)
			return -EBADMSG;
	}
	if (cursor->is_bad)
		return -EBADMSG;
	return at < dict->tags.nr ? 0 : sb_dict_push_tags(dict, pairs, nr);
}

static int decode_tags(struct sb_dict *dict, struct sb_cursor *cursor)
{
	struct range range = get_range(cursor);
	uint32_t i;
	int err = 0;

	if (range.first > SB_DICT_ROWS_MAX)
		return -E2BIG;
	for (; dict->tags.nr < range.first && !err; dict->nr_lost++)
		err = sb_vec_push(&dict->tags, (struct sb_dict_tags){ .first = SB_DICT_NONE });
	for (i = 0; i < range.nr && !err; i++)
		err = decode_one_tags(dict, cursor, range.first + i);
	return err;
}

static int decode_rows(struct sb_dict *dict, struct sb_cursor *cursor)
{
	struct range range = get_range(cursor);
	uint32_t i;
	int err = 0;

	if (range.first > SB_DICT_ROWS_MAX)
		return -E2BIG;
	for (; dict->rows.nr < range.first && !err; dict->nr_lost++)
		err = sb_vec_push(&dict->rows, (struct sb_dict_row){ SB_DICT_NONE, 0 });
	for (i = 0; i < range.nr && !err; i++) {
		struct sb_dict_row row;

		row.tags = sb_get_u32(cursor);
		row.node = sb_get_u32(cursor);
		if (cursor->is_bad || row.tags >= dict->tags.nr || row.node >= dict->nodes.nr)
			return -EBADMSG;
		if (range.first + i < dict->rows.nr)
			continue;
		err = sb_dict_need_room(dict, SB_DICT_PART_ROWS, 1);
		if (!err)
			err = sb_vec_push(&dict->rows, row);
	}
	return err;
}

static void set_mark(struct sb_dict_frame *frame, uint32_t mark)
{
	frame->kind = (frame->kind & SB_DICT_KIND_MASK) | mark << SB_DICT_MARK_SHIFT;
}

/* Older versions wrote no marks: their names tell which they are. @first: of the new frames. */
static void name_marks(struct sb_dict *dict, uint32_t first)
{
	const char *name;

	for (; first < dict->frames.nr; first++) {
		struct sb_dict_frame *frame = &dict->frames.at[first];

		if (!may_be_mark(frame))
			continue;
		name = sb_strtab_get(&dict->strings, frame->name, NULL);
		set_mark(frame, sb_fold_mark_kind(name));
	}
}

static int decode_marks(struct sb_dict *dict, struct sb_cursor *cursor, uint32_t first)
{
	uint32_t nr, id, mark;

	if (cursor->p == cursor->end) {
		name_marks(dict, first);
		return 0;
	}
	for (nr = sb_get_u32(cursor); nr && !cursor->is_bad; nr--) {
		id = sb_get_u32(cursor);
		mark = sb_get_u32(cursor);
		if (cursor->is_bad || id >= dict->frames.nr || !mark)
			return -EBADMSG;
		/* Later versions may have more kinds. */
		if (id >= first && may_be_mark(&dict->frames.at[id]) &&
		    mark <= SB_ATTR_KIND_MAX - SB_ATTR_IDLE)
			set_mark(&dict->frames.at[id], mark + SB_ATTR_IDLE - 1);
	}
	return 0;
}

int sb_dict_decode(struct sb_dict *dict, struct sb_cursor *cursor)
{
	uint32_t first = (uint32_t)dict->frames.nr;
	int err;

	sb_dict_drop_indexes(dict);
	dict->may_use_spare = true;
	err = decode_strings(dict, cursor);
	if (!err)
		err = decode_frames(dict, cursor);
	if (!err)
		err = decode_nodes(dict, cursor);
	if (!err)
		err = decode_tags(dict, cursor);
	if (!err)
		err = decode_rows(dict, cursor);
	if (!err && !cursor->is_bad)
		err = decode_marks(dict, cursor, first);
	if (!err && cursor->is_bad)
		err = -EBADMSG;
	/* The entries before the error stay, and only their names tell which are marks. */
	if (err)
		name_marks(dict, first);
	dict->may_use_spare = false;
	return err;
}
