// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Any name in every mode: the name itself when switched off, never nothing, never without
 * bounds. */
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "symbolizer/symbols/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *raw, enum sb_sym_demangle mode)
{
	struct sb_str name = {}, again = {};

	must(!sb_str_add(&name, "x") && !sb_demangle(raw, mode, &name));
	must(name.s[0] == 'x' && strlen(name.s) == name.len);
	must(name.len == 1 || raw[0]);
	must(name.len <= 1 + strlen(raw) + SB_DEMANGLE_OUT_MAX + 8 * strlen(" [clone ]"));
	must(mode != SB_SYM_DEMANGLE_OFF || !strcmp(name.s + 1, raw));
	must(!sb_demangle(raw, mode, &again) && !strcmp(again.s ? again.s : "", name.s + 1));
	sb_str_release(&name);
	sb_str_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *raw = malloc(size + 1);

	must(raw);
	memcpy(raw, data, size);
	raw[size] = '\0';
	check(raw, SB_SYM_DEMANGLE_SHORT);
	check(raw, SB_SYM_DEMANGLE_FULL);
	check(raw, SB_SYM_DEMANGLE_OFF);
	free(raw);
	return 0;
}
