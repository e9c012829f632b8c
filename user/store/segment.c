// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"

/* More of them are of a later version. */
#define FIGURES_MAX 64u

/* Reading. */

static int read_all(struct sb_segment *segment, int fd)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((uint64_t)st.st_size > SB_SEGMENT_BYTES_MAX)
		return -EFBIG;
	segment->bytes = malloc((size_t)st.st_size + 1);
	if (!segment->bytes)
		return -ENOMEM;
	while (segment->len < (size_t)st.st_size) {
		n = pread(fd, segment->bytes + segment->len, (size_t)st.st_size - segment->len,
			  (off_t)segment->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		segment->len += (size_t)n;
	}
	return 0;
}

static struct sb_cursor cursor_of(const struct sb_str *raw)
{
	const uint8_t *p = (const uint8_t *)raw->s;

	return (struct sb_cursor){ .p = p, .end = p + raw->len };
}

/* Return: 0 also for what is damaged, which is counted. */
static int take_dict(struct sb_segment *segment, const struct sb_record *record)
{
	int err = sb_record_unpack(segment->bytes, record, &segment->raw);
	struct sb_cursor cursor = {};

	if (!err) {
		cursor = cursor_of(&segment->raw);
		err = sb_dict_decode(&segment->dict, &cursor);
	}
	if (err != -EBADMSG && err != -E2BIG)
		return err;
	segment->nr_damaged++;
	return 0;
}

/* Return: 0 or -ENOMEM; *ret_end is behind the last record. */
static int scan(struct sb_segment *segment, size_t *ret_end)
{
	struct sb_record record;
	size_t at = 0;
	int err = 0;

	while (!err && !sb_record_next(segment->bytes, segment->len, &at, &record,
				       &segment->nr_skipped_bytes)) {
		if (record.type == SB_RECORD_DICT)
			err = take_dict(segment, &record);
		else if (record.type == SB_RECORD_BLOCK)
			err = sb_vec_push(&segment->blocks, record);
	}
	*ret_end = at;
	segment->nr_skipped_bytes += segment->len - at;
	return err;
}

static int begin(struct sb_segment *segment, int fd, size_t *ret_end)
{
	int err = sb_dict_init(&segment->dict);

	if (!err)
		err = read_all(segment, fd);
	if (!err)
		err = scan(segment, ret_end);
	return err;
}

int sb_segment_read(struct sb_segment *segment, int dir_fd, const char *name)
{
	int err, fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	size_t end;

	*segment = (struct sb_segment){ .fd = -1 };
	if (fd < 0)
		return -errno;
	err = begin(segment, fd, &end);
	close(fd);
	if (err)
		sb_segment_release(segment);
	return err;
}

/* The last record may have got its place on the disk, and not its bytes. */
static size_t end_of_whole(struct sb_segment *segment, size_t end)
{
	const struct sb_record *last;
	int err;

	while (segment->blocks.nr) {
		last = &segment->blocks.at[segment->blocks.nr - 1];
		err = sb_record_unpack(segment->bytes, last, &segment->raw);
		if (err != -EBADMSG)
			break;
		segment->nr_damaged++;
		end = last->at;
		segment->blocks.nr--;
	}
	return end;
}

int sb_segment_open(struct sb_segment *segment, int dir_fd, const char *name)
{
	size_t end;
	int err;

	*segment = (struct sb_segment){ .fd = -1 };
	segment->fd =
		openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0640);
	if (segment->fd < 0)
		return -errno;
	err = begin(segment, segment->fd, &end);
	if (!err) {
		end = end_of_whole(segment, end);
		sb_dict_mark(&segment->dict);
		if (end < segment->len && ftruncate(segment->fd, (off_t)end))
			err = -errno;
		segment->len = end;
	}
	if (err) {
		sb_segment_release(segment);
		return err;
	}
	free(segment->bytes);
	segment->bytes = NULL;
	sb_vec_release(&segment->blocks);
	return 0;
}

void sb_segment_release(struct sb_segment *segment)
{
	if (segment->fd >= 0)
		close(segment->fd);
	segment->fd = -1;
	free(segment->bytes);
	segment->bytes = NULL;
	sb_dict_release(&segment->dict);
	sb_vec_release(&segment->blocks);
	sb_str_release(&segment->raw);
	sb_str_release(&segment->out);
}

/* Blocks. */

static void get_figures(struct sb_cursor *cursor, uint64_t figure[SB_BLOCK_FIGURE_MAX])
{
	uint32_t i, nr = sb_get_u32(cursor);
	uint64_t value;

	if (nr > FIGURES_MAX)
		cursor->is_bad = true;
	for (i = 0; i < nr && !cursor->is_bad; i++) {
		value = sb_get_varint(cursor);
		if (i < SB_BLOCK_FIGURE_MAX)
			figure[i] = value;
	}
}

/* Twice over the same bytes: nothing is added before all is known to be whole. */
static bool walk_rows(struct sb_segment *segment, struct sb_cursor numbers,
		      struct sb_segment_sums *sums)
{
	uint32_t i, nr = sb_get_u32(&numbers);
	struct sb_cursor weights = numbers;
	uint64_t row = UINT64_MAX, weight;

	if (nr > (size_t)(numbers.end - numbers.p))
		return false;
	for (i = 0; i < nr; i++)
		sb_get_varint(&weights);
	for (i = 0; i < nr; i++) {
		row += sb_get_u32(&numbers) + 1ull;
		weight = sb_get_varint(&weights) + 1;
		if (!sums)
			continue;
		if (row < segment->dict.rows.nr && segment->dict.rows.at[row].tags != SB_DICT_NONE)
			sums->weight[row] += weight;
		else
			sums->lost_weight += weight;
	}
	return !weights.is_bad && !numbers.is_bad && row + 1 <= SB_DICT_ROWS_MAX;
}

int sb_segment_add(struct sb_segment *segment, const struct sb_record *block,
		   struct sb_segment_sums *sums)
{
	int err = sb_record_unpack(segment->bytes, block, &segment->raw);
	struct sb_cursor cursor = {};
	uint64_t figure[SB_BLOCK_FIGURE_MAX] = {};
	size_t i;

	if (!err) {
		cursor = cursor_of(&segment->raw);
		get_figures(&cursor, figure);
		if (cursor.is_bad || !walk_rows(segment, cursor, NULL))
			err = -EBADMSG;
	}
	if (err) {
		segment->nr_damaged += err == -EBADMSG;
		return err;
	}
	walk_rows(segment, cursor, sums);
	for (i = 0; i < SB_BLOCK_FIGURE_MAX; i++)
		sums->figure[i] += figure[i];
	return 0;
}

/* Writing. */

static int encode_block(const struct sb_segment *segment, const struct sb_segment_sums *sums,
			struct sb_str *out)
{
	size_t i, last = SIZE_MAX, nr = 0;
	int err = sb_put_varint(out, SB_BLOCK_FIGURE_MAX);

	for (i = 0; i < SB_BLOCK_FIGURE_MAX && !err; i++)
		err = sb_put_varint(out, sums->figure[i]);
	for (i = 0; i < segment->dict.rows.nr; i++)
		nr += sums->weight[i] > 0;
	if (!err)
		err = sb_put_varint(out, nr);
	for (i = 0; i < segment->dict.rows.nr && !err; i++)
		if (sums->weight[i]) {
			err = sb_put_varint(out, i - last - 1);
			last = i;
		}
	for (i = 0; i < segment->dict.rows.nr && !err; i++)
		if (sums->weight[i])
			err = sb_put_varint(out, sums->weight[i] - 1);
	return err;
}

static int pack(struct sb_segment *segment, const struct sb_record *record)
{
	return segment->raw.len ? sb_record_pack(&segment->out, record, &segment->raw) : 0;
}

static int write_out(struct sb_segment *segment)
{
	size_t done = 0;
	ssize_t n;
	int err;

	while (done < segment->out.len) {
		n = pwrite(segment->fd, segment->out.s + done, segment->out.len - done,
			   (off_t)(segment->len + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			err = n ? -errno : -EIO;
			/* What is half written would be skipped by readers; without it, nothing is. */
			(void)!ftruncate(segment->fd, (off_t)segment->len);
			return err;
		}
		done += (size_t)n;
	}
	segment->len += done;
	return 0;
}

int sb_segment_append(struct sb_segment *segment, int64_t begin_s, uint32_t seconds,
		      const struct sb_segment_sums *sums)
{
	struct sb_record record = {
		.type = SB_RECORD_DICT,
		.begin_s = begin_s,
		.seconds = seconds,
	};
	int err;

	sb_str_clear(&segment->out);
	sb_str_clear(&segment->raw);
	err = sb_dict_encode(&segment->dict, &segment->raw);
	if (!err)
		err = pack(segment, &record);
	sb_str_clear(&segment->raw);
	if (!err)
		err = encode_block(segment, sums, &segment->raw);
	record.type = SB_RECORD_BLOCK;
	if (!err)
		err = pack(segment, &record);
	if (!err && segment->len + segment->out.len > SB_SEGMENT_BYTES_MAX)
		err = -EFBIG;
	if (!err)
		err = write_out(segment);
	if (!err)
		sb_dict_mark(&segment->dict);
	return err;
}
