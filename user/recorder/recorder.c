// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * stackbpf record: records profiles continuously into a store. The processes:
 *
 *	the recorder		starts the others, forwards shutdown to them, restarts samplers
 *	the store writer	writes the store (store_writer.c); forked first, and can write to
 *				the store's directory only
 *	samplers		each is a run (run/run.h) of views that can run at once, whose
 *				samples become blocks (blocks.c), with its parser process. Views
 *				that share hooks, such as offcpu and wall, have different samplers
 *
 * What happens if one of them is killed: without the store writer, all stop, because nothing can be
 * kept. A sampler is restarted after a pause, which grows each time. Without the recorder, samplers
 * send their last block and end, and so does the store writer. At most the current block is lost.
 */
#include "recorder/recorder.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/num.h"
#include "base/signals.h"
#include "base/time.h"
#include "recorder/blocks.h"
#include "recorder/store_writer.h"
#include "recorder/watchdog.h"
#include "run/run.h"
#include "store/store.h"
#include "workers/privileges.h"

/* How long until a sampler that has died is started again: doubled each time, until one has lived
 * for a while. */
#define PAUSE_NS	 SB_NS_PER_SEC
#define PAUSE_MAX_NS	 (64 * SB_NS_PER_SEC)
#define LIVED_NS	 (300 * SB_NS_PER_SEC)
/* Enough for a machine's own programs; what is evicted is made again. */
#define UNWIND_BYTES	 (16ull << 20)
#define SYMBOL_BYTES	 (16ull << 20)
/* Debug data of one big program are more than the above, and cost more to make. */
#define DEBUG_BYTES	 (64ull << 20)
/* Private memory of a sampler; if it has more after months, it is replaced by a new one. */
#define ANON_BYTES_MAX	 (256ull << 20)
#define LOOK_NS		 (60 * SB_NS_PER_SEC)
#define LOOK_MS		 60000
#define STATM_BYTES_MAX	 256
/* As a shell has it: and the number of the signal. */
#define STATUS_OF_SIGNAL 128

enum state { STARTING, SAMPLING, PAUSED, ENDED };

struct sampler {
	struct sb_views views;
	const struct sb_recorder_kind *kinds[SB_VIEWS_MAX]; /* of the views */
	char name[128];					    /* of its kinds */
	enum state state;
	struct sb_peer peer;
	uint64_t started_ns, pause_ns, again_ns;
	bool was_ready;
	bool is_too_big; /* it was told to end, and a new one will replace it */
	int status;	 /* exit status, when it has ended */
};

struct recorder {
	const struct sb_recorder_config *config;
	struct sb_run_config *run; /* what samplers do */
	struct sb_peer writer;
	struct sb_watch watch;
	struct sampler samplers[SB_RECORDER_KINDS_MAX];
	size_t nr_samplers;
	int signal_fd;
	bool is_ending;
	uint64_t began_ns, looked_ns;
	struct sb_recorder_stats stats;
	int status;
	struct sb_reason *reason;
};

/* A message from a sampler. */
struct said {
	uint32_t is_end;
	uint32_t end; /* enum sb_run_end */
};

/* In the sampler's process. */

struct start {
	struct recorder *recorder;
	struct sampler *sampler;
	int writer_fd, others_fd; /* the sampler's end, and the store writer's end */
};

static int control_fd;

static void say_ready(void *arg)
{
	const struct said said = {};

	(void)sb_peer_send(control_fd, &said, sizeof(said), NULL, 0);
}

/* Close the descriptors of other processes, which would otherwise not see each other's end. */
static void close_others(const struct start *start)
{
	const struct recorder *recorder = start->recorder;
	size_t i;

	close(recorder->writer.fd);
	close(recorder->signal_fd);
	close(start->others_fd);
	for (i = 0; i < recorder->nr_samplers; i++)
		if (recorder->samplers[i].peer.pid)
			close(recorder->samplers[i].peer.fd);
}

static void be_normal(void)
{
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_NAME, "stackbpf-sample");
}

static size_t part_of(const struct recorder *recorder, const struct sampler *sampler)
{
	return SB_WATCH_SAMPLER + (size_t)(sampler - recorder->samplers);
}

/* Of several kinds one has events at most: views that take some do not run at once. All that have
 * spans have the same. */
static int find_events(const struct start *start, struct sb_view_opts *view_opts,
		       struct sb_reason *reason)
{
	const struct sb_recorder_config *config = start->recorder->config;
	const struct sampler *sampler = start->sampler;
	size_t i;
	int err = 0;

	for (i = 0; i < sampler->views.nr && !err; i++)
		if (sampler->kinds[i]->definition ||
		    sampler->kinds[i]->view->kind->options & SB_VIEW_ALLOCS)
			err = config->find_events(sampler->kinds[i], view_opts, reason,
						  config->arg);
	return err;
}

static int sample(const struct start *start, struct sb_run_config *config,
		  const struct sb_blocks_opts *opts)
{
	enum sb_run_status ended = SB_RUN_FAILED;
	struct said said = { .is_end = true };
	struct sb_blocks *blocks = NULL;
	struct sb_run run;
	int status, err;

	sb_run_init(&run);
	err = sb_blocks_new(opts, &blocks);
	if (err)
		sb_reason_set(&run.reason, err, "cannot prepare to collect the samples of a block");
	else if (!find_events(start, &config->view_opts, &run.reason))
		ended = sb_run_go(&run, config, sb_blocks_sink(blocks));
	err = run.start_ns ? sb_blocks_flush(blocks) : 0;
	if (err)
		sb_reason_set(&run.reason, err,
			      "cannot pass the last block to the store writer, so up to 10 s of "
			      "samples are lost; messages of the store writer may say why");
	status = start->recorder->config->report(&run, ended);
	said.end = run.end;
	(void)sb_peer_send(control_fd, &said, sizeof(said), NULL, 0);
	sb_run_release(&run);
	sb_blocks_free(blocks);
	return ended == SB_RUN_EMPTY ? SB_RUN_OK : status;
}

static void be_sampler(void *arg, int fd)
{
	const struct start *start = arg;
	const struct recorder *recorder = start->recorder;
	struct sb_run_config config = *recorder->run;
	const struct sb_blocks_opts opts = {
		.orders_fd = fd,
		.writer_fd = start->writer_fd,
		.nr_kinds = (uint32_t)start->sampler->views.nr,
		.config = recorder->config,
		.on_ready = say_ready,
		.watch = &recorder->watch,
		.part = part_of(recorder, start->sampler),
	};
	/* A restarted sampler runs for the rest of the time. */
	uint64_t ran_ns = recorder->began_ns ? sb_now_ns() - recorder->began_ns : 0;

	control_fd = fd;
	close_others(start);
	be_normal();
	sb_recorder_tell(recorder->config, .kind = SB_RECORDER_SAMPLER_BEGINS,
			 .sampler = start->sampler->name);
	sb_watch_keep(opts.watch);
	config.views = start->sampler->views;
	if (config.time_ns)
		config.time_ns = config.time_ns > ran_ns + SB_NS_PER_MS ? config.time_ns - ran_ns
									: SB_NS_PER_MS;
	_exit(sample(start, &config, &opts));
}

/* In the recorder's process. */

static void describe_kinds(const struct recorder *recorder, const struct sampler *sampler,
			   struct sb_store_writer_kinds *ret_kinds)
{
	uint64_t divisor;
	size_t i;

	*ret_kinds = (struct sb_store_writer_kinds){ .nr = (uint32_t)sampler->views.nr };
	for (i = 0; i < sampler->views.nr; i++) {
		const struct sb_recorder_kind *from = sampler->kinds[i];
		struct sb_store_kind *kind = &ret_kinds->at[i];

		memcpy(kind->name, from->name, sizeof(kind->name));
		memcpy(kind->unit, from->unit, sizeof(kind->unit));
		if (!kind->unit[0])
			snprintf(kind->unit, sizeof(kind->unit), "%s",
				 sb_view_unit(from->view, &recorder->run->view_opts, &divisor));
	}
}

static int start_sampler(struct recorder *recorder, struct sampler *sampler)
{
	struct start start = { .recorder = recorder, .sampler = sampler };
	struct sb_store_writer_kinds kinds;
	int fds[2], err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		return -errno;
	start.writer_fd = fds[0];
	start.others_fd = fds[1];
	/* It beats itself once it samples. */
	sb_watch_beat(&recorder->watch, part_of(recorder, sampler));
	describe_kinds(recorder, sampler, &kinds);
	err = sb_store_writer_add(&recorder->writer, &kinds, fds[1]);
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

/* Its end of the socket is closed, so it has exited or will at once. */
static void reap(struct sampler *sampler)
{
	int status = 0;

	while (waitpid(sampler->peer.pid, &status, 0) < 0 && errno == EINTR)
		;
	sampler->status =
		WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_OF_SIGNAL + WTERMSIG(status);
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
	sb_recorder_tell(recorder->config, .kind = SB_RECORDER_SAMPLER_EXITED,
			 .sampler = sampler->name, .status = sampler->status,
			 .nr = sampler->pause_ns / SB_NS_PER_SEC);
	sampler->state = PAUSED;
	sampler->pause_ns =
		sampler->pause_ns * 2 < PAUSE_MAX_NS ? sampler->pause_ns * 2 : PAUSE_MAX_NS;
	recorder->stats.nr_restarts++;
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

/* Replace samplers that have grown: single tables are bounded, but memory may fragment over
 * months. */
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
		sb_recorder_tell(recorder->config, .kind = SB_RECORDER_SAMPLER_TOO_BIG,
				 .sampler = sampler->name, .nr = nr_bytes >> 20);
		sampler->is_too_big = true;
		(void)sb_peer_send(sampler->peer.fd, &order, sizeof(order), NULL, 0);
	}
}

/* Return: whether a process is stuck. *@ret_sampler: its name; NULL: it is the store writer. */
static bool find_stuck(const struct recorder *recorder, const char **ret_sampler)
{
	size_t i;

	*ret_sampler = NULL;
	if (recorder->writer.pid && sb_watch_is_stuck(&recorder->watch, SB_WATCH_WRITER))
		return true;
	for (i = 0; i < recorder->nr_samplers; i++) {
		const struct sampler *sampler = &recorder->samplers[i];

		if ((sampler->state != STARTING && sampler->state != SAMPLING) ||
		    !sb_watch_is_stuck(&recorder->watch, part_of(recorder, sampler)))
			continue;
		*ret_sampler = sampler->name;
		return true;
	}
	return false;
}

static void look_at_progress(struct recorder *recorder)
{
	const char *sampler;
	char name[80];
	bool is_stuck;

	if (!sb_watch_is_due(&recorder->watch))
		return;
	is_stuck = find_stuck(recorder, &sampler);
	snprintf(name, sizeof(name), sampler ? "sampler '%s'" : "the store writer", sampler);
	if (sb_watch_tell(&recorder->watch, is_stuck ? name : NULL))
		sb_recorder_tell(recorder->config, .kind = SB_RECORDER_STUCK, .sampler = sampler);
}

static void on_sampler_end(struct recorder *recorder, struct sampler *sampler, bool is_through)
{
	reap(sampler);
	sampler->state = ENDED;
	if (recorder->is_ending || is_through) {
		if (sampler->status != SB_RUN_OK && !recorder->status)
			recorder->status = sampler->status;
		return;
	}
	/* If it never worked, it will not work the next time. */
	if (!sampler->was_ready) {
		recorder->status = sampler->status ? sampler->status : SB_RUN_FAILED;
		order_end(recorder);
		return;
	}
	if (sampler->is_too_big && sampler->status == SB_RUN_OK) {
		sampler->is_too_big = false;
		recorder->stats.nr_restarts++;
		if (!start_sampler(recorder, sampler))
			return;
	}
	pause_sampler(recorder, sampler);
}

static const char *store_path(const struct recorder *recorder)
{
	return recorder->config->store ? recorder->config->store : SB_RECORDER_STORE;
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
	sb_recorder_tell(recorder->config, .kind = SB_RECORDER_BEGAN,
			 .store = store_path(recorder));
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

/* Restart the samplers whose pause is over. Return: ms until the next one's is, or -1. */
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
				sb_recorder_tell(recorder->config,
						 .kind = SB_RECORDER_SAMPLER_NOT_STARTED,
						 .err = err, .sampler = sampler->name);
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

/* Have all samplers send their block now, for somebody who is about to query the store. */
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

static void on_writer_end(struct recorder *recorder)
{
	sb_recorder_tell(recorder->config, .kind = SB_RECORDER_WRITER_DIED,
			 .store = store_path(recorder));
	recorder->status = SB_RUN_FAILED;
	sb_peer_release(&recorder->writer);
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
			.fd = recorder->writer.pid ? recorder->writer.fd : -1,
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
			on_writer_end(recorder);
	}
}

static bool takes(struct sampler *sampler, const struct sb_recorder_kind *kind)
{
	if (sampler->views.nr && sampler->kinds[0]->apart != kind->apart)
		return false;
	return sb_views_add(&sampler->views, kind->view);
}

/* Add a kind to the first sampler that can take its view. */
static void add_kind(struct recorder *recorder, const struct sb_recorder_kind *kind)
{
	struct sampler *sampler;
	size_t i = 0, len;

	/* An empty sampler takes any view, and there are as many samplers as views. */
	while (!takes(&recorder->samplers[i], kind))
		i++;
	sampler = &recorder->samplers[i];
	sampler->kinds[sampler->views.nr - 1] = kind;
	if (i == recorder->nr_samplers)
		recorder->nr_samplers++;
	len = strlen(sampler->name);
	snprintf(sampler->name + len, sizeof(sampler->name) - len, "%s%s", len ? "," : "",
		 kind->name);
}

/* Stages; as those of run/run.h. */

/* Set defaults for runs that last for months. */
static void complete_config(struct recorder *recorder)
{
	struct sb_run_config *run = recorder->run;
	size_t i;

	run->modules = true;
	if (!run->unwind_bytes)
		run->unwind_bytes = UNWIND_BYTES;
	if (!run->symbol_cache_bytes)
		run->symbol_cache_bytes =
			run->no_inlines && !run->lines ? SYMBOL_BYTES : DEBUG_BYTES;
	/* A file may be read without a new sampler being needed for it, and any number of them. */
	run->symbol_bytes_max = ANON_BYTES_MAX / 2;
	if (run->symbol_bytes_max < 2 * run->symbol_cache_bytes)
		run->symbol_bytes_max = 2 * run->symbol_cache_bytes;
	for (i = 0; i < recorder->config->nr_kinds; i++)
		add_kind(recorder, &recorder->config->kinds[i]);
}

static int drop_privileges(struct recorder *recorder)
{
	int err = sb_privileges_to_start();

	if (!err)
		return SB_RUN_OK;
	sb_reason_set(recorder->reason, err,
		      "cannot drop the privileges that recording does not need; check that the "
		      "container or service permits prctl(2) and seccomp(2)");
	return SB_RUN_FAILED;
}

static int take_signals(struct recorder *recorder)
{
	sigset_t set;

	sigemptyset(&set);
	sb_signals_add_ends(&set);
	sigaddset(&set, SIGUSR1);
	if (!sigprocmask(SIG_BLOCK, &set, NULL))
		recorder->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (recorder->signal_fd >= 0)
		return SB_RUN_OK;
	sb_reason_set(recorder->reason, -errno,
		      "cannot set up signal handlers; free memory or file descriptors, or allow "
		      "signalfd(2), and try again");
	return SB_RUN_FAILED;
}

static int make_writer(struct recorder *recorder)
{
	const char *path = store_path(recorder);
	int err = sb_watch_init(&recorder->watch);

	if (err) {
		sb_reason_set(recorder->reason, err,
			      "cannot create the shared memory in which samplers and store writer "
			      "show that they are alive");
		return SB_RUN_FAILED;
	}
	err = sb_store_writer_new(recorder->config, &recorder->watch, &recorder->writer);
	switch (err) {
	case 0:
		return SB_RUN_OK;
	case -EBUSY:
		sb_reason_set(recorder->reason, 0,
			      "another process records to '%s': stop that process, or choose "
			      "another --store",
			      path);
		break;
	case -ENOTEMPTY:
		sb_reason_set(recorder->reason, 0,
			      "'%s' is not a store, but a directory with other files in it: "
			      "choose another --store",
			      path);
		break;
	case -EPROTO:
		sb_reason_set(recorder->reason, 0,
			      "the store '%s' was made by an incompatible version of stackbpf: "
			      "choose another --store",
			      path);
		break;
	default:
		sb_reason_set(recorder->reason, err, "cannot open the store '%s'", path);
	}
	return err == -EACCES || err == -EPERM ? SB_RUN_NO_PRIVILEGE : SB_RUN_FAILED;
}

static int start_all(struct recorder *recorder)
{
	size_t i;
	int err = 0;

	for (i = 0; i < recorder->nr_samplers && !err; i++) {
		err = start_sampler(recorder, &recorder->samplers[i]);
		if (err)
			sb_reason_set(recorder->reason, err,
				      "cannot start the sampler of '%s' profiles; check ulimit -u, "
				      "TasksMax= of the service, and free memory",
				      recorder->samplers[i].name);
	}
	for (; err && i <= recorder->nr_samplers; i++)
		recorder->samplers[i - 1].state = ENDED;
	if (!err)
		return SB_RUN_OK;
	order_end(recorder);
	loop(recorder);
	return SB_RUN_FAILED;
}

static int record(struct recorder *recorder)
{
	loop(recorder);
	return SB_RUN_OK;
}

static void end_writer(struct recorder *recorder)
{
	uint64_t nr_restarts = recorder->stats.nr_restarts;

	if (!recorder->writer.pid)
		return;
	if (sb_store_writer_end(&recorder->writer, &recorder->stats)) {
		sb_reason_set(
			recorder->reason, 0,
			"the store writer died; messages above or in the kernel's log may say "
			"why");
	} else if (recorder->began_ns) {
		recorder->stats.nr_restarts = nr_restarts;
		sb_recorder_tell(recorder->config, .kind = SB_RECORDER_ENDED,
				 .store = store_path(recorder), .stats = &recorder->stats);
	} else if (recorder->stats.has_made_store) {
		/* No sampler could begin, for instance because a privilege is missing. If the store
		 * cannot be removed, it is only an empty one. */
		(void)sb_store_remove_empty(store_path(recorder));
	}
	if (!recorder->status && recorder->began_ns && recorder->stats.nr_dropped)
		recorder->status = SB_RUN_FAILED;
}

int sb_recorder_run(const struct sb_recorder_config *config, struct sb_run_config *run,
		    struct sb_reason *reason)
{
	static int (*const stages[])(struct recorder * recorder) = {
		drop_privileges, take_signals, make_writer, start_all, record,
	};
	struct recorder recorder = {
		.config = config, .run = run, .signal_fd = -1, .reason = reason
	};
	int status = SB_RUN_OK;
	size_t i;

	/* Of all that will be forked: stacks of threads and arenas are touched here and there, no 2
	 * MB for each of these. */
	(void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	sb_run_save_memory();
	complete_config(&recorder);
	for (i = 0; i < SB_ARRAY_SIZE(stages) && !status; i++)
		status = stages[i](&recorder);
	if (!status)
		status = recorder.status;
	end_writer(&recorder);
	if (!status)
		status = recorder.status;
	sb_closep(&recorder.signal_fd);
	sb_watch_release(&recorder.watch);
	return status;
}
