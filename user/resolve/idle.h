/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits of workers that have nothing to do: told apart by the functions they wait in. The rules are
 * the table in idle.c, one line each. Internal to resolve.
 */
#ifndef SB_RESOLVE_IDLE_H
#define SB_RESOLVE_IDLE_H

#include <stddef.h>

/* A wait as a rule sees it. */
struct sb_idle_wait {
	const char *kernel;	 /* the function that called the scheduler; NULL: not known */
	const char *const *user; /* user frames, leaf first */
	size_t nr_user;
};

/* Return: the kind of idleness, "epoll"; NULL: it waits for something that somebody works on. */
const char *sb_idle_kind(const struct sb_idle_wait *wait);

#endif
