// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The parser of definitions: no crash, a reason for each refusal, and each definition within its
 * bounds. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "events/definition.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void look_at_events(const sb_vec_str *events)
{
	size_t i;

	must(events->nr <= SB_DEFINITION_EVENTS_MAX);
	for (i = 0; i < events->nr; i++)
		must(strlen(events->at[i]) < SIZE_MAX);
}

static void look_at(const struct sb_definition *definition)
{
	const struct sb_event_request *request = &definition->request;

	must(definition->name[0] && strlen(definition->name) <= SB_DEFINITION_NAME_MAX);
	/* It names either events or spans. */
	must(!definition->in == (request->events.nr || request->from.nr || request->to.nr));
	must(definition->in || (!definition->until && !definition->slower_than_ns));
	look_at_events(&request->events);
	look_at_events(&request->from);
	look_at_events(&request->to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sb_definitions list = {};
	struct sb_reason reason = {};
	char *text = strndup((const char *)data, len);
	size_t i;
	int err;

	if (!text)
		return 0;
	err = sb_definitions_parse(text, "fuzz", &list, &reason);
	must(!err || err == -ENOMEM || (err == -EINVAL && sb_reason_is_set(&reason)));
	must(list.at.nr <= SB_DEFINITIONS_MAX);
	for (i = 0; i < list.at.nr; i++)
		look_at(&list.at.at[i]);
	sb_definitions_release(&list);
	return 0;
}
