/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Passes one line to the reader of folded lines, without the checks that sb_fg_read() makes first. */
#ifndef SB_TESTS_FOLDED_LINE_H
#define SB_TESTS_FOLDED_LINE_H

#include "flamegraph/reader.h"

static inline int add_folded(struct sb_fg *fg, const char *line, size_t len)
{
	fg->line_nr++;
	fg->reader = &sb_fg_reader_folded;
	return fg->reader->feed(fg, line, len);
}

#endif
