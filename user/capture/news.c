// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/news.h"

#include <errno.h>
#include <stdlib.h>

/* The kernel's PID_MAX_LIMIT. */
#define TGIDS_MAX (4u << 20)

/* One bit for each process. */
struct sb_tgid_set {
	uint64_t bits[TGIDS_MAX / 64];
};

int sb_newsbox_init(struct sb_newsbox *box)
{
	*box = (struct sb_newsbox){};
	pthread_mutex_init(&box->lock, NULL);
	box->followed = calloc(1, sizeof(*box->followed));
	return box->followed ? 0 : -ENOMEM;
}

void sb_newsbox_release(struct sb_newsbox *box)
{
	free(box->followed);
	sb_vec_release(&box->news);
	pthread_mutex_destroy(&box->lock);
}

void sb_newsbox_follow(struct sb_newsbox *box, uint32_t tgid)
{
	if (tgid < TGIDS_MAX)
		__atomic_fetch_or(&box->followed->bits[tgid / 64], 1ull << tgid % 64,
				  __ATOMIC_SEQ_CST);
}

void sb_newsbox_unfollow(struct sb_newsbox *box, uint32_t tgid)
{
	if (tgid < TGIDS_MAX)
		__atomic_fetch_and(&box->followed->bits[tgid / 64], ~(1ull << tgid % 64),
				   __ATOMIC_SEQ_CST);
}

bool sb_newsbox_follows(const struct sb_newsbox *box, uint32_t tgid)
{
	return tgid < TGIDS_MAX &&
	       __atomic_load_n(&box->followed->bits[tgid / 64], __ATOMIC_SEQ_CST) >> tgid % 64 & 1;
}

static void keep(struct sb_newsbox *box, const struct sb_news *news)
{
	struct sb_news *last = box->news.nr ? &box->news.at[box->news.nr - 1] : NULL;

	/* A program that begins maps half a dozen in a row. */
	if (last && last->tgid == news->tgid && last->kind == news->kind) {
		last->time_ns = news->time_ns;
		return;
	}
	if (!last)
		box->since_ns = news->time_ns;
	if (box->news.nr >= SB_NEWS_MAX || sb_vec_push(&box->news, *news))
		box->nr_lost++;
}

void sb_newsbox_put(struct sb_newsbox *box, const struct sb_news *news, bool is_urgent)
{
	if (!sb_newsbox_follows(box, news->tgid))
		return;
	pthread_mutex_lock(&box->lock);
	keep(box, news);
	box->is_urgent |= is_urgent;
	pthread_mutex_unlock(&box->lock);
}

static bool are_due(const struct sb_newsbox *box, uint64_t now_ns)
{
	return box->news.nr && (box->is_urgent || now_ns >= box->since_ns + SB_NEWS_REST_NS);
}

bool sb_newsbox_is_due(struct sb_newsbox *box, uint64_t now_ns)
{
	bool is_new;

	pthread_mutex_lock(&box->lock);
	is_new = !box->is_told && are_due(box, now_ns);
	box->is_told |= is_new;
	pthread_mutex_unlock(&box->lock);
	return is_new;
}

sb_news_list sb_newsbox_take(struct sb_newsbox *box, uint64_t now_ns)
{
	sb_news_list taken = {};

	pthread_mutex_lock(&box->lock);
	if (are_due(box, now_ns)) {
		taken = box->news;
		box->news = (sb_news_list){};
		box->is_urgent = box->is_told = false;
	}
	pthread_mutex_unlock(&box->lock);
	return taken;
}

uint64_t sb_newsbox_nr_lost(struct sb_newsbox *box)
{
	uint64_t nr;

	pthread_mutex_lock(&box->lock);
	nr = box->nr_lost;
	pthread_mutex_unlock(&box->lock);
	return nr;
}
