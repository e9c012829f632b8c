/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ownership made visible: an owner carries sb_cleanup(), sb_take() gives it away. Thread: any; the
 * variables are the calling function's own. */
#ifndef SB_BASE_CLEANUP_H
#define SB_BASE_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define sb_cleanup(fn)	 __attribute__((cleanup(fn)))
#define SB_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Hand the pointer over: the variable forgets it, the caller owns it. */
#define sb_take(p)                          \
	({                                  \
		__typeof__(p) taken_ = (p); \
		(p) = NULL;                 \
		taken_;                     \
	})

/* Hand the file descriptor over: the variable becomes -1. */
#define sb_take_fd(fd)             \
	({                         \
		int taken_ = (fd); \
		(fd) = -1;         \
		taken_;            \
	})

/* Make a cleanup function for owners of type *@type out of @free_fn, which accepts NULL. Its name
 * is that of @free_fn with a "p" behind it. */
#define SB_DEFINE_CLEANUP(type, free_fn)        \
	static inline void free_fn##p(type **p) \
	{                                       \
		free_fn(*p);                    \
	}

/*
 * Cleanup functions, for sb_cleanup(): each ends what the variable holds whose address is the
 * argument; NULL, or a negative descriptor, is nothing. sb_freep() takes the address of a pointer
 * to any type of memory of malloc(3). The variable is not changed. Errors, of closing too, are
 * ignored: sb_freep(), sb_closep(), sb_fclosep() and sb_closedirp().
 */
static inline void sb_freep(void *p)
{
	/* Most paths that are taken often have nothing to free, and stackbpf may be probing
	 * free(3). */
	if (*(void **)p)
		free(*(void **)p);
}

static inline void sb_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void sb_fclosep(FILE **file)
{
	if (*file)
		fclose(*file);
}

static inline void sb_closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

#endif
