// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What others say to an export: the file of its place, headers, addresses, replies. The first byte
 * says which. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "export/export.h"
#include "export/otlp.h"
#include "must.h"
#include "store/late_blocks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void is_text(const char *text)
{
	must(strnlen(text, SB_EXPORT_TEXT_MAX) < SB_EXPORT_TEXT_MAX);
	for (; *text; text++)
		must((unsigned char)*text >= ' ' && *text != 0x7f);
}

static void fuzz_state(const char *text, size_t len)
{
	struct sb_read_place place, again;
	struct sb_export_state state;
	char seen[SB_EXPORT_TEXT_MAX];

	if (sb_export_state_parse(text, len, &state))
		return;
	is_text(state.to);
	is_text(state.what);
	is_text(state.error);
	is_text(state.seen);
	sb_read_place_parse(&place, state.seen);
	sb_read_place_print(&place, seen, sizeof(seen));
	sb_read_place_parse(&again, seen);
	must(again.nr == place.nr && place.nr <= SB_READ_PLACE_FILES_MAX);
	must(!memcmp(again.files, place.files, place.nr * sizeof(place.files[0])));
	must(state.next_s >= 0 && state.sent_s >= 0 && state.part_end_s >= 0);
}

static void fuzz_words(const char *text)
{
	const struct sb_export_kind *kind;
	struct sb_str out = {};
	const char *address, *why;
	uint32_t seconds;
	void *dest;

	if (sb_http_retry_after(text, 1795255200, &seconds))
		must(seconds <= SB_HTTP_RETRY_MAX_S);
	if (sb_http_header_is_good(text))
		must(!strpbrk(text, "\r\n"));
	must(!sb_http_add_shown(&out, text));
	must(!out.s || !strchr(out.s, '?'));
	sb_str_clear(&out);
	must(!sb_http_escape(&out, text));
	must(!out.s || !strpbrk(out.s, " &=?#/\r\n"));
	sb_str_release(&out);
	kind = sb_export_find(text, &address);
	if (kind && (!kind->is_http || sb_export_is_url(address))) {
		struct sb_export_opts opts = { .address = address };

		if (!kind->open(&opts, &dest, &why))
			kind->close(dest);
	}
}

static void fuzz_reply(const char *data, size_t len)
{
	struct sb_str reply = {}, message = {};
	uint64_t nr;

	must(!sb_str_addn(&reply, data, len));
	must(!sb_otlp_rejected(&reply, &nr, &message));
	sb_str_release(&reply);
	sb_str_release(&message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!size)
		return 0;
	text = malloc(size);
	must(text != NULL);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	if (*data == 's')
		fuzz_state(text, size - 1);
	else if (*data == 'w')
		fuzz_words(text);
	else
		fuzz_reply(text, size - 1);
	free(text);
	return 0;
}
