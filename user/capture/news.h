/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What happened to processes, on its way to a thread that looks at them. Most processes live for some ms
 * only: news that are not urgent rest until there are more, by when most of those that they are about have
 * ended. Knows no clock; any thread.
 */
#ifndef SB_CAPTURE_NEWS_H
#define SB_CAPTURE_NEWS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "capture/sideband.h"

/* So long do news rest that are not urgent. What a sample needs meanwhile the BPF side asks for. */
#define SB_NEWS_REST_NS (100 * 1000000ull)
/* More are lost, and counted. */
#define SB_NEWS_MAX	65536u

struct sb_news {
	uint32_t tgid;
	enum sb_sideband_kind kind; /* MMAP, EXEC, EXIT */
	uint64_t time_ns;
};
typedef SB_VEC(struct sb_news) sb_news_list;

struct sb_tgid_set;

struct sb_newsbox {
	struct sb_tgid_set *followed;
	pthread_mutex_t lock; /* of everything below */
	sb_news_list news;
	uint64_t since_ns; /* of the first of them */
	bool is_urgent, is_told;
	uint64_t nr_lost;
};

/* Return: 0 or -ENOMEM. To be released in any case. */
int sb_newsbox_init(struct sb_newsbox *box);
void sb_newsbox_release(struct sb_newsbox *box);

/* Whose news are kept: from the return on, or no longer. */
void sb_newsbox_follow(struct sb_newsbox *box, uint32_t tgid);
void sb_newsbox_unfollow(struct sb_newsbox *box, uint32_t tgid);
bool sb_newsbox_follows(const struct sb_newsbox *box, uint32_t tgid);

void sb_newsbox_put(struct sb_newsbox *box, const struct sb_news *news, bool is_urgent);
/* Return: whether the thread is to be woken for them: once for each lot. */
bool sb_newsbox_is_due(struct sb_newsbox *box, uint64_t now_ns);
/* Return: all of them, oldest first, if they are due, else none. The caller releases the list. */
sb_news_list sb_newsbox_take(struct sb_newsbox *box, uint64_t now_ns);
uint64_t sb_newsbox_nr_lost(struct sb_newsbox *box);

#endif
