// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "export/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/num.h"
#include "base/str.h"
#include "base/utf8.h"
#include "store/level.h"

#define FIRST_LINE "stackbpf-export 1"
#define SUFFIX	   ".state"
#define FILE_MAX   8192u

enum type { TEXT, NUMBER, TIME };

#define ROW(key_, type_, field)                                                               \
	{                                                                                     \
		.key = key_, .type = type_, .offset = offsetof(struct sb_export_state, field) \
	}
static const struct row {
	const char *key;
	enum type type;
	size_t offset;
} rows[] = {
	ROW("to", TEXT, to),
	ROW("what", TEXT, what),
	ROW("seen", TEXT, seen),
	ROW("next", TIME, next_s),
	ROW("part_end", TIME, part_end_s),
	ROW("part_pieces", NUMBER, nr_part_pieces),
	ROW("periods", NUMBER, nr_periods),
	ROW("pieces", NUMBER, nr_pieces),
	ROW("bytes", NUMBER, nr_bytes),
	ROW("failed", NUMBER, nr_failed),
	ROW("refused", NUMBER, nr_refused),
	ROW("unsure", NUMBER, nr_unsure),
	ROW("expired_seconds", NUMBER, expired_s),
	ROW("late_blocks", NUMBER, nr_late),
	ROW("coarse_seconds", NUMBER, coarse_s),
	ROW("behind_seconds", NUMBER, behind_s),
	ROW("sent_at", TIME, sent_s),
	ROW("updated_at", TIME, updated_s),
	ROW("error", TEXT, error),
};

void sb_export_text(char to[SB_EXPORT_TEXT_MAX], const char *text)
{
	size_t len = strlen(text);

	if (len >= SB_EXPORT_TEXT_MAX) {
		len = SB_EXPORT_TEXT_MAX - 1;
		while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
			len--;
	}
	memcpy(to, text, len);
	to[len] = '\0';
	sb_replace_controls(to, len);
}

static const struct row *row_of(const char *key, size_t len)
{
	for (size_t i = 0; i < SB_ARRAY_SIZE(rows); i++)
		if (sb_text_is(key, len, rows[i].key))
			return &rows[i];
	return NULL;
}

/* "KEY VALUE" */
static int parse_line(struct sb_export_state *state, const char *line)
{
	size_t len = strcspn(line, " ");
	const struct row *row = row_of(line, len);
	const char *value = line + len + (line[len] == ' ');
	void *field = row ? (char *)state + row->offset : NULL;
	uint64_t number;

	if (!row)
		return 0;
	if (row->type == TEXT) {
		sb_export_text(field, value);
		return 0;
	}
	if (sb_parse_u64(value, row->type == TIME ? SB_LEVEL_TIME_MAX - 1 : UINT64_MAX, &number))
		return -EBADMSG;
	memcpy(field, &number, sizeof(number));
	return 0;
}

int sb_export_state_parse(const char *text, size_t len, struct sb_export_state *ret_state)
{
	sb_cleanup(sb_freep) char *copy = strndup(text, len);
	struct sb_export_state state = {};
	char *rest = copy, *line;
	int err = 0;

	if (!copy)
		return -ENOMEM;
	/* Without the last newline, the file is incomplete. */
	if (!len || strlen(copy) != len || text[len - 1] != '\n')
		return -EBADMSG;
	line = strsep(&rest, "\n");
	if (!sb_streq(line, FIRST_LINE))
		return -EBADMSG;
	while (!err && (line = strsep(&rest, "\n")))
		err = parse_line(&state, line);
	if (!err)
		*ret_state = state;
	return err;
}

int sb_export_state_read(int dir_fd, const char *name, struct sb_export_state *ret_state)
{
	sb_cleanup(sb_closep) int fd =
		openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	sb_cleanup(sb_freep) char *text = NULL;
	size_t len;
	int err;

	if (fd < 0)
		return -errno;
	err = sb_read_fd(fd, FILE_MAX, &text, &len);
	if (err)
		return err == -EFBIG ? -EBADMSG : err;
	return sb_export_state_parse(text, len, ret_state);
}

static int encode(struct sb_str *out, const struct sb_export_state *state)
{
	int err = sb_str_add(out, FIRST_LINE "\n");

	for (size_t i = 0; i < SB_ARRAY_SIZE(rows) && !err; i++) {
		const void *field = (const char *)state + rows[i].offset;
		uint64_t number;

		err = sb_str_addf(out, "%s ", rows[i].key);
		if (!err && rows[i].type == TEXT) {
			err = sb_str_add(out, field);
		} else if (!err) {
			memcpy(&number, field, sizeof(number));
			err = sb_str_addu(out, number);
		}
		err = err ?: sb_str_addc(out, '\n');
	}
	return err;
}

/* Return: 0 or a negative errno. */
static int write_whole(int dir_fd, const char *name, const struct sb_str *text)
{
	sb_cleanup(sb_closep) int fd =
		openat(dir_fd, name,
		       O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0640);
	int err;

	if (fd < 0)
		return -errno;
	err = sb_write_all(fd, text->s, text->len);
	return err ? err : fdatasync(fd) ? -errno : 0;
}

int sb_export_state_write(int dir_fd, const char *name, const struct sb_export_state *state)
{
	sb_cleanup(sb_str_release) struct sb_str text = {};
	char part[NAME_MAX + 1];
	int err = encode(&text, state);

	if (snprintf(part, sizeof(part), "%s.part", name) >= (int)sizeof(part))
		err = -ENAMETOOLONG;
	err = err ?: write_whole(dir_fd, part, &text);
	if (!err && renameat(dir_fd, part, dir_fd, name))
		err = -errno;
	/* Also wait for the name. */
	if (!err && fsync(dir_fd))
		err = -errno;
	return err;
}

static int is_state(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name), suffix_len = strlen(SUFFIX);

	return len > suffix_len && sb_streq(entry->d_name + len - suffix_len, SUFFIX);
}

int sb_export_state_each(const char *path,
			 int (*fn)(void *arg, const struct sb_export_state *state), void *arg)
{
	sb_cleanup(sb_closep) int store_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_cleanup(sb_closep) int dir_fd = -1;
	struct sb_export_state state;
	struct dirent **entries = NULL;
	int nr, i, nr_out = 0, nr_read = 0, err = 0;

	if (store_fd < 0)
		return -errno;
	dir_fd = openat(store_fd, SB_EXPORT_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir_fd < 0)
		return errno == ENOENT ? 0 : -errno;
	nr = scandirat(dir_fd, ".", &entries, is_state, alphasort);
	if (nr < 0)
		return -errno;
	for (i = 0; i < nr; i++) {
		bool is_read = !err && nr_read < SB_EXPORT_STATE_MAX &&
			       !sb_export_state_read(dir_fd, entries[i]->d_name, &state);

		nr_read += is_read;
		nr_out += !is_read;
		if (is_read)
			err = fn(arg, &state);
		free(entries[i]);
	}
	free(entries);
	return err < 0 ? err : nr_out;
}
