// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/level.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define DAY_S 86400

const struct sb_level sb_levels[SB_STORE_LEVELS] = {
	{ "10s", SB_STORE_BLOCK_S, SB_SPAN_DAY, 7 * DAY_S },
	{ "10min", 600, SB_SPAN_DAY, 30 * DAY_S },
	{ "1h", 3600, SB_SPAN_MONTH, 366 * DAY_S },
	{ "1d", DAY_S, SB_SPAN_MONTH, 0 },
};

int64_t sb_level_begin(size_t level, int64_t time_s)
{
	int64_t seconds = sb_levels[level].seconds, rest = time_s % seconds;

	return time_s - rest - (rest < 0 ? seconds : 0);
}

/* Clamp to years of four digits: no other times are valid. */
static struct tm split(int64_t time_s)
{
	time_t time = time_s < 0 ? 0 : time_s >= SB_LEVEL_TIME_MAX ? SB_LEVEL_TIME_MAX - 1 : time_s;
	struct tm tm = {};

	gmtime_r(&time, &tm);
	return tm;
}

void sb_level_file(size_t level, int64_t time_s, char name[SB_LEVEL_NAME_MAX])
{
	struct tm tm = split(time_s);
	char stem[32];
	size_t len[] = { [SB_SPAN_DAY] = 8, [SB_SPAN_MONTH] = 6 };

	snprintf(stem, sizeof(stem), "%04d%02d%02d", tm.tm_year % 8100 + 1900, tm.tm_mon % 12 + 1,
		 tm.tm_mday % 32);
	snprintf(name, SB_LEVEL_NAME_MAX, "%s/%.*s.sb", sb_levels[level].name,
		 (int)len[sb_levels[level].span], stem);
}

static int64_t bound_of(size_t level, int64_t time_s, int next)
{
	struct tm tm = split(time_s);

	tm.tm_sec = tm.tm_min = tm.tm_hour = 0;
	switch (sb_levels[level].span) {
	case SB_SPAN_DAY:
		tm.tm_mday += next;
		break;
	case SB_SPAN_MONTH:
		tm.tm_mday = 1;
		tm.tm_mon += next;
		break;
	}
	return timegm(&tm);
}

int64_t sb_level_file_begin(size_t level, int64_t time_s)
{
	return bound_of(level, time_s, 0);
}

int64_t sb_level_file_end(size_t level, int64_t time_s)
{
	return bound_of(level, time_s, 1);
}
