// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a reader says of a process's mappings: it has been near whoever is looked at, so it may say
 * anything. The input is answers of sb_reader_code(): where to go on (8 bytes), how many bytes of
 * records (4), and these; behind the last one comes the first again. It ends, and mappings that are
 * handed over keep the promises of a line of /proc/PID/maps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "must.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/process/reader.h"

/* More than a text of so many bytes has lines. */
#define LINES_MAX   (SB_MAPS_BYTES_MAX / 32)
#define ANSWERS_MAX LINES_MAX

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
ssize_t __wrap_sb_reader_code(uint32_t tgid, bool is_first, uint64_t *at, struct sb_str *records);

static struct {
	const uint8_t *data;
	size_t size, used;
	const char *buf;
	size_t len;
	size_t nr_answers, nr_lines;
} now;

ssize_t __wrap_sb_reader_code(uint32_t tgid, bool is_first, uint64_t *at, struct sb_str *records)
{
	uint32_t len;

	must(now.nr_answers++ < ANSWERS_MAX && is_first == (now.nr_answers == 1));
	if (now.size - now.used < sizeof(*at) + sizeof(len))
		now.used = 0;
	if (now.size < sizeof(*at) + sizeof(len))
		return -EIO;
	memcpy(at, now.data + now.used, sizeof(*at));
	memcpy(&len, now.data + now.used + sizeof(*at), sizeof(len));
	now.used += sizeof(*at) + sizeof(len);
	if (len > SB_READER_CODE_BYTES)
		len = SB_READER_CODE_BYTES;
	if (len > now.size - now.used)
		len = (uint32_t)(now.size - now.used);
	sb_str_clear(records);
	if (sb_str_addn(records, (const char *)now.data + now.used, len))
		return -ENOMEM;
	now.used += len;
	now.buf = records->s;
	now.len = len;
	return (ssize_t)len;
}

static int take_line(void *arg, const struct sb_maps_line *line)
{
	const char *begin = now.buf;

	must(now.nr_lines++ < LINES_MAX);
	must(line->start < line->end);
	must(line->path >= begin && line->path_len <= now.len &&
	     line->path + line->path_len <= begin + now.len);
	must(!memchr(line->path, '\0', line->path_len));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	memset(&now, 0, sizeof(now));
	now.data = data;
	now.size = size;
	must(sb_procfs_code(1, take_line, NULL) <= 0);
	return 0;
}
