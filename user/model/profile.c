// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/profile.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/fold.h"
#include "model/profile_priv.h"

const struct sb_frame_kind_row sb_frame_kinds[SB_FRAME_KIND_MAX] = {
#define SB_FRAME(kind, function, picture, name, ...) \
	[SB_FRAME_##kind] = { name, SB_FRAME_##function, SB_FG_##picture },
#include "tree/frames.def"
};

enum sb_frame_kind sb_function_kind(enum sb_frame_kind kind)
{
	return sb_frame_kinds[kind].function;
}

int sb_profile_new(struct sb_profile **ret_profile)
{
	struct sb_profile *profile = calloc(1, sizeof(*profile));
	int err;

	if (!profile)
		return -ENOMEM;
	err = sb_strtab_init(&profile->strings);
	if (err) {
		sb_profile_free(profile);
		return err;
	}
	*ret_profile = profile;
	return 0;
}

void sb_profile_free(struct sb_profile *profile)
{
	size_t i;

	if (!profile)
		return;
	for (i = 0; i < profile->metas.nr; i++) {
		free(profile->metas.at[i].key);
		free(profile->metas.at[i].value);
	}
	sb_vec_release(&profile->metas);
	sb_arena_release(&profile->metadata_texts);
	sb_vec_release(&profile->keys);
	sb_vec_release(&profile->frames);
	sb_vec_release(&profile->attrs);
	sb_str_release(&profile->text);
	sb_vec_release(&profile->row_frames);
	sb_vec_release(&profile->stack_frames);
	sb_vec_release(&profile->stacks);
	sb_vec_release(&profile->log2s);
	sb_vec_release(&profile->squares);
	sb_index_release(&profile->frames_index);
	sb_index_release(&profile->stacks_index);
	sb_strtab_release(&profile->strings);
	free(profile);
}

/* Intern @s. NULL gets ID 0, which the name of a frame never has. */
static int intern(struct sb_profile *profile, const char *s, uint32_t *ret_id)
{
	if (!s) {
		*ret_id = 0;
		return 0;
	}
	return sb_strtab_add(&profile->strings, s, strlen(s), ret_id);
}

static int key_of(struct sb_profile *profile, const struct sb_frame *frame, uint32_t attr_kind,
		  struct frame_key *key)
{
	int err;

	memset(key, 0, sizeof(*key));
	err = intern(profile, frame->name, &key->name);
	if (!err)
		err = intern(profile, frame->module, &key->module);
	if (!err)
		err = intern(profile, frame->file, &key->file);
	key->line = frame->line;
	key->func_offset = frame->func_offset;
	key->kind = frame->kind;
	key->is_unnamed = frame->is_unnamed;
	key->attr_kind = (uint16_t)attr_kind;
	return err;
}

static const char *string_or_null(const struct sb_profile *profile, uint32_t id)
{
	return id ? sb_strtab_get(&profile->strings, id, NULL) : NULL;
}

static uint64_t hash_key(const struct frame_key *key)
{
	return sb_hash(key, sizeof(*key), 0);
}

/* Index the frames that were pushed. */
static int index_frames(struct sb_profile *profile)
{
	struct frame_key key;
	int err = 0;

	while (profile->keys.nr < profile->frames.nr && !err) {
		const struct sb_frame *frame = &profile->frames.at[profile->keys.nr];

		/* Of attributes, pushed frames have marks only. */
		err = key_of(profile, frame, frame->mark, &key);
		if (!err)
			err = sb_vec_reserve(&profile->keys, profile->keys.nr + 1);
		if (!err)
			err = sb_index_add(&profile->frames_index, hash_key(&key),
					   (uint32_t)profile->keys.nr);
		if (!err)
			profile->keys.at[profile->keys.nr++] = key;
	}
	return err;
}

static int frame_new(struct sb_profile *profile, const struct frame_key *key, uint32_t attr,
		     uint32_t *ret_id)
{
	struct sb_frame frame = {
		.name = sb_strtab_get(&profile->strings, key->name, NULL),
		.module = string_or_null(profile, key->module),
		.file = string_or_null(profile, key->file),
		.line = key->line,
		.func_offset = key->func_offset,
		.attr = attr,
		.kind = key->kind,
		.is_unnamed = key->is_unnamed,
		.mark = key->kind == SB_FRAME_MARK ? (uint8_t)key->attr_kind : 0,
	};
	int err;

	if (profile->frames.nr >= INT32_MAX)
		return -E2BIG;
	err = sb_vec_reserve(&profile->keys, profile->keys.nr + 1);
	if (!err)
		err = sb_vec_reserve(&profile->frames, profile->frames.nr + 1);
	if (!err)
		err = sb_index_add(&profile->frames_index, hash_key(key),
				   (uint32_t)profile->frames.nr);
	if (err)
		return err;
	*ret_id = (uint32_t)profile->frames.nr;
	profile->keys.at[profile->keys.nr++] = *key;
	profile->frames.at[profile->frames.nr++] = frame;
	return 0;
}

/* Return: 0; -ENOENT if no frame of *ret_key shows an attribute of that kind; -ENOMEM. */
static int find_frame(struct sb_profile *profile, const struct sb_frame *frame, uint32_t attr_kind,
		      struct frame_key *ret_key, uint32_t *ret_id)
{
	int err = index_frames(profile);

	if (!err)
		err = key_of(profile, frame, attr_kind, ret_key);
	if (err)
		return err;
	sb_index_each(it, &profile->frames_index, hash_key(ret_key)) {
		if (!memcmp(&profile->keys.at[it.id], ret_key, sizeof(*ret_key))) {
			*ret_id = it.id;
			return 0;
		}
	}
	return -ENOENT;
}

int sb_profile_frame(struct sb_profile *profile, const struct sb_frame *frame, uint32_t *ret_id)
{
	struct frame_key key;
	int err = find_frame(profile, frame, frame->mark, &key, ret_id);

	return err == -ENOENT ? frame_new(profile, &key, 0, ret_id) : err;
}

/* The text of an attribute contains all of it, so attributes of one kind differ by their text. */
int sb_profile_attr(struct sb_profile *profile, const struct sb_attr *attr, uint32_t *ret_id)
{
	struct sb_frame frame = { .kind = attr->kind < SB_ATTR_IDLE ? SB_FRAME_ROOT
								    : SB_FRAME_MARK };
	struct sb_attr copy = *attr;
	struct frame_key frame_key;
	uint32_t key, text;
	int err;

	sb_str_clear(&profile->text);
	err = sb_fold_attr(&profile->text, attr);
	frame.name = profile->text.s;
	err = err ?: find_frame(profile, &frame, attr->kind, &frame_key, ret_id);
	if (err != -ENOENT)
		return err;
	err = intern(profile, attr->key, &key) ?: intern(profile, attr->text, &text);
	err = err ?: sb_vec_fit(&profile->attrs, 1, 0);
	err = err ?: sb_vec_reserve(&profile->attrs, profile->attrs.nr + 1);
	err = err ?: frame_new(profile, &frame_key, (uint32_t)profile->attrs.nr, ret_id);
	if (err)
		return err;
	copy.key = string_or_null(profile, key);
	copy.text = string_or_null(profile, text);
	profile->attrs.at[profile->attrs.nr++] = copy;
	return 0;
}

int sb_profile_copy_frame(struct sb_profile *profile, const struct sb_profile *from, uint32_t id,
			  uint32_t *ret_id)
{
	const struct sb_frame *frame = &from->frames.at[id];

	return frame->attr ? sb_profile_attr(profile, &from->attrs.at[frame->attr], ret_id)
			   : sb_profile_frame(profile, frame, ret_id);
}

/* Copy *@text, or share the copy of the frame before if it is equal. Return: 0 or -ENOMEM. */
static int copy_text(struct sb_profile *profile, const char *before, const char **text)
{
	const char *s = *text;

	if (!s || (before && sb_streq(before, s)))
		*text = s ? before : NULL;
	else
		*text = sb_arena_strndup(&profile->strings.arena, s, strlen(s));
	return s && !*text ? -ENOMEM : 0;
}

int sb_profile_push_borrowed(struct sb_profile *profile, const struct sb_frame *frame,
			     uint32_t *ret_id)
{
	struct sb_frame copy = *frame;
	int err = profile->frames.nr < INT32_MAX ? 0 : -E2BIG;

	copy.attr = 0;
	if (!err)
		err = sb_vec_push(&profile->frames, copy);
	if (!err)
		*ret_id = (uint32_t)profile->frames.nr - 1;
	return err;
}

int sb_profile_push_frame(struct sb_profile *profile, const struct sb_frame *frame,
			  uint32_t *ret_id)
{
	const struct sb_frame *last =
		profile->frames.nr ? &profile->frames.at[profile->frames.nr - 1] : NULL;
	struct sb_frame copy = *frame;
	int err = copy_text(profile, NULL, &copy.name);

	if (!err)
		err = copy_text(profile, last ? last->module : NULL, &copy.module);
	if (!err)
		err = copy_text(profile, last ? last->file : NULL, &copy.file);
	return err ? err : sb_profile_push_borrowed(profile, &copy, ret_id);
}

int sb_profile_reserve(struct sb_profile *profile, size_t nr_frames, size_t nr_stacks,
		       size_t nr_stack_frames)
{
	int err = sb_vec_reserve(&profile->frames, profile->frames.nr + nr_frames);

	if (!err)
		err = sb_vec_reserve(&profile->stacks, profile->stacks.nr + nr_stacks);
	return err ? err
		   : sb_vec_reserve(&profile->stack_frames,
				    profile->stack_frames.nr + nr_stack_frames);
}

static struct sb_row row_of(const struct sb_profile *profile, const struct stack *stack)
{
	return (struct sb_row){
		.frames = profile->stack_frames.at + stack->first_frame,
		.nr = stack->nr_frames,
		.series = stack->series,
		.weight = stack->weight,
		.nr_samples = stack->nr_samples,
	};
}

static struct stack *find_stack(const struct sb_profile *profile, const struct sb_row *row,
				uint64_t hash)
{
	sb_index_each(it, &profile->stacks_index, hash) {
		struct stack *stack = &profile->stacks.at[it.id];

		/* An empty stack may have no array. */
		if (stack->nr_frames == row->nr && stack->series == row->series &&
		    (!row->nr || !memcmp(profile->stack_frames.at + stack->first_frame, row->frames,
					 row->nr * sizeof(*row->frames))))
			return stack;
	}
	return NULL;
}

static uint64_t hash_row(const struct sb_row *row)
{
	return sb_hash(row->frames, row->nr * sizeof(*row->frames), row->series);
}

/* Index the stacks that were pushed. */
static int index_stacks(struct sb_profile *profile)
{
	struct sb_row row;
	int err = 0;

	while (profile->stacks_index.nr < profile->stacks.nr && !err) {
		row = row_of(profile, &profile->stacks.at[profile->stacks_index.nr]);
		err = sb_index_add(&profile->stacks_index, hash_row(&row),
				   profile->stacks_index.nr);
	}
	return err;
}

/* Append a stack without weight, which is not indexed. */
static int stack_new(struct sb_profile *profile, const struct sb_row *row, struct stack **ret_stack)
{
	struct stack added = { .nr_frames = (uint32_t)row->nr, .series = row->series };
	int err;

	if (row->nr > INT32_MAX - profile->stack_frames.nr)
		return -E2BIG;
	added.first_frame = (uint32_t)profile->stack_frames.nr;
	err = sb_vec_reserve(&profile->stack_frames, profile->stack_frames.nr + row->nr);
	if (!err)
		err = sb_vec_push(&profile->stacks, added);
	if (err)
		return err;
	memcpy(profile->stack_frames.at + profile->stack_frames.nr, row->frames,
	       row->nr * sizeof(*row->frames));
	profile->stack_frames.nr += row->nr;
	*ret_stack = &profile->stacks.at[profile->stacks.nr - 1];
	return 0;
}

/* Find the stack of these frames, or add it. */
static int need_stack(struct sb_profile *profile, const struct sb_row *row,
		      struct stack **ret_stack)
{
	uint64_t hash = hash_row(row);
	int err = index_stacks(profile);

	*ret_stack = err ? NULL : find_stack(profile, row, hash);
	if (err || *ret_stack)
		return err;
	err = stack_new(profile, row, ret_stack);
	if (err)
		return err;
	err = sb_index_add(&profile->stacks_index, hash, (uint32_t)profile->stacks.nr - 1);
	if (err) {
		profile->stacks.nr--;
		profile->stack_frames.nr -= row->nr;
	}
	return err;
}

/*
 * Give a stack without frames one, as outputs need: a kernel thread has none if only user stacks
 * are sampled. @id: where it is put; lives as long as @row.
 */
static int need_frame(struct sb_profile *profile, struct sb_row *row, uint32_t *id)
{
	const struct sb_frame frame = { .name = SB_PROFILE_NO_STACK, .kind = SB_FRAME_MARK };

	if (row->nr)
		return 0;
	row->frames = id;
	row->nr = 1;
	return sb_profile_frame(profile, &frame, id);
}

/* Add weight to the stack of these frames; the pointer is valid until the next stack is added. */
static int add_weight(struct sb_profile *profile, const struct sb_row *row,
		      struct stack **ret_stack)
{
	struct sb_row with_frame = *row;
	uint32_t id;
	int err = need_frame(profile, &with_frame, &id);

	if (!err)
		err = need_stack(profile, &with_frame, ret_stack);
	if (err)
		return err;
	(*ret_stack)->weight += row->weight;
	(*ret_stack)->nr_samples += row->nr_samples;
	profile->weight += row->weight;
	return 0;
}

int sb_profile_add(struct sb_profile *profile, const uint32_t *frame_ids, size_t nr,
		   uint64_t weight)
{
	return sb_profile_add_row(
		profile, &(struct sb_row){ .frames = frame_ids, .nr = nr, .weight = weight });
}

int sb_profile_push(struct sb_profile *profile, const uint32_t *frame_ids, size_t nr,
		    uint64_t weight)
{
	struct sb_row row = { .frames = frame_ids, .nr = nr };
	struct stack *stack;
	uint32_t id;
	int err = need_frame(profile, &row, &id);

	if (!err)
		err = stack_new(profile, &row, &stack);
	if (err)
		return err;
	stack->weight = weight;
	profile->weight += weight;
	return 0;
}

/* Make room for one more histogram, and for that of all stacks. */
static int reserve_log2(struct sb_profile *profile)
{
	int err = sb_vec_reserve(&profile->log2s, profile->log2s.nr + 2);

	if (!err && !profile->log2s.nr)
		profile->log2s.at[profile->log2s.nr++] = (struct log2){};
	return err;
}

static struct log2 *log2_of(struct sb_profile *profile, struct stack *stack)
{
	if (!stack->log2) {
		stack->log2 = (uint32_t)profile->log2s.nr;
		profile->log2s.at[profile->log2s.nr++] = (struct log2){};
	}
	return &profile->log2s.at[stack->log2];
}

int sb_profile_add_row(struct sb_profile *profile, const struct sb_row *row)
{
	const uint32_t bucket = row->log2_ns - 1;
	struct stack *stack;
	int err = 0;

	if (row->log2_ns > SB_PROFILE_NR_LOG2)
		return -EINVAL;
	/* First, so that a failure adds nothing. */
	if (row->log2_ns)
		err = reserve_log2(profile);
	if (!err)
		err = add_weight(profile, row, &stack);
	if (err || !row->log2_ns)
		return err;
	log2_of(profile, stack)->nr[bucket] += row->nr_samples;
	profile->log2s.at[0].nr[bucket] += row->nr_samples;
	return 0;
}

int sb_profile_copy_row(struct sb_profile *profile, const struct sb_profile *from,
			const struct sb_row *row, uint32_t *known)
{
	struct sb_row copy = *row;
	uint32_t id;
	size_t i;
	int err = sb_vec_reserve(&profile->row_frames, row->nr);

	for (i = 0; i < row->nr && !err; i++) {
		uint32_t *to = &known[row->frames[i]];

		if (!*to) {
			err = sb_profile_copy_frame(profile, from, row->frames[i], &id);
			*to = err ? 0 : id + 1;
		}
		profile->row_frames.at[i] = *to - 1;
	}
	copy.frames = profile->row_frames.at;
	return err ? err : sb_profile_add_row(profile, &copy);
}

static void add_log2(struct log2 *to, const struct log2 *log2)
{
	size_t i;

	for (i = 0; i < SB_PROFILE_NR_LOG2; i++)
		to->nr[i] += log2->nr[i];
}

/* Add the durations of a stack to those of its copy, whose frames are in row_frames. */
static int merge_log2(struct sb_profile *profile, const struct stack *stack,
		      const struct log2 *log2)
{
	const struct sb_row row = {
		.frames = profile->row_frames.at,
		.nr = stack->nr_frames,
		.series = stack->series,
	};
	struct stack *to;
	int err = reserve_log2(profile);

	err = err ?: need_stack(profile, &row, &to);
	if (err)
		return err;
	add_log2(log2_of(profile, to), log2);
	add_log2(&profile->log2s.at[0], log2);
	return 0;
}

int sb_profile_merge(struct sb_profile *profile, const struct sb_profile *from)
{
	sb_cleanup(sb_freep) uint32_t *known = calloc(from->frames.nr + 1, sizeof(*known));
	size_t i;
	int err = known ? 0 : -ENOMEM;

	for (i = 0; i < from->stacks.nr && !err; i++) {
		const struct stack *stack = &from->stacks.at[i];
		const struct sb_row row = row_of(from, stack);

		err = sb_profile_copy_row(profile, from, &row, known);
		if (!err && stack->log2)
			err = merge_log2(profile, stack, &from->log2s.at[stack->log2]);
	}
	return err;
}

int sb_profile_set_metadata(struct sb_profile *profile, const struct sb_metadata *metadata)
{
	struct sb_metadata copy = {};
	int err = sb_metadata_merge(&copy, metadata, &profile->metadata_texts);

	if (!err)
		profile->metadata = copy;
	return err;
}

int sb_profile_meta(struct sb_profile *profile, const char *key, const char *fmt, ...)
{
	struct meta meta = {};
	va_list ap;
	int n, err = -ENOMEM;

	va_start(ap, fmt);
	n = vasprintf(&meta.value, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -ENOMEM;
	meta.key = strdup(key);
	if (meta.key)
		err = sb_vec_push(&profile->metas, meta);
	if (err) {
		free(meta.key);
		free(meta.value);
	}
	return err;
}

/* Return: weight * factor / divisor, rounded half up. */
static uint64_t scale(uint64_t weight, uint64_t factor, uint64_t divisor)
{
	const unsigned __int128 product = (unsigned __int128)weight * factor + divisor / 2;
	const unsigned __int128 scaled = product / divisor;

	return scaled > UINT64_MAX ? UINT64_MAX : (uint64_t)scaled;
}

int sb_profile_scale_by(struct sb_profile *profile, uint64_t factor, uint64_t divisor)
{
	size_t i, nr_kept = 0;

	if (!divisor)
		return -EINVAL;
	profile->weight = 0;
	for (i = 0; i < profile->stacks.nr; i++) {
		struct stack stack = profile->stacks.at[i];

		stack.weight = scale(stack.weight, factor, divisor);
		if (!stack.weight) {
			profile->nr_tiny += profile->stacks.at[i].weight > 0;
			profile->tiny_weight += profile->stacks.at[i].weight;
			continue;
		}
		profile->weight += stack.weight;
		profile->stacks.at[nr_kept++] = stack;
	}
	profile->stacks.nr = nr_kept;
	/* The index would refer to the wrong stacks. */
	sb_index_release(&profile->stacks_index);
	return 0;
}

void sb_profile_clear(struct sb_profile *profile)
{
	sb_index_release(&profile->stacks_index);
	/* Give the memory back: one large profile does not mean that the next ones are large. */
	sb_vec_release(&profile->stack_frames);
	sb_vec_release(&profile->stacks);
	sb_vec_release(&profile->log2s);
	sb_vec_release(&profile->squares);
	profile->weight = 0;
	profile->nr_tiny = profile->tiny_weight = 0;
}

uint64_t sb_profile_nr_tiny(const struct sb_profile *profile, uint64_t *ret_unscaled_weight)
{
	*ret_unscaled_weight = profile->tiny_weight;
	return profile->nr_tiny;
}

int sb_profile_set_squares(struct sb_profile *profile, size_t i, double squares)
{
	int err = sb_vec_fit(&profile->squares, i + 1, 0);

	if (!err)
		profile->squares.at[i] = squares;
	return err;
}

size_t sb_profile_nr_stacks(const struct sb_profile *profile)
{
	return profile->stacks.nr;
}

size_t sb_profile_nr_frames(const struct sb_profile *profile)
{
	return profile->frames.nr;
}

size_t sb_profile_text_bytes(const struct sb_profile *profile)
{
	return profile->strings.arena.nr_bytes;
}

uint64_t sb_profile_weight(const struct sb_profile *profile)
{
	return profile->weight;
}

uint64_t sb_profile_weight_of(const struct sb_profile *profile, size_t nr)
{
	uint64_t weight = 0;
	size_t i;

	for (i = 0; i < nr && i < profile->stacks.nr; i++)
		weight += profile->stacks.at[i].weight;
	return weight;
}

const struct sb_frame *sb_profile_frame_at(const struct sb_profile *profile, uint32_t id)
{
	return &profile->frames.at[id];
}

const struct sb_attr *sb_profile_attr_at(const struct sb_profile *profile, uint32_t id)
{
	static const struct sb_attr none = {};
	const uint32_t attr = profile->frames.at[id].attr;

	return attr ? &profile->attrs.at[attr] : &none;
}

struct sb_row sb_profile_row_at(const struct sb_profile *profile, size_t i)
{
	return row_of(profile, &profile->stacks.at[i]);
}

double sb_profile_squares_at(const struct sb_profile *profile, size_t i)
{
	return i < profile->squares.nr ? profile->squares.at[i] : 0;
}

const uint64_t *sb_profile_log2_at(const struct sb_profile *profile, size_t i)
{
	uint32_t log2 = profile->stacks.at[i].log2;

	return log2 ? profile->log2s.at[log2].nr : NULL;
}

const uint64_t *sb_profile_log2_total(const struct sb_profile *profile)
{
	return profile->log2s.nr ? profile->log2s.at[0].nr : NULL;
}

const struct sb_metadata *sb_profile_metadata(const struct sb_profile *profile)
{
	return &profile->metadata;
}

const char *sb_profile_unit(const struct sb_profile *profile)
{
	return profile->metadata.unit ? profile->metadata.unit : "samples";
}

const char *sb_profile_meta_at(const struct sb_profile *profile, size_t i, const char **ret_value)
{
	if (i >= profile->metas.nr)
		return NULL;
	*ret_value = profile->metas.at[i].value;
	return profile->metas.at[i].key;
}
