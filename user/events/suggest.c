// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What somebody may have meant who wrote a single word, which is a function of the kernel as for
 * bcc: a tracepoint, a function of the program, or one of the C library. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/reason.h"
#include "base/str.h"
#include "events/probe_priv.h"
#include "events/tracefs.h"

/* Ends a search. */
#define FOUND (-ECANCELED)

struct spelling {
	char *text;
	size_t size;
};

static int take_tracepoint(void *arg, const char *category, const char *name, uint64_t id)
{
	const struct spelling *spelling = arg;

	snprintf(spelling->text, spelling->size, "%s:%s", category, name);
	return FOUND;
}

static int take_place(struct sb_resolving *to, const char *name, const struct sb_probe *probe)
{
	return FOUND;
}

/* Return: whether a program or library has the function that @to names. */
static bool has_function(const struct sb_resolving *to, const char *file)
{
	struct sb_event_spec spec = *to->spec;
	struct sb_reason why = {};
	struct sb_resolving in_file = {
		.text = to->text,
		.spec = &spec,
		.tgid = to->tgid,
		.is_list = true,
		.found = take_place,
		.reason = &why,
	};

	spec.kind = SB_PROBE_USER;
	spec.is_return = false;
	spec.offset = 0;
	snprintf(spec.file, sizeof(spec.file), "%s", file);
	return sb_resolve_user(&in_file) == FOUND;
}

bool sb_suggest_find(const struct sb_resolving *to, char *ret, size_t size)
{
	char link[32], program[PATH_MAX];
	struct spelling spelling = { ret, size };
	sb_cleanup(sb_closep) int events_fd = sb_tracefs_open();
	const char *name = to->spec->name, *begin = to->spec->is_return ? "r:" : "";
	ssize_t len;

	if (sb_event_is_glob(name))
		return false;
	if (events_fd >= 0 &&
	    sb_tracefs_each(events_fd, "*", name, take_tracepoint, &spelling) == FOUND)
		return true;
	snprintf(link, sizeof(link), "/proc/%u/exe", to->tgid);
	len = to->tgid ? readlink(link, program, sizeof(program) - 1) : -1;
	program[len > 0 ? len : 0] = '\0';
	if (len > 0 && has_function(to, sb_base_name(program)))
		snprintf(ret, size, "%s%s:%s", begin, sb_base_name(program), name);
	else if (has_function(to, "c"))
		snprintf(ret, size, "%sc:%s", begin, name);
	else
		return false;
	return true;
}
