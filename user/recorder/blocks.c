// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "recorder/blocks.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/peer.h"
#include "base/time.h"
#include "recorder/series.h"
#include "store/block.h"

/* What the writer has not taken yet, while its disk is slow; then whole blocks are dropped. */
#define QUEUE_BYTES_MAX (2u * SB_BLOCK_BYTES_MAX)
#define FLUSH_NS	(10 * SB_NS_PER_SEC)
/* A clock that is corrected bit by bit says less than a multiple of 10 s when the timer says that
 * it is one. More would put a recording that begins before a multiple into the future, where no
 * query that ends now looks. */
#define SLACK_US	10000

/* Frames whose names are remembered: some blocks' worth. */
#define MEMO_MAX	16384u

enum source { TIMER, ORDERS, WRITER };

static const char writer_died[] = "the store writer died, so this sampler stops; messages above "
				  "may say why";

struct sb_blocks {
	struct sb_run_sink sink; /* first */
	struct sb_blocks_opts opts;
	struct sb_series_table *series;
	int epoll_fd, timer_fd;
	struct sb_str queue; /* from sent on */
	size_t sent;
	bool is_waiting;	/* for the writer to take more */
	int64_t begin_s, end_s; /* the period in which it began, and when it is to end */
	uint16_t lead_ms;	/* after begin_s, when it began */
	uint64_t began_ns;	/* CLOCK_MONOTONIC */
	/* Up to the block, of each kind. */
	struct kind {
		uint64_t nr_samples, nr_lost, nr_cut, nr_unnamed, own_ns;
		uint64_t lost_before; /* samples in blocks that were dropped */
	} kinds[SB_VIEWS_MAX];
	bool has_dropped; /* which is said once */
};

static int on_readable(struct sb_run_sink *sink, struct sb_run *run);
static int begin(struct sb_run_sink *sink, struct sb_run *run);
static int take(struct sb_run_sink *sink, struct sb_run *run);
static void tick(struct sb_run_sink *sink, struct sb_run *run);

static int watch(struct sb_blocks *blocks, int fd, enum source source)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = source };

	return epoll_ctl(blocks->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int make_fds(struct sb_blocks *blocks)
{
	int err;

	blocks->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	blocks->timer_fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (blocks->epoll_fd < 0 || blocks->timer_fd < 0)
		return -errno;
	if (fcntl(blocks->opts.writer_fd, F_SETFL, O_NONBLOCK))
		return -errno;
	err = watch(blocks, blocks->timer_fd, TIMER);
	if (!err)
		err = watch(blocks, blocks->opts.orders_fd, ORDERS);
	return err ? err : watch(blocks, blocks->opts.writer_fd, WRITER);
}

int sb_blocks_new(const struct sb_blocks_opts *opts, struct sb_blocks **ret_blocks)
{
	struct sb_blocks *blocks = calloc(1, sizeof(*blocks));
	int err;

	if (!blocks)
		return -ENOMEM;
	blocks->opts = *opts;
	blocks->epoll_fd = blocks->timer_fd = -1;
	err = sb_series_new(&(struct sb_series_opts){ .by_thread = opts->config->by_thread,
						      .labels = opts->config->labels,
						      .nr_labels = opts->config->nr_labels,
						      .nr_kinds = opts->nr_kinds },
			    &blocks->series);
	if (!err)
		err = make_fds(blocks);
	if (err) {
		sb_blocks_free(blocks);
		return err;
	}
	blocks->sink = (struct sb_run_sink){
		.take = take,
		.fd = blocks->epoll_fd,
		.on_readable = on_readable,
		.begin = begin,
		.tick = tick,
		.series = sb_series_of,
		.series_arg = blocks->series,
		.by = sb_series_by(blocks->series),
		.memo_max = MEMO_MAX,
		.has_owner = true,
		.is_lasting = true,
	};
	*ret_blocks = blocks;
	return 0;
}

void sb_blocks_free(struct sb_blocks *blocks)
{
	if (!blocks)
		return;
	sb_series_free(blocks->series);
	sb_closep(&blocks->epoll_fd);
	sb_closep(&blocks->timer_fd);
	sb_str_release(&blocks->queue);
	free(blocks);
}

struct sb_run_sink *sb_blocks_sink(struct sb_blocks *blocks)
{
	return &blocks->sink;
}

/* To the writer. */

/* Be woken when it takes more, only if there is more. */
static int wait_for_writer(struct sb_blocks *blocks)
{
	bool has_more = blocks->sent < blocks->queue.len;
	struct epoll_event event = { .events = EPOLLIN | (has_more ? EPOLLOUT : 0),
				     .data.u32 = WRITER };

	if (has_more == blocks->is_waiting)
		return 0;
	blocks->is_waiting = has_more;
	return epoll_ctl(blocks->epoll_fd, EPOLL_CTL_MOD, blocks->opts.writer_fd, &event) ? -errno
											  : 0;
}

/* Return: 0, as much as it takes was sent; -ECHILD: it has gone. */
static int send_some(struct sb_blocks *blocks)
{
	ssize_t nr;

	while (blocks->sent < blocks->queue.len) {
		nr = send(blocks->opts.writer_fd, blocks->queue.s + blocks->sent,
			  blocks->queue.len - blocks->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (nr < 0 && errno == EINTR)
			continue;
		if (nr < 0)
			return errno == EAGAIN ? 0 : -ECHILD;
		blocks->sent += (size_t)nr;
	}
	/* One time much is not much for ever. */
	sb_str_release(&blocks->queue);
	blocks->sent = 0;
	return 0;
}

static int on_writer(struct sb_blocks *blocks)
{
	char byte;
	ssize_t nr = recv(blocks->opts.writer_fd, &byte, 1, MSG_DONTWAIT);
	int err;

	/* It has nothing to say: what can be read is its end. */
	if (nr >= 0 || (errno != EAGAIN && errno != EINTR))
		return -ECHILD;
	err = send_some(blocks);
	return err ? err : wait_for_writer(blocks);
}

int sb_blocks_flush(struct sb_blocks *blocks)
{
	struct pollfd fd = { .fd = blocks->opts.writer_fd, .events = POLLOUT };
	uint64_t end_ns = sb_now_ns() + FLUSH_NS, now_ns;
	int err = send_some(blocks);

	while (!err && blocks->sent < blocks->queue.len) {
		now_ns = sb_now_ns();
		if (now_ns >= end_ns)
			return -ETIMEDOUT;
		(void)poll(&fd, 1, (int)((end_ns - now_ns) / SB_NS_PER_MS) + 1);
		err = send_some(blocks);
	}
	return err;
}

/* Time. */

static int arm(struct sb_blocks *blocks)
{
	const struct itimerspec at = { .it_value.tv_sec = blocks->end_s };

	/* It is told of, too, when the clock is set. */
	return timerfd_settime(blocks->timer_fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &at,
			       NULL)
		       ? -errno
		       : 0;
}

static int64_t wall_s(void)
{
	return (int64_t)((sb_real_us() + SLACK_US) / 1000000);
}

/*
 * Under load the block before took a while to be made, and what was sampled meanwhile, since
 * began_ns, is in this one: it begins then, and ends at the next multiple of 10 s that is still to
 * come.
 */
static void set_times(struct sb_blocks *blocks)
{
	uint64_t now_ns = sb_now_ns();
	int64_t since_us =
		now_ns > blocks->began_ns ? (int64_t)(now_ns - blocks->began_ns) / 1000 : 0;
	int64_t began_us = (int64_t)sb_real_us() - since_us, lead_us;

	if (began_us < 0)
		began_us = 0;
	blocks->begin_s = sb_level_begin(0, (began_us + SLACK_US) / 1000000);
	blocks->end_s = sb_level_begin(0, wall_s()) + SB_STORE_BLOCK_S;
	lead_us = began_us - blocks->begin_s * 1000000;
	blocks->lead_ms = lead_us > 0 ? (uint16_t)(lead_us / 1000) : 0;
}

/* What was sampled since @began_ns is in it. */
static void next_block(struct sb_blocks *blocks, uint64_t began_ns)
{
	blocks->began_ns = began_ns;
	set_times(blocks);
	sb_series_next_block(blocks->series);
}

/*
 * The timer tells when the clock is set. When that was just before, the block would end hours away:
 * it is another one then. When it is just now, the timer cannot be set, the first time.
 */
static int arm_block(struct sb_blocks *blocks, struct sb_run *run)
{
	int err = arm(blocks);

	while (err == -ECANCELED || (!err && wall_s() < blocks->end_s - SB_STORE_BLOCK_S)) {
		set_times(blocks);
		err = arm(blocks);
	}
	return err ? sb_reason_set(&run->reason, err, "cannot set the timer for blocks of 10 s")
		   : 0;
}

static int begin(struct sb_run_sink *sink, struct sb_run *run)
{
	struct sb_blocks *blocks = (struct sb_blocks *)sink;
	uint32_t i;
	int err;

	sb_series_begin(blocks->series, run->processes, run->interp);
	next_block(blocks, run->start_ns);
	for (i = 0; i < blocks->opts.nr_kinds; i++)
		blocks->kinds[i].own_ns = run->own_start_ns;
	err = arm_block(blocks, run);
	if (err)
		return err;
	/* Loading the BPF programs took more memory than all that follows. */
	(void)malloc_trim(0);
	blocks->opts.on_ready(blocks->opts.arg);
	return 0;
}

static void tick(struct sb_run_sink *sink, struct sb_run *run)
{
	const struct sb_blocks *blocks = (const struct sb_blocks *)sink;

	sb_watch_beat(blocks->opts.watch, blocks->opts.part);
}

static int on_timer(struct sb_blocks *blocks, struct sb_run *run)
{
	uint64_t nr_expired;
	int err;

	if (read(blocks->timer_fd, &nr_expired, sizeof(nr_expired)) < 0 && errno != ECANCELED)
		return 0;
	err = sb_run_take(run);
	return err ? err : arm_block(blocks, run);
}

static int on_order(struct sb_blocks *blocks, struct sb_run *run)
{
	uint32_t order;

	if (!sb_peer_receive(blocks->opts.orders_fd, &order, sizeof(order), NULL, 0) &&
	    order == SB_BLOCKS_TAKE)
		return sb_run_take(run);
	run->end = SB_END_ORDERED;
	return 0;
}

static int on_readable(struct sb_run_sink *sink, struct sb_run *run)
{
	struct sb_blocks *blocks = (struct sb_blocks *)sink;
	struct epoll_event events[3];
	int nr = epoll_wait(blocks->epoll_fd, events, (int)SB_ARRAY_SIZE(events), 0), i, err = 0;

	for (i = 0; i < nr && !err; i++) {
		switch ((enum source)events[i].data.u32) {
		case TIMER:
			err = on_timer(blocks, run);
			break;
		case ORDERS:
			err = on_order(blocks, run);
			break;
		case WRITER:
			err = on_writer(blocks);
			if (err)
				sb_reason_set(&run->reason, 0, "%s", writer_died);
			break;
		}
	}
	return err;
}

/* Blocks. */

static uint64_t since(uint64_t now, uint64_t *before)
{
	uint64_t nr = now > *before ? now - *before : 0;

	*before = now;
	return nr;
}

/*
 * A block ends when its samples are drained from the kernel. The time that is spent on making the
 * block of them belongs to the next one. At the end of -t the kernel stops sampling on time, even
 * if the loop is busy then and drains later, so the last block ends there.
 */
static uint64_t end_of_block(const struct sb_run *run)
{
	return sb_run_end_ns(run, run->drained_ns);
}

/* What the run costs is shared by its kinds. */
static void fill_figures(struct sb_blocks *blocks, struct sb_run *run, struct sb_block_head *head)
{
	struct kind *kind = &blocks->kinds[head->kind];
	struct sb_run_figures figures;
	uint64_t end_ns = end_of_block(run), ms, own_ns;

	sb_run_figures(run, head->kind, &figures);
	own_ns = sb_run_own_ns(run) + figures.session.stat[SB_STAT_RUN_NS];
	ms = end_ns > blocks->began_ns ? (end_ns - blocks->began_ns) / SB_NS_PER_MS : 0;
	head->figure[SB_BLOCK_SAMPLED_MS] = ms;
	head->figure[SB_BLOCK_CPU_MS] = ms * figures.session.nr_cpus;
	head->figure[SB_BLOCK_HZ_MS] =
		run->config->views.at[head->kind]->timer ? ms * figures.session.freq_hz : 0;
	head->figure[SB_BLOCK_SAMPLES] = since(figures.nr_samples, &kind->nr_samples);
	head->figure[SB_BLOCK_LOST] = since(figures.nr_lost, &kind->nr_lost) + kind->lost_before;
	head->figure[SB_BLOCK_CUT] = since(figures.nr_cut, &kind->nr_cut);
	head->figure[SB_BLOCK_UNNAMED] = since(figures.nr_unnamed, &kind->nr_unnamed);
	head->figure[SB_BLOCK_OWN_US] = since(own_ns, &kind->own_ns) / 1000 / blocks->opts.nr_kinds;
}

static int drop(struct sb_blocks *blocks, const struct sb_block_head *head)
{
	if (!blocks->has_dropped)
		sb_recorder_tell(blocks->opts.config, .kind = SB_RECORDER_BLOCKS_DROPPED);
	blocks->has_dropped = true;
	blocks->kinds[head->kind].lost_before =
		head->figure[SB_BLOCK_SAMPLES] + head->figure[SB_BLOCK_LOST];
	return 0;
}

/* Return: 0; -ECHILD: the writer has gone; others. */
static int enqueue(struct sb_blocks *blocks, struct sb_run *run, const struct sb_block_head *head,
		   const struct sb_block_tags *series, size_t nr_series)
{
	size_t before = blocks->queue.len;
	uint64_t tiny;
	int err = sb_block_encode(&blocks->queue, head, run->profile, series, nr_series, &tiny);

	if (err == -E2BIG || (!err && blocks->queue.len - blocks->sent > QUEUE_BYTES_MAX)) {
		blocks->queue.len = before;
		return drop(blocks, head);
	}
	if (err)
		return err;
	blocks->kinds[head->kind].lost_before = 0;
	err = send_some(blocks);
	return err ? err : wait_for_writer(blocks);
}

/* One for each kind. */
static int enqueue_all(struct sb_blocks *blocks, struct sb_run *run)
{
	struct sb_block_head head = { .begin_s = blocks->begin_s, .lead_ms = blocks->lead_ms };
	const struct sb_block_tags *series;
	size_t nr_series;
	int err = sb_series_all(blocks->series, &series, &nr_series);

	for (; head.kind < blocks->opts.nr_kinds && !err; head.kind++) {
		head.divisor = run->units[head.kind].divisor;
		fill_figures(blocks, run, &head);
		/* At the end there may be nothing since the last block, and a length of 0 would
		 * mean the whole period. */
		if (head.figure[SB_BLOCK_SAMPLED_MS] || head.figure[SB_BLOCK_SAMPLES] ||
		    head.figure[SB_BLOCK_LOST])
			err = enqueue(blocks, run, &head, series, nr_series);
	}
	return err;
}

static int take(struct sb_run_sink *sink, struct sb_run *run)
{
	struct sb_blocks *blocks = (struct sb_blocks *)sink;
	int err = sb_profile_seal(run->profile);
	bool is_new;

	if (!err)
		err = enqueue_all(blocks, run);
	if (err == -ECHILD)
		sb_reason_set(&run->reason, 0, "%s", writer_died);
	else if (err)
		sb_reason_set(&run->reason, err, "cannot build a block from the samples");
	next_block(blocks, end_of_block(run));
	/* What a block needed for a moment is others' until the next one. */
	(void)malloc_trim(0);
	if (!err) {
		/* Months of names of programs that came and went are not kept. */
		err = sb_run_renew_profile(run, &is_new);
		if (err)
			sb_reason_set(&run->reason, err, "cannot add the samples to the block");
	}
	return err;
}
