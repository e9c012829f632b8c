/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lets root open, create and rename files with the rights of another user, by setfsuid(2). In all
 * other respects the process remains root, so that this user's processes cannot signal or trace it.
 * Order: sb_user_groups(), sb_fsuser_begin(), the work on files, sb_fsuser_end() in the same
 * thread, and last the release of the groups. Thread: any; the rights are those of the calling
 * thread alone. No pointer is NULL, but for an array of no elements.
 */
#ifndef SB_BASE_FSUSER_H
#define SB_BASE_FSUSER_H

#include <stddef.h>
#include <sys/types.h>

#include "base/fs.h"
#include "base/vec.h"

typedef SB_VEC(gid_t) sb_vec_gid;

/**
 * sb_user_groups() - the groups of a user, as login(1) would give them
 * @owner: whose; a user without an entry in the user database has @owner->gid alone
 * @ret_groups: zeroed or used before; emptied, then filled; the caller releases it, also on error,
 *	when it is empty
 *
 * Reads the user database; not thread-safe. Return: 0; -ENOMEM; -E2BIG: more groups than Linux has.
 */
int sb_user_groups(const struct sb_owner *owner, sb_vec_gid *ret_groups);

/* What sb_fsuser_begin() changed in the thread, for sb_fsuser_end() to restore. */
struct sb_fsuser {
	sb_vec_gid groups;
	uid_t uid;
	gid_t gid;
	int is_dumpable;
};

/**
 * sb_fsuser_begin() - look at files with the rights of another user from here on
 * @who: the user and group
 * @groups, @nr_groups: further groups, used during the call only
 * @ret_before: overwritten; for sb_fsuser_end(), which has to be called on success; undefined on
 *	error, and nothing is to be released
 *
 * Only this thread changes, but for the dumpable state (prctl(2)), which is the process's. The
 * thread must be root's, with CAP_SETUID and CAP_SETGID.
 *
 * Return: 0; -EPERM: without these capabilities; -EINVAL: more groups than Linux has; -ENOMEM.
 * After an error nothing has changed.
 */
int sb_fsuser_begin(const struct sb_owner *who, const gid_t *groups, size_t nr_groups,
		    struct sb_fsuser *ret_before);
/* Go back to the user, the groups and the dumpable state before, and free what @before holds.
 * Cannot fail, as the thread is still root's. Thread: the one that called sb_fsuser_begin(). */
void sb_fsuser_end(struct sb_fsuser *before);

#endif
