/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Levels of a store: blocks of 10 s, and aggregates of 10 min, 1 h and 1 d. This table says how
 * long a block of each level is, and how much time a file covers. All times are seconds since the
 * epoch, in UTC. @level is an index of sb_levels, below SB_STORE_LEVELS; this is not checked. In
 * the functions about files, a time before 1970 is taken for 0, and one from SB_LEVEL_TIME_MAX on
 * for the last second before it. Thread: any.
 */
#ifndef SB_STORE_LEVEL_H
#define SB_STORE_LEVEL_H

#include <stddef.h>
#include <stdint.h>

#define SB_STORE_LEVELS	  4
/* Length of blocks of the finest level. */
#define SB_STORE_BLOCK_S  10
/* End of the last file's time: the year 9999. Later times are not valid. */
#define SB_LEVEL_TIME_MAX 253402300800
/* Buffer for the name of a file: "10min/20261121.sb". */
#define SB_LEVEL_NAME_MAX 32

struct sb_level {
	const char *name;				  /* of its directory, and in options */
	uint32_t seconds;				  /* length of a block */
	enum sb_span { SB_SPAN_DAY, SB_SPAN_MONTH } span; /* of a file */
	uint64_t keep_s;				  /* default retention; 0: for ever */
};
extern const struct sb_level sb_levels[SB_STORE_LEVELS];

/* Return: the begin of the block of @level that contains @time_s. A time that is not valid is
 * rounded down all the same: before 1970 the result is negative. */
int64_t sb_level_begin(size_t level, int64_t time_s);
/* Set @name to the path of the file that contains @time_s, relative to the store's directory. */
void sb_level_file(size_t level, int64_t time_s, char name[SB_LEVEL_NAME_MAX]);
/* Return: the begin, or the end, exclusive, of the time of the file that contains @time_s. The end
 * is the begin of the next file; only from SB_LEVEL_TIME_MAX on it is not after @time_s. */
int64_t sb_level_file_begin(size_t level, int64_t time_s);
int64_t sb_level_file_end(size_t level, int64_t time_s);

#endif
