/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Text that somebody else has chosen: names of processes, threads, files, cgroups, symbols, labels.
 * A terminal executes some characters as commands, and some change the order in which others are
 * shown, so that one name can look like another. Whatever writes such text asks this module which
 * characters it may write. No pointer is NULL. Thread: any.
 */
#ifndef SB_BASE_UTF8_H
#define SB_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SB_RUNE_INVALID 0x110000 /* beyond the last character */

/*
 * sb_utf8_decode() - read one character
 * @len: bytes there are at @s, at least one
 * @ret_rune: its number, always set; SB_RUNE_INVALID for bytes that are no UTF-8
 *
 * Return: how many bytes it took; of what is no UTF-8, as many as could have begun a character, as
 * browsers count them (Unicode 15, section 3.9, "substitution of maximal subparts").
 */
size_t sb_utf8_decode(const char *s, size_t len, uint32_t *ret_rune);

/*
 * Return: false for what may not be shown: invalid bytes; control characters (U+0000 to U+001F,
 * U+007F to U+009F, of which U+009B begins commands to a terminal); those that reorder text (U+202A
 * to U+202E, U+2066 to U+2069); separators of lines and paragraphs (U+2028, U+2029); and what is no
 * character: surrogates, and the numbers that end in FFFE or FFFF. @rune: any number, as of
 * sb_utf8_decode()
 */
bool sb_rune_is_shown(uint32_t rune);

/* Replace each byte of what may not be shown (sb_rune_is_shown()) by '?'. The length stays. Tabs,
 * line feeds and NULs are controls, too. */
void sb_replace_controls(char *s, size_t len);

/* Write the @len bytes at @s to @out, with '?' for each byte of what may not be shown
 * (sb_rune_is_shown(): tabs and line feeds neither). Errors are those of @out: ferror(3). */
void sb_print_clean(FILE *out, const char *s, size_t len);

#endif
