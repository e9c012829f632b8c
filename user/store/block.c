// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/index.h"
#include "base/num.h"
#include "base/vec.h"
#include "store/bytes.h"

#define MAGIC	    0x346b6273u /* "sbk4" */
#define NR_BYTES_AT 4u
#define FIGURE_MAX  64u /* room for those of later versions */
#define MARK_SHIFT  5	/* above kind and is_unnamed of a frame: its mark */
_Static_assert(SB_FRAME_KIND_MAX <= 1 << (MARK_SHIFT - 1), "kinds have room");

/* Frames at the beginning of every message. */
enum fixed { OTHER, NR_FIXED };
static const struct sb_frame fixed[] = {
	[OTHER] = { .name = "(other)", .kind = SB_FRAME_MARK },
};

/* Writing. */

struct coder {
	const struct sb_profile *profile;
	const struct sb_block_tags *series;
	size_t nr_series;
	uint32_t kind;
	uint64_t divisor;
	struct sb_strtab strings;
	uint32_t *frame_of;  /* frame of the profile -> of the message; 0: not used yet */
	sb_vec_u32 frames;   /* of the profile, in the order of the message */
	uint32_t *stacks;    /* by series */
	uint32_t *series_of; /* by stack */
	uint32_t *nr_stacks; /* by series */
	uint64_t *other;     /* by series: weight of the stacks that are left out */
	size_t nr_kept, nr_kept_max;
	uint64_t tiny, nr_other;
	struct sb_str table, body;
};

static void coder_release(struct coder *coder)
{
	sb_strtab_release(&coder->strings);
	free(coder->frame_of);
	sb_vec_release(&coder->frames);
	free(coder->stacks);
	free(coder->series_of);
	free(coder->nr_stacks);
	free(coder->other);
	sb_str_release(&coder->table);
	sb_str_release(&coder->body);
}

static int coder_init(struct coder *coder)
{
	size_t nr_frames = sb_profile_nr_frames(coder->profile);
	size_t nr_stacks = sb_profile_nr_stacks(coder->profile);
	int err = sb_strtab_init(&coder->strings);

	coder->frame_of = calloc(nr_frames + 1, sizeof(uint32_t));
	coder->stacks = calloc(nr_stacks + 1, sizeof(uint32_t));
	coder->series_of = calloc(nr_stacks + 1, sizeof(uint32_t));
	coder->nr_stacks = calloc(coder->nr_series + 1, sizeof(uint32_t));
	coder->other = calloc(coder->nr_series + 1, sizeof(uint64_t));
	if (!coder->frame_of || !coder->stacks || !coder->series_of || !coder->nr_stacks ||
	    !coder->other)
		return -ENOMEM;
	return err;
}

static uint64_t scaled(const struct coder *coder, uint64_t weight)
{
	uint64_t rest = weight % coder->divisor;

	return weight / coder->divisor + (rest >= coder->divisor - rest);
}

/* Choose the stacks to keep and group them by series; heaviest first, as in the profile. */
static int sort(struct coder *coder)
{
	size_t nr = sb_profile_nr_stacks(coder->profile), i, at = 0;
	sb_cleanup(sb_freep) uint32_t *next = calloc(coder->nr_series + 1, sizeof(*next));

	if (!next)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		const struct sb_row row = sb_profile_row_at(coder->profile, i);
		const uint64_t weight = scaled(coder, row.weight);

		if (row.series >= coder->nr_series)
			return -EINVAL;
		coder->series_of[i] = UINT32_MAX;
		if (coder->series[row.series].kind != coder->kind)
			continue;
		if (!weight) {
			coder->tiny += row.weight;
		} else if (coder->nr_kept == coder->nr_kept_max) {
			coder->other[row.series] += weight;
			coder->nr_other += weight;
		} else {
			coder->series_of[i] = row.series;
			coder->nr_kept++;
			coder->nr_stacks[row.series]++;
		}
	}
	for (i = 0; i < coder->nr_series; at += coder->nr_stacks[i++])
		next[i] = (uint32_t)at;
	for (i = 0; i < nr; i++)
		if (coder->series_of[i] != UINT32_MAX)
			coder->stacks[next[coder->series_of[i]]++] = (uint32_t)i;
	return 0;
}

static int string_id(struct coder *coder, const char *s, uint32_t *ret_id)
{
	return sb_strtab_add(&coder->strings, s, strnlen(s, SB_BLOCK_STRING_MAX), ret_id);
}

static int put_string(struct coder *coder, struct sb_str *to, const char *s)
{
	uint32_t id;
	int err = string_id(coder, s, &id);

	return err ? err : sb_put_varint(to, id);
}

static int put_tags(struct coder *coder, const struct sb_block_tags *tags)
{
	int err = sb_put_varint(&coder->body, tags->nr);
	size_t i;

	for (i = 0; i < tags->nr && !err; i++) {
		err = put_string(coder, &coder->body, tags->at[i].key);
		if (!err)
			err = sb_put_varint(&coder->body, tags->at[i].is_wide);
		if (!err)
			err = put_string(coder, &coder->body, tags->at[i].value);
	}
	return err;
}

static int put_frame_of(struct coder *coder, uint32_t id)
{
	int err = 0;

	if (!coder->frame_of[id]) {
		err = sb_vec_push(&coder->frames, id);
		coder->frame_of[id] = NR_FIXED + (uint32_t)coder->frames.nr - 1;
	}
	return err ? err : sb_put_varint(&coder->body, coder->frame_of[id]);
}

static int put_fixed(struct coder *coder, uint64_t weight, enum fixed frame)
{
	int err = sb_put_varint(&coder->body, weight);

	if (!err)
		err = sb_put_varint(&coder->body, 1);
	return err ? err : sb_put_varint(&coder->body, frame);
}

static int put_stack(struct coder *coder, size_t stack)
{
	const struct sb_row row = sb_profile_row_at(coder->profile, stack);
	size_t nr = row.nr < SB_BLOCK_FRAMES_MAX ? row.nr : SB_BLOCK_FRAMES_MAX, i;
	int err;

	err = sb_put_varint(&coder->body, scaled(coder, row.weight));
	if (!err)
		err = sb_put_varint(&coder->body, nr);
	for (i = 0; i < nr && !err; i++)
		err = put_frame_of(coder, row.frames[i]);
	return err;
}

static int put_series(struct coder *coder, size_t i, size_t first)
{
	uint32_t nr = coder->nr_stacks[i] + !!coder->other[i], k;
	int err;

	if (!nr)
		return 0;
	err = put_tags(coder, &coder->series[i]);
	if (!err)
		err = sb_put_varint(&coder->body, nr);
	for (k = 0; k < coder->nr_stacks[i] && !err; k++)
		err = put_stack(coder, coder->stacks[first + k]);
	if (!err && coder->other[i])
		err = put_fixed(coder, coder->other[i], OTHER);
	return err;
}

static int put_all_series(struct coder *coder)
{
	size_t i, first = 0;
	int err = 0;

	for (i = 0; i < coder->nr_series && !err; first += coder->nr_stacks[i++])
		err = put_series(coder, i, first);
	return err;
}

static int put_frame(struct coder *coder, struct sb_str *to, const struct sb_frame *frame)
{
	int err = put_string(coder, to, frame->name);

	if (!err)
		err = put_string(coder, to, frame->module ? frame->module : "");
	if (!err)
		err = sb_put_varint(to, (uint64_t)frame->mark << MARK_SHIFT |
						(uint64_t)frame->kind << 1 | frame->is_unnamed);
	return err;
}

static int put_frames(struct coder *coder, struct sb_str *to)
{
	size_t i;
	int err = sb_put_varint(to, coder->frames.nr + NR_FIXED);

	for (i = 0; i < NR_FIXED && !err; i++)
		err = put_frame(coder, to, &fixed[i]);
	for (i = 0; i < coder->frames.nr && !err; i++)
		err = put_frame(coder, to,
				sb_profile_frame_at(coder->profile, coder->frames.at[i]));
	return err;
}

static int put_head(struct coder *coder, const struct sb_block_head *head)
{
	size_t i;
	int err = sb_put_varint(&coder->table, head->kind);

	if (!err)
		err = sb_put_varint(&coder->table, (uint64_t)head->begin_s);
	if (!err)
		err = sb_put_varint(&coder->table, head->lead_ms);
	if (!err)
		err = sb_put_varint(&coder->table, SB_BLOCK_FIGURE_MAX);
	for (i = 0; i < SB_BLOCK_FIGURE_MAX && !err; i++)
		err = sb_put_varint(&coder->table,
				    head->figure[i] + (i == SB_BLOCK_OTHER ? coder->nr_other : 0));
	return err;
}

static int put_strings(const struct sb_strtab *strings, struct sb_str *to)
{
	int err = sb_put_varint(to, strings->strs.nr - 1);
	const char *s;
	size_t i, len;

	for (i = 1; i < strings->strs.nr && !err; i++) {
		s = sb_strtab_get(strings, (uint32_t)i, &len);
		err = sb_put_varint(to, len);
		if (!err)
			err = sb_str_addn(to, s, len);
	}
	return err;
}

/* The tables are complete last, but come first: they say what the numbers mean. */
static int put_parts(struct coder *coder, const struct sb_str *frames, struct sb_str *out)
{
	uint8_t head[SB_BLOCK_HEAD_BYTES];
	int err = put_strings(&coder->strings, &coder->table);
	size_t len;

	if (err)
		return err;
	len = coder->table.len + frames->len + coder->body.len;
	if (len > SB_BLOCK_BYTES_MAX - sizeof(head) ||
	    coder->strings.strs.nr - 1 > SB_BLOCK_ENTRIES_MAX ||
	    coder->frames.nr + NR_FIXED > SB_BLOCK_ENTRIES_MAX)
		return -E2BIG;
	sb_store_le(head, 4, MAGIC);
	sb_store_le(head + NR_BYTES_AT, 4, len);
	err = sb_str_reserve(out, len + sizeof(head));
	if (!err)
		err = sb_str_addn(out, (const char *)head, sizeof(head));
	if (!err)
		err = sb_str_addn(out, coder->table.s, coder->table.len);
	if (!err)
		err = sb_str_addn(out, frames->s, frames->len);
	if (!err && coder->body.len)
		err = sb_str_addn(out, coder->body.s, coder->body.len);
	return err;
}

/* With at most @coder->nr_kept_max stacks. */
static int encode(struct coder *coder, const struct sb_block_head *head, struct sb_str *out)
{
	sb_cleanup(sb_str_release) struct sb_str frames = {};
	int err = head->divisor ? coder_init(coder) : -EINVAL;

	if (!err)
		err = sort(coder);
	if (!err)
		err = put_head(coder, head);
	if (!err)
		err = put_all_series(coder);
	if (!err)
		err = put_frames(coder, &frames);
	return err ? err : put_parts(coder, &frames, out);
}

int sb_block_encode(struct sb_str *out, const struct sb_block_head *head,
		    const struct sb_profile *profile, const struct sb_block_tags *series,
		    size_t nr_series, uint64_t *ret_tiny)
{
	size_t nr_max = SB_BLOCK_STACKS_MAX;
	int err = -E2BIG;

	/*
	 * A process that generates names must not cost all others the block: try with fewer stacks.
	 */
	for (; err == -E2BIG && nr_max; nr_max /= 4) {
		struct coder coder = {
			.profile = profile,
			.series = series,
			.nr_series = nr_series,
			.kind = head->kind,
			.divisor = head->divisor,
			.nr_kept_max = nr_max,
		};

		err = encode(&coder, head, out);
		if (!err)
			*ret_tiny = coder.tiny;
		coder_release(&coder);
	}
	return err;
}

/* Reading. */

struct reader {
	struct sb_cursor cursor;
	struct sb_arena *arena;
	size_t nr_tags_max;
	uint32_t nr_kinds;
	struct sb_profile *profile; /* its first frames are those of the message, in that order */
	SB_VEC(const char *) strings;
	SB_VEC(struct sb_store_series) series;
	SB_VEC(uint32_t) stack;
	size_t nr_stacks;
};

int sb_block_scan(const void *bytes, size_t len, size_t *ret_len)
{
	const uint8_t *p = bytes;
	uint64_t nr_bytes;

	if (len < SB_BLOCK_HEAD_BYTES)
		return -EAGAIN;
	nr_bytes = sb_load_le(p + NR_BYTES_AT, 4);
	if (sb_load_le(p, 4) != MAGIC || nr_bytes > SB_BLOCK_BYTES_MAX - SB_BLOCK_HEAD_BYTES)
		return -EPROTO;
	*ret_len = nr_bytes + SB_BLOCK_HEAD_BYTES;
	return 0;
}

/* Read a count of things that take a byte or more each: so no memory for more than can be there. */
static size_t get_nr(struct reader *reader, size_t max)
{
	uint64_t nr = sb_get_varint(&reader->cursor);

	if (nr <= max && nr <= (size_t)(reader->cursor.end - reader->cursor.p))
		return nr;
	reader->cursor.is_bad = true;
	return 0;
}

static void read_head(struct reader *reader, struct sb_block *block)
{
	size_t nr, i;
	uint64_t value;

	value = sb_get_varint(&reader->cursor);
	if (value >= reader->nr_kinds)
		reader->cursor.is_bad = true;
	block->kind = (uint32_t)value;
	block->begin_s = (int64_t)sb_get_varint(&reader->cursor);
	value = sb_get_varint(&reader->cursor);
	block->lead_ms = (uint16_t)value;
	if (value > UINT16_MAX)
		reader->cursor.is_bad = true;
	nr = get_nr(reader, FIGURE_MAX);
	for (i = 0; i < nr; i++) {
		value = sb_get_varint(&reader->cursor);
		if (i < SB_BLOCK_FIGURE_MAX)
			block->figure[i] = value;
	}
	if (block->begin_s < 0 || block->begin_s >= SB_LEVEL_TIME_MAX ||
	    block->begin_s % SB_STORE_BLOCK_S)
		reader->cursor.is_bad = true;
}

static int read_strings(struct reader *reader)
{
	size_t nr = get_nr(reader, SB_BLOCK_ENTRIES_MAX), i, len;
	int err = sb_vec_reserve(&reader->strings, nr + 1);
	const char *s;

	if (err)
		return err;
	reader->strings.at[reader->strings.nr++] = "";
	for (i = 0; i < nr; i++) {
		len = get_nr(reader, SB_BLOCK_STRING_MAX);
		s = sb_get_bytes(&reader->cursor, len);
		if (reader->cursor.is_bad || !len)
			return -EPROTO;
		s = sb_arena_strndup(reader->arena, s, len);
		if (!s)
			return -ENOMEM;
		reader->strings.at[reader->strings.nr++] = s;
	}
	return 0;
}

static const char *get_string(struct reader *reader)
{
	uint64_t id = sb_get_varint(&reader->cursor);

	if (id < reader->strings.nr)
		return reader->strings.at[id];
	reader->cursor.is_bad = true;
	return "";
}

static void set_kind(struct reader *reader, struct sb_frame *frame, uint64_t kind)
{
	const uint64_t mark = kind >> MARK_SHIFT;

	frame->is_unnamed = kind & 1;
	kind = kind >> 1 & ((1 << (MARK_SHIFT - 1)) - 1);
	if (kind >= SB_FRAME_KIND_MAX ||
	    (mark && (kind != SB_FRAME_MARK || mark < SB_ATTR_IDLE || mark >= SB_ATTR_KIND_MAX)))
		reader->cursor.is_bad = true;
	frame->kind = (enum sb_frame_kind)kind;
	frame->mark = (uint8_t)mark;
}

static int read_frames(struct reader *reader)
{
	size_t nr = get_nr(reader, SB_BLOCK_ENTRIES_MAX), i;
	int err = sb_profile_reserve(reader->profile, nr, 0, 0);
	uint32_t id;

	for (i = 0; i < nr && !err; i++) {
		struct sb_frame frame = { .name = get_string(reader) };

		frame.module = get_string(reader);
		if (!frame.module[0])
			frame.module = NULL;
		set_kind(reader, &frame, sb_get_varint(&reader->cursor));
		if (reader->cursor.is_bad || !frame.name[0])
			return -EPROTO;
		/* Not copied: a few bytes of a message could take a thousand of memory. */
		err = sb_profile_push_borrowed(reader->profile, &frame, &id);
	}
	return err;
}

static int read_tags(struct reader *reader, struct sb_store_series *series)
{
	size_t nr = get_nr(reader, reader->nr_tags_max), i;
	struct sb_tag *tags = sb_arena_alloc(reader->arena, (nr + 1) * sizeof(*tags));

	if (!tags)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		tags[i].key = get_string(reader);
		tags[i].is_wide = sb_get_varint(&reader->cursor) & 1;
		tags[i].value = get_string(reader);
		if (!tags[i].key[0] || strnlen(tags[i].key, SB_TAG_KEY_MAX + 1) > SB_TAG_KEY_MAX ||
		    (i && strcmp(tags[i - 1].key, tags[i].key) >= 0))
			reader->cursor.is_bad = true;
	}
	series->tags = tags;
	series->nr_tags = nr;
	return reader->cursor.is_bad ? -EPROTO : 0;
}

/* A stack of the last series. */
static int read_stack(struct reader *reader)
{
	uint64_t weight = sb_get_varint(&reader->cursor), id;
	size_t nr = get_nr(reader, SB_BLOCK_FRAMES_MAX), i;
	int err = sb_vec_reserve(&reader->stack, nr + 1);

	if (err)
		return err;
	for (i = 0; i < nr; i++) {
		id = sb_get_varint(&reader->cursor);
		if (id >= sb_profile_nr_frames(reader->profile))
			return -EPROTO;
		reader->stack.at[i] = (uint32_t)id;
	}
	if (!weight || !nr || reader->cursor.is_bad)
		return -EPROTO;
	return sb_profile_add_row(reader->profile,
				  &(struct sb_row){ .frames = reader->stack.at,
						    .nr = nr,
						    .series = (uint32_t)reader->series.nr - 1,
						    .weight = weight });
}

static int read_series(struct reader *reader)
{
	struct sb_store_series series = {};
	int err = read_tags(reader, &series) ?: sb_vec_push(&reader->series, series);
	size_t nr, i;

	if (err)
		return err;
	nr = get_nr(reader, SB_BLOCK_STACKS_MAX + 1);
	for (i = 0; i < nr && !err; i++)
		err = read_stack(reader);
	reader->nr_stacks += nr;
	if (reader->series.nr > SB_BLOCK_SERIES_MAX ||
	    reader->nr_stacks > SB_BLOCK_STACKS_MAX + SB_BLOCK_SERIES_MAX)
		err = -EPROTO;
	return err;
}

static int read_all(struct reader *reader, struct sb_block *block)
{
	int err;

	read_head(reader, block);
	err = read_strings(reader) ?: sb_profile_new(&reader->profile) ?: read_frames(reader);
	while (!err && !reader->cursor.is_bad && reader->cursor.p < reader->cursor.end)
		err = read_series(reader);
	if (!err && reader->cursor.is_bad)
		err = -EPROTO;
	return err ?: sb_profile_seal(reader->profile);
}

int sb_block_decode(const void *bytes, size_t len, size_t nr_more, uint32_t nr_kinds,
		    struct sb_block *ret_block)
{
	struct sb_block block = {};
	struct reader reader = {
		.arena = &block.arena,
		.nr_tags_max = SB_DICT_TAGS_MAX - nr_more,
		.nr_kinds = nr_kinds,
	};
	size_t nr_bytes;
	int err = sb_block_scan(bytes, len, &nr_bytes);

	if (nr_more > SB_DICT_TAGS_MAX)
		return -EINVAL;
	if (err || nr_bytes != len)
		return -EPROTO;
	reader.cursor.p = (const uint8_t *)bytes + SB_BLOCK_HEAD_BYTES;
	reader.cursor.end = (const uint8_t *)bytes + len;
	err = read_all(&reader, &block);
	block.series = reader.series.at;
	block.nr_series = reader.series.nr;
	block.profile = reader.profile;
	sb_vec_release(&reader.strings);
	sb_vec_release(&reader.stack);
	if (err) {
		sb_block_release(&block);
		return err;
	}
	*ret_block = block;
	return 0;
}

void sb_block_release(struct sb_block *block)
{
	sb_profile_free(block->profile);
	free(block->series);
	sb_arena_release(&block->arena);
	*block = (struct sb_block){};
}
