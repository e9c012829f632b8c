// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The time from the first sample to the last: one loop that waits for everything at once. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/time.h"
#include "cli/command.h"
#include "cli/record.h"
#include "cli/term.h"

/* How often to drain, to look for new CPUs, and to show progress. */
#define TICK_NS SB_NS_PER_SEC
#define STARTUP_NS \
	SB_NS_PER_SEC /* of sampling: processes, symbols and tables are read for the first time */

/* Beyond them names and frames of a run without end are forgotten and found again. */
#define FRAMES_MAX     (1u << 15)
#define TEXT_BYTES_MAX (4u << 20)

/* What woke us; the low half of epoll's word, above it the number of the target. */
enum source { SIGNAL, TIME, TICK, SESSION, CPUS, CHILD, TARGET, SINK_TIME, SINK };

static void set_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGUSR1);
}

/*
 * A reader that has enough, a file at the limit of its size: write() says so (EPIPE, EFBIG), and
 * that is looked at.
 */
static int ignore_write_signals(void)
{
	struct sigaction action = { .sa_handler = SIG_IGN };

	if (sigaction(SIGPIPE, &action, NULL) || sigaction(SIGXFSZ, &action, NULL))
		return -errno;
	return 0;
}

static int watch(struct sb_run *run, int fd, enum source source, size_t i)
{
	struct epoll_event event = {
		.events = EPOLLIN,
		.data.u64 = (uint64_t)i << 32 | source,
	};

	if (fd < 0)
		return 0;
	return epoll_ctl(run->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int make_timer(int *ret_fd)
{
	*ret_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return *ret_fd < 0 ? -errno : 0;
}

int sb_run_block_signals(struct sb_run *run)
{
	bool is_ours = !run->sink || !run->sink->has_owner;
	sigset_t set;
	int err = ignore_write_signals();

	set_signals(&set);
	if (!err && is_ours && sigprocmask(SIG_BLOCK, &set, NULL))
		err = -errno;
	if (!err && is_ours) {
		run->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
		err = run->signal_fd < 0 ? -errno : 0;
	}
	if (!err)
		return -1;
	sb_err(err, "cannot handle signals");
	return SB_EXIT_FAILED;
}

static int make_fds(struct sb_run *run)
{
	int err;

	run->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (run->epoll_fd < 0)
		return -errno;
	err = make_timer(&run->tick_fd);
	if (!err && run->opts.time_ns)
		err = make_timer(&run->time_fd);
	if (!err && run->sink)
		err = make_timer(&run->sink_fd);
	return err;
}

static int watch_all(struct sb_run *run)
{
	size_t i;
	int err;

	err = watch(run, run->signal_fd, SIGNAL, 0);
	if (!err)
		err = watch(run, run->tick_fd, TICK, 0);
	if (!err)
		err = watch(run, run->time_fd, TIME, 0);
	if (!err)
		err = watch(run, sb_session_poll_fd(run->session), SESSION, 0);
	if (!err)
		err = watch(run, sb_session_hotplug_fd(run->session), CPUS, 0);
	if (!err && run->child)
		err = watch(run, sb_child_fd(run->child), CHILD, 0);
	for (i = 0; i < run->targets.nr && !err; i++)
		err = watch(run, run->targets.at[i].fd, TARGET, i);
	if (!err)
		err = watch(run, run->sink_fd, SINK_TIME, 0);
	if (!err && run->sink && run->sink->on_readable)
		err = watch(run, run->sink->fd, SINK, 0);
	run->nr_live_targets = run->targets.nr;
	return err;
}

int sb_run_loop_init(struct sb_run *run)
{
	int err = make_fds(run);

	if (!err)
		err = watch_all(run);
	if (!err)
		return -1;
	sb_err(err, "cannot wait for events");
	return SB_EXIT_FAILED;
}

void sb_run_loop_release(struct sb_run *run)
{
	sb_closep(&run->epoll_fd);
	sb_closep(&run->signal_fd);
	sb_closep(&run->time_fd);
	sb_closep(&run->tick_fd);
	sb_closep(&run->sink_fd);
}

static int keep_pending(struct sb_run *run)
{
	const struct sb_stack_id *ids;
	size_t nr;
	int err;

	if (!sb_resolver_asks(run->resolver))
		return 0;
	err = sb_session_pending(run->session, &ids, &nr);
	if (!err)
		sb_resolver_keep(run->resolver, ids, nr);
	return err;
}

int sb_run_drain(struct sb_run *run)
{
	uint64_t before_ns = sb_now_ns();
	const struct sb_stack_id *evicted;
	const uint64_t *unwanted;
	size_t nr, i;
	const struct sb_batch *batch;
	int err = keep_pending(run);

	if (err)
		return err;
	err = sb_session_drain(run->session, &batch);
	if (err)
		return sb_err(err, "cannot read the samples");
	err = sb_resolver_add(run->resolver, batch);
	if (err)
		return sb_err(err, "cannot keep the samples");
	unwanted = sb_resolver_unwanted(run->resolver, &nr);
	for (i = 0; i < nr && !err; i++)
		err = sb_session_unwant(run->session, unwanted[i]);
	if (err)
		return sb_err(err, "cannot tell the kernel which files are not wanted");
	evicted = sb_resolver_evicted(run->resolver, &nr);
	sb_session_forget_stacks(run->session, evicted, nr);
	unwanted = sb_resolver_evicted_labels(run->resolver, &nr);
	sb_session_forget_labels(run->session, unwanted, nr);
	/* Every sample of later batches is younger than this. */
	sb_symbolizer_forget(run->sym, before_ns);
	/* The stack of a waker may come one batch before the wait. */
	err = run->interp ? sb_interp_forget(run->interp, run->drained_ns) : 0;
	if (err)
		return sb_err(err, "cannot forget interpreters of processes that have ended");
	run->drained_ns = before_ns;
	return 0;
}

int sb_run_renew_profile(struct sb_run *run, bool *ret_is_new)
{
	struct sb_profile *profile;
	int err;

	if (sb_profile_nr_frames(run->profile) < FRAMES_MAX &&
	    sb_profile_text_bytes(run->profile) < TEXT_BYTES_MAX)
		return 0;
	err = sb_profile_new(&profile);
	if (err)
		return err;
	err = sb_resolver_move(run->resolver, profile);
	sb_profile_free(run->profile);
	run->profile = profile;
	*ret_is_new = true;
	return err;
}

int sb_run_take(struct sb_run *run)
{
	int err = sb_session_settle(run->session);

	if (!err)
		err = sb_run_drain(run);
	if (!err)
		err = run->sink->take(run->sink, run);
	if (!err)
		sb_profile_clear(run->profile);
	return err;
}

static void show_progress(struct sb_run *run)
{
	struct sb_resolve_stats stats;
	char line[128];
	int n;

	if (!run->has_progress)
		return;
	sb_resolver_stats(run->resolver, 0, &stats);
	n = snprintf(line, sizeof(line), "\r\033[Kstackbpf: %.0f s, %llu %s",
		     (double)(sb_now_ns() - run->start_ns) / 1e9,
		     (unsigned long long)stats.nr_samples, run->views.at[0]->event);
	/* A terminal that is gone is no reason to stop. */
	(void)!write(STDERR_FILENO, line, (size_t)n);
}

static void clear_progress(const struct sb_run *run)
{
	static const char clear[] = "\r\033[K";

	if (run->has_progress)
		(void)!write(STDERR_FILENO, clear, sizeof(clear) - 1);
}

static void govern(struct sb_run *run)
{
	uint64_t means[SB_VIEWS_MAX] = {};
	struct sb_resolve_stats stats;
	uint32_t i;

	for (i = 0; i < run->views.nr; i++) {
		sb_resolver_stats(run->resolver, i, &stats);
		means[i] = stats.nr_samples ? stats.weight / stats.nr_samples : 0;
	}
	sb_session_govern(run->session, means);
}

static int on_tick(struct sb_run *run)
{
	int err = sb_run_drain(run);
	uint64_t now_ns = sb_now_ns();

	if (!run->warm_ns && now_ns >= run->start_ns + STARTUP_NS) {
		run->warm_ns = now_ns;
		run->own_warm_ns = sb_run_own_ns(run);
	}
	if (!err)
		err = sb_session_hotplug(run->session);
	govern(run);
	show_progress(run);
	if (!err && run->sink && run->sink->tick)
		run->sink->tick(run->sink);
	return err;
}

static void give_up(int sig, siginfo_t *info, void *context)
{
	static const char message[] = "stackbpf: given up\n";

	sb_output_files_discard();
	sb_term_restore();
	(void)!write(STDERR_FILENO, message, sizeof(message) - 1);
	_exit(SB_EXIT_SIGNAL + sig);
}

static volatile sig_atomic_t interrupted_by, interrupted_from;

static void interrupt(int sig, siginfo_t *info, void *context)
{
	if (interrupted_by)
		give_up(sig, info, context);
	interrupted_by = sig;
	interrupted_from = info->si_code;
}

/* What ends the program comes to @handler and not to our descriptor. Return: 0 or an errno. */
static int take_signals(void (*handler)(int sig, siginfo_t *info, void *context))
{
	/* No SA_RESTART: a write that nobody reads is to end. */
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (sigaction(SIGINT, &action, NULL) || sigaction(SIGTERM, &action, NULL) ||
	    sigprocmask(SIG_UNBLOCK, &set, NULL))
		return -errno;
	return 0;
}

/* The terminal sends its signals to the command as well; others send them to us alone. */
static void end_by_signal(struct sb_run *run, int sig, int code)
{
	if (run->child && code != SI_KERNEL)
		sb_child_kill(run->child, sig);
	sb_reader_hurry();
	run->end = SB_END_SIGNAL;
	run->end_signal = sig;
}

static int on_snapshot(struct sb_run *run)
{
	sigset_t set;
	int err;

	if (run->sink)
		return sb_run_take(run);
	err = sb_session_settle(run->session);
	if (!err)
		err = sb_run_drain(run);
	if (!err)
		err = take_signals(interrupt);
	if (err)
		return err;
	clear_progress(run);
	/* What could not be written now is said, and may be possible later. */
	sb_run_write(run, false);
	set_signals(&set);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	if (interrupted_by)
		end_by_signal(run, interrupted_by, interrupted_from);
	return 0;
}

static int on_signal(struct sb_run *run)
{
	struct signalfd_siginfo info;

	if (read(run->signal_fd, &info, sizeof(info)) != sizeof(info))
		return 0;
	if (info.ssi_signo == SIGUSR1)
		return on_snapshot(run);
	end_by_signal(run, (int)info.ssi_signo, info.ssi_code);
	return 0;
}

/* Only pids can end; a name or a user may come back any time. */
static bool has_lasting_targets(const struct sb_run *run)
{
	const struct sb_targets *targets = &run->opts.targets;
	uint32_t rules = 0;
	size_t i;

	for (i = 0; i < targets->nr_comms; i++)
		rules |= targets->comms[i].rule;
	for (i = 0; i < targets->nr_uids; i++)
		rules |= targets->uids[i].rule;
	for (i = 0; i < targets->nr_cgroups; i++)
		rules |= targets->cgroups[i].rule;
	return run->opts.all || run->child || (rules & SB_RULE_ALLOW);
}

static void on_target_end(struct sb_run *run, size_t i)
{
	struct sb_run_target *target = &run->targets.at[i];

	epoll_ctl(run->epoll_fd, EPOLL_CTL_DEL, target->fd, NULL);
	close(sb_take_fd(target->fd));
	if (!--run->nr_live_targets && !has_lasting_targets(run))
		run->end = SB_END_TARGETS;
}

static int handle(struct sb_run *run, uint64_t what)
{
	uint64_t nr_expired;

	switch ((enum source)(uint32_t)what) {
	case SIGNAL:
		return on_signal(run);
	case TIME:
		run->end = SB_END_TIME;
		return 0;
	case TICK:
		if (read(run->tick_fd, &nr_expired, sizeof(nr_expired)) < 0)
			return 0;
		return on_tick(run);
	case SINK_TIME:
		if (read(run->sink_fd, &nr_expired, sizeof(nr_expired)) < 0)
			return 0;
		return sb_run_take(run);
	case SINK:
		return run->sink->on_readable(run->sink, run);
	case SESSION:
		return sb_run_drain(run);
	case CPUS:
		return sb_session_hotplug(run->session);
	case CHILD:
		run->end = SB_END_COMMAND;
		return 0;
	case TARGET:
		on_target_end(run, what >> 32);
		return 0;
	}
	return 0;
}

/* A timer that is not there is not set. */
static int set_timer(int fd, uint64_t ns, bool again)
{
	struct itimerspec spec = {
		.it_value.tv_sec = (time_t)(ns / SB_NS_PER_SEC),
		.it_value.tv_nsec = (long)(ns % SB_NS_PER_SEC),
	};

	if (again)
		spec.it_interval = spec.it_value;
	return fd >= 0 && timerfd_settime(fd, 0, &spec, NULL) ? -errno : 0;
}

static int arm(struct sb_run *run)
{
	int err = set_timer(run->tick_fd, TICK_NS, true);

	if (!err)
		err = set_timer(run->time_fd, run->opts.time_ns, false);
	if (!err && run->sink)
		err = set_timer(run->sink_fd, run->sink->period_ns, true);
	return err;
}

/* A hint for people at a terminal. The command has the terminal to itself. */
static void greet(struct sb_run *run)
{
	run->has_progress =
		isatty(STDERR_FILENO) && !run->opts.common.quiet && !run->child && !run->sink;
	if (!run->has_progress)
		return;
	if (isatty(STDOUT_FILENO) && !run->opts.output_paths.nr)
		sb_info("folded stacks come here; a picture is written with -o FILE.svg");
	if (!run->opts.time_ns)
		sb_info("sampling, until Ctrl-C");
}

int sb_run_loop(struct sb_run *run)
{
	struct epoll_event events[8];
	int err = arm(run), nr, i;

	if (err) {
		sb_err(err, "cannot set a timer");
		return SB_EXIT_FAILED;
	}
	greet(run);
	if (run->sink && run->sink->begin)
		err = run->sink->begin(run->sink, run);
	while (!run->end && !err) {
		nr = epoll_wait(run->epoll_fd, events, (int)SB_ARRAY_SIZE(events), -1);
		if (nr < 0 && errno != EINTR)
			err = sb_err(-errno, "cannot wait for events");
		for (i = 0; i < nr && !err; i++)
			err = handle(run, events[i].data.u64);
	}
	clear_progress(run);
	return err ? SB_EXIT_FAILED : -1;
}

int sb_run_arm_abort(struct sb_run *run)
{
	int err = run->sink && run->sink->has_owner ? 0 : take_signals(give_up);

	if (!err)
		return -1;
	sb_err(err, "cannot handle signals");
	return SB_EXIT_FAILED;
}

/* Return: whether the signal means that we shall not wait any longer. */
static bool ends_waiting(struct sb_run *run)
{
	struct signalfd_siginfo info;
	bool is_second;

	if (read(run->signal_fd, &info, sizeof(info)) != sizeof(info) || info.ssi_signo == SIGUSR1)
		return false;
	is_second = run->end == SB_END_SIGNAL;
	end_by_signal(run, (int)info.ssi_signo, info.ssi_code);
	return is_second;
}

int sb_run_wait_child(struct sb_run *run)
{
	struct pollfd fds[] = {
		{ .fd = sb_child_fd(run->child), .events = POLLIN },
		{ .fd = run->signal_fd, .events = POLLIN },
	};
	sigset_t set;

	if (!sb_child_has_ended(run->child))
		sb_info("waiting for '%s' to end; Ctrl-C twice leaves it alone",
			run->opts.command[0]);
	set_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (!sb_child_has_ended(run->child)) {
		if (poll(fds, SB_ARRAY_SIZE(fds), -1) > 0 && fds[1].revents && ends_waiting(run))
			return SB_EXIT_SIGNAL + run->end_signal;
	}
	return sb_child_wait(run->child);
}
