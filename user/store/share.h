/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fair shares of a resource that is bounded and cannot be taken back: entries of a store's
 * dictionary. While more than a quarter is free, everybody gets what they ask for. In the last
 * quarter, owners that have used least are served first, so that whoever fills it loses names, and
 * nobody else does. The rule is that of dynamic thresholds (Choudhury and Hahne, "Dynamic Queue
 * Length Thresholds for Shared-Memory Packet Switches", 1998), with a guaranteed minimum for each
 * owner.
 *
 * An owner is somebody who can be told apart and cannot multiply: a user's slice in the cgroup
 * tree, with all cgroups that the user may make below it; or a service, a scope or a container
 * together with the user ID. Thread: any, one for each struct sb_share_owners. Pointers are not
 * NULL, but an array of no tags may be; there is nothing to free.
 *
 * For each new entry: sb_share_owner() tells whose it is, and sb_share_allows() whether it may be
 * added; if so, the caller counts it for this owner, else adds it under sb_share_tags().
 */
#ifndef SB_STORE_SHARE_H
#define SB_STORE_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sb_tag {
	const char *key, *value;
	bool is_wide; /* it has many values, like pids, and is not in aggregates */
};

/* Owners that have a share of their own. All others have one together, number 0. */
#define SB_SHARE_OWNERS_MAX 128u
/* Name of what exceeds a share. */
#define SB_SHARE_OTHER	    "(other)"
/* Longest path of an owner's cgroup; longer ones are truncated. */
#define SB_SHARE_PATH_MAX   200u

/**
 * sb_share_allows() - may an owner have one more entry
 * @max: how many entries there may be
 * @nr_all: how many are used
 * @nr_own: how many of these the owner uses
 *
 * Return: whether it may.
 */
bool sb_share_allows(uint64_t max, uint64_t nr_all, uint64_t nr_own);

/* Known owners; the index is the owner's number. Zero-initialize. */
struct sb_share_owners {
	uint64_t hash[SB_SHARE_OWNERS_MAX];
	uint32_t nr;
};

/**
 * sb_share_owner() - find the number of an owner, or give it one
 * @owners: zero-initialized at first; a new owner is added while there is room
 * @tags: tags of samples; `cgroup`, `uid` and `host` tell the owner, and samples that have none of
 *	them are one owner; not kept
 *
 * Return: a number below SB_SHARE_OWNERS_MAX; 0 if there was no room for the owner, so that it has
 * no share of its own.
 */
uint32_t sb_share_owner(struct sb_share_owners *owners, const struct sb_tag *tags, size_t nr);

/* Tags that tell only whose samples they are. */
#define SB_SHARE_TAGS_MAX 5
struct sb_share_tags {
	struct sb_tag at[SB_SHARE_TAGS_MAX];
	size_t nr;
	char cgroup[SB_SHARE_PATH_MAX + 16]; /* "/user.slice/user-1000.slice/(other)" */
};

/**
 * sb_share_tags() - make tags for an owner's "(other)", with nothing that the owner can choose
 *
 * These are cgroup, host and uid, as far as they tell the owner, and "(other)" as comm and service.
 *
 * @owner: what sb_share_owner() returned for @tags
 * @tags: @nr tags of the samples
 * @ret: overwritten; tags sorted by key, whose values point into @tags and @ret: neither may be
 *	moved or freed while they are used
 */
void sb_share_tags(uint32_t owner, const struct sb_tag *tags, size_t nr, struct sb_share_tags *ret);

/**
 * sb_share_cgroup() - which part of a cgroup's path tells the owner
 * @cgroup: for example "/user.slice/user-1000.slice/user@1000.service/app.slice"
 *
 * Return: its length in bytes from the beginning; here that of "/user.slice/user-1000.slice". All
 * slices count, up to that of a user, and one component behind them: "/system.slice/a.service",
 * "/docker/ID", "/foo". 0 for "" and "/". At most SB_SHARE_PATH_MAX.
 */
size_t sb_share_cgroup(const char *cgroup);

#endif
