/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fair shares of something that is bounded and can only be given out, not taken back: entries of a store's
 * dictionary, values of a tag. While a quarter of it is free, everybody gets what they ask for. In the last quarter
 * those who have used least are served first, so that whoever fills it loses names, and nobody else does. The rule is
 * that of dynamic thresholds (Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches",
 * 1998), with a guaranteed minimum for each owner.
 *
 * An owner is whoever can be told apart and cannot make more of itself: a user's slice in the cgroup tree, with all
 * cgroups that the user may make below it; or a service, a scope or a container together with the user ID.
 */
#ifndef SB_STORE_SHARE_H
#define SB_STORE_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sb_tag {
	const char *key, *value;
	bool is_wide; /* of many values, like pids: not for long */
};

/* Owners that have a share of their own; all others have one together, number 0. */
#define SB_SHARE_OWNERS_MAX 128u
/* What is beyond a share. */
#define SB_SHARE_OTHER	    "(other)"
/* Longest path of an owner's cgroup; longer ones are cut. */
#define SB_SHARE_PATH_MAX   200u

/**
 * sb_share_allows() - may an owner have one more
 * @max: how many there may be in all
 * @nr_all: how many are given out
 * @nr_own: how many of these the owner has
 *
 * Thread: any.
 */
bool sb_share_allows(uint64_t max, uint64_t nr_all, uint64_t nr_own);

/* Owners by number. Zero-initialize. */
struct sb_share_owners {
	uint64_t hash[SB_SHARE_OWNERS_MAX];
	uint32_t nr;
};

/**
 * sb_share_owner() - the number of the owner of a set of tags
 * @owners: gets a new owner as long as there is room
 * @tags: of samples; the owner is told by `cgroup`, `uid` and `host`
 * @nr: how many tags there are
 *
 * Return: a number below SB_SHARE_OWNERS_MAX; 0 for owners without a share of their own.
 */
uint32_t sb_share_owner(struct sb_share_owners *owners, const struct sb_tag *tags, size_t nr);

/* Tags that say no more of samples than whose they are. */
#define SB_SHARE_TAGS_MAX 5
struct sb_share_tags {
	struct sb_tag at[SB_SHARE_TAGS_MAX];
	size_t nr;
	char cgroup[SB_SHARE_PATH_MAX + 16]; /* "/user.slice/user-1000.slice/(other)" */
};

/**
 * sb_share_tags() - tags of what an owner has, without anything that the owner can choose
 * @owner: as sb_share_owner() said of @tags
 * @tags: of the samples
 * @nr: how many tags there are
 * @ret: tags sorted by key, whose values point into @tags and @ret
 */
void sb_share_tags(uint32_t owner, const struct sb_tag *tags, size_t nr, struct sb_share_tags *ret);

/**
 * sb_share_cgroup() - the part of a cgroup's path that tells the owner
 * @cgroup: "/user.slice/user-1000.slice/user@1000.service/app.slice"
 *
 * Return: its length: of "/user.slice/user-1000.slice".
 */
size_t sb_share_cgroup(const char *cgroup);

#endif
