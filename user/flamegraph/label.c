// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flamegraph/label.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

static const char *entity(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	default:
		return NULL;
	}
}

int sb_fg_label_add_xml(struct sb_str *out, const char *s, size_t len, uint64_t *nr_repaired)
{
	uint64_t nr = 0;
	int err = 0;

	for (size_t i = 0, n; i < len && !err; i += n) {
		const char *text = entity(s[i]);
		size_t text_len = text ? strlen(text) : 0;
		uint32_t rune;

		n = sb_utf8_decode(s + i, len - i, &rune);
		if (!text) {
			bool is_good = sb_rune_is_shown(rune);

			nr += !is_good;
			text = is_good ? s + i : "\xef\xbf\xbd";
			text_len = is_good ? n : 3;
		}
		err = sb_str_addn(out, text, text_len);
	}
	if (nr_repaired)
		*nr_repaired += nr;
	return err;
}

size_t sb_fg_label_clip(const char *s, size_t len, size_t max)
{
	size_t at = 0;

	if (len <= max)
		return len;
	while (at < max) {
		uint32_t rune;
		size_t n = sb_utf8_decode(s + at, len - at, &rune);

		if (at + n > max)
			break;
		at += n;
	}
	return at;
}

/* Upper bounds for DejaVu Sans, Verdana, Helvetica, Segoe UI and Roboto, in hundredths of an em. */
static int rune_width(uint32_t rune)
{
	if (rune >= 0x1100)
		return rune == 0x2026 ? 100 : 105;
	if (rune >= 0x80)
		return 80;
	if (strchr("ijl|'`.,:;!fIt()[]/\\ \"-r", (int)rune))
		return strchr("ijl|'.,:; `", (int)rune) ? 36 : 46;
	if (strchr("mwMW%@", (int)rune))
		return 100;
	if (strchr("<>+=#&~^_", (int)rune) || (rune >= 'A' && rune <= 'Z'))
		return strchr("GOQHNDU<>+=#~^&", (int)rune) ? 84 : 71;
	return 64;
}

double sb_fg_label_width(const char *s, size_t len, double fixed_em)
{
	double width = 0;

	for (size_t i = 0; i < len;) {
		uint32_t rune;

		i += sb_utf8_decode(s + i, len - i, &rune);
		width +=
			fixed_em > 0 ? fixed_em : rune_width(rune ? rune : SB_RUNE_INVALID) / 100.0;
	}
	return width;
}

/* "foo(int) const" -> "foo"; "main.(*T).run" and "(anonymous namespace)::f" are unchanged. */
static size_t without_arguments(const char *s, size_t len)
{
	size_t end = len, depth = 0;

	if (sb_text_ends(s, len, " const"))
		end -= strlen(" const");
	if (!end || s[end - 1] != ')')
		return len;
	for (size_t i = end; i-- > 0;) {
		depth += s[i] == ')';
		if (s[i] == '(' && --depth == 0)
			return i && !sb_text_ends(s, i, "operator") && s[i - 1] != ' ' ? i : len;
	}
	return len;
}

/* "a<b<c>>::d" -> "a<…>::d". Return: 0; -EINVAL if the brackets do not match; -ENOMEM. */
static int add_without_templates(struct sb_str *out, const char *s, size_t len)
{
	size_t depth = 0;
	int err = 0;

	for (size_t i = 0; i < len && !err; i++) {
		bool is_operator =
			(s[i] == '<' || s[i] == '>') && !depth &&
			(sb_text_ends(s, i, "operator") || sb_text_ends(s, i, "operator<") ||
			 sb_text_ends(s, i, "operator>") || sb_text_ends(s, i, "-"));
		bool is_arrow = depth && s[i] == '>' && s[i - 1] == '-';

		if (!is_operator && s[i] == '<' && !depth++)
			err = sb_str_add(out, "<…");
		if (!is_operator && !is_arrow && s[i] == '>' && depth-- == 0)
			return -EINVAL;
		if (!err && !depth)
			err = sb_str_addc(out, s[i]);
	}
	return err ? err : depth ? -EINVAL : 0;
}

/* Where the last component begins: behind the last "::", or the last "/" of a path. */
static size_t last_component(const char *s, size_t len)
{
	for (size_t i = len; i-- > 1;) {
		if (s[i - 1] == ':' && s[i] == ':' && i + 1 < len)
			return i + 1;
		if (s[i] == '/' && i + 1 < len)
			return i + 1;
	}
	return 0;
}

static int add_beginning(struct sb_str *out, const char *s, size_t len, double max_em, double fixed)
{
	size_t at = 0;

	max_em -= sb_fg_label_width("…", strlen("…"), fixed);
	while (at < len) {
		uint32_t rune;
		size_t n = sb_utf8_decode(s + at, len - at, &rune);
		double width = sb_fg_label_width(s + at, n, fixed);

		if (width > max_em)
			break;
		max_em -= width;
		at += n;
	}
	if (at < 3)
		return 0;
	return sb_str_addn(out, s, at) ?: sb_str_add(out, "…");
}

int sb_fg_label_add_fitted(struct sb_str *out, const char *name, size_t len, double max_em,
			   double fixed_em)
{
	size_t at;
	sb_cleanup(sb_str_release) struct sb_str brief = {};
	double dots = sb_fg_label_width("…", strlen("…"), fixed_em);
	int err = 0;

	if (max_em < 3 * 0.6)
		return 0;
	/* Do not look at what would be cut off anyway: names can have megabytes. */
	len = sb_fg_label_clip(name, len, 4096);
	if (sb_fg_label_width(name, len, fixed_em) <= max_em)
		return sb_str_addn(out, name, len);
	len = without_arguments(name, len);
	err = add_without_templates(&brief, name, len);
	if (err == -EINVAL) {
		sb_str_clear(&brief);
		err = sb_str_addn(&brief, name, len);
	}
	if (err || !brief.len)
		return err;
	at = last_component(brief.s, brief.len);
	if (sb_fg_label_width(brief.s, brief.len, fixed_em) <= max_em)
		return sb_str_addn(out, brief.s, brief.len);
	if (at && sb_fg_label_width(brief.s + at, brief.len - at, fixed_em) + dots <= max_em)
		return sb_str_add(out, "…") ?: sb_str_addn(out, brief.s + at, brief.len - at);
	return add_beginning(out, brief.s + at, brief.len - at, max_em, fixed_em);
}

static int add_grouped(struct sb_str *out, uint64_t val)
{
	char digits[32];
	size_t at = sizeof(digits), nr = 0;

	do {
		if (nr && nr % 3 == 0)
			digits[--at] = ',';
		digits[--at] = (char)('0' + val % 10);
		val /= 10;
		nr++;
	} while (val);
	return sb_str_addn(out, digits + at, sizeof(digits) - at);
}

/* Exactly @decimals digits after the point. printf() would use the locale's decimal point. */
static int add_fixed(struct sb_str *out, double val, unsigned int decimals)
{
	static const unsigned int powers[] = { 1, 10, 100 };
	unsigned int power = powers[decimals];
	double scaled;
	int err = 0;

	if (!isfinite(val))
		return sb_str_add(out, "?");
	if (val < 0) {
		err = sb_str_addc(out, '-');
		val = -val;
	}
	if (val >= 1e15)
		return err ?: sb_str_addf(out, "%.3e", val);
	scaled = floor(val * power + 0.5);
	err = err ?: add_grouped(out, (uint64_t)(scaled / power));
	if (!err && decimals)
		err = sb_str_addc(out, '.');
	for (power /= 10; power && !err; power /= 10)
		err = sb_str_addc(out, (char)('0' + (uint64_t)scaled / power % 10));
	return err;
}

int sb_fg_label_add_number(struct sb_str *out, double val)
{
	double whole = floor(val + 0.5);

	if (fabs(val - whole) < 0.005)
		return add_fixed(out, whole, 0);
	return add_fixed(out, val, 2);
}

int sb_fg_label_add_weight(struct sb_str *out, double weight, const char *unit)
{
	static const struct {
		const char *unit;
		double scale; /* to the first of names */
		double step;
		const char *names[5];
	} scales[] = {
		{ "ns", 1e-9, 1000, { "s", "ms", "µs", "ns" } },
		{ "us", 1e-6, 1000, { "s", "ms", "µs", "ns" } },
		{ "ms", 1e-3, 1000, { "s", "ms", "µs", "ns" } },
		{ "s", 1, 1000, { "s", "ms", "µs", "ns" } },
		{ "bytes", 1.0 / (1ull << 40), 1024, { "TiB", "GiB", "MiB", "KiB", "bytes" } },
		{ "byte-seconds",
		  1.0 / (1ull << 40),
		  1024,
		  { "TiB·s", "GiB·s", "MiB·s", "KiB·s", "byte-seconds" } },
	};

	for (size_t i = 0; i < SB_ARRAY_SIZE(scales); i++) {
		double val = weight * scales[i].scale;
		size_t at = 0;

		if (!sb_streq(unit, scales[i].unit))
			continue;
		while (fabs(val) < 0.9995 && at + 1 < SB_ARRAY_SIZE(scales[i].names) &&
		       scales[i].names[at + 1]) {
			val *= scales[i].step;
			at++;
		}
		return sb_fg_label_add_number(out, val)
			       ?: sb_str_addf(out, " %s", scales[i].names[at]);
	}
	if (weight == 1 && sb_streq(unit, "samples"))
		unit = "sample";
	return sb_fg_label_add_number(out, weight) ?: sb_str_addf(out, " %s", unit);
}

int sb_fg_label_add_share(struct sb_str *out, double share)
{
	double percent = share * 100;

	if (percent > 0 && percent < 0.005)
		return sb_str_add(out, "under 0.01%");
	if (percent >= 99.995 || percent == 0)
		return add_fixed(out, percent, 0) ?: sb_str_addc(out, '%');
	return add_fixed(out, percent, percent < 9.995 ? 2 : 1) ?: sb_str_addc(out, '%');
}

int sb_fg_label_add_px(struct sb_str *out, double px)
{
	double tenths = floor(fabs(px) * 10 + 0.5);
	int err = 0;

	if (px < 0 && tenths > 0)
		err = sb_str_addc(out, '-');
	err = err ?: sb_str_addu(out, (uint64_t)tenths / 10);
	if (!err && (uint64_t)tenths % 10)
		err = sb_str_addc(out, '.') ?: sb_str_addu(out, (uint64_t)tenths % 10);
	return err;
}
