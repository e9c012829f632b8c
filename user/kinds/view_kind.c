// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kinds/view_kind.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

const struct sb_view_kind sb_view_kinds[SB_VIEW_KIND_MAX] = {
#define SB_VIEW(id, ...) [SB_VIEW_KIND_##id] = { .name = #id, __VA_ARGS__ },
#include "kinds/views.def"
#undef SB_VIEW
};

static const struct sb_view_kind *find(const char *name, size_t len)
{
	for (size_t i = 0; i < SB_VIEW_KIND_MAX; i++)
		if (sb_text_is(name, len, sb_view_kinds[i].name))
			return &sb_view_kinds[i];
	return NULL;
}

const struct sb_view_kind *sb_view_kind_find(const char *name)
{
	size_t len = name ? strcspn(name, SB_VIEW_KIND_OF) : 0;
	const struct sb_view_kind *kind = name ? find(name, len) : NULL;

	return kind && name[len] && !kind->takes_events && !(kind->options & SB_VIEW_SPANS) ? NULL
											    : kind;
}

bool sb_view_kind_is_lasting(const char *name)
{
	const struct sb_view_kind *kind = sb_view_kind_find(name);

	return !kind || kind->options & SB_VIEW_LASTING;
}

/* Formats have names for what a view measures, not for events that a user has named. */
static const struct sb_view_kind *find_itself(const char *name)
{
	return name ? find(name, strlen(name)) : NULL;
}

const char *sb_view_kind_list(bool (*is_in)(const struct sb_view_kind *kind),
			      char names[SB_VIEW_KIND_LIST_BYTES])
{
	size_t i, len = 0;

	names[0] = '\0';
	for (i = 0; i < SB_VIEW_KIND_MAX && len < SB_VIEW_KIND_LIST_BYTES; i++)
		if (is_in(&sb_view_kinds[i]))
			len += (size_t)snprintf(names + len, SB_VIEW_KIND_LIST_BYTES - len, "%s%s",
						len ? ", " : "", sb_view_kinds[i].name);
	return names;
}

const char *sb_view_kind_names(void)
{
	static char names[SB_VIEW_KIND_LIST_BYTES];

	return sb_view_kind_list(sb_view_kind_is_recorded, names);
}

const char *sb_view_kind_pprof(const char *name)
{
	const struct sb_view_kind *kind = find_itself(name);

	return kind && kind->pprof ? kind->pprof : name;
}

const char *sb_view_kind_otlp(const char *name)
{
	const struct sb_view_kind *kind = find_itself(name);

	return kind && kind->otlp ? kind->otlp : name;
}

const char *sb_view_kind_pyroscope(const char *name)
{
	const struct sb_view_kind *kind = find_itself(name);

	return kind && kind->pyroscope ? kind->pyroscope : name;
}

const char *sb_view_kind_objects(const char *name, const char *unit)
{
	const struct sb_view_kind *kind = find_itself(name);

	return kind && sb_streq(unit, SB_VIEW_UNIT_OBJECTS) ? kind->objects : NULL;
}
