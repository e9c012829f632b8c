// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * stackbpf record: profiles over time, into a store. The processes:
 *
 *	this one		starts the others, gives the end on, starts samplers again
 *	keeper.c		writes the store; forked first, with nothing but its directory
 *	a sampler		a run (record.h) of all kinds that can be sampled at once, whose samples become blocks
 *				(blocks.c), with the processes that parse for it (symbolizer/parser.h).
 *				Kinds that look at the same places, such as offcpu and wall, have one each
 *
 * Whoever is killed: without the one that writes, all end, because nothing can be kept. A sampler is started
 * again, after a pause that grows with each time. Without this one, samplers send their last block and end, and
 * so does the writer. At most the block that is being sampled is lost.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/num.h"
#include "base/time.h"
#include "capture/privileges.h"
#include "cli/command.h"
#include "cli/record.h"
#include "cli/recorder/blocks.h"
#include "cli/recorder/keeper.h"
#include "cli/recorder/watch.h"

/* How long until a sampler that has died is started again: doubled each time, until one has lived for a while. */
#define PAUSE_NS	SB_NS_PER_SEC
#define PAUSE_MAX_NS	(64 * SB_NS_PER_SEC)
#define LIVED_NS	(300 * SB_NS_PER_SEC)
/* Enough for a machine's own programs; what is evicted is made again. */
#define UNWIND_BYTES	(16ull << 20)
#define SYMBOL_BYTES	(16ull << 20)
/* Debug data of one big program are more than the above, and cost more to make. */
#define DEBUG_BYTES	(64ull << 20)
/* What a sampler may have of its own after months; then another one takes its place. */
#define ANON_BYTES_MAX	(256ull << 20)
#define LOOK_NS		(60 * SB_NS_PER_SEC)
#define LOOK_MS		60000
#define STATM_BYTES_MAX 256

enum state { STARTING, SAMPLING, PAUSED, ENDED };

struct sampler {
	struct sb_views views;
	char name[64]; /* of its kinds */
	enum state state;
	struct sb_peer peer;
	uint64_t started_ns, pause_ns, again_ns;
	bool was_ready;
	bool is_too_big; /* it was told to end, for another one */
	int status;	 /* of the exit, when it has ended */
};

struct recorder {
	struct sb_run run; /* options; samplers have their own */
	struct sb_peer keeper;
	struct sb_watch watch;
	struct sampler samplers[SB_RECORDER_KINDS_MAX];
	size_t nr_samplers;
	int signal_fd;
	bool is_ending;
	uint64_t began_ns, looked_ns, nr_restarts;
	int status;
};

/* What a sampler says of itself. */
struct said {
	uint32_t is_end;
	uint32_t end; /* enum sb_run_end */
};

/* The sampler. */

struct start {
	struct recorder *recorder;
	struct sampler *sampler;
	int keeper_fd, others_fd; /* ours, and the keeper's end */
};

static int control_fd;

static void say_ready(void *arg)
{
	const struct said said = {};

	(void)sb_peer_send(control_fd, &said, sizeof(said), NULL, 0);
}

/* What the others hold, or they would not see each other's end. */
static void close_others(const struct start *start)
{
	const struct recorder *recorder = start->recorder;
	size_t i;

	close(recorder->keeper.fd);
	close(recorder->signal_fd);
	close(start->others_fd);
	for (i = 0; i < recorder->nr_samplers; i++)
		if (recorder->samplers[i].peer.pid)
			close(recorder->samplers[i].peer.fd);
}

static void be_normal(const struct sampler *sampler)
{
	static char program[96];
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_NAME, "stackbpf-sample");
	snprintf(program, sizeof(program), "stackbpf: %s", sampler->name);
	sb_log_init(program, sb_log_max());
}

static size_t part_of(const struct recorder *recorder, const struct sampler *sampler)
{
	return SB_WATCH_SAMPLER + (size_t)(sampler - recorder->samplers);
}

static int sample(struct sb_run *run, struct sb_blocks *blocks)
{
	struct said said = { .is_end = true };
	int status, err;

	run->sink = sb_blocks_sink(blocks);
	status = sb_run_go(run);
	err = run->start_ns ? sb_blocks_flush(blocks) : 0;
	if (err)
		sb_err(err, "the last block could not be written");
	said.end = run->end;
	(void)sb_peer_send(control_fd, &said, sizeof(said), NULL, 0);
	return status == SB_EXIT_EMPTY ? SB_EXIT_DATA : status;
}

static void be_sampler(void *arg, int fd)
{
	const struct start *start = arg;
	struct sb_run run = start->recorder->run;
	struct sb_blocks *blocks = NULL;
	const struct sb_blocks_opts opts = {
		.orders_fd = fd,
		.keeper_fd = start->keeper_fd,
		.nr_kinds = (uint32_t)start->sampler->views.nr,
		.by_thread = run.opts.recorder.by_thread,
		.labels = run.opts.recorder.labels,
		.nr_labels = run.opts.recorder.nr_labels,
		.on_ready = say_ready,
		.watch = &start->recorder->watch,
		.part = part_of(start->recorder, start->sampler),
	};
	uint64_t now_ns = sb_now_ns(), ran_ns;
	int status = SB_EXIT_FAILED, err;

	control_fd = fd;
	close_others(start);
	be_normal(start->sampler);
	sb_watch_keep(opts.watch);
	run.views = start->sampler->views;
	run.entry_ns = now_ns;
	/* One that is started again has what is left. */
	ran_ns = start->recorder->began_ns ? now_ns - start->recorder->began_ns : 0;
	if (run.opts.time_ns)
		run.opts.time_ns = run.opts.time_ns > ran_ns + SB_NS_PER_MS
					   ? run.opts.time_ns - ran_ns
					   : SB_NS_PER_MS;
	err = sb_blocks_new(&opts, &blocks);
	if (err)
		sb_err(err, "cannot prepare for blocks");
	else
		status = sample(&run, blocks);
	sb_run_release(&run);
	sb_blocks_free(blocks);
	_exit(status);
}

/* Samplers, from here. */

static void describe_kinds(const struct recorder *recorder, const struct sampler *sampler,
			   struct sb_keeper_kinds *ret_kinds)
{
	uint64_t divisor;
	size_t i;

	*ret_kinds = (struct sb_keeper_kinds){ .nr = (uint32_t)sampler->views.nr };
	for (i = 0; i < sampler->views.nr; i++) {
		const struct sb_view *view = sampler->views.at[i];
		struct sb_store_kind *kind = &ret_kinds->at[i];

		snprintf(kind->name, sizeof(kind->name), "%s", view->name);
		snprintf(kind->unit, sizeof(kind->unit), "%s",
			 sb_view_unit(view, &recorder->run.opts.view, &divisor));
	}
}

static int start_sampler(struct recorder *recorder, struct sampler *sampler)
{
	struct start start = { .recorder = recorder, .sampler = sampler };
	struct sb_keeper_kinds kinds;
	int fds[2], err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		return -errno;
	start.keeper_fd = fds[0];
	start.others_fd = fds[1];
	/* It says so itself once it samples. */
	sb_watch_beat(&recorder->watch, part_of(recorder, sampler));
	describe_kinds(recorder, sampler, &kinds);
	err = sb_recorder_keeper_add(&recorder->keeper, &kinds, fds[1]);
	if (!err)
		err = sb_peer_new(be_sampler, &start, &sampler->peer);
	close(fds[0]);
	close(fds[1]);
	if (err)
		return err;
	sampler->state = STARTING;
	sampler->started_ns = sb_now_ns();
	return 0;
}

/* Its end of the socket is closed: it is over, or will be at once. */
static void reap(struct sampler *sampler)
{
	int status = 0;

	while (waitpid(sampler->peer.pid, &status, 0) < 0 && errno == EINTR)
		;
	sampler->status =
		WIFEXITED(status) ? WEXITSTATUS(status) : SB_EXIT_SIGNAL + WTERMSIG(status);
	sb_peer_release(&sampler->peer);
}

static void order_end(struct recorder *recorder)
{
	const uint32_t order = SB_BLOCKS_END;
	size_t i;

	if (!recorder->is_ending)
		sb_watch_notify("STOPPING=1");
	recorder->is_ending = true;
	for (i = 0; i < recorder->nr_samplers; i++) {
		struct sampler *sampler = &recorder->samplers[i];

		if (sampler->state == PAUSED)
			sampler->state = ENDED;
		else if (sampler->state != ENDED)
			(void)sb_peer_send(sampler->peer.fd, &order, sizeof(order), NULL, 0);
	}
}

static void pause_sampler(struct recorder *recorder, struct sampler *sampler)
{
	uint64_t now_ns = sb_now_ns();

	if (!sampler->pause_ns || now_ns - sampler->started_ns > LIVED_NS)
		sampler->pause_ns = PAUSE_NS;
	sampler->again_ns = now_ns + sampler->pause_ns;
	sb_warn("what samples '%s' has ended (status %d); it is started again in %llu s",
		sampler->name, sampler->status,
		(unsigned long long)(sampler->pause_ns / SB_NS_PER_SEC));
	sampler->state = PAUSED;
	sampler->pause_ns =
		sampler->pause_ns * 2 < PAUSE_MAX_NS ? sampler->pause_ns * 2 : PAUSE_MAX_NS;
	recorder->nr_restarts++;
}

/* Return: 0 if it is not known. */
static uint64_t anon_bytes(pid_t pid)
{
	sb_cleanup(sb_freep) char *text = NULL;
	uint64_t pages[3] = {};
	const char *at, *end;
	char path[32];
	size_t len, i;

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	if (sb_read_file(path, STATM_BYTES_MAX, &text, &len))
		return 0;
	at = text;
	end = text + len;
	/* Size, resident, of these shared. */
	for (i = 0; i < SB_ARRAY_SIZE(pages) && sb_scan_u64(&at, end, &pages[i]); i++)
		at += at < end;
	return pages[1] > pages[2] ? (pages[1] - pages[2]) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* Bounds of single tables are one thing, months another. */
static void look_at_memory(struct recorder *recorder)
{
	const uint32_t order = SB_BLOCKS_END;
	uint64_t now_ns = sb_now_ns(), nr_bytes;
	size_t i;

	if (now_ns - recorder->looked_ns < LOOK_NS)
		return;
	recorder->looked_ns = now_ns;
	for (i = 0; i < recorder->nr_samplers; i++) {
		struct sampler *sampler = &recorder->samplers[i];

		nr_bytes = sampler->state == SAMPLING ? anon_bytes(sampler->peer.pid) : 0;
		if (nr_bytes <= ANON_BYTES_MAX || sampler->is_too_big)
			continue;
		sb_warn("what samples '%s' has grown to %llu MB; another one takes its place",
			sampler->name, (unsigned long long)(nr_bytes >> 20));
		sampler->is_too_big = true;
		(void)sb_peer_send(sampler->peer.fd, &order, sizeof(order), NULL, 0);
	}
}

/* Who does not come round any more; NULL: all do. */
static const char *who_is_stuck(const struct recorder *recorder, char name[32])
{
	size_t i;

	if (recorder->keeper.pid && sb_watch_is_stuck(&recorder->watch, SB_WATCH_KEEPER))
		return "what writes the store";
	for (i = 0; i < recorder->nr_samplers; i++) {
		const struct sampler *sampler = &recorder->samplers[i];

		if ((sampler->state != STARTING && sampler->state != SAMPLING) ||
		    !sb_watch_is_stuck(&recorder->watch, part_of(recorder, sampler)))
			continue;
		snprintf(name, 32, "what samples '%s'", sampler->name);
		return name;
	}
	return NULL;
}

static void look_at_progress(struct recorder *recorder)
{
	char name[32];

	if (sb_watch_is_due(&recorder->watch))
		sb_watch_tell(&recorder->watch, who_is_stuck(recorder, name));
}

static void on_sampler_end(struct recorder *recorder, struct sampler *sampler, bool is_through)
{
	reap(sampler);
	sampler->state = ENDED;
	if (recorder->is_ending || is_through) {
		if (sampler->status != SB_EXIT_DATA && !recorder->status)
			recorder->status = sampler->status;
		return;
	}
	/* What never worked will not work the next time. */
	if (!sampler->was_ready) {
		recorder->status = sampler->status ? sampler->status : SB_EXIT_FAILED;
		order_end(recorder);
		return;
	}
	if (sampler->is_too_big && sampler->status == SB_EXIT_DATA) {
		sampler->is_too_big = false;
		recorder->nr_restarts++;
		if (!start_sampler(recorder, sampler))
			return;
	}
	pause_sampler(recorder, sampler);
}

static void say_all_ready(struct recorder *recorder)
{
	size_t i;

	for (i = 0; i < recorder->nr_samplers; i++)
		if (!recorder->samplers[i].was_ready)
			return;
	if (recorder->began_ns)
		return;
	recorder->began_ns = sb_now_ns();
	sb_watch_notify("READY=1\nSTATUS=recording");
	sb_info("recording to '%s'; Ctrl-C ends it", recorder->run.opts.recorder.store
							     ? recorder->run.opts.recorder.store
							     : SB_RECORDER_STORE);
}

static void on_sampler(struct recorder *recorder, struct sampler *sampler)
{
	struct said said;
	bool is_through;

	if (sb_peer_receive(sampler->peer.fd, &said, sizeof(said), NULL, 0)) {
		on_sampler_end(recorder, sampler, false);
		return;
	}
	if (said.is_end) {
		is_through = said.end == SB_END_TIME || said.end == SB_END_TARGETS;
		on_sampler_end(recorder, sampler, is_through);
		return;
	}
	sampler->state = SAMPLING;
	sampler->was_ready = true;
	say_all_ready(recorder);
}

/* Those whose pause is over. Return: ms until the next one's is, or -1. */
static int start_again(struct recorder *recorder)
{
	uint64_t now_ns = sb_now_ns(), next_ns = UINT64_MAX;
	size_t i;
	int err;

	for (i = 0; i < recorder->nr_samplers; i++) {
		struct sampler *sampler = &recorder->samplers[i];

		if (sampler->state != PAUSED)
			continue;
		if (sampler->again_ns <= now_ns) {
			err = start_sampler(recorder, sampler);
			if (err) {
				sb_err(err, "cannot make a process that samples '%s'",
				       sampler->name);
				sampler->again_ns = now_ns + PAUSE_MAX_NS;
			}
		}
		if (sampler->state == PAUSED && sampler->again_ns < next_ns)
			next_ns = sampler->again_ns;
	}
	return next_ns == UINT64_MAX ? -1 : (int)((next_ns - now_ns) / SB_NS_PER_MS) + 1;
}

static bool has_ended(const struct recorder *recorder)
{
	size_t i;

	for (i = 0; i < recorder->nr_samplers; i++)
		if (recorder->samplers[i].state != ENDED)
			return false;
	return true;
}

/* For somebody who will ask for it now. */
static void order_take(struct recorder *recorder)
{
	const uint32_t order = SB_BLOCKS_TAKE;
	size_t i;

	for (i = 0; i < recorder->nr_samplers; i++)
		if (recorder->samplers[i].state == SAMPLING)
			(void)sb_peer_send(recorder->samplers[i].peer.fd, &order, sizeof(order),
					   NULL, 0);
}

static void on_signal(struct recorder *recorder)
{
	struct signalfd_siginfo info;

	if (read(recorder->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGUSR1)
		order_take(recorder);
	else
		order_end(recorder);
}

static void on_keeper_end(struct recorder *recorder)
{
	sb_err(0, "the process that writes the store has ended: nothing can be kept, so all ends");
	recorder->status = SB_EXIT_FAILED;
	sb_peer_release(&recorder->keeper);
	order_end(recorder);
}

static void loop(struct recorder *recorder)
{
	struct pollfd fds[SB_RECORDER_KINDS_MAX + 2];
	size_t i, nr = recorder->nr_samplers;
	int timeout_ms, look_ms = sb_watch_beat_ms(&recorder->watch);

	if (look_ms < 0 || look_ms > LOOK_MS)
		look_ms = LOOK_MS;
	while (!has_ended(recorder)) {
		timeout_ms = recorder->is_ending ? -1 : start_again(recorder);
		if (!recorder->is_ending) {
			look_at_memory(recorder);
			look_at_progress(recorder);
		}
		if (timeout_ms < 0 || timeout_ms > look_ms)
			timeout_ms = look_ms;
		for (i = 0; i < nr; i++)
			fds[i] = (struct pollfd){
				.fd = recorder->samplers[i].peer.pid ? recorder->samplers[i].peer.fd
								     : -1,
				.events = POLLIN,
			};
		fds[nr] = (struct pollfd){ .fd = recorder->signal_fd, .events = POLLIN };
		fds[nr + 1] = (struct pollfd){
			.fd = recorder->keeper.pid ? recorder->keeper.fd : -1,
			.events = POLLIN,
		};
		if (poll(fds, nr + 2, timeout_ms) < 0 && errno != EINTR)
			return;
		for (i = 0; i < nr; i++)
			if (fds[i].revents && recorder->samplers[i].peer.pid)
				on_sampler(recorder, &recorder->samplers[i]);
		if (fds[nr].revents)
			on_signal(recorder);
		if (fds[nr + 1].revents)
			on_keeper_end(recorder);
	}
}

/* To the first sampler that can have it besides its others. */
static void add_kind(struct recorder *recorder, const struct sb_view *view)
{
	struct sampler *sampler;
	size_t i = 0, len;

	/* An empty one takes any, and there are as many as kinds. */
	while (!sb_views_add(&recorder->samplers[i].views, view))
		i++;
	sampler = &recorder->samplers[i];
	if (i == recorder->nr_samplers)
		recorder->nr_samplers++;
	len = strlen(sampler->name);
	snprintf(sampler->name + len, sizeof(sampler->name) - len, "%s%s", len ? "," : "",
		 view->name);
}

/* Stages; as those of record.h. */

static int check(struct recorder *recorder)
{
	struct sb_record_opts *opts = &recorder->run.opts;
	size_t i;
	int err;

	if (opts->command) {
		sb_err(0, "record: runs no command; start '%s' apart", opts->command[0]);
		return SB_EXIT_USAGE;
	}
	err = sb_privileges_to_start();
	if (err) {
		sb_err(err, "cannot give up what recording does not need");
		return SB_EXIT_FAILED;
	}
	opts->modules = true;
	if (!opts->unwind_bytes)
		opts->unwind_bytes = UNWIND_BYTES;
	if (!opts->symbol_cache_bytes)
		opts->symbol_cache_bytes =
			opts->no_inlines && !opts->lines ? SYMBOL_BYTES : DEBUG_BYTES;
	/* A file may be read without a new sampler being needed for it, and any number of them. */
	opts->symbol_bytes_max = ANON_BYTES_MAX / 2;
	if (opts->symbol_bytes_max < 2 * opts->symbol_cache_bytes)
		opts->symbol_bytes_max = 2 * opts->symbol_cache_bytes;
	if (!opts->recorder.nr_kinds)
		opts->recorder.kinds[opts->recorder.nr_kinds++] = sb_view_find("oncpu");
	for (i = 0; i < opts->recorder.nr_kinds; i++)
		add_kind(recorder, opts->recorder.kinds[i]);
	return -1;
}

static int take_signals(struct recorder *recorder)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	if (!sigprocmask(SIG_BLOCK, &set, NULL))
		recorder->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (recorder->signal_fd >= 0)
		return -1;
	sb_err(-errno, "cannot handle signals");
	return SB_EXIT_FAILED;
}

static int make_keeper(struct recorder *recorder)
{
	const struct sb_recorder_opts *opts = &recorder->run.opts.recorder;
	const char *path = opts->store ? opts->store : SB_RECORDER_STORE;
	int err = sb_watch_init(&recorder->watch);

	if (err) {
		sb_err(err, "cannot share memory with the processes that are to be watched");
		return SB_EXIT_FAILED;
	}
	err = sb_recorder_keeper_new(opts, &recorder->watch, &recorder->keeper);
	switch (err) {
	case 0:
		return -1;
	case -EBUSY:
		sb_err(0, "somebody else records to '%s': stop that, or choose another --store",
		       path);
		break;
	case -ENOTEMPTY:
		sb_err(0, "'%s' is no store, and has files in it: choose another --store", path);
		break;
	case -EPROTO:
		sb_err(0, "'%s' is a store of another version: choose another --store", path);
		break;
	default:
		sb_err(err, "cannot open the store '%s'", path);
	}
	return err == -EACCES || err == -EPERM ? SB_EXIT_PRIVILEGE : SB_EXIT_FAILED;
}

static int start_all(struct recorder *recorder)
{
	size_t i;
	int err = 0;

	for (i = 0; i < recorder->nr_samplers && !err; i++) {
		err = start_sampler(recorder, &recorder->samplers[i]);
		if (err)
			sb_err(err, "cannot make a process that samples '%s'",
			       recorder->samplers[i].name);
	}
	for (; err && i <= recorder->nr_samplers; i++)
		recorder->samplers[i - 1].state = ENDED;
	if (!err)
		return -1;
	order_end(recorder);
	loop(recorder);
	return SB_EXIT_FAILED;
}

static int record(struct recorder *recorder)
{
	loop(recorder);
	return -1;
}

static void report(const struct recorder *recorder, const struct sb_keeper_stats *stats)
{
	sb_cleanup(sb_str_release) struct sb_str more = {};

	/* Without memory the line is shorter. */
	if (stats->nr_dropped)
		(void)sb_str_addf(&more, "; %llu blocks lost: they could not be written",
				  (unsigned long long)stats->nr_dropped);
	if (stats->nr_refused)
		(void)sb_str_addf(&more, "; %llu blocks refused",
				  (unsigned long long)stats->nr_refused);
	if (stats->nr_other_series)
		(void)sb_str_addf(&more, "; %llu times tags had too many values: (other)",
				  (unsigned long long)stats->nr_other_series);
	if (recorder->nr_restarts)
		(void)sb_str_addf(&more, "; samplers started again %llu times",
				  (unsigned long long)recorder->nr_restarts);
	sb_info("%llu block%s in '%s'; writing took %.1f ms of a CPU for each%s",
		(unsigned long long)stats->nr_blocks, stats->nr_blocks == 1 ? "" : "s",
		recorder->run.opts.recorder.store ? recorder->run.opts.recorder.store
						  : SB_RECORDER_STORE,
		stats->nr_blocks ? (double)stats->own_ns / 1e6 / (double)stats->nr_blocks : 0,
		more.len ? more.s : "");
}

static void end_keeper(struct recorder *recorder)
{
	struct sb_keeper_stats stats = {};

	if (!recorder->keeper.pid)
		return;
	if (sb_recorder_keeper_end(&recorder->keeper, &stats))
		sb_err(0, "the process that writes the store has ended");
	else if (recorder->began_ns)
		report(recorder, &stats);
	else
		return;
	if (!recorder->status && stats.nr_dropped)
		recorder->status = SB_EXIT_FAILED;
}

int sb_cmd_recorder(const struct sb_command *command, char **argv)
{
	static int (*const stages[])(struct recorder * recorder) = {
		check, take_signals, make_keeper, start_all, record,
	};
	struct recorder recorder = { .signal_fd = -1 };
	int status;
	size_t i;

	sb_run_init(&recorder.run);
	/* Of all that will be forked: stacks of threads and arenas are touched here and there, no 2 MB for each
	 * of these. */
	(void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	/* Of programs that come and go, debug data would be most of what is kept, and read. */
	recorder.run.opts.no_inlines = true;
	status = sb_run_parse(&recorder.run, command, argv);
	for (i = 0; i < SB_ARRAY_SIZE(stages) && status < 0; i++)
		status = stages[i](&recorder);
	if (status < 0)
		status = recorder.status;
	end_keeper(&recorder);
	if (status == SB_EXIT_DATA)
		status = recorder.status;
	sb_closep(&recorder.signal_fd);
	sb_watch_release(&recorder.watch);
	sb_run_release(&recorder.run);
	return status;
}
