// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/late_blocks.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/num.h"
#include "store/search.h"

/* List the newest files. They come oldest first. */
static int note_file(void *arg, const char *name, int64_t begin_s)
{
	struct sb_read_place *place = arg;

	if (place->nr == SB_READ_PLACE_FILES_MAX)
		memmove(place->files, place->files + 1, --place->nr * sizeof(place->files[0]));
	place->files[place->nr++] = (struct sb_read_place_file){ .begin_s = begin_s };
	return 0;
}

/* Return: how much of the file is known. */
static uint64_t known_of(const struct sb_read_place *place, int64_t begin_s, uint64_t size)
{
	size_t i;

	for (i = 0; i < place->nr; i++)
		if (place->files[i].begin_s == begin_s)
			return place->files[i].len < size ? place->files[i].len : size;
	/*
	 * A file that is older than those listed may come back into the list when a newer one is
	 * gone.
	 */
	if (!place->nr ||
	    (place->nr == SB_READ_PLACE_FILES_MAX && begin_s < place->files[0].begin_s))
		return size;
	return 0;
}

struct looking {
	struct sb_search search;
	int64_t before_s;
	void (*fn)(void *arg, const struct sb_record *block);
	void *arg;
};

static int look_at(struct looking *looking, struct sb_read_place_file *file, uint64_t known)
{
	struct sb_kept_file *kept;
	size_t i;
	int err = sb_search_kept_file(&looking->search, 0, file->begin_s, &kept);

	file->len = known;
	if (err || !kept->is_there)
		return err;
	for (i = 0; i < kept->segment.blocks.nr; i++) {
		const struct sb_record *block = &kept->segment.blocks.at[i];

		if (block->at >= known && block->begin_s < looking->before_s)
			looking->fn(looking->arg, block);
	}
	file->len = kept->segment.len;
	return 0;
}

int sb_store_late_blocks(struct sb_store *store, struct sb_read_place *place, int64_t before_s,
			 void (*fn)(void *arg, const struct sb_record *block), void *arg)
{
	struct sb_store_answer answer;
	struct looking looking = { .search = { .store = store, .answer = &answer },
				   .before_s = before_s,
				   .fn = fn,
				   .arg = arg };
	struct sb_read_place now = {};
	char name[SB_LEVEL_NAME_MAX];
	struct stat st;
	size_t i;
	int err = sb_store_each_file(store, 0, note_file, &now);

	sb_search_begin(&looking.search);
	for (i = 0; i < now.nr && !err; i++) {
		uint64_t known;

		sb_level_file(0, now.files[i].begin_s, name);
		if (fstatat(store->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW)) {
			/* Retention may have deleted it since it was listed. */
			err = errno == ENOENT ? 0 : -errno;
			continue;
		}
		known = known_of(place, now.files[i].begin_s, (uint64_t)st.st_size);
		now.files[i].len = known;
		if (known < (uint64_t)st.st_size)
			err = look_at(&looking, &now.files[i], known);
	}
	sb_search_end(&looking.search);
	if (!err)
		*place = now;
	return err;
}

void sb_read_place_print(const struct sb_read_place *place, char *text, size_t len)
{
	size_t i, at = 0, first = 0;
	char one[48];

	for (i = place->nr; i-- > 0;) {
		at += (size_t)snprintf(one, sizeof(one), "%" PRId64 ":%" PRIu64 " ",
				       place->files[i].begin_s, place->files[i].len);
		if (at > len) {
			first = i + 1;
			break;
		}
	}
	for (i = first, at = 0; i < place->nr; i++)
		at += (size_t)snprintf(text + at, len - at, "%s%" PRId64 ":%" PRIu64, at ? " " : "",
				       place->files[i].begin_s, place->files[i].len);
	text[at] = '\0';
}

void sb_read_place_parse(struct sb_read_place *place, const char *text)
{
	const char *end = text + strlen(text);
	uint64_t begin_s, len;

	*place = (struct sb_read_place){};
	while (place->nr < SB_READ_PLACE_FILES_MAX) {
		if (!sb_scan_u64(&text, end, &begin_s) || begin_s >= SB_LEVEL_TIME_MAX ||
		    text == end || *text++ != ':' || !sb_scan_u64(&text, end, &len))
			return;
		place->files[place->nr++] =
			(struct sb_read_place_file){ .begin_s = (int64_t)begin_s, .len = len };
		if (text == end || *text++ != ' ')
			return;
	}
}
