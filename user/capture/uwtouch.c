// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/uwtouch.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "capture/thread.h"
#include "symbolizer/process/reader.h"
#include "workers/privileges.h"

/* Requests that wait. If there are more, they are dropped; whoever still needs the page asks
 * again. */
#define PAGES_MAX 256u

struct page {
	uint32_t tgid;
	uint64_t addr;
};

struct sb_uwtouch {
	pthread_t thread;
	pthread_mutex_t lock; /* of everything below */
	pthread_cond_t is_asked;
	struct page pages[PAGES_MAX]; /* a ring */
	uint32_t first, nr;
	uint64_t nr_touched;
	bool is_touching, is_ending, is_left;
};

static void release(struct sb_uwtouch *touch)
{
	pthread_cond_destroy(&touch->is_asked);
	pthread_mutex_destroy(&touch->lock);
	free(touch);
}

static bool bring_in(const struct page *page)
{
	char byte;

	return sb_reader_memory(page->tgid, page->addr, &byte, 1) == 1;
}

static void *touch_all(void *arg)
{
	struct sb_uwtouch *touch = arg;
	bool is_left;

	sb_privileges_thread(SB_ROLE_READER);
	pthread_mutex_lock(&touch->lock);
	while (!touch->is_ending) {
		struct page page = touch->pages[touch->first % PAGES_MAX];
		bool is_there;

		if (!touch->nr) {
			pthread_cond_wait(&touch->is_asked, &touch->lock);
			continue;
		}
		touch->first++;
		touch->nr--;
		touch->is_touching = true;
		pthread_mutex_unlock(&touch->lock);
		is_there = bring_in(&page);
		pthread_mutex_lock(&touch->lock);
		touch->is_touching = false;
		touch->nr_touched += is_there;
	}
	is_left = touch->is_left;
	pthread_mutex_unlock(&touch->lock);
	if (is_left)
		release(touch);
	return NULL;
}

int sb_uwtouch_new(struct sb_uwtouch **ret_touch)
{
	struct sb_uwtouch *touch = calloc(1, sizeof(*touch));
	int err;

	if (!touch)
		return -ENOMEM;
	pthread_mutex_init(&touch->lock, NULL);
	pthread_cond_init(&touch->is_asked, NULL);
	err = sb_thread_start("stackbpf-touch", touch_all, touch, &touch->thread);
	if (err) {
		release(touch);
		return err;
	}
	*ret_touch = touch;
	return 0;
}

void sb_uwtouch_free(struct sb_uwtouch *touch)
{
	pthread_t thread;
	bool is_left;

	if (!touch)
		return;
	thread = touch->thread;
	pthread_mutex_lock(&touch->lock);
	touch->is_ending = true;
	is_left = touch->is_left = touch->is_touching;
	pthread_cond_signal(&touch->is_asked);
	pthread_mutex_unlock(&touch->lock);
	if (is_left) {
		pthread_detach(thread);
		return;
	}
	pthread_join(thread, NULL);
	release(touch);
}

int sb_uwtouch_ask(struct sb_uwtouch *touch, uint32_t tgid, uint64_t addr)
{
	int err = 0;

	pthread_mutex_lock(&touch->lock);
	if (touch->nr == PAGES_MAX) {
		err = -EAGAIN;
	} else {
		touch->pages[(touch->first + touch->nr++) % PAGES_MAX] = (struct page){
			.tgid = tgid,
			.addr = addr,
		};
		pthread_cond_signal(&touch->is_asked);
	}
	pthread_mutex_unlock(&touch->lock);
	return err;
}

uint64_t sb_uwtouch_nr_touched(struct sb_uwtouch *touch)
{
	uint64_t nr;

	pthread_mutex_lock(&touch->lock);
	nr = touch->nr_touched;
	pthread_mutex_unlock(&touch->lock);
	return nr;
}
