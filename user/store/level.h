/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How long a block of each level is, and how much time is in one file of it. All times are UTC. */
#ifndef SB_STORE_LEVEL_H
#define SB_STORE_LEVEL_H

#include <stddef.h>
#include <stdint.h>

#define SB_STORE_LEVELS	  4
/* Of the finest blocks. */
#define SB_STORE_BLOCK_S  10
/* The end of the last file's time, year 9999: what is later was not measured. */
#define SB_LEVEL_TIME_MAX 253402300800
/* Longest name of a file: "10min/20261121.sb". */
#define SB_LEVEL_NAME_MAX 32

struct sb_level {
	const char *name; /* of its directory, and in options */
	uint32_t seconds;
	enum sb_span { SB_SPAN_DAY, SB_SPAN_MONTH } span; /* of a file */
	uint64_t keep_s;				  /* default; 0: for ever */
};
extern const struct sb_level sb_levels[SB_STORE_LEVELS];

/* Return: where the block of @level that has @time_s begins. */
int64_t sb_level_begin(size_t level, int64_t time_s);
/* The file that has @time_s, from the store's directory. */
void sb_level_file(size_t level, int64_t time_s, char name[SB_LEVEL_NAME_MAX]);
/* Where the file begins that has @time_s, and where the next one does. */
int64_t sb_level_file_begin(size_t level, int64_t time_s);
int64_t sb_level_file_end(size_t level, int64_t time_s);

#endif
