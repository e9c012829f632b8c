// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "base/cleanup.h"
#include "views/views.h"

static const struct sb_view *const views[] = {
	&sb_view_oncpu,	  &sb_view_offcpu, &sb_view_wakeup,
	&sb_view_offwake, &sb_view_wall,   &sb_view_io,
};

const struct sb_view *sb_view_at(size_t i)
{
	return i < SB_ARRAY_SIZE(views) ? views[i] : NULL;
}

const struct sb_view *sb_view_find(const char *name)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(views); i++)
		if (!strcmp(views[i]->name, name))
			return views[i];
	return NULL;
}
