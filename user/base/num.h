/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Text to numbers and back. Parsing is strict: no sign, no trailing text, no silent overflow.
 * -EINVAL: it is no such number; -ERANGE: it is too large. Results are untouched on error. Texts
 * are strings. No pointer is NULL. Thread: any.
 */
#ifndef SB_BASE_NUM_H
#define SB_BASE_NUM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

/* Parse @s, all of which has to be one decimal number. Return: 0, -EINVAL, or -ERANGE when it
 * exceeds @max. */
int sb_parse_u64(const char *s, uint64_t max, uint64_t *ret);

/*
 * Parse a decimal number: all @len bytes of @s must be one without sign and exponent, at most 2^63.
 * "5." is valid, ".5" and "" are not. Return: whether it is valid; else *ret is untouched.
 */
bool sb_parse_decimal(const char *s, size_t len, double *ret);

/* Parse @s, all of which has to be one hexadecimal number, with or without 0x. Return: 0, -EINVAL,
 * or -ERANGE beyond 64 bits. */
int sb_parse_hex(const char *s, uint64_t *ret);

/*
 * Read hexadecimal digits, without 0x, or decimal digits at *@p, not past @end, and move *@p behind
 * them. No NUL need follow. Return: false when there is no digit or the number exceeds 64 bits; *@p
 * and *@ret are untouched then. For parsers of /proc files.
 */
bool sb_scan_hex(const char **p, const char *end, uint64_t *ret);
bool sb_scan_u64(const char **p, const char *end, uint64_t *ret);

/*
 * Parse a duration: a number, which may have decimals, and a unit (ns, us, ms, s, m, h), such as
 * "500ms", "1.5s", "2m"; decimals from the tenth on are ignored. A number without a unit counts
 * units of @bare_ns nanoseconds.
 * Return: 0, -EINVAL, or -ERANGE beyond 100 years.
 */
int sb_parse_duration(const char *s, uint64_t bare_ns, uint64_t *ret_ns);

/* Room for the number that sb_format_ns() writes. */
#define SB_FORMAT_NS_BYTES 32

/*
 * Write a duration, rounded to three digits, to @number; with more digits from 1,000 seconds on,
 * and with fewer below 100 ns. Of 1,024 ns that is "1.02", with a point in every locale. Return:
 * the unit to print after it, here "us"; a constant.
 */
const char *sb_format_ns(uint64_t ns, char number[SB_FORMAT_NS_BYTES]);

/* Parse a percentage, such as "1", "0.5" or "2.25%", into parts per million, rounded down. Return:
 * 0; -EINVAL, also beyond 23 digits, with the point; -ERANGE beyond 100 %. */
int sb_parse_percent(const char *s, uint32_t *ret_ppm);

/* Parse a size in bytes: a whole number and, optionally, K, M or G (1024-based, or in lower case),
 * such as "64M". Return: 0; -EINVAL; -ERANGE: beyond 64 bits. */
int sb_parse_bytes(const char *s, uint64_t *ret_bytes);

typedef SB_VEC(uint32_t) sb_vec_u32;
typedef SB_VEC(uint64_t) sb_vec_u64;
typedef SB_VEC(const char *) sb_vec_str;

/*
 * Parse a list of numbers and ranges such as "1,2,5-7", which is also the kernel's format of CPU
 * lists, and append it, in this order and with duplicates, to @list, which is zeroed or has numbers
 * already, and may have 65,536 in all. The caller ends @list with sb_vec_release(). @max: the
 * largest number allowed
 * Return: 0; -EINVAL, also for an empty text and for a range that descends; -ERANGE: beyond @max;
 * -E2BIG: too many; -ENOMEM. The list is as before on failure.
 */
int sb_parse_list(const char *s, uint32_t max, sb_vec_u32 *list);

#endif
