/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Text for people: lines that fit the terminal, broken between words, and nouns that agree with
 * their number. Thread: any. Pointers are not NULL. */
#ifndef SB_CLI_WRAP_H
#define SB_CLI_WRAP_H

#include <stdint.h>

#include "base/str.h"

/* Return: the columns of the terminal at @fd, 40 at least; 80 if it is no terminal or does not say.
 */
unsigned int sb_wrap_columns(int fd);

/*
 * sb_wrap() - break the lines of a text between words
 * @out: the result is appended here, without a newline at its end
 * @text: UTF-8, whose lines end in '\n'; spaces at the beginning of a line are kept
 * @nr_columns: no line gets longer, unless a single word is; each character counts as one column
 * @indent: spaces before each line that continues another one
 *
 * Return: 0; -ENOMEM, and a part may have been appended: discard it.
 */
int sb_wrap(struct sb_str *out, const char *text, unsigned int nr_columns, unsigned int indent);

/*
 * Log @text at the level info, broken to the width of the terminal at stderr: one message for each
 * line, so that each has the name of the program before it. Lines that continue another one are
 * indented by four more spaces than a row of the closing report. Without memory the text is logged
 * as it is.
 */
void sb_wrap_info(const char *text);

/* Remove the line of the terminal at stderr that shows progress. It does not matter if the terminal
 * is gone. */
void sb_wrap_clear_line(void);

/* Return: @one, the noun in the singular, if @nr is 1, otherwise @many; the pointer that was
 * passed, not a copy. */
static inline const char *sb_plural(uint64_t nr, const char *one, const char *many)
{
	return nr == 1 ? one : many;
}

#endif
