// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "serve/routes.h"

#include "base/cleanup.h"

#define JSON "application/json"

static const struct sb_route routes[] = {
	{ "/api/info", JSON, sb_api_info },
	{ "/api/tags", JSON, sb_api_tags },
	{ "/api/timeline", JSON, sb_api_timeline },
	{ "/api/flame", JSON, sb_api_flame },
	{ "/api/diff", JSON, sb_api_diff },
	{ "/api/profile", "application/octet-stream", sb_api_profile },
	{ "/render", JSON, sb_api_render },
	{ "/render-diff", JSON, sb_api_render_diff },
	{ "/metrics", "text/plain; version=0.0.4; charset=utf-8", sb_api_metrics },
};

int sb_route_find(struct sb_http_text path)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(routes); i++)
		if (sb_http_text_is(path, routes[i].path))
			return (int)i;
	return -1;
}

const struct sb_route *sb_route_at(size_t i)
{
	return i < SB_ARRAY_SIZE(routes) ? &routes[i] : NULL;
}
