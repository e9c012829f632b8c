// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/search.h"

/* More figures than any later version will have. */
#define FIGURES_MAX  64u
/* Read at least this much at once: blocks of ten minutes. */
#define WINDOW_BYTES (64u << 10)

/* Reading. */

static int fill_window(struct sb_segment *segment, size_t at, size_t need)
{
	struct sb_window *window = &segment->window;
	size_t cap = need > WINDOW_BYTES ? need : WINDOW_BYTES;
	uint8_t *bytes = window->bytes;
	ssize_t n;

	if (cap > window->cap) {
		bytes = realloc(window->bytes, cap);
		if (!bytes)
			return -ENOMEM;
		window->bytes = bytes;
		window->cap = cap;
	}
	window->at = at;
	window->len = 0;
	while (window->len < need) {
		n = pread(segment->fd, bytes + window->len, window->cap - window->len,
			  (off_t)(at + window->len));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -ENODATA;
		window->len += (size_t)n;
	}
	return 0;
}

/*
 * Get @need bytes of the file at @at, valid until the next call. Return: 0; -ENODATA if the file is
 * shorter; -ENOMEM; others of I/O.
 */
static int look(struct sb_segment *segment, size_t at, size_t need, const uint8_t **ret_bytes)
{
	const struct sb_window *window = &segment->window;
	int err = 0;

	if (at < window->at || need > window->len || at - window->at > window->len - need)
		err = fill_window(segment, at, need);
	*ret_bytes = err ? NULL : window->bytes + (at - window->at);
	return err;
}

static int unpack(struct sb_segment *segment, const struct sb_record *record)
{
	const uint8_t *stored;
	int err = look(segment, record->at + SB_RECORD_HEADER_BYTES, record->nr_stored_bytes,
		       &stored);

	if (!err)
		err = sb_record_unpack(&segment->codec, stored, record, &segment->raw);
	return err == -ENODATA ? -EBADMSG : err;
}

static struct sb_cursor cursor_of(const struct sb_str *raw)
{
	const uint8_t *p = (const uint8_t *)raw->s;

	return (struct sb_cursor){ .p = p, .end = p + raw->len };
}

/*
 * The same for a block, with the cache. A cached block is still read from the file, because it may
 * have been damaged since.
 */
static int unpack_block(struct sb_segment *segment, const struct sb_record *block,
			struct sb_cursor *ret_cursor)
{
	struct sb_record *own = &segment->blocks.at[block - segment->blocks.at];
	const uint8_t *stored, *raw;
	int err;

	raw = segment->unpacked
		      ? sb_unpacked_at(segment->unpacked, block->unpacked, block->nr_bytes)
		      : NULL;
	if (raw) {
		err = look(segment, block->at + SB_RECORD_HEADER_BYTES, block->nr_stored_bytes,
			   &stored);
		if (err == -ENODATA || (!err && !sb_record_is_whole(stored, block)))
			err = -EBADMSG;
		*ret_cursor = (struct sb_cursor){ .p = raw, .end = raw + block->nr_bytes };
		return err;
	}
	err = unpack(segment, block);
	if (err)
		return err;
	if (segment->unpacked)
		own->unpacked =
			sb_unpacked_keep(segment->unpacked, segment->raw.s, segment->raw.len);
	*ret_cursor = cursor_of(&segment->raw);
	return 0;
}

/* Return: 0 also for a damaged record, which is counted. */
static int take_dict(struct sb_segment *segment, const struct sb_record *record)
{
	int err = unpack(segment, record);
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

/*
 * Find the next record at or after *@at that has a valid header and lies in the file of @size. *@at
 * is then behind it. Return: 0; -ENODATA if there are no more; -ENOMEM, others of I/O.
 */
static int next_record(struct sb_segment *segment, size_t size, size_t *at,
		       struct sb_record *ret_record)
{
	const struct sb_window *window = &segment->window;
	const uint8_t *p, *end;
	size_t from = *at;
	int err;

	while (from < size && size - from >= SB_RECORD_HEADER_BYTES) {
		err = look(segment, from, SB_RECORD_HEADER_BYTES, &p);
		if (err)
			return err;
		if (sb_record_header(p, ret_record) &&
		    ret_record->nr_stored_bytes <= size - from - SB_RECORD_HEADER_BYTES) {
			ret_record->at = from;
			*at = from + SB_RECORD_HEADER_BYTES + ret_record->nr_stored_bytes;
			return 0;
		}
		/* The last bytes of the window may be the beginning of a header. */
		end = window->bytes + window->len - (SB_RECORD_HEADER_BYTES - 1);
		from += (size_t)(sb_record_resync(p, end > p ? end : p + 1) - p);
	}
	return -ENODATA;
}

static int by_time(const void *a, const void *b)
{
	const struct sb_record *x = a, *y = b;

	return sb_compare(x->begin_s, y->begin_s) ?: sb_compare(x->at, y->at);
}

static void sort_blocks(struct sb_segment *segment)
{
	size_t i;

	for (i = 1; i < segment->blocks.nr; i++)
		if (segment->blocks.at[i].begin_s < segment->blocks.at[i - 1].begin_s) {
			sb_vec_sort(&segment->blocks, by_time);
			segment->nr_sorts++;
			return;
		}
}

/* Read the records from segment->len to @size. Return: 0, -ENOMEM, others of I/O. */
static int scan(struct sb_segment *segment, size_t size)
{
	struct sb_record record;
	size_t at = segment->len, begin = at;
	int err = 0;

	while (!err) {
		err = next_record(segment, size, &at, &record);
		if (err)
			break;
		segment->nr_skipped_bytes += record.at - begin;
		segment->len = begin = at;
		if (record.type == SB_RECORD_DICT)
			err = segment->has_no_dict ? 0 : take_dict(segment, &record);
		else if (record.type == SB_RECORD_BLOCK)
			err = segment->blocks.nr < SB_SEGMENT_BLOCKS_MAX
				      ? sb_vec_push(&segment->blocks, record)
				      : -EFBIG;
	}
	segment->nr_tail_bytes = size - segment->len;
	return err == -ENODATA ? 0 : err;
}

static int size_of(int fd, size_t *ret_size)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((uint64_t)st.st_size > SB_SEGMENT_BYTES_MAX)
		return -EFBIG;
	*ret_size = (size_t)st.st_size;
	return 0;
}

static int begin(struct sb_segment *segment)
{
	size_t size;
	int err = sb_dict_init(&segment->dict);

	if (!err)
		err = size_of(segment->fd, &size);
	return err ? err : scan(segment, size);
}

static int read_file(struct sb_segment *segment, int dir_fd, const char *name, bool has_no_dict)
{
	int err, fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	*segment = (struct sb_segment){ .fd = fd, .has_no_dict = has_no_dict };
	if (fd < 0)
		return -errno;
	err = begin(segment);
	if (err)
		sb_segment_release(segment);
	else
		sort_blocks(segment);
	return err;
}

int sb_segment_read(struct sb_segment *segment, int dir_fd, const char *name)
{
	return read_file(segment, dir_fd, name, false);
}

int sb_segment_list(struct sb_segment *segment, int dir_fd, const char *name)
{
	return read_file(segment, dir_fd, name, true);
}

int sb_segment_refresh(struct sb_segment *segment)
{
	size_t size;
	int err = size_of(segment->fd, &size);

	if (err)
		return err;
	if (size < segment->len)
		return -ESTALE;
	if (size == segment->len + segment->nr_tail_bytes && !segment->nr_tail_bytes)
		return 0;
	/* The bytes behind the old end may have changed. */
	segment->window.len = 0;
	err = scan(segment, size);
	sort_blocks(segment);
	return err;
}

/*
 * Cut off damaged blocks at the end: after a crash, a file can have its new length but not its new
 * bytes.
 */
static size_t end_of_whole(struct sb_segment *segment)
{
	const struct sb_record *last;
	size_t end = segment->len;

	while (segment->blocks.nr) {
		last = &segment->blocks.at[segment->blocks.nr - 1];
		if (unpack(segment, last) != -EBADMSG)
			break;
		segment->nr_damaged++;
		end = last->at;
		segment->blocks.nr--;
	}
	return end;
}

int sb_segment_open(struct sb_segment *segment, int dir_fd, const char *name)
{
	int err, fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
			     0640);

	*segment = (struct sb_segment){ .fd = fd };
	if (fd < 0)
		return -errno;
	err = begin(segment);
	if (!err) {
		size_t size = segment->len + segment->nr_tail_bytes;

		segment->nr_skipped_bytes += segment->nr_tail_bytes;
		segment->nr_tail_bytes = 0;
		segment->len = end_of_whole(segment);
		sort_blocks(segment);
		sb_dict_mark(&segment->dict);
		if (segment->len < size && ftruncate(fd, (off_t)segment->len))
			err = -errno;
		segment->window.len = 0;
	}
	if (err)
		sb_segment_release(segment);
	return err;
}

void sb_segment_release(struct sb_segment *segment)
{
	if (segment->fd >= 0)
		close(segment->fd);
	segment->fd = -1;
	sb_dict_release(&segment->dict);
	sb_vec_release(&segment->blocks);
	sb_codec_release(&segment->codec);
	sb_str_release(&segment->raw);
	sb_str_release(&segment->out);
	sb_str_release(&segment->numbers);
	free(segment->window.bytes);
	segment->window = (struct sb_window){};
	sb_vec_release(&segment->rows);
	sb_vec_release(&segment->weights);
}

/* Blocks. */

size_t sb_segment_find(const struct sb_segment *segment, int64_t time_s)
{
	return sb_bisect(segment->blocks.nr, i, segment->blocks.at[i].begin_s < time_s);
}

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

/* Rows and weights of a block, @nr of each, from two cursors. */
struct numbers {
	struct sb_cursor rows, weights;
	uint32_t nr;
};

static int find_numbers(struct sb_cursor *cursor, struct numbers *ret_numbers)
{
	struct numbers numbers = { .nr = sb_get_u32(cursor) };
	size_t nr_bytes = sb_get_varint(cursor);

	numbers.rows = numbers.weights = *cursor;
	/* Each takes a byte or more. */
	if (cursor->is_bad || numbers.nr > nr_bytes || !sb_get_bytes(&numbers.weights, nr_bytes) ||
	    numbers.nr > (size_t)(numbers.weights.end - numbers.weights.p))
		return -EBADMSG;
	numbers.rows.end = numbers.weights.p;
	*ret_numbers = numbers;
	return 0;
}

/* Get the next row after *row, and its weight. Return: false at the end, or for invalid bytes. */
static inline bool next_numbers(struct numbers *numbers, uint64_t *row, uint64_t *weight)
{
	struct sb_varint gap = sb_varint(numbers->rows.p, numbers->rows.end),
			 less = sb_varint(numbers->weights.p, numbers->weights.end);

	if (!gap.end || gap.value >= SB_DICT_ROWS_MAX || !less.end)
		return false;
	*row += gap.value + 1;
	numbers->rows.p = gap.end;
	numbers->weights.p = less.end;
	*weight = less.value + 1;
	return *row < SB_DICT_ROWS_MAX;
}

static int find_block(struct sb_segment *segment, const struct sb_record *block,
		      uint64_t figures[SB_BLOCK_FIGURE_MAX], struct numbers *ret_numbers)
{
	struct sb_record *own = &segment->blocks.at[block - segment->blocks.at];
	struct sb_cursor cursor;
	int err = unpack_block(segment, block, &cursor);

	memset(figures, 0, SB_BLOCK_FIGURE_MAX * sizeof(figures[0]));
	if (err)
		return err;
	get_figures(&cursor, figures);
	err = find_numbers(&cursor, ret_numbers);
	own->sampled_ms = figures[SB_BLOCK_SAMPLED_MS];
	own->is_read = !err;
	return err;
}

int sb_segment_rows(struct sb_segment *segment, const struct sb_record *block,
		    struct sb_block_rows *ret_rows, uint64_t figure[SB_BLOCK_FIGURE_MAX])
{
	uint64_t figures[SB_BLOCK_FIGURE_MAX], row = UINT64_MAX;
	struct numbers numbers;
	size_t i;
	int err = find_block(segment, block, figures, &numbers);

	if (!err)
		err = sb_vec_reserve(&segment->rows, numbers.nr);
	if (!err)
		err = sb_vec_reserve(&segment->weights, numbers.nr);
	if (err)
		return err;
	for (i = 0; i < numbers.nr; i++) {
		if (!next_numbers(&numbers, &row, &segment->weights.at[i]))
			return -EBADMSG;
		segment->rows.at[i] = (uint32_t)row;
	}
	for (i = 0; i < SB_BLOCK_FIGURE_MAX; i++)
		figure[i] += figures[i];
	ret_rows->row = segment->rows.at;
	ret_rows->weight = segment->weights.at;
	ret_rows->nr = numbers.nr;
	return 0;
}

int sb_segment_sampled(struct sb_segment *segment, const struct sb_record *block,
		       uint64_t *sampled_ms)
{
	uint64_t figures[SB_BLOCK_FIGURE_MAX];
	struct numbers numbers;
	int err = block->is_read ? 0 : find_block(segment, block, figures, &numbers);

	*sampled_ms += err ? 0 : block->sampled_ms;
	return err;
}

/* Add the first @nr rows; @times is 1, or -1 to subtract them. Return: how many were valid. */
static uint32_t add_numbers(struct numbers numbers, uint32_t nr, const struct sb_dict *dict,
			    struct sb_segment_sums *sums, uint64_t times)
{
	const struct sb_dict_row *known = dict->rows.at;
	size_t nr_known = dict->rows.nr;
	bool is_whole = !dict->nr_lost;
	uint64_t row = UINT64_MAX, weight;
	uint32_t i;

	for (i = 0; i < nr && next_numbers(&numbers, &row, &weight); i++) {
		if (row < nr_known && (is_whole || known[row].tags != SB_DICT_NONE))
			sums->weight[row] += times * weight;
		else
			sums->lost_weight += times * weight;
	}
	return i;
}

int sb_segment_add(struct sb_segment *segment, const struct sb_record *block,
		   struct sb_segment_sums *sums)
{
	uint64_t figures[SB_BLOCK_FIGURE_MAX];
	struct numbers numbers;
	uint32_t nr;
	size_t i;
	int err = find_block(segment, block, figures, &numbers);

	if (err)
		return err;
	nr = add_numbers(numbers, numbers.nr, &segment->dict, sums, 1);
	if (nr < numbers.nr) {
		add_numbers(numbers, nr, &segment->dict, sums, UINT64_MAX);
		return -EBADMSG;
	}
	for (i = 0; i < SB_BLOCK_FIGURE_MAX; i++)
		sums->figure[i] += figures[i];
	return 0;
}

int sb_segment_take(struct sb_segment *segment, const struct sb_record *block,
		    struct sb_segment_sums *sums)
{
	uint64_t figure[SB_BLOCK_FIGURE_MAX] = {};
	struct sb_block_rows rows;
	size_t i, nr_known = segment->dict.rows.nr;
	int err = sb_segment_rows(segment, block, &rows, figure);

	for (i = 0; i < SB_BLOCK_FIGURE_MAX && !err; i++)
		sums->figure[i] -= figure[i];
	for (i = 0; i < rows.nr && !err; i++) {
		if (rows.row[i] < nr_known && sums->weight[rows.row[i]] >= rows.weight[i])
			sums->weight[rows.row[i]] -= rows.weight[i];
		else
			err = -EBADMSG;
	}
	return err;
}

/* Writing. */

static int encode_block(struct sb_segment *segment, const struct sb_segment_sums *sums,
			struct sb_str *out)
{
	struct sb_str *numbers = &segment->numbers;
	size_t i, last = SIZE_MAX, nr = 0;
	int err = sb_put_varint(out, SB_BLOCK_FIGURE_MAX);

	sb_str_clear(numbers);
	for (i = 0; i < SB_BLOCK_FIGURE_MAX && !err; i++)
		err = sb_put_varint(out, sums->figure[i]);
	for (i = 0; i < segment->dict.rows.nr && !err; i++)
		if (sums->weight[i]) {
			err = sb_put_varint(numbers, i - last - 1);
			last = i;
			nr++;
		}
	if (!err)
		err = sb_put_varint(out, nr);
	if (!err)
		err = sb_put_varint(out, numbers->len);
	if (!err)
		err = sb_str_addn(out, numbers->s, numbers->len);
	for (i = 0; i < segment->dict.rows.nr && !err; i++)
		if (sums->weight[i])
			err = sb_put_varint(out, sums->weight[i] - 1);
	return err;
}

static int pack(struct sb_segment *segment, struct sb_record *record)
{
	record->at = segment->len + segment->out.len;
	return segment->raw.len
		       ? sb_record_pack(&segment->codec, &segment->out, record, &segment->raw)
		       : 0;
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
			/* Readers would skip half a record; without it they skip nothing. */
			(void)!ftruncate(segment->fd, (off_t)segment->len);
			return err;
		}
		done += (size_t)n;
	}
	segment->len += done;
	return 0;
}

/* Insert behind the blocks that do not begin later. */
static void insert_block(struct sb_segment *segment, const struct sb_record *record)
{
	size_t at = sb_segment_find(segment, record->begin_s + 1);

	memmove(segment->blocks.at + at + 1, segment->blocks.at + at,
		(segment->blocks.nr - at) * sizeof(segment->blocks.at[0]));
	segment->blocks.at[at] = *record;
	segment->blocks.nr++;
}

int sb_segment_append(struct sb_segment *segment, const struct sb_segment_time *time,
		      const struct sb_store_kind *kind, const struct sb_segment_sums *sums)
{
	struct sb_record record = {
		.type = SB_RECORD_DICT,
		.begin_s = time->begin_s,
		.seconds = time->seconds,
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
	record.kind = *kind;
	record.lead_ms = time->lead_ms;
	record.length_ms = time->length_ms;
	if (!err)
		err = pack(segment, &record);
	if (!err && (segment->len + segment->out.len > SB_SEGMENT_BYTES_MAX ||
		     segment->blocks.nr >= SB_SEGMENT_BLOCKS_MAX))
		err = -EFBIG;
	if (!err)
		err = sb_vec_reserve(&segment->blocks, segment->blocks.nr + 1);
	if (!err)
		err = write_out(segment);
	if (err)
		return err;
	sb_dict_mark(&segment->dict);
	insert_block(segment, &record);
	segment->window.len = 0;
	return 0;
}
