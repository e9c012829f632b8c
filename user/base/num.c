// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/num.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define LIST_MAX 65536u

static int digit(char c, unsigned int base)
{
	int val = -1;

	if (c >= '0' && c <= '9')
		val = c - '0';
	else if (c >= 'a' && c <= 'f')
		val = c - 'a' + 10;
	else if (c >= 'A' && c <= 'F')
		val = c - 'A' + 10;
	return val < (int)base ? val : -1;
}

static bool scan(const char **p, const char *end, unsigned int base, uint64_t *ret)
{
	const char *at = *p;
	uint64_t val = 0;
	int d;

	for (; at < end && (d = digit(*at, base)) >= 0; at++) {
		if (__builtin_mul_overflow(val, base, &val) ||
		    __builtin_add_overflow(val, (uint64_t)d, &val))
			return false;
	}
	if (at == *p)
		return false;
	*p = at;
	*ret = val;
	return true;
}

bool sb_scan_hex(const char **p, const char *end, uint64_t *ret)
{
	return scan(p, end, 16, ret);
}

bool sb_scan_u64(const char **p, const char *end, uint64_t *ret)
{
	return scan(p, end, 10, ret);
}

/* scan() refused what stands at @s: no digit at all, or too many of them. */
static int why_not(const char *s, unsigned int base)
{
	return digit(*s, base) >= 0 ? -ERANGE : -EINVAL;
}

int sb_parse_u64(const char *s, uint64_t max, uint64_t *ret)
{
	const char *p = s, *end = s + strlen(s);
	uint64_t val;

	if (!sb_scan_u64(&p, end, &val))
		return why_not(p, 10);
	if (p != end)
		return -EINVAL;
	if (val > max)
		return -ERANGE;
	*ret = val;
	return 0;
}

bool sb_parse_decimal(const char *s, size_t len, double *ret)
{
	const char *p = s, *end = s + len;
	double val, scale = 1;
	uint64_t whole;

	if (!sb_scan_u64(&p, end, &whole) || whole > 1ull << 63)
		return false;
	val = (double)whole;
	if (p < end && *p == '.') {
		for (p++; p < end && *p >= '0' && *p <= '9'; p++) {
			/* Both are exact below 2^53; a double cannot keep more digits. */
			if (val > 9e14 || scale > 9e14)
				continue;
			val = val * 10 + (*p - '0');
			scale *= 10;
		}
	}
	if (p != end)
		return false;
	*ret = val / scale; /* rounded once: 0.1 is what a compiler makes of 0.1 */
	return true;
}

int sb_parse_hex(const char *s, uint64_t *ret)
{
	const char *p = s, *end = s + strlen(s);
	uint64_t val;

	if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
		p += 2;
	if (!sb_scan_hex(&p, end, &val))
		return why_not(p, 16);
	if (p != end)
		return -EINVAL;
	*ret = val;
	return 0;
}

static const struct {
	const char *name;
	uint64_t ns;
} duration_units[] = {
	{ "ns", 1 },
	{ "us", 1000 },
	{ "ms", 1000000 },
	{ "s", 1000000000 },
	{ "m", 60 * 1000000000ull },
	{ "h", 3600 * 1000000000ull },
};

int sb_parse_duration(const char *s, uint64_t bare_ns, uint64_t *ret_ns)
{
	const uint64_t max_ns = 100ull * 365 * 24 * 3600 * 1000000000ull;
	const char *p = s, *end = s + strlen(s);
	uint64_t whole, unit_ns = bare_ns, scale = 1, part = 0, ns;
	size_t i;

	if (!sb_scan_u64(&p, end, &whole))
		return why_not(p, 10);
	if (*p == '.') {
		for (p++; p < end && digit(*p, 10) >= 0; p++) {
			if (scale == 1000000000)
				continue; /* below a nanosecond in every unit but the largest */
			part = part * 10 + (uint64_t)digit(*p, 10);
			scale *= 10;
		}
		if (scale == 1)
			return -EINVAL;
	}
	if (p != end) {
		for (i = 0; i < sizeof(duration_units) / sizeof(duration_units[0]); i++)
			if (!strcmp(p, duration_units[i].name))
				break;
		if (i == sizeof(duration_units) / sizeof(duration_units[0]))
			return -EINVAL;
		unit_ns = duration_units[i].ns;
	}
	if (__builtin_mul_overflow(whole, unit_ns, &ns) || ns > max_ns)
		return -ERANGE;
	*ret_ns = ns + (uint64_t)((unsigned __int128)part * unit_ns / scale);
	return 0;
}

/* Return: @val in units of @step, to the nearest. */
static uint64_t rounded(uint64_t val, uint64_t step)
{
	return val / step + (val % step > (step - 1) / 2);
}

const char *sb_format_ns(uint64_t ns, char number[SB_FORMAT_NS_BYTES])
{
	/* With two decimals, with one, and without, as far as the unit allows. */
	static const struct {
		uint64_t unit, parts;
		const char *name;
	} forms[] = {
		{ 1, 1, "ns" },		{ 1000, 100, "us" },	  { 1000, 10, "us" },
		{ 1000, 1, "us" },	{ 1000000, 100, "ms" },	  { 1000000, 10, "ms" },
		{ 1000000, 1, "ms" },	{ 1000000000, 100, "s" }, { 1000000000, 10, "s" },
		{ 1000000000, 1, "s" },
	};
	size_t i = 0;
	uint64_t val;

	/* By what is printed: 999.6 us are 1.00 ms. */
	while (i + 1 < SB_ARRAY_SIZE(forms) && rounded(ns, forms[i].unit / forms[i].parts) >= 1000)
		i++;
	val = rounded(ns, forms[i].unit / forms[i].parts);
	if (forms[i].parts == 1)
		snprintf(number, SB_FORMAT_NS_BYTES, "%" PRIu64, val);
	else
		snprintf(number, SB_FORMAT_NS_BYTES, "%" PRIu64 ".%0*" PRIu64, val / forms[i].parts,
			 forms[i].parts == 100 ? 2 : 1, val % forms[i].parts);
	return forms[i].name;
}

int sb_parse_percent(const char *s, uint32_t *ret_ppm)
{
	size_t len = strlen(s), nr = strspn(s, "0123456789.");
	char digits[24];
	uint64_t ppm;
	int err;

	if (nr >= sizeof(digits) || (nr != len && strcmp(s + nr, "%")))
		return -EINVAL;
	memcpy(digits, s, nr);
	digits[nr] = '\0';
	err = sb_parse_duration(digits, 10000, &ppm);
	if (err)
		return err;
	if (ppm > 1000000)
		return -ERANGE;
	*ret_ppm = (uint32_t)ppm;
	return 0;
}

int sb_parse_bytes(const char *s, uint64_t *ret_bytes)
{
	static const char units[] = "KMG";
	const char *p = s, *end = s + strlen(s), *unit;
	uint64_t val, shift = 0;

	if (!sb_scan_u64(&p, end, &val))
		return why_not(p, 10);
	if (p != end) {
		unit = strchr(units, *p & ~0x20);
		if (!*p || !unit || !*unit || p + 1 != end)
			return -EINVAL;
		shift = 10 * (uint64_t)(unit - units + 1);
	}
	if (val > UINT64_MAX >> shift)
		return -ERANGE;
	*ret_bytes = val << shift;
	return 0;
}

/* "5" or "5-7" at *@p, which moves behind it. */
static int scan_range(const char **p, const char *end, uint64_t *ret_lo, uint64_t *ret_hi)
{
	if (!sb_scan_u64(p, end, ret_lo))
		return why_not(*p, 10);
	*ret_hi = *ret_lo;
	if (**p != '-')
		return 0;
	++*p;
	if (!sb_scan_u64(p, end, ret_hi))
		return why_not(*p, 10);
	return *ret_hi < *ret_lo ? -EINVAL : 0;
}

static int parse_ranges(const char *s, uint32_t max, sb_vec_u32 *list)
{
	const char *p = s, *end = s + strlen(s);
	uint64_t lo, hi;
	int err;

	for (;; p++) {
		err = scan_range(&p, end, &lo, &hi);
		if (err)
			return err;
		if (hi > max)
			return -ERANGE;
		if (hi - lo >= LIST_MAX || list->nr + (hi - lo) >= LIST_MAX)
			return -E2BIG;
		for (; lo <= hi; lo++) {
			err = sb_vec_push(list, (uint32_t)lo);
			if (err)
				return err;
		}
		if (p == end)
			return 0;
		if (*p != ',')
			return -EINVAL;
	}
}

int sb_parse_list(const char *s, uint32_t max, sb_vec_u32 *list)
{
	size_t nr_before = list->nr;
	int err = parse_ranges(s, max, list);

	if (err)
		list->nr = nr_before;
	return err;
}
