// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The event loop of a run, from the first sample to the last. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/signals.h"
#include "base/time.h"
#include "capture/child.h"
#include "run/run_priv.h"
#include "symbolizer/elf/budget.h"

/* Of sampling, in which processes, symbols and tables are read for the first time. */
#define STARTUP_NS SB_NS_PER_SEC

#define NO_SIGNALS                                                                               \
	"cannot set up signal handlers; free memory or file descriptors, or allow signalfd(2), " \
	"and try again"

/* What woke us; the low half of epoll's word, above it the number of the target. */
enum source { SIGNAL, TIME, TICK, SESSION, CPUS, SLICE, COMMAND, CHILD, TARGET, SINK_TIME, SINK };

static void set_signals(sigset_t *set)
{
	sigemptyset(set);
	sb_signals_add_ends(set);
	sigaddset(set, SIGUSR1);
}

/* A reader that has enough: write() says so (EPIPE), and that is looked at. */
static int ignore_closed_pipes(void)
{
	struct sigaction action = { .sa_handler = SIG_IGN };

	return sigaction(SIGPIPE, &action, NULL) ? -errno : 0;
}

/* A descriptor that is not there is not watched. */
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

enum sb_run_status sb_run_block_signals(struct sb_run *run)
{
	bool is_ours = !run->sink->has_owner;
	sigset_t set;
	int err = ignore_closed_pipes();

	set_signals(&set);
	if (!err && is_ours && sigprocmask(SIG_BLOCK, &set, NULL))
		err = -errno;
	if (!err && is_ours) {
		run->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
		err = run->signal_fd < 0 ? -errno : 0;
	}
	return err ? sb_run_fail(run, err, NO_SIGNALS) : SB_RUN_OK;
}

static int make_fds(struct sb_run *run)
{
	int err;

	run->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (run->epoll_fd < 0)
		return -errno;
	err = make_timer(&run->tick_fd);
	if (!err && run->config->time_ns)
		err = make_timer(&run->time_fd);
	if (!err)
		err = make_timer(&run->sink_fd);
	return err;
}

static int watch_all(struct sb_run *run)
{
	const struct {
		int fd;
		enum source source;
	} all[] = {
		{ run->signal_fd, SIGNAL },
		{ run->tick_fd, TICK },
		{ run->time_fd, TIME },
		{ sb_session_poll_fd(run->session), SESSION },
		{ sb_session_hotplug_fd(run->session), CPUS },
		{ sb_session_slice_fd(run->session), SLICE },
		{ run->child ? sb_child_answer_fd(run->child) : -1, COMMAND },
		{ run->child ? sb_child_fd(run->child) : -1, CHILD },
		{ run->sink_fd, SINK_TIME },
		{ run->sink->on_readable ? run->sink->fd : -1, SINK },
	};
	size_t i;
	int err = 0;

	for (i = 0; i < SB_ARRAY_SIZE(all) && !err; i++)
		err = watch(run, all[i].fd, all[i].source, 0);
	for (i = 0; i < run->targets.nr && !err; i++)
		err = watch(run, run->targets.at[i].fd, TARGET, i);
	run->nr_live_targets = run->targets.nr;
	return err;
}

enum sb_run_status sb_run_loop_init(struct sb_run *run)
{
	int err = make_fds(run);

	if (!err)
		err = watch_all(run);
	return err ? sb_run_fail(run, err, "cannot wait for events") : SB_RUN_OK;
}

void sb_run_loop_release(struct sb_run *run)
{
	sb_closep(&run->epoll_fd);
	sb_closep(&run->signal_fd);
	sb_closep(&run->time_fd);
	sb_closep(&run->tick_fd);
	sb_closep(&run->sink_fd);
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
	if (!err)
		sb_run_tick(run);
	return err;
}

/* Much is waiting, so it may be time to throttle before the next tick. */
static int on_much(struct sb_run *run)
{
	int err = sb_run_drain(run);

	sb_session_govern(run->session, NULL);
	return err;
}

/* For signal handlers, which have no argument of ours. */
static void (*on_give_up)(int sig);

static void give_up(int sig, siginfo_t *info, void *context)
{
	if (on_give_up)
		on_give_up(sig);
}

static volatile sig_atomic_t interrupted_by, interrupted_from;

static void interrupt(int sig, siginfo_t *info, void *context)
{
	/* A terminal that is closed sends several, from the kernel and from the shell. */
	if (interrupted_by && sig != SIGHUP)
		give_up(sig, info, context);
	interrupted_by = sig;
	interrupted_from = info->si_code;
}

/* What ends the program comes to @handler and not to our descriptor. Return: 0 or an errno. */
static int take_signals(struct sb_run *run,
			void (*handler)(int sig, siginfo_t *info, void *context))
{
	/* No SA_RESTART: a write that nobody reads is to end. */
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	sigset_t set;
	int sig;

	on_give_up = run->sink->give_up;
	sigemptyset(&set);
	sb_signals_add_ends(&set);
	/* Nobody at a closed terminal wants less than the result. */
	if (handler == give_up)
		sigdelset(&set, SIGHUP);
	for (sig = 1; sig < NSIG; sig++)
		if (sigismember(&set, sig) == 1 && sigaction(sig, &action, NULL))
			return -errno;
	return sigprocmask(SIG_UNBLOCK, &set, NULL) ? -errno : 0;
}

/* Whether all samples come at the end of the run, so that nothing is known of their functions
 * before. */
static bool comes_at_end(const struct sb_run *run)
{
	return run->config->views.at[0]->kind->options & SB_VIEW_HELD;
}

/* The terminal sends its signals to the command as well; others send them to us alone. */
static void end_by_signal(struct sb_run *run, int sig, int code)
{
	if (run->child && code != SI_KERNEL)
		sb_child_kill(run->child, sig);
	sb_reader_hurry();
	if (!comes_at_end(run))
		sb_budget_hurry();
	run->end = SB_END_SIGNAL;
	run->end_signal = sig;
}

/* Before the end, a signal must not wait for files that nobody reads. */
static int take_slowly(struct sb_run *run)
{
	sigset_t set;
	int err = take_signals(run, interrupt), take_err;

	if (err)
		return err;
	take_err = run->sink->take(run->sink, run);
	set_signals(&set);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	if (interrupted_by)
		end_by_signal(run, interrupted_by, interrupted_from);
	return take_err;
}

int sb_run_take(struct sb_run *run)
{
	struct sb_run_sink *sink = run->sink;
	/* After the end all has been accounted and drained. */
	int err = run->end_ns ? 0 : sb_session_settle(run->session);

	if (!err && !run->end_ns)
		err = sb_run_drain(run);
	if (!err)
		err = sink->is_slow && !run->end_ns ? take_slowly(run) : sink->take(sink, run);
	if (!err && !sink->keeps_all)
		sb_profile_clear(run->profile);
	return err;
}

static int on_signal(struct sb_run *run)
{
	struct signalfd_siginfo info;

	if (read(run->signal_fd, &info, sizeof(info)) != sizeof(info))
		return 0;
	if (info.ssi_signo == SIGUSR1)
		return sb_run_take(run);
	end_by_signal(run, (int)info.ssi_signo, info.ssi_code);
	return 0;
}

static void on_target_end(struct sb_run *run, size_t i)
{
	struct sb_run_target *target = &run->targets.at[i];

	epoll_ctl(run->epoll_fd, EPOLL_CTL_DEL, target->fd, NULL);
	close(sb_take_fd(target->fd));
	if (!--run->nr_live_targets && !run->config->all && !run->child &&
	    !sb_run_has_lasting_rule(&run->config->targets))
		run->end = SB_END_TARGETS;
}

/* The command runs, or cannot. Its status then says no more than the reason; nobody waits for
 * it. */
static int on_command(struct sb_run *run)
{
	int fd = sb_child_answer_fd(run->child), err;

	if (fd < 0)
		return 0;
	epoll_ctl(run->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	err = sb_child_answer(run->child);
	if (!err || err == -EAGAIN)
		return 0;
	sb_child_free(sb_take(run->child));
	run->command_status = err == -ENOENT ? SB_RUN_NO_COMMAND : SB_RUN_NO_EXEC;
	return sb_reason_set(&run->reason, err, "cannot run '%s'; check its path and permissions",
			     run->config->command[0]);
}

static int on_child_end(struct sb_run *run)
{
	run->end = SB_END_COMMAND;
	return on_command(run);
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
		return on_much(run);
	case CPUS:
		return sb_session_hotplug(run->session);
	case SLICE:
		return sb_session_slice(run->session);
	case COMMAND:
		return on_command(run);
	case CHILD:
		return on_child_end(run);
	case TARGET:
		on_target_end(run, what >> 32);
		return 0;
	}
	return 0;
}

/* A timer that is not there is not set. */
static int set_timer(int fd, uint64_t ns, bool again)
{
	struct itimerspec spec = { .it_value = sb_ns_timespec(ns) };

	if (again)
		spec.it_interval = spec.it_value;
	return fd >= 0 && timerfd_settime(fd, 0, &spec, NULL) ? -errno : 0;
}

static int arm(struct sb_run *run)
{
	int err = set_timer(run->tick_fd, SB_RUN_TICK_NS, true);

	if (!err)
		err = set_timer(run->time_fd, run->config->time_ns, false);
	if (!err)
		err = set_timer(run->sink_fd, run->sink->period_ns, true);
	return err;
}

enum sb_run_status sb_run_loop(struct sb_run *run)
{
	struct epoll_event events[8];
	int err = arm(run), nr, i;

	if (err)
		return sb_run_fail(run, err, "cannot set a timer");
	if (run->sink->begin)
		err = run->sink->begin(run->sink, run);
	while (!run->end && !err) {
		nr = epoll_wait(run->epoll_fd, events, (int)SB_ARRAY_SIZE(events), -1);
		if (nr < 0 && errno != EINTR)
			err = sb_reason_set(&run->reason, -errno,
					    "cannot wait for samples and signals");
		for (i = 0; i < nr && !err; i++)
			err = handle(run, events[i].data.u64);
	}
	if (err)
		return run->command_status ? run->command_status : SB_RUN_FAILED;
	return SB_RUN_OK;
}

enum sb_run_status sb_run_arm_give_up(struct sb_run *run)
{
	int err = run->sink->has_owner ? 0 : take_signals(run, give_up);

	return err ? sb_run_fail(run, err, NO_SIGNALS) : SB_RUN_OK;
}

/* Return: whether the signal means that we shall not wait any longer. */
static bool ends_waiting(struct sb_run *run)
{
	struct signalfd_siginfo info;
	bool is_second;

	if (read(run->signal_fd, &info, sizeof(info)) != sizeof(info) || info.ssi_signo == SIGUSR1)
		return false;
	is_second = run->end == SB_END_SIGNAL && info.ssi_signo != SIGHUP;
	end_by_signal(run, (int)info.ssi_signo, info.ssi_code);
	return is_second;
}

bool sb_run_has_command_run(const struct sb_run *run)
{
	return run->child && sb_child_has_run(run->child);
}

bool sb_run_is_command_alive(const struct sb_run *run)
{
	return sb_run_has_command_run(run) && !sb_child_has_ended(run->child);
}

int sb_run_wait_command(struct sb_run *run, int *ret_signal)
{
	struct pollfd fds[] = {
		{ .fd = sb_child_fd(run->child), .events = POLLIN },
		{ .fd = run->signal_fd, .events = POLLIN },
	};
	sigset_t set;

	*ret_signal = run->end == SB_END_SIGNAL ? run->end_signal : SIGKILL;
	if (!sb_child_has_run(run->child))
		return 0;
	set_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (!sb_child_has_ended(run->child)) {
		if (poll(fds, SB_ARRAY_SIZE(fds), -1) > 0 && fds[1].revents && ends_waiting(run)) {
			*ret_signal = run->end_signal;
			return 0;
		}
	}
	*ret_signal = 0;
	return sb_child_wait(run->child);
}
