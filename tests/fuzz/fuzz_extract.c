// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The stacks in a picture. Input: a picture, or what would be in its <folded>: base64 of gzip of
 * that is made here, so that the input is what is inflated, and comes back as it was.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/str.h"
#include "flamegraph/embed.h"
#include "must.h"

#define OUT_BYTES_MAX (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Return: as sb_fg_extract(); what it wrote is the caller's. */
static int extract(const void *svg, size_t len, char **ret_text, size_t *ret_len)
{
	FILE *in = fmemopen((void *)svg, len, "r"), *out = open_memstream(ret_text, ret_len);
	int err;

	must(in && out);
	err = sb_fg_extract(in, out);
	must(err <= 0);
	must(!fclose(in) && !fclose(out) && *ret_len <= OUT_BYTES_MAX);
	return err;
}

static void add_base64(struct sb_str *str, const uint8_t *bytes, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t i;
	int j;

	for (i = 0; i < len; i += 3) {
		uint32_t word = (uint32_t)bytes[i] << 16;

		word |= i + 1 < len ? (uint32_t)bytes[i + 1] << 8 : 0;
		word |= i + 2 < len ? (uint32_t)bytes[i + 2] : 0;
		for (j = 0; j < 4; j++)
			must(!sb_str_addc(str, i + (size_t)j > len
						       ? '='
						       : digits[word >> (18 - 6 * j) & 63]));
	}
}

static void check_round(const uint8_t *data, size_t size)
{
	struct sb_str svg = {};
	uint8_t *packed = malloc(size + 1024);
	z_stream z = { .next_in = (uint8_t *)data, .avail_in = (uInt)size };
	size_t len;
	char *text;

	must(packed && deflateInit2(&z, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) == Z_OK);
	z.next_out = packed;
	z.avail_out = (uInt)size + 1024;
	must(deflate(&z, Z_FINISH) == Z_STREAM_END);
	must(!sb_str_add(&svg, "<svg><metadata><folded>\n"));
	add_base64(&svg, packed, z.total_out);
	must(!sb_str_add(&svg, "\n</folded></metadata></svg>\n"));
	deflateEnd(&z);
	must(!extract(svg.s, svg.len, &text, &len));
	must(len == size && (!size || !memcmp(text, data, size)));
	free(text);
	free(packed);
	sb_str_release(&svg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t len;
	char *text;

	if (!size)
		return 0;
	extract(data, size, &text, &len);
	free(text);
	check_round(data, size);
	return 0;
}
