/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why a thread waits, as far as its frames say it: for a lock that somebody holds, for work (it is
 * idle), or for something else. The resolver calls this for every wait. The rules are the table in
 * waits.c, one line each; a wait that no rule knows is plain, because --idle drop deletes what is
 * called idle. For each wait: set is_word of its user frames by sb_wait_words_has(), then ask
 * sb_waits_reason(). Thread: any; a cache of words is used by one thread at a time. No pointer is
 * NULL unless it says so.
 */
#ifndef SB_RESOLVE_WAITS_H
#define SB_RESOLVE_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

/* How many user frames, from the leaf on, are compared with rules: a take from a queue of Java is
 * 12 frames deep. */
#define SB_WAIT_FRAMES_MAX 32u

enum sb_wait_class {
	SB_WAIT_PLAIN, /* neither of the two, or not known */
	SB_WAIT_IDLE,  /* a worker's own loop waits for work */
	SB_WAIT_LOCK,  /* somebody else holds what the thread wants */
};

struct sb_wait_frame {
	const char *name;
	bool is_interp; /* a function of an interpreted language */
	bool is_word;	/* sb_waits_is_word() of its name, which the caller may remember */
};

struct sb_wait {
	const char *kernel; /* the kernel function that called the scheduler; NULL: not known */
	const struct sb_wait_frame *user; /* user frames, leaf first */
	size_t nr_user;			  /* at most SB_WAIT_FRAMES_MAX are looked at */
};

struct sb_wait_reason {
	enum sb_wait_class class;
	const char *kind; /* "epoll", "mutex": one word, static; NULL: SB_WAIT_PLAIN */
};

/*
 * Return: whether the first glob of some rule matches @name, the name of a frame (sb_frame.name),
 * for sb_wait_frame.is_word. sb_waits_reason() is called in any case: only the rules about user
 * frames need this to be true of one of the frames.
 */
bool sb_waits_is_word(const char *name);

/* A cache of sb_waits_is_word() by the ID of a frame in a profile. Most names are no rule's.
 * Zero-initialise it. */
struct sb_wait_words {
	SB_VEC(uint8_t) at;
};
/* Return: sb_waits_is_word() of @name, which is the name of the frame with ID @frame. Cannot fail:
 * without memory it is not cached. */
bool sb_wait_words_has(struct sb_wait_words *words, uint32_t frame, const char *name);
/* Remove all frames, because they have other IDs now, and free their memory. It can be used again.
 */
void sb_wait_words_clear(struct sb_wait_words *words);

/* Return: what the first rule that fits says of the wait, SB_WAIT_PLAIN if none does; nothing of
 * @wait is kept. Each frame's is_word has to be set; no frames at all are allowed. */
struct sb_wait_reason sb_waits_reason(const struct sb_wait *wait);

#endif
