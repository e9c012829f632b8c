// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/dict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/num.h"
#include "store/dict_priv.h"

/* Hash two words. */
static uint64_t hash_pair(uint32_t a, uint32_t b)
{
	const uint32_t words[] = { a, b };

	return sb_hash(words, sizeof(words), 0);
}

int sb_dict_init(struct sb_dict *dict)
{
	int err;

	*dict = (struct sb_dict){};
	err = sb_strtab_init(&dict->strings);
	if (!err)
		err = sb_vec_push(&dict->nodes, (struct sb_dict_node){});
	if (!err)
		sb_dict_mark(dict);
	return err;
}

void sb_dict_drop_indexes(struct sb_dict *dict)
{
	sb_index_release(&dict->strings.index);
	sb_ids_release(&dict->frames_ids);
	sb_ids_release(&dict->nodes_ids);
	sb_ids_release(&dict->tags_ids);
	sb_ids_release(&dict->rows_ids);
	sb_ids_release(&dict->paths_ids);
	sb_ids_release(&dict->texts_ids);
	dict->is_indexed = false;
}

void sb_dict_release(struct sb_dict *dict)
{
	sb_dict_drop_indexes(dict);
	sb_strtab_release(&dict->strings);
	sb_vec_release(&dict->frames);
	sb_vec_release(&dict->nodes);
	sb_vec_release(&dict->tags);
	sb_vec_release(&dict->pairs);
	sb_vec_release(&dict->rows);
	free(dict->shares);
	dict->shares = NULL;
}

static size_t index_bytes(const struct sb_index *index)
{
	return index->slots ? (index->mask + 1ull) * sizeof(*index->slots) : 0;
}

size_t sb_dict_bytes(const struct sb_dict *dict)
{
	/* Memory of arrays beyond their elements was never touched, so it is not counted. */
	return dict->strings.arena.nr_bytes +
	       dict->strings.strs.nr * sizeof(dict->strings.strs.at[0]) +
	       dict->frames.nr * sizeof(dict->frames.at[0]) +
	       dict->nodes.nr * sizeof(dict->nodes.at[0]) +
	       dict->tags.nr * sizeof(dict->tags.at[0]) +
	       dict->pairs.nr * sizeof(dict->pairs.at[0]) +
	       dict->rows.nr * sizeof(dict->rows.at[0]) + index_bytes(&dict->strings.index) +
	       sb_ids_bytes(&dict->frames_ids) + sb_ids_bytes(&dict->nodes_ids) +
	       sb_ids_bytes(&dict->tags_ids) + sb_ids_bytes(&dict->rows_ids) +
	       sb_ids_bytes(&dict->paths_ids) + sb_ids_bytes(&dict->texts_ids);
}

static int need_text(struct sb_dict *dict, size_t len)
{
	int err = sb_dict_need_room(dict, SB_DICT_PART_STRINGS, 1);

	return err ? err : sb_dict_need_room(dict, SB_DICT_PART_TEXT, len + 1);
}

static void pay_text(struct sb_dict *dict, size_t len)
{
	dict->nr_text_bytes += len;
	sb_dict_charge(dict, SB_DICT_PART_STRINGS, 1);
	sb_dict_charge(dict, SB_DICT_PART_TEXT, len);
}

static int add_string(struct sb_dict *dict, const char *s, size_t len, uint32_t *ret_id)
{
	int err;

	/* An existing string needs no room. */
	if (sb_strtab_find(&dict->strings, s, len, ret_id))
		return 0;
	err = need_text(dict, len);
	if (!err)
		err = sb_strtab_add(&dict->strings, s, len, ret_id);
	if (!err)
		pay_text(dict, len);
	return err;
}

/* Buffer for a truncated name. */
struct name {
	char text[SB_DICT_NAME_MAX];
};

/* Truncate *@s, which has *@len bytes, between two UTF-8 characters if it is too long. */
static void cut_name(struct sb_dict *dict, const char **s, size_t *len, struct name *name)
{
	static const char mark[] = "...";
	size_t nr = sizeof(name->text) - strlen(mark);

	if (*len <= sizeof(name->text) || dict->is_unbounded)
		return;
	while (nr && ((unsigned char)(*s)[nr] & 0xc0) == 0x80)
		nr--;
	memcpy(name->text, *s, nr);
	memcpy(name->text + nr, mark, strlen(mark));
	*s = name->text;
	*len = nr + strlen(mark);
	dict->nr_names_cut++;
}

int sb_dict_push_string(struct sb_dict *dict, const char *s, size_t len)
{
	struct name name;
	int err;

	cut_name(dict, &s, &len, &name);
	err = need_text(dict, len);
	if (!err)
		err = sb_strtab_push(&dict->strings, s, len);
	if (!err)
		pay_text(dict, len);
	return err;
}

static uint64_t hash_frame(const struct sb_dict_frame *frame)
{
	return sb_hash(frame, sizeof(*frame), 0);
}

static uint64_t hash_tags(const struct sb_dict *dict, const struct sb_dict_tags *tags)
{
	return sb_hash(dict->pairs.at + tags->first, tags->nr * sizeof(dict->pairs.at[0]),
		       tags->nr);
}

static uint64_t hash_frame_at(const void *arg, uint32_t id)
{
	const struct sb_dict *dict = arg;

	return hash_frame(&dict->frames.at[id]);
}

static uint64_t hash_node_at(const void *arg, uint32_t id)
{
	const struct sb_dict *dict = arg;

	return hash_pair(dict->nodes.at[id].parent, dict->nodes.at[id].frame);
}

static uint64_t hash_tags_at(const void *arg, uint32_t id)
{
	const struct sb_dict *dict = arg;

	return hash_tags(dict, &dict->tags.at[id]);
}

static uint64_t hash_row_at(const void *arg, uint32_t id)
{
	const struct sb_dict *dict = arg;

	return hash_pair(dict->rows.at[id].tags, dict->rows.at[id].node);
}

/* A frame by its text. */
struct text {
	const char *name, *module;
	size_t name_len, module_len;
	uint32_t kind;
	uint32_t module_id; /* a string that is equal to the module; SB_DICT_NONE: not known */
};

static uint64_t hash_module(const struct text *text)
{
	return text->module_len ? sb_hash(text->module, text->module_len, text->kind) : text->kind;
}

static uint64_t hash_text(const struct text *text)
{
	return sb_hash(text->name, text->name_len, hash_module(text));
}

static uint64_t hash_text_at(const void *arg, uint32_t id)
{
	const struct sb_dict *dict = arg;
	const struct sb_dict_frame *frame = &dict->frames.at[id];
	struct text text = { .kind = frame->kind };

	text.name = sb_strtab_get(&dict->strings, frame->name, &text.name_len);
	text.module = sb_strtab_get(&dict->strings, frame->module, &text.module_len);
	return hash_text(&text);
}

static uint64_t hash_path(const uint32_t *frames, size_t nr)
{
	return sb_hash(frames, nr * sizeof(*frames), nr);
}

/* Paths that are looked up have at most this many frames. */
static uint64_t hash_path_at(const void *arg, uint32_t id)
{
	const struct sb_dict *dict = arg;
	uint32_t frames[SB_DICT_DEPTH_MAX];
	size_t at = SB_DICT_DEPTH_MAX;

	for (; id && at; id = dict->nodes.at[id].parent)
		frames[--at] = dict->nodes.at[id].frame;
	return hash_path(frames + at, SB_DICT_DEPTH_MAX - at);
}

static int note(struct sb_dict *dict, struct sb_ids *ids,
		uint64_t (*hash_of)(const void *arg, uint32_t id), uint32_t id)
{
	return sb_ids_add(ids, id, &(struct sb_ids_owner){ hash_of, dict });
}

static int reserve_ids(struct sb_dict *dict)
{
	const struct {
		struct sb_ids *ids;
		size_t nr;
		uint64_t (*hash_of)(const void *arg, uint32_t id);
	} all[] = {
		{ &dict->frames_ids, dict->frames.nr, hash_frame_at },
		{ &dict->nodes_ids, dict->nodes.nr, hash_node_at },
		{ &dict->tags_ids, dict->tags.nr, hash_tags_at },
		{ &dict->rows_ids, dict->rows.nr, hash_row_at },
	};
	size_t i;
	int err = 0;

	for (i = 0; i < SB_ARRAY_SIZE(all) && !err; i++)
		err = sb_ids_reserve(all[i].ids, (uint32_t)all[i].nr,
				     &(struct sb_ids_owner){ all[i].hash_of, dict });
	return err;
}

/* Make the hash tables. Damaged entries cannot be found. Return: 0 or -ENOMEM. */
static int need_indexes(struct sb_dict *dict)
{
	uint32_t i;
	int err;

	if (dict->is_indexed)
		return 0;
	err = dict->strings.index.slots ? 0 : sb_strtab_index(&dict->strings);
	if (!err)
		err = reserve_ids(dict);
	for (i = 0; i < dict->frames.nr && !err; i++)
		if (dict->frames.at[i].name != SB_DICT_NONE)
			err = note(dict, &dict->frames_ids, hash_frame_at, i);
	for (i = 1; i < dict->nodes.nr && !err; i++)
		if (dict->nodes.at[i].frame != SB_DICT_NONE)
			err = note(dict, &dict->nodes_ids, hash_node_at, i);
	for (i = 0; i < dict->tags.nr && !err; i++)
		if (dict->tags.at[i].first != SB_DICT_NONE)
			err = note(dict, &dict->tags_ids, hash_tags_at, i);
	for (i = 0; i < dict->rows.nr && !err; i++)
		if (dict->rows.at[i].tags != SB_DICT_NONE)
			err = note(dict, &dict->rows_ids, hash_row_at, i);
	if (err)
		sb_dict_drop_indexes(dict);
	else
		dict->is_indexed = true;
	return err;
}

static int add_frame(struct sb_dict *dict, const struct sb_dict_frame *frame, uint32_t *ret_id)
{
	struct sb_ids_iter it;
	int err;

	for (it = sb_ids_first(&dict->frames_ids, hash_frame(frame)); it.id != SB_IDS_NONE;
	     it = sb_ids_next(&dict->frames_ids, it))
		if (!memcmp(&dict->frames.at[it.id], frame, sizeof(*frame))) {
			*ret_id = it.id;
			return 0;
		}
	err = sb_dict_need_room(dict, SB_DICT_PART_FRAMES, 1);
	if (!err)
		err = sb_vec_push(&dict->frames, *frame);
	if (err)
		return err;
	sb_dict_charge(dict, SB_DICT_PART_FRAMES, 1);
	*ret_id = (uint32_t)dict->frames.nr - 1;
	return note(dict, &dict->frames_ids, hash_frame_at, *ret_id);
}

static bool is_text(const struct sb_dict *dict, uint32_t string, const char *s, size_t len)
{
	const struct sb_strtab_entry *have = &dict->strings.strs.at[string];

	return have->len == len && !memcmp(have->s, s, len);
}

/* Offsets in files are below this, addresses of processes and of the kernel above. */
#define OFFSET_MAX (1ull << 40)

/* "[anon+0x7f0102030405]" becomes "[anon]": a store keeps no addresses, whoever made the name. */
static void drop_address(struct text *text, struct name *name)
{
	static const char sign[] = "+0x";
	const char *end = text->name + text->name_len, *at;
	uint64_t addr = 0;
	size_t len;

	if (!(text->kind & 1) || !text->name_len || end[-1] != ']')
		return;
	at = memmem(text->name, text->name_len, sign, strlen(sign));
	if (!at)
		return;
	len = (size_t)(at - text->name);
	/* Names of an unbounded dictionary come from files, which have none that is longer. */
	if (len >= sizeof(name->text))
		return;
	at += strlen(sign);
	if (sb_scan_hex(&at, end, &addr) && addr < OFFSET_MAX)
		return;
	memcpy(name->text, text->name, len);
	name->text[len] = ']';
	text->name = name->text;
	text->name_len = len + 1;
}

static int add_text(struct sb_dict *dict, const struct text *text, uint32_t *ret_id)
{
	struct sb_dict_frame new = { .kind = text->kind };
	int err = add_string(dict, text->name, text->name_len, &new.name);

	if (!err && text->module_len)
		err = add_string(dict, text->module, text->module_len, &new.module);
	if (!err)
		err = add_frame(dict, &new, ret_id);
	return err ? err : note(dict, &dict->texts_ids, hash_text_at, *ret_id);
}

/* Without the length of the module. */
static struct text text_of(const struct sb_frame *frame)
{
	return (struct text){
		.name = frame->name,
		.name_len = strlen(frame->name),
		.module = frame->module ? frame->module : "",
		.module_id = SB_DICT_NONE,
		.kind = (uint32_t)frame->mark << SB_DICT_MARK_SHIFT | (uint32_t)frame->kind << 1 |
			frame->is_unnamed,
	};
}

/* The frame with this text among the candidates from @it on, or SB_IDS_NONE. */
static uint32_t find_text(const struct sb_dict *dict, const struct text *text,
			  struct sb_ids_iter it)
{
	for (; it.id != SB_IDS_NONE; it = sb_ids_next(&dict->texts_ids, it)) {
		const struct sb_dict_frame *have = &dict->frames.at[it.id];

		if (have->kind == text->kind &&
		    is_text(dict, have->name, text->name, text->name_len) &&
		    (have->module == text->module_id ||
		     is_text(dict, have->module, text->module, text->module_len)))
			break;
	}
	return it.id;
}

int sb_dict_frame(struct sb_dict *dict, const struct sb_frame *frame, uint32_t *ret_id)
{
	struct text text = text_of(frame);
	struct name name, module;
	uint32_t id;
	int err = need_indexes(dict);

	if (err)
		return err;
	text.module_len = strlen(text.module);
	cut_name(dict, &text.name, &text.name_len, &name);
	drop_address(&text, &name);
	cut_name(dict, &text.module, &text.module_len, &module);
	id = find_text(dict, &text, sb_ids_first(&dict->texts_ids, hash_text(&text)));
	if (id == SB_IDS_NONE)
		return add_text(dict, &text, ret_id);
	*ret_id = id;
	return 0;
}

/* One of the look-ups that are made together. Each has to wait for memory four times, and all wait
 * at the same time. */
struct lookup {
	struct text text;
	uint64_t hash;
	struct sb_ids_iter it;
};

/* What was found out about the module of frames of a kind. Frames of a profile share the texts of
 * their modules, so that the pointer tells. */
struct module {
	const char *text;
	size_t len;
	uint64_t hash;
	uint32_t kind, id;
};
#define NR_MODULES 64u

/* Where the module of @text is, or belongs. */
static struct module *module_at(struct module modules[NR_MODULES], const struct text *text)
{
	const uintptr_t at = (uintptr_t)text->module;

	return &modules[(at ^ at / NR_MODULES ^ text->kind) % NR_MODULES];
}

static bool is_module(const struct module *module, const struct text *text)
{
	return module->text == text->module && module->kind == text->kind;
}

static void set_text(struct lookup *lookup, const struct sb_frame *frame,
		     struct module modules[NR_MODULES])
{
	struct text *text = &lookup->text;
	struct module *module;

	*text = text_of(frame);
	module = module_at(modules, text);
	if (!is_module(module, text)) {
		text->module_len = strlen(text->module);
		*module = (struct module){ .text = text->module,
					   .len = text->module_len,
					   .hash = hash_module(text),
					   .kind = text->kind,
					   .id = SB_DICT_NONE };
	}
	text->module_len = module->len;
	text->module_id = module->id;
	lookup->hash = sb_hash(text->name, text->name_len, module->hash);
}

static uint32_t find_frame(const struct sb_dict *dict, const struct lookup *lookup,
			   struct module modules[NR_MODULES])
{
	const uint32_t id = find_text(dict, &lookup->text, lookup->it);
	struct module *module = module_at(modules, &lookup->text);

	if (id != SB_IDS_NONE && is_module(module, &lookup->text))
		module->id = dict->frames.at[id].module;
	return id;
}

static void fetch_string(const struct sb_dict *dict, uint32_t frame)
{
	const char *s = dict->strings.strs.at[dict->frames.at[frame].name].s;

	__builtin_prefetch(s);
	__builtin_prefetch(s + 64);
}

static void find_batch(const struct sb_dict *dict, struct lookup *lookups, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		sb_ids_prefetch(&dict->texts_ids, lookups[i].hash);
	for (i = 0; i < nr; i++) {
		lookups[i].it = sb_ids_first(&dict->texts_ids, lookups[i].hash);
		if (lookups[i].it.id != SB_IDS_NONE)
			__builtin_prefetch(&dict->frames.at[lookups[i].it.id]);
	}
	for (i = 0; i < nr; i++)
		if (lookups[i].it.id != SB_IDS_NONE)
			__builtin_prefetch(
				&dict->strings.strs.at[dict->frames.at[lookups[i].it.id].name]);
	for (i = 0; i < nr; i++)
		if (lookups[i].it.id != SB_IDS_NONE)
			fetch_string(dict, lookups[i].it.id);
}

void sb_dict_find_frames(const struct sb_dict *dict, const struct sb_profile *profile,
			 uint32_t *ids)
{
	const size_t nr = sb_profile_nr_frames(profile);
	struct module modules[NR_MODULES] = {};
	struct lookup lookups[SB_DICT_BATCH];
	size_t begin, i, nr_batch;

	for (begin = 0; begin < nr; begin += nr_batch) {
		nr_batch = nr - begin < SB_DICT_BATCH ? nr - begin : SB_DICT_BATCH;
		for (i = 0; i < nr_batch; i++)
			set_text(&lookups[i], sb_profile_frame_at(profile, (uint32_t)(begin + i)),
				 modules);
		find_batch(dict, lookups, nr_batch);
		for (i = 0; i < nr_batch; i++)
			ids[begin + i] = find_frame(dict, &lookups[i], modules);
	}
}

int sb_dict_node(struct sb_dict *dict, uint32_t parent, uint32_t frame, uint32_t *ret_id)
{
	struct sb_ids_iter it;
	int err = need_indexes(dict);

	if (err)
		return err;
	for (it = sb_ids_first(&dict->nodes_ids, hash_pair(parent, frame)); it.id != SB_IDS_NONE;
	     it = sb_ids_next(&dict->nodes_ids, it))
		if (dict->nodes.at[it.id].parent == parent &&
		    dict->nodes.at[it.id].frame == frame) {
			*ret_id = it.id;
			return 0;
		}
	err = sb_dict_need_room(dict, SB_DICT_PART_NODES, 1);
	if (!err)
		err = sb_vec_push(&dict->nodes, (struct sb_dict_node){ parent, frame });
	if (err)
		return err;
	sb_dict_charge(dict, SB_DICT_PART_NODES, 1);
	*ret_id = (uint32_t)dict->nodes.nr - 1;
	return note(dict, &dict->nodes_ids, hash_node_at, *ret_id);
}

int sb_dict_push_tags(struct sb_dict *dict, const struct sb_dict_pair *pairs, uint32_t nr)
{
	uint32_t i;
	int err = sb_dict_need_room(dict, SB_DICT_PART_TAGS, 1);

	if (!err)
		err = sb_vec_reserve(&dict->pairs, dict->pairs.nr + nr);
	if (!err)
		err = sb_vec_push(&dict->tags,
				  (struct sb_dict_tags){ (uint32_t)dict->pairs.nr, nr });
	for (i = 0; i < nr && !err; i++)
		dict->pairs.at[dict->pairs.nr++] = pairs[i];
	if (!err)
		sb_dict_charge(dict, SB_DICT_PART_TAGS, 1);
	return err;
}

static bool is_path(const struct sb_dict *dict, uint32_t node, const uint32_t *frames, size_t nr)
{
	for (; nr && node; node = dict->nodes.at[node].parent)
		if (dict->nodes.at[node].frame != frames[--nr])
			return false;
	return !nr && !node;
}

static uint32_t find_path(const struct sb_dict *dict, const uint32_t *frames, size_t nr,
			  struct sb_ids_iter it)
{
	while (it.id != SB_IDS_NONE && !is_path(dict, it.id, frames, nr))
		it = sb_ids_next(&dict->paths_ids, it);
	return it.id;
}

static uint32_t find_row(const struct sb_dict *dict, uint32_t tags, uint32_t node,
			 struct sb_ids_iter it)
{
	while (it.id != SB_IDS_NONE &&
	       (dict->rows.at[it.id].tags != tags || dict->rows.at[it.id].node != node))
		it = sb_ids_next(&dict->rows_ids, it);
	return it.id;
}

/* Set `row` of @paths, whose nodes are known or SB_DICT_NONE, which no row has. */
static void find_rows(const struct sb_dict *dict, uint32_t tags, struct sb_dict_path *paths,
		      size_t nr)
{
	struct sb_ids_iter its[SB_DICT_BATCH];
	uint64_t hashes[SB_DICT_BATCH];
	size_t i;

	for (i = 0; i < nr; i++) {
		hashes[i] = hash_pair(tags, paths[i].node);
		sb_ids_prefetch(&dict->rows_ids, hashes[i]);
	}
	for (i = 0; i < nr; i++) {
		its[i] = sb_ids_first(&dict->rows_ids, hashes[i]);
		if (its[i].id != SB_IDS_NONE)
			__builtin_prefetch(&dict->rows.at[its[i].id]);
	}
	for (i = 0; i < nr; i++)
		paths[i].row = find_row(dict, tags, paths[i].node, its[i]);
}

void sb_dict_find_paths(const struct sb_dict *dict, uint32_t tags, struct sb_dict_path *paths,
			size_t nr)
{
	struct sb_ids_iter its[SB_DICT_BATCH];
	uint64_t hashes[SB_DICT_BATCH];
	size_t i;

	for (i = 0; i < nr; i++) {
		hashes[i] = hash_path(paths[i].frames, paths[i].nr);
		sb_ids_prefetch(&dict->paths_ids, hashes[i]);
	}
	for (i = 0; i < nr; i++) {
		its[i] = sb_ids_first(&dict->paths_ids, hashes[i]);
		if (its[i].id != SB_IDS_NONE)
			__builtin_prefetch(&dict->nodes.at[its[i].id]);
	}
	for (i = 0; i < nr; i++)
		paths[i].node = find_path(dict, paths[i].frames, paths[i].nr, its[i]);
	find_rows(dict, tags, paths, nr);
}

int sb_dict_path(struct sb_dict *dict, const uint32_t *frames, size_t nr, uint32_t *ret_id)
{
	uint32_t node = 0, known;
	size_t i;
	int err = need_indexes(dict);

	if (err)
		return err;
	known = find_path(dict, frames, nr, sb_ids_first(&dict->paths_ids, hash_path(frames, nr)));
	if (known != SB_IDS_NONE) {
		*ret_id = known;
		return 0;
	}
	for (i = 0; i < nr && !err; i++)
		err = sb_dict_node(dict, node, frames[i], &node);
	/* Deeper paths are looked up node by node. */
	if (!err && nr && nr <= SB_DICT_DEPTH_MAX)
		err = note(dict, &dict->paths_ids, hash_path_at, node);
	if (!err)
		*ret_id = node;
	return err;
}

static int add_tags(struct sb_dict *dict, const struct sb_dict_pair *pairs, uint32_t nr,
		    uint32_t *ret_id)
{
	uint64_t hash = sb_hash(pairs, nr * sizeof(*pairs), nr);
	struct sb_ids_iter it;
	int err;

	for (it = sb_ids_first(&dict->tags_ids, hash); it.id != SB_IDS_NONE;
	     it = sb_ids_next(&dict->tags_ids, it)) {
		const struct sb_dict_tags *tags = &dict->tags.at[it.id];

		if (tags->nr == nr && tags->first != SB_DICT_NONE &&
		    (!nr || !memcmp(dict->pairs.at + tags->first, pairs, nr * sizeof(*pairs)))) {
			*ret_id = it.id;
			return 0;
		}
	}
	err = sb_dict_push_tags(dict, pairs, nr);
	if (err)
		return err;
	*ret_id = (uint32_t)dict->tags.nr - 1;
	return note(dict, &dict->tags_ids, hash_tags_at, *ret_id);
}

static int add_value(struct sb_dict *dict, const char *value, uint32_t *ret_id)
{
	size_t len = strlen(value);
	struct name name;

	cut_name(dict, &value, &len, &name);
	return add_string(dict, value, len, ret_id);
}

int sb_dict_tags(struct sb_dict *dict, const struct sb_tag *tags, size_t nr, uint32_t *ret_id)
{
	struct sb_dict_pair pairs[SB_DICT_TAGS_MAX];
	size_t i;
	int err = need_indexes(dict);

	if (nr > SB_DICT_TAGS_MAX)
		return -E2BIG;
	for (i = 0; i < nr && !err; i++) {
		err = add_string(dict, tags[i].key, strlen(tags[i].key), &pairs[i].key);
		if (!err)
			err = add_value(dict, tags[i].value, &pairs[i].value);
		if (!err)
			pairs[i].key = pairs[i].key << 1 | tags[i].is_wide;
	}
	return err ? err : add_tags(dict, pairs, (uint32_t)nr, ret_id);
}

int sb_dict_row(struct sb_dict *dict, uint32_t tags, uint32_t node, uint32_t *ret_id)
{
	uint32_t known;
	int err = need_indexes(dict);

	if (err)
		return err;
	known = find_row(dict, tags, node, sb_ids_first(&dict->rows_ids, hash_pair(tags, node)));
	if (known != SB_IDS_NONE) {
		*ret_id = known;
		return 0;
	}
	err = sb_dict_need_room(dict, SB_DICT_PART_ROWS, 1);
	if (!err)
		err = sb_vec_push(&dict->rows, (struct sb_dict_row){ tags, node });
	if (err)
		return err;
	sb_dict_charge(dict, SB_DICT_PART_ROWS, 1);
	*ret_id = (uint32_t)dict->rows.nr - 1;
	return note(dict, &dict->rows_ids, hash_row_at, *ret_id);
}

size_t sb_dict_tags_at(const struct sb_dict *dict, uint32_t id,
		       struct sb_tag ret_tags[SB_DICT_TAGS_MAX])
{
	const struct sb_dict_tags *tags;
	uint32_t i;

	if (id >= dict->tags.nr)
		return 0;
	tags = &dict->tags.at[id];
	for (i = 0; i < tags->nr; i++) {
		const struct sb_dict_pair *pair = &dict->pairs.at[tags->first + i];

		ret_tags[i] = (struct sb_tag){
			.key = sb_strtab_get(&dict->strings, pair->key >> 1, NULL),
			.value = sb_strtab_get(&dict->strings, pair->value, NULL),
			.is_wide = pair->key & 1,
		};
	}
	return tags->nr;
}

struct sb_frame sb_dict_frame_at(const struct sb_dict *dict, uint32_t id)
{
	const struct sb_dict_frame *frame = id < dict->frames.nr ? &dict->frames.at[id] : NULL;

	if (!frame || frame->name == SB_DICT_NONE)
		return (struct sb_frame){ .name = SB_DICT_LOST, .kind = SB_FRAME_MARK };
	return (struct sb_frame){
		.name = sb_strtab_get(&dict->strings, frame->name, NULL),
		.module = frame->module ? sb_strtab_get(&dict->strings, frame->module, NULL) : NULL,
		.kind = (frame->kind & SB_DICT_KIND_MASK) >> 1,
		.is_unnamed = frame->kind & 1,
		.mark = (uint8_t)(frame->kind >> SB_DICT_MARK_SHIFT),
	};
}
