// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A file of a store that is anything: as it is; or, because hardly anything gets past the
 * checksums, records made of the input: a byte for the type, two for the length, what they hold.
 * With the highest bit of the type, 18 bytes follow these that say when.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "must.h"
#include "store/ask.h"
#include "store/check.h"
#include "store_dir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What follows of one input is not the next one's. */
static void forget_sums(void)
{
	static const char *const files[] = { "10min/20400101.sb", "1h/204001.sb", "1d/204001.sb",
					     "10s/20400103.sb" };
	char path[sizeof(dir) + SB_LEVEL_NAME_MAX];
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		(void)!unlink(path);
	}
}

static void make_dir(void)
{
	static bool is_made;
	struct sb_store *store;

	if (is_made)
		return;
	is_made = true;
	must(mkdtemp(dir));
	atexit(forget_dir);
	must(!sb_store_open_to_write(dir, &(struct sb_store_opts){ .no_sync = true }, &store));
	sb_store_close(store);
}

static void write_file(const void *data, size_t len)
{
	char path[sizeof(dir) + SB_LEVEL_NAME_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/10s/20400101.sb", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	must(fd >= 0);
	must(!len || !sb_write_all(fd, data, len));
	close(fd);
}

#define TIME_BYTES (sizeof(int64_t) + 2 * sizeof(uint32_t) + sizeof(uint16_t))

static void take_time(const uint8_t *data, struct sb_record *record)
{
	memcpy(&record->begin_s, data, sizeof(record->begin_s));
	data += sizeof(record->begin_s);
	memcpy(&record->seconds, data, sizeof(record->seconds));
	data += sizeof(record->seconds);
	memcpy(&record->length_ms, data, sizeof(record->length_ms));
	data += sizeof(record->length_ms);
	memcpy(&record->lead_ms, data, sizeof(record->lead_ms));
}

static void write_records(const uint8_t *data, size_t size)
{
	const struct sb_record usual = {
		.begin_s = T0,
		.seconds = SB_STORE_BLOCK_S,
		.kind = { "oncpu", "samples" },
	};
	struct sb_record record;
	struct sb_codec codec = {};
	struct sb_str out = {}, raw = {};
	size_t len;

	while (size > 3) {
		bool has_time = data[0] & 0x80 && size > 3 + TIME_BYTES;

		record = usual;
		record.type = data[0] % 4;
		len = (size_t)data[1] << 8 | data[2];
		data += 3;
		size -= 3;
		if (has_time) {
			take_time(data, &record);
			data += TIME_BYTES;
			size -= TIME_BYTES;
		}
		if (len > size)
			len = size;
		sb_str_clear(&raw);
		must(!sb_str_addn(&raw, (const char *)data, len));
		must(!sb_record_pack(&codec, &out, &record, &raw));
		data += len;
		size -= len;
	}
	write_file(out.s, out.len);
	sb_codec_release(&codec);
	sb_str_release(&out);
	sb_str_release(&raw);
}

static void on_file(void *arg, const struct sb_store_file_info *info) {}

static void on_wrong(void *arg, const struct sb_store_wrong_sum *sum)
{
	must(sum->is_missing || sum->nr_stacks || sum->nr_figures);
}

/* The same files, which are known by now, in other ways. */
static void ask_more(struct sb_store *store)
{
	const struct sb_store_look look = { .reads_blocks = true, .on_file = on_file };
	struct sb_store_sums_check check = { .on_wrong = on_wrong, .now_s = INT64_MAX };
	const struct sb_timeline_opts opts = { .nr_steps_max = 100, .nr_series_max = 3 };
	struct sb_ask ask = { .from_s = T0, .to_s = T0 + 86400, .by = "service,pid" };
	struct sb_store_extent extents[SB_STORE_KINDS_MAX];
	struct sb_timeline *timeline;
	struct sb_profile *profile;
	struct sb_tags *tags;

	must(!sb_store_timeline(store, &ask, &opts, &timeline));
	sb_timeline_free(timeline);
	must(!sb_store_tags(store, &ask, 3, &tags));
	sb_tags_free(tags);
	must(sb_store_extents(store, extents) >= 0);
	must(!sb_store_look(store, &look));
	must(!sb_store_check_sums(store, &check));
	ask.by = NULL;
	ask.nr_nodes_max = 5;
	must(!sb_ask_profile(store, &ask, &profile, NULL));
	sb_profile_free(profile);
}

static void query(void)
{
	struct sb_store_query all = {
		.from_s = T0,
		.to_s = T0 + 86400,
		.kind = "oncpu",
		.by = "service",
	};
	struct sb_store_answer answer;
	struct sb_profile *profile;
	struct sb_store *store;

	must(!sb_store_open(dir, &store));
	must(!sb_profile_new(&profile));
	must(!sb_store_query(store, &all, profile, &answer));
	must(!sb_profile_seal(profile));
	must(sb_profile_weight(profile) == answer.weight);
	sb_profile_free(profile);
	ask_more(store);
	sb_store_close(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sb_store *store;

	if (!size)
		return 0;
	make_dir();
	if (data[0] & 1)
		write_file(data + 1, size - 1);
	else
		write_records(data + 1, size - 1);
	query();
	/* Who writes goes on behind it, and makes the sums. */
	must(!sb_store_open_to_write(dir, &(struct sb_store_opts){ .no_sync = true }, &store));
	must(!sb_store_put(store, &(struct sb_store_block){ T0 + 2 * 86400, "oncpu", "samples" }));
	sb_store_close(store);
	query();
	forget_sums();
	return 0;
}
