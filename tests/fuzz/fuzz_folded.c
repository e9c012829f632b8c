// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Folded text, or whatever its first bytes look like; the same as stacks that end in files. */
#include "fg_input.h"

#define IO "#stackbpf;kind=io\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was guessed of a file is said in the text, and is not guessed otherwise from there. */
static void check_files(const uint8_t *data, size_t size)
{
	struct sb_str once = {}, twice = {}, other = {};
	struct sb_fg *fg = read_text(IO, (const char *)data, size, NULL);
	bool is_exact = sb_fg_total(fg) < EXACT_MAX;

	fold(fg, &once);
	if (!is_exact) {
		sb_str_release(&once);
		return;
	}
	fold(read_text(IO, once.s ? once.s : "", once.len, NULL), &twice);
	fold(read_text(IO, twice.s ? twice.s : "", twice.len, NULL), &other);
	must(other.len == twice.len && (!other.len || !memcmp(other.s, twice.s, twice.len)));
	sb_str_release(&once);
	sb_str_release(&twice);
	sb_str_release(&other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_input("", data, size);
	check_files(data, size);
	return 0;
}
