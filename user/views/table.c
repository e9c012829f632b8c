// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "base/cleanup.h"
#include "views/views.h"

static const struct sb_view *const rows[] = {
	&sb_view_oncpu,	  &sb_view_offcpu, &sb_view_wakeup,
	&sb_view_offwake, &sb_view_wall,   &sb_view_io,
};

const struct sb_view *sb_view_at(size_t i)
{
	return i < SB_ARRAY_SIZE(rows) ? rows[i] : NULL;
}

const struct sb_view *sb_view_find(const char *name)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(rows); i++)
		if (!strcmp(rows[i]->name, name))
			return rows[i];
	return NULL;
}

bool sb_views_add(struct sb_views *views, const struct sb_view *view)
{
	size_t i;

	for (i = 0; i < views->nr; i++) {
		const struct sb_view *other = views->at[i];

		if ((other->slots | other->other_slots) & (view->slots | view->other_slots))
			return false;
		/* The weight of a sample by chance is a variable of theirs. */
		if (view->thin && view->thin == other->thin)
			return false;
	}
	if (views->nr == SB_ARRAY_SIZE(views->at))
		return false;
	views->at[views->nr++] = view;
	return true;
}

const char *sb_view_unit(const struct sb_view *view, const struct sb_view_opts *opts,
			 uint64_t *ret_divisor)
{
	const char *unit;

	*ret_divisor = view->divisor;
	unit = view->unit_of ? view->unit_of(opts, ret_divisor) : NULL;
	return unit ? unit : view->unit;
}
