// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/search.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

/* Files of one search; a store whose sums are there needs a dozen. */
#define PARTS_MAX 4096u

/* Files. */

static void free_part(struct sb_part *part)
{
	if (part->is_there)
		sb_segment_release(&part->segment);
	sb_resum_release(&part->resum);
	sb_atlas_map_release(&part->map);
	sb_joints_release(&part->joints);
	sb_marks_release(&part->marks);
	free(part);
}

static size_t bytes_of(const struct sb_part *part)
{
	if (!part->is_there)
		return 0;
	return sb_dict_bytes(&part->segment.dict) + sb_resum_bytes(&part->resum) +
	       (part->map.frame.nr + part->map.node.nr) * sizeof(uint32_t) +
	       sb_joints_bytes(&part->joints) + part->marks.of_row.nr * sizeof(uint16_t) +
	       part->segment.blocks.nr * sizeof(struct sb_record) + part->segment.window.cap +
	       part->segment.raw.cap;
}

void sb_store_forget_atlas(struct sb_store *store)
{
	size_t i;

	for (i = 0; i < store->parts.nr; i++)
		sb_atlas_map_release(&store->parts.at[i]->map);
	sb_atlas_release(&store->atlas);
}

/* Each time of one question, which is of several files. */
static void evict_sums(struct sb_store *store)
{
	size_t i, nr_bytes;
	uint64_t oldest, at;

	for (;;) {
		nr_bytes = 0;
		oldest = UINT64_MAX;
		for (i = 0; i < store->parts.nr; i++) {
			nr_bytes += sb_resum_bytes(&store->parts.at[i]->resum);
			at = sb_resum_oldest(&store->parts.at[i]->resum);
			oldest = at < oldest ? at : oldest;
		}
		if (nr_bytes <= SB_STORE_SUMS_BYTES || oldest == UINT64_MAX)
			return;
		for (i = 0; i < store->parts.nr; i++)
			sb_resum_drop(&store->parts.at[i]->resum, oldest);
	}
}

/* What was not used for longest goes first. */
static void evict(struct sb_store *store)
{
	size_t i, oldest, nr_bytes = sb_unpacked_bytes(&store->unpacked);

	evict_sums(store);
	for (i = 0; i < store->parts.nr; i++)
		nr_bytes += bytes_of(store->parts.at[i]);
	while (store->parts.nr &&
	       (nr_bytes > SB_STORE_CACHE_BYTES || store->parts.nr > SB_STORE_CACHE_FILES)) {
		for (oldest = 0, i = 1; i < store->parts.nr; i++)
			if (store->parts.at[i]->used < store->parts.at[oldest]->used)
				oldest = i;
		nr_bytes -= bytes_of(store->parts.at[oldest]);
		free_part(store->parts.at[oldest]);
		store->parts.at[oldest] = store->parts.at[--store->parts.nr];
	}
	/* It does not forget what was in files that are gone. */
	if (sb_atlas_bytes(&store->atlas) > SB_ATLAS_BYTES_MAX)
		sb_store_forget_atlas(store);
}

void sb_store_forget_parts(struct sb_store *store)
{
	size_t i;

	for (i = 0; i < store->parts.nr; i++)
		free_part(store->parts.at[i]);
	sb_vec_release(&store->parts);
	sb_atlas_release(&store->atlas);
	sb_vec_release(&store->self);
	sb_vec_release(&store->total);
	sb_drawing_release(&store->drawing);
	sb_unpacked_release(&store->unpacked);
}

static int read_part(struct sb_store *store, struct sb_part *part)
{
	struct stat st;
	int err = sb_segment_read(&part->segment, store->dir_fd, part->name);

	if (err)
		return err == -ENOENT ? 0 : err;
	part->is_there = true;
	part->segment.unpacked = &store->unpacked;
	if (fstat(part->segment.fd, &st))
		return -errno;
	part->dev = st.st_dev;
	part->ino = st.st_ino;
	return 0;
}

/* What was read is still a beginning of the file of that name; or it is read again. */
static int refresh_part(struct sb_store *store, struct sb_part *part)
{
	struct stat st;
	int err = -ESTALE;

	if (part->is_there && !fstatat(store->dir_fd, part->name, &st, AT_SYMLINK_NOFOLLOW) &&
	    st.st_dev == part->dev && st.st_ino == part->ino)
		err = sb_segment_refresh(&part->segment);
	if (!err)
		return 0;
	if (part->is_there)
		sb_segment_release(&part->segment);
	part->is_there = false;
	sb_atlas_map_release(&part->map);
	sb_joints_release(&part->joints);
	sb_marks_release(&part->marks);
	sb_resum_forget(&part->resum);
	return read_part(store, part);
}

uint64_t sb_store_skipped_bytes(const struct sb_store *store, const struct sb_segment *segment)
{
	uint64_t nr = segment->nr_skipped_bytes;

	if (segment->nr_tail_bytes && !sb_store_has_writer(store))
		nr += segment->nr_tail_bytes;
	return nr;
}

/* As it is now. */
static int use_part(struct sb_search *search, struct sb_part *part)
{
	int err = refresh_part(search->store, part);

	part->used = search->store->nr_queries;
	if (err || !part->is_there)
		return err;
	search->answer->nr_damaged += part->segment.nr_damaged;
	search->answer->nr_skipped_bytes += sb_store_skipped_bytes(search->store, &part->segment);
	return 0;
}

static int new_part(struct sb_store *store, const char *name, struct sb_part **ret_part)
{
	struct sb_part *part = calloc(1, sizeof(*part));
	int err = part ? sb_vec_push(&store->parts, part) : -ENOMEM;

	if (err) {
		free(part);
		return err;
	}
	memcpy(part->name, name, sizeof(part->name));
	*ret_part = part;
	return 0;
}

int sb_search_part(struct sb_search *search, size_t level, int64_t time_s,
		   struct sb_part **ret_part)
{
	struct sb_store *store = search->store;
	struct sb_part *part = search->last[level];
	char name[SB_LEVEL_NAME_MAX] = "";
	size_t i;
	int err = 0;

	sb_level_file(level, time_s, name);
	*ret_part = part;
	if (part && sb_streq(part->name, name))
		return 0;
	for (i = 0, part = NULL; i < store->parts.nr && !part; i++)
		if (sb_streq(store->parts.at[i]->name, name))
			part = store->parts.at[i];
	if (!part)
		err = new_part(store, name, &part);
	if (err)
		return err;
	search->last[level] = *ret_part = part;
	if (part->used == store->nr_queries)
		return 0;
	err = search->parts.nr < PARTS_MAX ? sb_vec_push(&search->parts, part) : -E2BIG;
	return err ? err : use_part(search, part);
}

/* Blocks. */

/* Return: whether its weights can be added to those before. */
static bool is_of_unit(struct sb_search *search, const struct sb_record *block)
{
	struct sb_store_kind *kind = &search->answer->kind;

	if (!kind->name[0])
		*kind = block->kind;
	if (sb_streq(kind->unit, block->kind.unit))
		return true;
	search->answer->nr_other_unit++;
	return false;
}

/* All blocks of a part that begin in [from, to). Return: how many are whole, or a negative errno. */
static int add_blocks(struct sb_search *search, struct sb_part *part, int64_t from_s, int64_t to_s)
{
	struct sb_store_answer *answer = search->answer;
	const struct sb_segment *segment = &part->segment;
	size_t i, end = part->is_there ? sb_segment_find(segment, to_s) : 0;
	int nr = 0, err;

	for (i = end ? sb_segment_find(segment, from_s) : 0; i < end; i++) {
		const struct sb_record *block = &segment->blocks.at[i];

		if (!sb_streq(block->kind.name, search->kind) || !is_of_unit(search, block))
			continue;
		/* Files may say anything. */
		err = sb_record_is_of_level(block) ? search->visit(search, part, block) : -EBADMSG;
		answer->nr_damaged += err == -EBADMSG;
		if (err == -EBADMSG)
			continue;
		if (err)
			return err;
		nr++;
		answer->nr_blocks++;
		if (!answer->from_s || block->begin_s < answer->from_s)
			answer->from_s = block->begin_s;
		if (block->begin_s + (int64_t)block->seconds > answer->to_s)
			answer->to_s = block->begin_s + block->seconds;
	}
	return nr;
}

static int64_t min_s(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t max_s(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Which times have files. */

struct listing {
	struct sb_search *search;
	size_t level;
};

static int note_file(void *arg, const char *name, int64_t begin_s)
{
	struct listing *listing = arg;
	struct sb_search_file file = { begin_s, sb_level_file_end(listing->level, begin_s) };

	return sb_vec_push(&listing->search->files[listing->level], file);
}

static int list_files(struct sb_search *search)
{
	struct listing listing = { .search = search };
	int err = 0;

	if (search->has_files)
		return 0;
	for (; listing.level < SB_STORE_LEVELS && !err; listing.level++)
		err = sb_store_each_file(search->store, listing.level, note_file, &listing);
	search->has_files = !err;
	return err;
}

/* The first time from @time_s on that a file of @level or a finer one has; INT64_MAX: there is none. The calendar is
 * long, and one block of a clock that was wrong is at its other end. */
static int64_t next_there(const struct sb_search *search, size_t level, int64_t time_s)
{
	int64_t next_s = INT64_MAX;
	size_t i, from, to, middle;

	for (i = 0; i <= level; i++) {
		const struct sb_search_file *files = search->files[i].at;

		for (from = 0, to = search->files[i].nr; from < to;) {
			middle = from + (to - from) / 2;
			if (files[middle].end_s <= time_s)
				from = middle + 1;
			else
				to = middle;
		}
		if (from < search->files[i].nr)
			next_s = min_s(next_s, max_s(time_s, files[from].begin_s));
	}
	return next_s;
}

/* The finest blocks. Return: how many, or a negative errno. */
static int cover_fine(struct sb_search *search, int64_t from_s, int64_t to_s)
{
	int nr = 0, ret;

	while ((from_s = next_there(search, 0, from_s)) < to_s) {
		int64_t end_s = min_s(to_s, sb_level_file_end(0, from_s));
		struct sb_part *part;

		ret = sb_search_part(search, 0, from_s, &part);
		if (!ret)
			ret = add_blocks(search, part, from_s, end_s);
		if (ret < 0)
			return ret;
		nr += ret;
		from_s = end_s;
	}
	return nr;
}

static bool has_block(const struct sb_search *search, const struct sb_part *part, int64_t from_s,
		      int64_t to_s)
{
	const struct sb_segment *segment = &part->segment;
	size_t i, end = part->is_there ? sb_segment_find(segment, to_s) : 0;

	for (i = end ? sb_segment_find(segment, from_s) : 0; i < end; i++)
		if (sb_streq(segment->blocks.at[i].kind.name, search->kind))
			return true;
	return false;
}

/* Return: 1: no finer blocks of a period of @level are kept any more, 0, or a negative errno. A file that is there
 * says nothing: it may have been removed, and made anew for the rest of its time. */
static int is_expired(struct sb_search *search, size_t level, int64_t begin_s)
{
	int64_t end_s = begin_s + (int64_t)sb_levels[level].seconds;
	struct sb_part *part;
	int err = 0;

	while (level-- && !err) {
		err = sb_search_part(search, level, begin_s, &part);
		if (!err && has_block(search, part, begin_s, end_s))
			return 0;
	}
	return err ? err : 1;
}

/* Periods of which finer blocks are left, but not all of them. */

/* For how long was sampled in [from, to), which is of one file of @level, by its blocks. Return: how many times have
 * one, or a negative errno; -EBADMSG: some of it is damaged, which the answer says by itself. */
static int sampled_in(struct sb_search *search, size_t level, int64_t from_s, int64_t to_s,
		      bool is_read, uint64_t *sampled_ms)
{
	struct sb_part *part;
	int64_t last_s = INT64_MIN;
	size_t i, end;
	int nr = 0, err = sb_search_part(search, level, from_s, &part);

	if (err || !part->is_there)
		return err;
	if (part->segment.nr_skipped_bytes)
		return -EBADMSG;
	end = sb_segment_find(&part->segment, to_s);
	for (i = sb_segment_find(&part->segment, from_s); i < end && !err; i++) {
		const struct sb_record *block = &part->segment.blocks.at[i];

		if (!sb_streq(block->kind.name, search->kind))
			continue;
		nr += block->begin_s != last_s;
		last_s = block->begin_s;
		if (is_read)
			err = sb_segment_sampled(&part->segment, block, sampled_ms);
	}
	return err ? err : nr;
}

/* The same, where there is none by blocks of the levels below. Four levels deep. Return: 0 or a negative errno. */
static int sampled_below(struct sb_search *search, size_t level, int64_t from_s, int64_t to_s,
			 uint64_t *sampled_ms)
{
	int64_t step_s = level ? sb_levels[level].seconds : to_s - from_s;
	int ret = 0;

	for (; from_s < to_s && ret >= 0; from_s += step_s) {
		if (next_there(search, level, from_s) >= from_s + step_s)
			continue;
		ret = sampled_in(search, level, from_s, from_s + step_s, true, sampled_ms);
		if (!ret && level)
			ret = sampled_below(search, level - 1, from_s, from_s + step_s, sampled_ms);
	}
	return ret < 0 ? ret : 0;
}

static int find_partial(struct sb_search *search, size_t level, int64_t begin_s)
{
	int64_t end_s = begin_s + (int64_t)sb_levels[level].seconds;
	uint64_t sampled_ms = 0, left_ms = 0;
	int ret = sampled_in(search, level - 1, begin_s, end_s, false, &left_ms);

	/* As many as there can be. */
	if (ret < 0 || ret >= (int)(sb_levels[level].seconds / sb_levels[level - 1].seconds))
		return ret < 0 ? ret : 0;
	ret = sampled_in(search, level, begin_s, end_s, true, &sampled_ms);
	if (ret > 0)
		ret = sampled_below(search, level - 1, begin_s, end_s, &left_ms);
	return ret < 0 ? ret : left_ms < sampled_ms;
}

/* Return: 1: finer blocks of a period of @level are not all that it sums up, 0, or a negative errno. */
static int is_partial(struct sb_search *search, size_t level, int64_t begin_s)
{
	int ret;

	if (search->looked[level].is_known && search->looked[level].begin_s == begin_s)
		return search->looked[level].is_partial;
	ret = find_partial(search, level, begin_s);
	if (ret == -EBADMSG)
		ret = 0;
	search->looked[level].begin_s = begin_s;
	search->looked[level].is_known = ret >= 0;
	search->looked[level].is_partial = ret > 0;
	return ret;
}

/*
 * A block of @level for each of its periods that is in the range as a whole, finer ones for the rest. Where
 * some of these are gone, the whole block: more than was asked for, which the answer says. Four levels deep.
 * Return: how many blocks, or a negative errno.
 */
static int cover(struct sb_search *search, size_t level, int64_t from_s, int64_t to_s)
{
	int64_t begin_s, end_s, there_s;
	struct sb_part *part;
	bool is_whole;
	int nr = 0, ret;

	if (!level)
		return cover_fine(search, from_s, to_s);
	for (there_s = from_s;; there_s = end_s) {
		there_s = next_there(search, level, there_s);
		if (there_s >= to_s)
			return nr;
		begin_s = sb_level_begin(level, there_s);
		end_s = begin_s + sb_levels[level].seconds;
		is_whole = begin_s >= from_s && end_s <= to_s;
		ret = sb_search_part(search, level, begin_s, &part);
		if (!ret && !is_whole && part->is_there) {
			ret = is_partial(search, level, begin_s);
			is_whole = ret > 0;
			ret = ret < 0 ? ret : 0;
		}
		if (!ret && is_whole)
			ret = add_blocks(search, part, begin_s, end_s);
		if (!ret)
			ret = cover(search, level - 1, max_s(from_s, begin_s), min_s(to_s, end_s));
		if (!ret && !is_whole && part->is_there) {
			ret = is_expired(search, level, begin_s);
			if (ret > 0)
				ret = add_blocks(search, part, begin_s, end_s);
		}
		if (ret < 0)
			return ret;
		nr += ret;
	}
}

/* Ranges. */

/* To the time of which there are files. */
static int narrow(struct sb_search *search, int64_t *from_s, int64_t *to_s)
{
	int64_t first_s = INT64_MAX, last_s = INT64_MIN;
	size_t i;
	int err = list_files(search);

	for (i = 0; i < SB_STORE_LEVELS; i++) {
		if (!search->files[i].nr)
			continue;
		first_s = min_s(first_s, search->files[i].at[0].begin_s);
		last_s = max_s(last_s, search->files[i].at[search->files[i].nr - 1].end_s);
	}
	*from_s = max_s(*from_s, first_s);
	*to_s = min_s(*to_s, last_s);
	return err;
}

static void release_files(struct sb_search *search)
{
	for (size_t i = 0; i < SB_STORE_LEVELS; i++)
		sb_vec_release(&search->files[i]);
}

int sb_search_narrow(struct sb_store *store, int64_t *from_s, int64_t *to_s)
{
	struct sb_search search = { .store = store };
	int err = narrow(&search, from_s, to_s);

	release_files(&search);
	return err;
}

void sb_search_begin(struct sb_search *search)
{
	*search->answer = (struct sb_store_answer){};
	search->store->nr_queries++;
}

int sb_search_cover(struct sb_search *search, int64_t from_s, int64_t to_s)
{
	int ret = list_files(search);

	if (!ret)
		ret = cover(search, search->is_fine_only ? 0 : SB_STORE_LEVELS - 1, from_s, to_s);
	return ret < 0 ? ret : 0;
}

int sb_search_range(struct sb_search *search, int64_t from_s, int64_t to_s)
{
	int err;

	if (from_s >= to_s)
		return -EINVAL;
	err = narrow(search, &from_s, &to_s);
	if (err || from_s >= to_s)
		return err;
	from_s = sb_level_begin(0, from_s);
	if (to_s % SB_STORE_BLOCK_S)
		to_s = sb_level_begin(0, to_s) + SB_STORE_BLOCK_S;
	return sb_search_cover(search, from_s, to_s);
}

/* A visit(). */
static int add_to_sums(struct sb_search *search, struct sb_part *part,
		       const struct sb_record *block)
{
	int err = sb_resum_begin(&part->resum, &part->segment, search->store->nr_queries);

	return err ? err : sb_resum_add(&part->resum, &part->segment, block);
}

/* Of parts of which no block was asked for, too. */
static int end_sums(struct sb_search *search, struct sb_part *part)
{
	uint64_t nr_damaged;
	int err = sb_resum_begin(&part->resum, &part->segment, search->store->nr_queries);

	if (!err)
		err = sb_resum_end(&part->resum, &part->segment, &nr_damaged);
	if (err)
		return err;
	search->answer->nr_damaged += nr_damaged;
	search->answer->nr_blocks -= nr_damaged;
	return 0;
}

int sb_search_sums(struct sb_search *search, int64_t from_s, int64_t to_s)
{
	size_t i;
	int err;

	search->visit = add_to_sums;
	err = sb_search_range(search, from_s, to_s);
	for (i = 0; i < search->parts.nr && !err; i++)
		if (search->parts.at[i]->is_there)
			err = end_sums(search, search->parts.at[i]);
	return err;
}

void sb_search_end(struct sb_search *search)
{
	sb_vec_release(&search->parts);
	release_files(search);
	evict(search->store);
}

/* Tags. */

/* Those that are in sums whatever was recorded need no look. */
static bool is_narrow(const char *key)
{
	static const char *const keys[] = { "host",	 "service", "cgroup",  "unit",
					    "container", "comm",    "runtime", "uid" };
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(keys); i++)
		if (sb_streq(keys[i], key))
			return true;
	return false;
}

static bool is_wide(const struct sb_dict *dict, const char *key)
{
	size_t i;

	for (i = 0; i < dict->pairs.nr; i++)
		if ((dict->pairs.at[i].key & 1) &&
		    sb_streq(sb_strtab_get(&dict->strings, dict->pairs.at[i].key >> 1, NULL), key))
			return true;
	return false;
}

/* In any file of the range. */
static int look_for(struct sb_search *search, const char *key, int64_t from_s, int64_t to_s)
{
	struct sb_part *part;
	int err = 0;

	if (is_narrow(key))
		return 0;
	while (!err && !search->is_fine_only && (from_s = next_there(search, 0, from_s)) < to_s) {
		err = sb_search_part(search, 0, from_s, &part);
		if (!err && part->is_there)
			search->is_fine_only = is_wide(&part->segment.dict, key);
		from_s = sb_level_file_end(0, from_s);
	}
	return err;
}

int sb_search_tags(struct sb_search *search, const struct sb_tag_rules *rules, const char *by,
		   int64_t from_s, int64_t to_s)
{
	char key[SB_TAG_KEY_BYTES];
	size_t i;
	int err = narrow(search, &from_s, &to_s);

	for (i = 0; rules && i < rules->rules.nr && !err; i++)
		err = look_for(search, rules->rules.at[i].key, from_s, to_s);
	while (by && !err) {
		by = sb_tag_list_next(by, key);
		err = look_for(search, key, from_s, to_s);
	}
	search->answer->is_fine_only = search->is_fine_only;
	return err;
}

int sb_wanted_init(struct sb_wanted *wanted, const struct sb_dict *dict,
		   const struct sb_tag_rules *rules)
{
	*wanted = (struct sb_wanted){ .dict = dict, .rules = rules };
	wanted->is_wanted = malloc(dict->tags.nr + 1);
	if (!wanted->is_wanted)
		return -ENOMEM;
	memset(wanted->is_wanted, 0xff, dict->tags.nr + 1);
	return 0;
}

bool sb_wanted_is(struct sb_wanted *wanted, uint32_t tags_id)
{
	struct sb_tag tags[SB_DICT_TAGS_MAX];
	size_t nr;

	if (wanted->is_wanted[tags_id] < 0) {
		nr = sb_dict_tags_at(wanted->dict, tags_id, tags);
		wanted->is_wanted[tags_id] =
			!wanted->rules || sb_tag_rules_match(wanted->rules, tags, nr);
	}
	return wanted->is_wanted[tags_id];
}

void sb_wanted_release(struct sb_wanted *wanted)
{
	free(wanted->is_wanted);
	wanted->is_wanted = NULL;
}
