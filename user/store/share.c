// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/share.h"

#include <stdio.h>
#include <string.h>

#include "base/index.h"
#include "base/str.h"
#include "store/tags.h"

/*
 * Fractions: everybody gets what they ask for until a quarter is left; an eighth is kept for
 * minima.
 */
#define SCARCE_PART 4
#define KEPT_PART   8

bool sb_share_allows(uint64_t max, uint64_t nr_all, uint64_t nr_own)
{
	uint64_t nr_free = nr_all < max ? max - nr_all : 0, nr_kept = max / KEPT_PART;
	uint64_t nr_least = nr_kept / SB_SHARE_OWNERS_MAX;

	if (!nr_free)
		return false;
	if (nr_free > max / SCARCE_PART || nr_own < (nr_least ? nr_least : 1))
		return true;
	return nr_free > nr_kept && nr_own < nr_free - nr_kept;
}

static bool ends_in(const char *s, size_t len, const char *end)
{
	size_t nr = strlen(end);

	return len > nr && !memcmp(s + len - nr, end, nr);
}

/*
 * Only the administrator makes slices, except below "user-1000.slice", where the user may. What is
 * below a service, a scope or a container may have been made by what runs there. Without systemd,
 * containers are one level below their manager: "/docker/0123".
 */
size_t sb_share_cgroup(const char *cgroup)
{
	size_t at = 0, len;

	while (cgroup[at] == '/' && cgroup[at + 1]) {
		const char *name = cgroup + at + 1;
		bool is_first = !at, is_slice;

		len = strcspn(name, "/");
		is_slice = ends_in(name, len, ".slice");
		at += 1 + len;
		if (is_slice && !(len > 5 && !memcmp(name, "user-", 5)))
			continue;
		if (is_first && !is_slice && !ends_in(name, len, ".service") &&
		    !ends_in(name, len, ".scope") && cgroup[at])
			at += 1 + strcspn(cgroup + at + 1, "/");
		break;
	}
	return at < SB_SHARE_PATH_MAX ? at : SB_SHARE_PATH_MAX;
}

/* A user can have many user IDs in namespaces (subuid(5)), but has only one slice. */
static bool is_user_slice(const char *cgroup, size_t len)
{
	const char *last = len ? memrchr(cgroup, '/', len) : NULL;

	return last && !strncmp(last, "/user-", 6) && ends_in(cgroup, len, ".slice");
}

static uint64_t hash_of(const struct sb_tag *tags, size_t nr)
{
	const char *cgroup = sb_tag_value(tags, nr, "cgroup"), *uid = sb_tag_value(tags, nr, "uid");
	const char *host = sb_tag_value(tags, nr, "host");
	size_t len = sb_share_cgroup(cgroup);
	uint64_t hash = sb_hash(cgroup, len, sb_hash(host, strlen(host), 0));

	return is_user_slice(cgroup, len) ? hash : sb_hash(uid, strlen(uid), hash);
}

uint32_t sb_share_owner(struct sb_share_owners *owners, const struct sb_tag *tags, size_t nr)
{
	uint64_t hash = hash_of(tags, nr);
	uint32_t i;

	for (i = 1; i < owners->nr; i++)
		if (owners->hash[i] == hash)
			return i;
	if (!owners->nr)
		owners->nr = 1;
	if (owners->nr == SB_SHARE_OWNERS_MAX)
		return 0;
	owners->hash[owners->nr] = hash;
	return owners->nr++;
}

static void add_tag(struct sb_share_tags *tags, const char *key, const char *value)
{
	if (value[0])
		tags->at[tags->nr++] = (struct sb_tag){ .key = key, .value = value };
}

void sb_share_tags(uint32_t owner, const struct sb_tag *tags, size_t nr, struct sb_share_tags *ret)
{
	const char *cgroup = owner ? sb_tag_value(tags, nr, "cgroup") : "";
	size_t len = sb_share_cgroup(cgroup);

	ret->nr = 0;
	ret->cgroup[0] = '\0';
	if (len)
		snprintf(ret->cgroup, sizeof(ret->cgroup), "%.*s/" SB_SHARE_OTHER, (int)len,
			 cgroup);
	add_tag(ret, "cgroup", len ? ret->cgroup : "");
	add_tag(ret, "comm", SB_SHARE_OTHER);
	add_tag(ret, "host", sb_tag_value(tags, nr, "host"));
	add_tag(ret, "service", SB_SHARE_OTHER);
	if (owner && !is_user_slice(cgroup, len))
		add_tag(ret, "uid", sb_tag_value(tags, nr, "uid"));
}
