// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "base/cleanup.h"
#include "views/views.h"

static const struct sb_view *const rows[SB_VIEW_KIND_MAX] = {
#define SB_VIEW(name, ...) [SB_VIEW_KIND_##name] = &sb_view_##name,
#include "kinds/views.def"
#undef SB_VIEW
};

const struct sb_view *sb_view_at(size_t i)
{
	return i < SB_ARRAY_SIZE(rows) ? rows[i] : NULL;
}

const struct sb_view *sb_view_find(const char *name)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(rows); i++)
		if (!strcmp(rows[i]->kind->name, name))
			return rows[i];
	return NULL;
}

const struct sb_view *sb_view_of_all_threads(void)
{
	size_t i = 0;

	while (i < SB_ARRAY_SIZE(rows) && !rows[i]->is_of_all_threads)
		i++;
	return sb_view_at(i);
}

bool sb_views_add(struct sb_views *views, const struct sb_view *view)
{
	size_t i;

	for (i = 0; i < views->nr; i++) {
		const struct sb_view *other = views->at[i];

		if ((other->slots | other->other_slots) & (view->slots | view->other_slots))
			return false;
		/* Views with the same thin() share the variable for the weight of a sample. */
		if (view->thin && view->thin == other->thin)
			return false;
	}
	if (views->nr == SB_ARRAY_SIZE(views->at))
		return false;
	views->at[views->nr++] = view;
	return true;
}

const char *sb_view_event(const struct sb_view *view, uint64_t nr)
{
	const struct sb_view_kind *kind =
		view->follows_pages ? &sb_view_kinds[SB_VIEW_KIND_memory] : view->kind;

	return nr == 1 ? kind->event_one : kind->event;
}

const char *sb_view_unit(const struct sb_view *view, const struct sb_view_opts *opts,
			 uint64_t *ret_divisor)
{
	const char *unit;

	*ret_divisor = view->divisor;
	unit = view->unit_of ? view->unit_of(opts, ret_divisor) : NULL;
	return unit ? unit : view->kind->unit;
}
