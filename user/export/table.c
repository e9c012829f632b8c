// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "base/cleanup.h"
#include "export/kinds.h"

static const struct sb_export_kind *const kinds[] = {
	&sb_export_clickhouse,
	&sb_export_otlp,
	&sb_export_pyroscope,
	&sb_export_pprof_dir,
};

const struct sb_export_kind *sb_export_at(size_t i)
{
	return i < SB_ARRAY_SIZE(kinds) ? kinds[i] : NULL;
}

const struct sb_export_kind *sb_export_find(const char *to, const char **ret_address)
{
	size_t len = strcspn(to, ":"), i;

	for (i = 0; to[len] && i < SB_ARRAY_SIZE(kinds); i++) {
		if (sb_text_is(to, len, kinds[i]->scheme)) {
			*ret_address = to + len + 1;
			return kinds[i];
		}
	}
	return NULL;
}
