/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who speaks by a file. A build ID is what the maker of a file says it is, so what is remembered of one file (names,
 * unwind tables) serves another file of the same build ID only if both have one owner. Internal to the symbolizer and
 * to capture. Any thread.
 */
#ifndef SB_OWNER_H
#define SB_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* No padding: compared and hashed as bytes. */
struct sb_file_owner {
	uint64_t uid;
	uint64_t dev; /* 0: root owns it, and root's files are the same on every device */
	uint64_t ino; /* not 0: nobody can tell who made it, so it is the same as no other file */
};

/*
 * sb_file_owner() - the owner of the file behind @fd
 * @st: what fstat(2) says of it
 *
 * A server of FUSE says who owns its files, and a copy that our reader made has the reader's owner: of both nobody can
 * tell.
 */
struct sb_file_owner sb_file_owner(int fd, const struct stat *st);

static inline bool sb_is_of_root(const struct sb_file_owner *owner)
{
	return !owner->dev;
}

/* Whether it can be told who made the file: only then its user ID says anything. */
static inline bool sb_is_known_owner(const struct sb_file_owner *owner)
{
	return !owner->ino;
}

static inline bool sb_is_same_owner(const struct sb_file_owner *a, const struct sb_file_owner *b)
{
	return a->uid == b->uid && a->dev == b->dev && a->ino == b->ino;
}

#endif
