/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The owner of a file, who vouches for its build ID. Whoever makes a file chooses its build ID, so
 * what is cached of one file (names, unwind tables) is used for another file of the same build ID
 * only if both have the same owner. Used by the symbolizer and by capture. An owner is a plain
 * value: get it by sb_file_owner(), then ask the others. No pointer is NULL. Thread: any.
 */
#ifndef SB_OWNER_H
#define SB_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* Without padding, because it is compared and hashed as bytes. */
struct sb_file_owner {
	uint64_t uid;
	uint64_t dev; /* 0: root owns it; root's files are the same on every device */
	uint64_t ino; /* not 0: the owner is unknown, so this file equals no other file */
};

/**
 * sb_file_owner() - find the owner of the file behind @fd
 * @st: of fstat(2) for @fd; if @fd is of a copy that a reader made (process/reader.h), that of the
 *	original: sb_reader_fstat() returns either
 *
 * A FUSE server can claim any owner for its files. Therefore a file on FUSE, and a copy that a
 * reader of this process made (sb_reader_is_copy()), has no known owner; nor has one whose file
 * system cannot be told.
 *
 * Return: the owner, which sb_is_known_owner() tells from an unknown one. It cannot fail.
 */
struct sb_file_owner sb_file_owner(int fd, const struct stat *st);

/* Return: whether root owns the file; false for an unknown owner. */
static inline bool sb_is_of_root(const struct sb_file_owner *owner)
{
	return !owner->dev;
}

/* Return: whether the owner is known; otherwise the user ID means nothing. */
static inline bool sb_is_known_owner(const struct sb_file_owner *owner)
{
	return !owner->ino;
}

/*
 * Who is charged for files that a reader has copied: all of them share the bounds of one user, who
 * owns nothing. The server of such a file could say that it is root's, whom nothing bounds, or use
 * up the share of any other user.
 */
#define SB_OWNER_NOBODY UINT32_MAX

/**
 * sb_owner_may_speak() - return whether the owner of a debug file may name a program's functions
 * @owner: of the debug file, as sb_file_owner() found it
 * @uid: the user who owns the program; SB_OWNER_NOBODY if that is not known
 *
 * Anybody may have put a file where the program's debug file is looked for: below a container's
 * root, in the directory that the program was built in. Root is believed, the owner of the program,
 * and the effective user of this process unless it is 65534 (nobody), which root becomes when it
 * drops privileges. A file without a known owner is not.
 */
bool sb_owner_may_speak(const struct sb_file_owner *owner, uint64_t uid);

/* Return: whether one file may stand for the other; one of an unknown owner only for itself. */
static inline bool sb_is_same_owner(const struct sb_file_owner *a, const struct sb_file_owner *b)
{
	return a->uid == b->uid && a->dev == b->dev && a->ino == b->ino;
}

#endif
