// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/elf/owner.h"

#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "symbolizer/process/reader.h"

/* The user that root becomes when it drops privileges. */
#define UID_NOBODY 65534u

struct sb_file_owner sb_file_owner(int fd, const struct stat *st)
{
	struct sb_file_owner owner = { .uid = st->st_uid };
	struct statfs fs;

	if (fstatfs(fd, &fs) || fs.f_type == FUSE_SUPER_MAGIC || sb_reader_is_copy(fd))
		owner.ino = st->st_ino;
	if (owner.ino || owner.uid)
		owner.dev = st->st_dev;
	return owner;
}

bool sb_owner_may_speak(const struct sb_file_owner *owner, uint64_t uid)
{
	return sb_is_known_owner(owner) && (!owner->uid || owner->uid == uid ||
					    (owner->uid == geteuid() && owner->uid != UID_NOBODY));
}
