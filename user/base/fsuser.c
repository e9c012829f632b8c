// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/fsuser.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GROUPS_MAX 65536 /* NGROUPS_MAX of the kernel */

int sb_user_groups(const struct sb_owner *owner, sb_vec_gid *ret_groups)
{
	const struct passwd *passwd = getpwuid(owner->uid);
	int nr = 64, err;

	ret_groups->nr = 0;
	if (!passwd)
		return sb_vec_push(ret_groups, owner->gid);
	for (;;) {
		err = sb_vec_reserve(ret_groups, (size_t)nr);
		if (err)
			return err;
		nr = (int)ret_groups->cap;
		if (getgrouplist(passwd->pw_name, owner->gid, ret_groups->at, &nr) >= 0)
			break;
		if (nr > GROUPS_MAX)
			return -E2BIG;
	}
	ret_groups->nr = (size_t)nr;
	return 0;
}

/* The C library's setgroups() would change all threads. */
static int set_groups(const gid_t *groups, size_t nr)
{
	return syscall(SYS_setgroups, nr, groups) ? -errno : 0;
}

static int save(struct sb_fsuser *ret_before)
{
	int nr = getgroups(0, NULL), err;

	*ret_before = (struct sb_fsuser){ .is_dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) };
	if (nr < 0)
		return -errno;
	err = sb_vec_reserve(&ret_before->groups, (size_t)nr + 1);
	if (err)
		return err;
	nr = getgroups(nr, ret_before->groups.at);
	if (nr < 0)
		return -errno;
	ret_before->groups.nr = (size_t)nr;
	return 0;
}

int sb_fsuser_begin(const struct sb_owner *who, const gid_t *groups, size_t nr_groups,
		    struct sb_fsuser *ret_before)
{
	int err = save(ret_before);

	if (!err)
		err = set_groups(groups, nr_groups);
	if (err) {
		sb_vec_release(&ret_before->groups);
		return err;
	}
	ret_before->gid = (gid_t)setfsgid(who->gid);
	ret_before->uid = (uid_t)setfsuid(who->uid);
	/* They say nothing of what went wrong, but who one is. */
	if ((uid_t)setfsuid((uid_t)-1) == who->uid && (gid_t)setfsgid((gid_t)-1) == who->gid)
		return 0;
	sb_fsuser_end(ret_before);
	return -EPERM;
}

void sb_fsuser_end(struct sb_fsuser *before)
{
	(void)setfsuid(before->uid);
	(void)setfsgid(before->gid);
	/* Who had the right to change them has it still. */
	(void)set_groups(before->groups.at, before->groups.nr);
	/* Each change may have made the process dumpable (fs.suid_dumpable). */
	(void)prctl(PR_SET_DUMPABLE, before->is_dumpable == 1, 0, 0, 0);
	sb_vec_release(&before->groups);
}
