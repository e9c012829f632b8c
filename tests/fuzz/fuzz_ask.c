// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What users and HTTP ask for: lines of times, lengths and rules. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "store/ask.h"

#define NOW 1795255200ll

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask_line(struct sb_ask *ask, const char *line)
{
	static const struct sb_tag tags[] = { { "region", "eu", false },
					      { "service", "car", false } };
	char text[SB_ASK_TIME_BYTES];
	const char *why = NULL;
	int64_t time_s, again_s;

	if (!sb_ask_time(line, NOW, &time_s)) {
		must(time_s >= 0);
		/* What is printed is read as the same. */
		sb_ask_print_time(time_s, text);
		must(!sb_ask_time(text, NOW, &again_s) && again_s == time_s);
	}
	if (!sb_ask_length(line, &time_s))
		must(time_s >= 0);
	if (!sb_ask_range(ask, line, NULL, NOW, &why))
		must(ask->from_s < ask->to_s);
	else
		must(why);
	/* Expressions may take exponential time to be looked for; that is the C library's. */
	if (!strchr(line, '~') && !sb_ask_rule(ask, line))
		(void)sb_tag_rules_match(&ask->rules, tags, 2);
	must(sb_ask_kind(ask));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1), *line, *at;
	struct sb_ask ask = {};

	must(copy);
	memcpy(copy, data, size);
	copy[size] = '\0';
	for (at = copy; (line = strsep(&at, "\n"));)
		ask_line(&ask, line);
	sb_ask_release(&ask);
	free(copy);
	return 0;
}
