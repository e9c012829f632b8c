// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The parser of events: no crash, a reason for each refusal, and only parts of the text in the
 * result. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "events/event.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sb_reason reason = {};
	struct sb_event_spec spec;
	char *text = strndup((const char *)data, len);
	int err;

	if (!text)
		return 0;
	err = sb_event_parse(text, &spec, &reason);
	must(!err || (err == -EINVAL && sb_reason_is_set(&reason)));
	must(err || (strstr(text, spec.name) && strstr(text, spec.provider) &&
		     (strstr(text, spec.file) || !strcmp(spec.file, "*")))); /* rawtracepoint: */
	must(err || spec.kind < SB_PROBE_KIND_MAX);
	free(text);
	return 0;
}
