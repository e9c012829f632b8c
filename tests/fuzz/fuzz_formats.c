// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A profile of any names, written in every format: what comes out is what the format asks for, and
 * nobody's names are more than names. The first byte says which metadata there are; then follow
 * stacks, each a byte of weight, a byte for the number of frames less one, and frames: kind, line,
 * name ending in 0.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>

#include "../unit/read_meta.h"
#include "base/str.h"
#include "must.h"
#include "output/output.h"

#define FRAMES_MAX 40
#define OUT_MAX	   (16u << 20) /* inputs have 16 KB */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at, *end;
};

static uint8_t take(struct input *input)
{
	return input->at < input->end ? *input->at++ : 0;
}

/* Up to a 0, in @text, which has room for @max. */
static char *take_text(struct input *input, char *text, size_t max)
{
	size_t nr = 0;
	uint8_t c;

	while ((c = take(input)) && nr + 1 < max)
		text[nr++] = (char)c;
	text[nr] = '\0';
	return text;
}

static uint32_t take_frame(struct input *input, struct sb_profile *profile)
{
	char name[256], module[32], file[32];
	uint8_t flags = take(input);
	struct sb_frame frame = {
		.kind = flags % SB_FRAME_KIND_MAX,
		.line = take(input),
	};
	uint32_t id;

	frame.name = take_text(input, name, sizeof(name));
	/* Whoever makes frames has a name for each. */
	if (!name[0])
		frame.name = "[unknown]";
	frame.module = flags & 0x40 ? take_text(input, module, sizeof(module)) : NULL;
	frame.file = flags & 0x80 ? take_text(input, file, sizeof(file)) : NULL;
	must(!sb_profile_frame(profile, &frame, &id));
	return id;
}

static struct sb_profile *take_profile(struct input *input)
{
	static const char *const keys[] = { "kind", "unit", "hz", "by", "dur_us", "start_us" };
	static const char *const units[] = { "samples", "us", "bytes", "calls" };
	uint32_t ids[FRAMES_MAX];
	struct sb_profile *profile;
	uint8_t flags = take(input);
	char text[64];
	size_t i, nr;

	must(!sb_profile_new(&profile));
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (flags & 1u << i)
			must(!read_meta(profile, keys[i], take_text(input, text, sizeof(text))));
	if (!(flags & 2))
		must(!read_meta(profile, "unit", units[flags >> 6]));
	while (input->at < input->end) {
		uint64_t weight = take(input);

		weight <<= weight & 31;
		nr = 1 + take(input) % FRAMES_MAX;
		for (i = 0; i < nr; i++)
			ids[i] = take_frame(input, profile);
		must(!sb_profile_add_row(profile,
					 &(struct sb_row){ .frames = ids,
							   .nr = nr,
							   .log2_ns = 1 + (uint32_t)weight % 64,
							   .weight = weight,
							   .nr_samples = nr }));
	}
	must(!sb_profile_seal(profile));
	return profile;
}

/* ---- what is JSON, and UTF-8 ---- */

static void skip_spaces(struct input *in)
{
	while (in->at < in->end && strchr(" \t\r\n", *in->at) && *in->at)
		in->at++;
}

static void check_char(struct input *in)
{
	uint8_t c = take(in);
	int nr_more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;

	must(c >= 0x20 && c != 0x7f && (c < 0x80 || (c >= 0xc2 && c < 0xf5)));
	while (nr_more--)
		must((take(in) & 0xc0) == 0x80);
}

static void check_string(struct input *in)
{
	must(take(in) == '"');
	while (in->at < in->end && *in->at != '"') {
		if (*in->at == '\\') {
			in->at++;
			must(in->at < in->end && strchr("\"\\u", *in->at));
			if (take(in) == 'u')
				for (int i = 0; i < 4; i++)
					must(strchr("0123456789abcdef", take(in)));
			continue;
		}
		/* It may stand in a <script>. */
		must(*in->at != '<');
		check_char(in);
	}
	must(take(in) == '"');
}

static void check_number(struct input *in)
{
	const uint8_t *from = in->at;

	while (in->at < in->end && strchr("-.0123456789", *in->at) && *in->at)
		in->at++;
	must(in->at > from);
}

/* Nesting is ours, so recursion is bounded. */
static void check_value(struct input *in)
{
	uint8_t open, close;

	skip_spaces(in);
	must(in->at < in->end);
	if (*in->at == '"') {
		check_string(in);
	} else if (*in->at == '{' || *in->at == '[') {
		open = take(in);
		close = open == '{' ? '}' : ']';
		skip_spaces(in);
		while (in->at < in->end && *in->at != close) {
			if (open == '{') {
				skip_spaces(in);
				check_string(in);
				must(take(in) == ':');
			}
			check_value(in);
			skip_spaces(in);
			must(*in->at == close || (take(in) == ',' && *in->at != close));
		}
		must(take(in) == close);
	} else if (*in->at == 't' || *in->at == 'n') {
		must(in->end - in->at >= 4 &&
		     (!memcmp(in->at, "true", 4) || !memcmp(in->at, "null", 4)));
		in->at += 4;
	} else if (*in->at == 'f') {
		must(in->end - in->at >= 5 && !memcmp(in->at, "false", 5));
		in->at += 5;
	} else {
		check_number(in);
	}
}

static void check_json(const struct sb_profile *profile, const char *s, size_t len)
{
	struct input in = { (const uint8_t *)s, (const uint8_t *)s + len };

	check_value(&in);
	skip_spaces(&in);
	must(in.at == in.end);
}

/* ---- what is gzip ---- */

/* Return: valid until the next call. */
static char *inflated(const char *s, size_t len, size_t *ret_len)
{
	static char out[OUT_MAX];
	z_stream z = { .next_in = (Bytef *)(uintptr_t)s, .avail_in = (uInt)len };

	must(inflateInit2(&z, 15 + 16) == Z_OK);
	z.next_out = (Bytef *)out;
	z.avail_out = OUT_MAX;
	must(inflate(&z, Z_FINISH) == Z_STREAM_END && !z.avail_in);
	*ret_len = OUT_MAX - z.avail_out;
	inflateEnd(&z);
	return out;
}

static void check_firefox(const struct sb_profile *profile, const char *s, size_t len)
{
	char *text = inflated(s, len, &len);

	check_json(profile, text, len);
}

/* ---- what is protobuf ---- */

static uint64_t take_varint(struct input *in)
{
	uint64_t val = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		must(in->at < in->end && shift < 64);
		byte = take(in);
		val |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return val;
}

static struct input take_bytes(struct input *in)
{
	uint64_t len = take_varint(in);
	struct input bytes = { in->at, in->at + len };

	must(len <= (uint64_t)(in->end - in->at));
	in->at += len;
	return bytes;
}

/* How many there are of each, and the highest number by which each is named. */
struct seen {
	uint64_t nr_samples, nr_mappings, nr_locations, nr_functions, nr_strings;
	uint64_t mapping_max, location_max, function_max;
};

static void raise_to(uint64_t *max, uint64_t val)
{
	*max = val > *max ? val : *max;
}

static void check_location(struct seen *seen, struct input in)
{
	while (in.at < in.end) {
		uint64_t tag = take_varint(&in);

		if (tag == (4 << 3 | 2)) {
			struct input line = take_bytes(&in);

			must(take_varint(&line) == 1 << 3);
			raise_to(&seen->function_max, take_varint(&line));
		} else if (tag == 1 << 3) {
			must(take_varint(&in) == seen->nr_locations);
		} else {
			must(tag == 2 << 3);
			raise_to(&seen->mapping_max, take_varint(&in));
		}
	}
}

static void check_sample(struct seen *seen, struct input in)
{
	bool has_value = false;

	while (in.at < in.end) {
		uint64_t tag = take_varint(&in);
		struct input bytes = take_bytes(&in);

		must(tag == (1 << 3 | 2) || tag == (2 << 3 | 2) || tag == (3 << 3 | 2));
		has_value |= tag == (2 << 3 | 2);
		while (tag == (1 << 3 | 2) && bytes.at < bytes.end)
			raise_to(&seen->location_max, take_varint(&bytes));
	}
	must(has_value);
}

static void check_field(struct seen *seen, uint64_t field, struct input in)
{
	if (field == 2) {
		seen->nr_samples++;
		check_sample(seen, in);
	} else if (field == 3) {
		seen->nr_mappings++;
	} else if (field == 4) {
		seen->nr_locations++;
		check_location(seen, in);
	} else if (field == 5) {
		seen->nr_functions++;
	} else if (field == 6) {
		must(seen->nr_strings++ || in.at == in.end);
		while (in.at < in.end)
			check_char(&in);
	}
}

static void check_pprof(const struct sb_profile *profile, const char *s, size_t len)
{
	char *text = inflated(s, len, &len);
	struct input in = { (const uint8_t *)text, (const uint8_t *)text + len };
	struct seen seen = {};
	uint64_t tag, before = 0;

	while (in.at < in.end) {
		tag = take_varint(&in);
		must(tag >= before); /* in the order of their numbers */
		before = tag;
		if ((tag & 7) == 2)
			check_field(&seen, tag >> 3, take_bytes(&in));
		else
			must((tag & 7) == 0 && take_varint(&in) > 0);
	}
	must(seen.nr_samples == sb_profile_nr_stacks(profile));
	must(seen.location_max <= seen.nr_locations && seen.function_max <= seen.nr_functions);
	must(seen.mapping_max <= seen.nr_mappings);
}

/* Each table of OTLP's dictionary: how many entries there are. */
static void check_dictionary(struct input in, uint64_t nr[8])
{
	while (in.at < in.end) {
		uint64_t tag = take_varint(&in);
		struct input entry = take_bytes(&in);

		must((tag & 7) == 2 && tag >> 3 >= 1 && tag >> 3 <= 7);
		/* Number 0 is the empty one. */
		must(nr[tag >> 3]++ || entry.at == entry.end);
		while (tag >> 3 == 5 && entry.at < entry.end)
			check_char(&entry);
	}
}

static void check_otlp(const struct sb_profile *profile, const char *s, size_t len)
{
	struct input in = { (const uint8_t *)s, (const uint8_t *)s + len };
	uint64_t nr[8] = {};

	must(take_varint(&in) == (1 << 3 | 2));
	take_bytes(&in);
	must(take_varint(&in) == (2 << 3 | 2));
	check_dictionary(take_bytes(&in), nr);
	must(in.at == in.end);
	must(nr[7] <= sb_profile_nr_stacks(profile) + 1 && nr[4] == 1);
	must(nr[2] <= sb_profile_nr_frames(profile) + 1 && nr[3] <= nr[2] + 1);
}

/* ---- what callgrind's readers take ---- */

static bool begins(const char *line, const char *head)
{
	return !strncmp(line, head, strlen(head));
}

static bool is_cost(const char *line)
{
	char *end;

	(void)strtoul(line, &end, 10);
	if (end == line || *end != ' ')
		return false;
	line = end + 1;
	(void)strtoull(line, &end, 10);
	return end > line && !*end;
}

static void check_callgrind(const struct sb_profile *profile, const char *s, size_t len)
{
	static const char *const heads[] = {
		"version: 1", "creator: ", "desc: ",	"cmd: ", "positions: line",
		"events: ",   "summary: ", "ob=(",	"fl=(",	 "fn=(",
		"cfi=(",      "cfn=(",	   "calls=1 0", "# "
	};
	char *text = strndup(s, len), *at = text, *line;
	uint64_t sum = 0, total = 0;
	bool is_call = false, is_known;
	size_t i;

	while ((line = strsep(&at, "\n"))) {
		is_known = !*line || is_cost(line);
		for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
			is_known |= begins(line, heads[i]);
		must(is_known);
		if (begins(line, "summary: "))
			total = strtoull(line + strlen("summary: "), NULL, 10);
		if (is_cost(line) && !is_call)
			sum += strtoull(strchr(line, ' '), NULL, 10);
		is_call = begins(line, "calls=");
	}
	must(sum == total && total == sb_profile_weight(profile));
	free(text);
}

/* ---- what is a page: names do not make elements ---- */

static size_t nr_of(const char *s, size_t len, const char *what)
{
	const char *end = s + len;
	size_t nr = 0;

	while ((s = memmem(s, (size_t)(end - s), what, strlen(what)))) {
		nr++;
		s++;
	}
	return nr;
}

static void check_html(const struct sb_profile *profile, const char *s, size_t len)
{
	/* The data, the page's and the viewer's: which is not there where there is nothing to
	 * see. */
	size_t nr = sb_profile_weight(profile) ? 3 : 2;

	must(nr_of(s, len, "<script") == nr && nr_of(s, len, "</script>") == nr);
	must(!nr_of(s, len, "<img") && !nr_of(s, len, "<iframe") && !nr_of(s, len, "<!--"));
}

static const struct {
	const char *name;
	void (*check)(const struct sb_profile *profile, const char *s, size_t len);
} formats[] = {
	{ "json", check_json },	  { "speedscope", check_json }, { "firefox", check_firefox },
	{ "pprof", check_pprof }, { "otlp", check_otlp },	{ "callgrind", check_callgrind },
	{ "html", check_html },	  { "folded", NULL },		{ "bt", NULL },
	{ "distr", NULL },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, data + size };
	struct sb_profile *profile = take_profile(&input);
	const struct sb_output_opts opts = {};
	char *text = NULL;
	size_t i, len;
	FILE *out;
	int err;

	for (i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		const struct sb_output *output = sb_output_find(formats[i].name);

		out = open_memstream(&text, &len);
		must(output && out);
		err = output->write(profile, &opts, out);
		must(!err || (err == -ENODATA && !sb_profile_nr_stacks(profile)) ||
		     (err == -ENODATA && !sb_profile_weight(profile)));
		must(!fclose(out));
		if (formats[i].check && !err)
			formats[i].check(profile, text, len);
		free(text);
	}
	sb_profile_free(profile);
	return 0;
}
