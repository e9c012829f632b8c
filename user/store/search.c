// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/search.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/search.h"

/* Files of one search. A store that has its aggregates needs a dozen. */
#define PARTS_MAX 4096u

/* Files. */

static void free_kept_file(struct sb_kept_file *kept)
{
	if (kept->is_there)
		sb_segment_release(&kept->segment);
	sb_resum_release(&kept->resum);
	sb_merged_tree_map_release(&kept->map);
	sb_branches_release(&kept->branches);
	sb_missing_release(&kept->marks);
	free(kept);
}

static size_t bytes_of(const struct sb_kept_file *kept)
{
	if (!kept->is_there)
		return 0;
	return sb_dict_bytes(&kept->segment.dict) + sb_resum_bytes(&kept->resum) +
	       (kept->map.frame.nr + kept->map.node.nr) * sizeof(uint32_t) +
	       sb_branches_bytes(&kept->branches) + kept->marks.of_row.nr * sizeof(uint16_t) +
	       kept->segment.blocks.nr * sizeof(struct sb_record) + kept->segment.window.cap +
	       kept->segment.raw.cap;
}

void sb_store_forget_merged_tree(struct sb_store *store)
{
	size_t i;

	for (i = 0; i < store->kept_files.nr; i++)
		sb_merged_tree_map_release(&store->kept_files.at[i]->map);
	sb_merged_tree_release(&store->merged);
}

/* Evict the sums of the oldest query, in all files, until the rest fits. */
static void evict_sums(struct sb_store *store)
{
	size_t i, nr_bytes;
	uint64_t oldest, at;

	for (;;) {
		nr_bytes = 0;
		oldest = UINT64_MAX;
		for (i = 0; i < store->kept_files.nr; i++) {
			nr_bytes += sb_resum_bytes(&store->kept_files.at[i]->resum);
			at = sb_resum_oldest(&store->kept_files.at[i]->resum);
			oldest = at < oldest ? at : oldest;
		}
		if (nr_bytes <= SB_STORE_SUMS_BYTES || oldest == UINT64_MAX)
			return;
		for (i = 0; i < store->kept_files.nr; i++)
			sb_resum_drop(&store->kept_files.at[i]->resum, oldest);
	}
}

/* Evict the least recently used files. */
static void evict(struct sb_store *store)
{
	size_t i, oldest, nr_bytes = sb_unpacked_bytes(&store->unpacked);

	evict_sums(store);
	for (i = 0; i < store->kept_files.nr; i++)
		nr_bytes += bytes_of(store->kept_files.at[i]);
	while (store->kept_files.nr &&
	       (nr_bytes > SB_STORE_CACHE_BYTES || store->kept_files.nr > SB_STORE_CACHE_FILES)) {
		for (oldest = 0, i = 1; i < store->kept_files.nr; i++)
			if (store->kept_files.at[i]->used < store->kept_files.at[oldest]->used)
				oldest = i;
		nr_bytes -= bytes_of(store->kept_files.at[oldest]);
		free_kept_file(store->kept_files.at[oldest]);
		store->kept_files.at[oldest] = store->kept_files.at[--store->kept_files.nr];
	}
	/* It also has what was in files that were evicted. */
	if (sb_merged_tree_bytes(&store->merged) > SB_MERGED_TREE_BYTES_MAX)
		sb_store_forget_merged_tree(store);
}

void sb_store_forget_parts(struct sb_store *store)
{
	size_t i;

	for (i = 0; i < store->kept_files.nr; i++)
		free_kept_file(store->kept_files.at[i]);
	sb_vec_release(&store->kept_files);
	sb_merged_tree_release(&store->merged);
	sb_vec_release(&store->self);
	sb_vec_release(&store->total);
	sb_heaviest_scratch_release(&store->heaviest);
	sb_unpacked_release(&store->unpacked);
}

static int read_kept_file(struct sb_store *store, struct sb_kept_file *kept)
{
	struct stat st;
	int err = sb_segment_read(&kept->segment, store->dir_fd, kept->name);

	if (err)
		return err == -ENOENT ? 0 : err;
	kept->is_there = true;
	kept->segment.unpacked = &store->unpacked;
	if (fstat(kept->segment.fd, &st))
		return -errno;
	kept->dev = st.st_dev;
	kept->ino = st.st_ino;
	return 0;
}

/* Read what was appended; or read the file again if it is another one, or became shorter. */
static int refresh_kept_file(struct sb_store *store, struct sb_kept_file *kept)
{
	struct stat st;
	int err = -ESTALE;

	if (kept->is_there && !fstatat(store->dir_fd, kept->name, &st, AT_SYMLINK_NOFOLLOW) &&
	    st.st_dev == kept->dev && st.st_ino == kept->ino)
		err = sb_segment_refresh(&kept->segment);
	if (!err)
		return 0;
	if (kept->is_there)
		sb_segment_release(&kept->segment);
	kept->is_there = false;
	sb_merged_tree_map_release(&kept->map);
	sb_branches_release(&kept->branches);
	sb_missing_release(&kept->marks);
	sb_resum_forget(&kept->resum);
	return read_kept_file(store, kept);
}

uint64_t sb_store_skipped_bytes(const struct sb_store *store, const struct sb_segment *segment)
{
	uint64_t nr = segment->nr_skipped_bytes;

	if (segment->nr_tail_bytes && !sb_store_has_writer(store))
		nr += segment->nr_tail_bytes;
	return nr;
}

/* Bring a file up to date, and count its damage in the answer. */
static int use_kept_file(struct sb_search *search, struct sb_kept_file *kept)
{
	int err = refresh_kept_file(search->store, kept);

	kept->used = search->store->nr_queries;
	if (err || !kept->is_there)
		return err;
	search->answer->nr_damaged += kept->segment.nr_damaged;
	search->answer->nr_skipped_bytes += sb_store_skipped_bytes(search->store, &kept->segment);
	return 0;
}

static int new_kept_file(struct sb_store *store, const char *name, struct sb_kept_file **ret_kept)
{
	struct sb_kept_file *kept = calloc(1, sizeof(*kept));
	int err = kept ? sb_vec_push(&store->kept_files, kept) : -ENOMEM;

	if (err) {
		free(kept);
		return err;
	}
	memcpy(kept->name, name, sizeof(kept->name));
	*ret_kept = kept;
	return 0;
}

int sb_search_kept_file(struct sb_search *search, size_t level, int64_t time_s,
			struct sb_kept_file **ret_kept)
{
	struct sb_store *store = search->store;
	struct sb_kept_file *kept = search->last[level];
	char name[SB_LEVEL_NAME_MAX] = "";
	size_t i;
	int err = 0;

	sb_level_file(level, time_s, name);
	*ret_kept = kept;
	if (kept && sb_streq(kept->name, name))
		return 0;
	for (i = 0, kept = NULL; i < store->kept_files.nr && !kept; i++)
		if (sb_streq(store->kept_files.at[i]->name, name))
			kept = store->kept_files.at[i];
	if (!kept)
		err = new_kept_file(store, name, &kept);
	if (err)
		return err;
	search->last[level] = *ret_kept = kept;
	if (kept->used == store->nr_queries)
		return 0;
	err = search->kept_files.nr < PARTS_MAX ? sb_vec_push(&search->kept_files, kept) : -E2BIG;
	return err ? err : use_kept_file(search, kept);
}

/* Blocks. */

static int64_t min_s(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t max_s(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Return: whether the block has the unit of those before; others are counted and left out. */
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

/*
 * Visit all blocks of a file that begin in [from, to). Return: how many are valid, or a negative
 * errno.
 */
static int add_blocks(struct sb_search *search, struct sb_kept_file *kept, int64_t from_s,
		      int64_t to_s)
{
	struct sb_store_answer *answer = search->answer;
	const struct sb_segment *segment = &kept->segment;
	size_t i, end = kept->is_there ? sb_segment_find(segment, to_s) : 0;
	int nr = 0, err;

	for (i = end ? sb_segment_find(segment, from_s) : 0; i < end; i++) {
		const struct sb_record *block = &segment->blocks.at[i];

		if (!sb_streq(block->kind.name, search->kind) || !is_of_unit(search, block))
			continue;
		/* Files may be hostile. */
		err = sb_record_is_of_level(block) ? search->visit(search, kept, block) : -EBADMSG;
		answer->nr_damaged += err == -EBADMSG;
		if (err == -EBADMSG)
			continue;
		if (err)
			return err;
		nr++;
		answer->nr_blocks++;
		if (!answer->from_s || block->begin_s < answer->from_s)
			answer->from_s = block->begin_s;
		answer->to_s = max_s(answer->to_s, block->begin_s + block->seconds);
		answer->end_s = max_s(answer->end_s, sb_record_end(block));
	}
	return nr;
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

/*
 * Return: the first time from @time_s on for which @level or a finer one has a file; INT64_MAX if
 * there is none. The calendar is long, and a clock that was wrong can put a block at its other end.
 */
static int64_t next_there(const struct sb_search *search, size_t level, int64_t time_s)
{
	int64_t next_s = INT64_MAX;
	size_t i, first;

	for (i = 0; i <= level; i++) {
		const struct sb_search_file *files = search->files[i].at;

		first = sb_bisect(search->files[i].nr, at, files[at].end_s <= time_s);
		if (first < search->files[i].nr)
			next_s = min_s(next_s, max_s(time_s, files[first].begin_s));
	}
	return next_s;
}

/* Cover a range with 10-second blocks. Return: how many, or a negative errno. */
static int cover_fine(struct sb_search *search, int64_t from_s, int64_t to_s)
{
	int nr = 0, ret;

	while ((from_s = next_there(search, 0, from_s)) < to_s) {
		int64_t end_s = min_s(to_s, sb_level_file_end(0, from_s));
		struct sb_kept_file *kept;

		ret = sb_search_kept_file(search, 0, from_s, &kept);
		if (!ret)
			ret = add_blocks(search, kept, from_s, end_s);
		if (ret < 0)
			return ret;
		nr += ret;
		from_s = end_s;
	}
	return nr;
}

static bool has_block(const struct sb_search *search, const struct sb_kept_file *kept,
		      int64_t from_s, int64_t to_s)
{
	const struct sb_segment *segment = &kept->segment;
	size_t i, end = kept->is_there ? sb_segment_find(segment, to_s) : 0;

	for (i = end ? sb_segment_find(segment, from_s) : 0; i < end; i++)
		if (sb_streq(segment->blocks.at[i].kind.name, search->kind))
			return true;
	return false;
}

/*
 * Return: 1 if all finer blocks of a period of @level have expired; 0; a negative errno. It is not
 * enough that a file exists: it may have been removed, and created again for the rest of its time.
 */
static int is_expired(struct sb_search *search, size_t level, int64_t begin_s)
{
	int64_t end_s = begin_s + (int64_t)sb_levels[level].seconds;
	struct sb_kept_file *kept;
	int err = 0;

	while (level-- && !err) {
		err = sb_search_kept_file(search, level, begin_s, &kept);
		if (!err && has_block(search, kept, begin_s, end_s))
			return 0;
	}
	return err ? err : 1;
}

/* Periods of which some finer blocks have expired. */

/*
 * How long was sampled in [from, to), which is in one file of @level. Return: how many periods have
 * a block, or a negative errno; -EBADMSG if some of it is damaged, which the answer reports anyway.
 */
static int sampled_in(struct sb_search *search, size_t level, int64_t from_s, int64_t to_s,
		      bool is_read, uint64_t *sampled_ms)
{
	struct sb_kept_file *kept;
	int64_t last_s = INT64_MIN;
	size_t i, end;
	int nr = 0, err = sb_search_kept_file(search, level, from_s, &kept);

	if (err || !kept->is_there)
		return err;
	if (kept->segment.nr_skipped_bytes)
		return -EBADMSG;
	end = sb_segment_find(&kept->segment, to_s);
	for (i = sb_segment_find(&kept->segment, from_s); i < end && !err; i++) {
		const struct sb_record *block = &kept->segment.blocks.at[i];

		if (!sb_streq(block->kind.name, search->kind))
			continue;
		nr += block->begin_s != last_s;
		last_s = block->begin_s;
		if (is_read)
			err = sb_segment_sampled(&kept->segment, block, sampled_ms);
	}
	return err ? err : nr;
}

/*
 * The same with blocks of the levels below where there is none. Recurses four levels. Return: 0 or
 * a negative errno.
 */
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

	/* There is a block for each period. */
	if (ret < 0 || ret >= (int)(sb_levels[level].seconds / sb_levels[level - 1].seconds))
		return ret < 0 ? ret : 0;
	ret = sampled_in(search, level, begin_s, end_s, true, &sampled_ms);
	if (ret > 0)
		ret = sampled_below(search, level - 1, begin_s, end_s, &left_ms);
	return ret < 0 ? ret : left_ms < sampled_ms;
}

/* Return: 1 if some finer blocks of a period of @level have expired; 0; a negative errno. */
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
 * Cover a range: one block of @level for each of its periods that lies within the range, and finer
 * blocks for the rest. Where some finer blocks have expired, use the whole coarse block: that is
 * more than was asked for, and the answer says so. Recurses four levels. Return: how many blocks,
 * or a negative errno.
 */
static int cover(struct sb_search *search, size_t level, int64_t from_s, int64_t to_s)
{
	int64_t begin_s, end_s, there_s;
	struct sb_kept_file *kept;
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
		ret = sb_search_kept_file(search, level, begin_s, &kept);
		if (!ret && !is_whole && kept->is_there) {
			ret = is_partial(search, level, begin_s);
			is_whole = ret > 0;
			ret = ret < 0 ? ret : 0;
		}
		if (!ret && is_whole)
			ret = add_blocks(search, kept, begin_s, end_s);
		if (!ret)
			ret = cover(search, level - 1, max_s(from_s, begin_s), min_s(to_s, end_s));
		if (!ret && !is_whole && kept->is_there) {
			ret = is_expired(search, level, begin_s);
			if (ret > 0)
				ret = add_blocks(search, kept, begin_s, end_s);
		}
		if (ret < 0)
			return ret;
		nr += ret;
	}
}

/* Ranges. */

/* Clip a range to the times that have files. */
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

/* Visit the blocks of [from, to), rounded outward to 10 s. */
static int visit_range(struct sb_search *search, int64_t from_s, int64_t to_s)
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

/* A visit() that sums blocks. */
static int add_to_sums(struct sb_search *search, struct sb_kept_file *kept,
		       const struct sb_record *block)
{
	int err = sb_resum_begin(&kept->resum, &kept->segment, search->store->nr_queries);

	return err ? err : sb_resum_add(&kept->resum, &kept->segment, block);
}

/* Also for files of which no block was needed. */
static int end_sums(struct sb_search *search, struct sb_kept_file *kept)
{
	uint64_t nr_damaged;
	int err = sb_resum_begin(&kept->resum, &kept->segment, search->store->nr_queries);

	if (!err)
		err = sb_resum_end(&kept->resum, &kept->segment, &nr_damaged);
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
	err = visit_range(search, from_s, to_s);
	for (i = 0; i < search->kept_files.nr && !err; i++)
		if (search->kept_files.at[i]->is_there)
			err = end_sums(search, search->kept_files.at[i]);
	return err;
}

void sb_search_end(struct sb_search *search)
{
	sb_vec_release(&search->kept_files);
	release_files(search);
	evict(search->store);
}

/* Tags. */

/* Keys of tags that aggregates always have. */
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

/* Look for wide tags in all files of the range. */
static int look_for(struct sb_search *search, const char *key, int64_t from_s, int64_t to_s)
{
	struct sb_kept_file *kept;
	int err = 0;

	if (is_narrow(key))
		return 0;
	while (!err && !search->is_fine_only && (from_s = next_there(search, 0, from_s)) < to_s) {
		err = sb_search_kept_file(search, 0, from_s, &kept);
		if (!err && kept->is_there)
			search->is_fine_only = is_wide(&kept->segment.dict, key);
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

	if (tags_id >= wanted->dict->tags.nr)
		return false;
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
