// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The view whose programs are attached in slices of time, when slicer.h says so, or as long as
 * tracing.h says. */
#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/time.h"
#include "capture/session_priv.h"
#include "views/skel.h"

/* Of the limit: the rest is for what the run costs beside. */
#define PART_OF_LIMIT 0.7
/* From the time when calls that were traced cost too much to the first slice. */
#define PAUSE_NS      SB_NS_PER_SEC
/* How often to look at the cost of what gives memory back, and how long a window is at most. */
#define LOOK_NS	      (20ull * SB_NS_PER_MS)
#define WINDOW_NS_MAX SB_NS_PER_SEC

/* What slices have cost so far: that of traps and programs, without those of the pages that are
 * looked at beside; and of attaching and detaching, @own_ns. */
static int read_cost(const struct sb_session *session, uint64_t own_ns,
		     struct sb_slicer_reading *ret)
{
	uint64_t stat[SB_STAT_MAX] = {};
	int err = sb_session_sum_stats(session, stat);

	if (err)
		return sb_reason_set(session->opts.reason, err,
				     "cannot read what probes cost from the kernel's counters");
	*ret = (struct sb_slicer_reading){
		.now_ns = sb_now_ns(),
		.hits = stat[SB_STAT_PROBE_HITS],
		.cost_ns = sb_probe_cost_ns(stat, session->trap_ns) + own_ns,
		.run_ns = stat[SB_STAT_RUN_NS],
		.nr_full = stat[SB_STAT_CALLS_FULL],
	};
	return 0;
}

static int set_timer(struct sb_slices *slices, uint64_t ns)
{
	/* Not 0, which would stop it. */
	const struct itimerspec spec = { .it_value = sb_ns_timespec(ns + 1) };

	return timerfd_settime(slices->fd, 0, &spec, NULL) ? -errno : 0;
}

/* The probes are attached. */
static int begin_slice(struct sb_session *session)
{
	struct sb_slices *slices = &session->slices;
	struct sb_slicer_reading now;
	uint64_t weight, end_ns;
	int err = read_cost(session, slices->own_ns, &now);

	if (err)
		return err;
	end_ns = sb_slicer_begin(&slices->slicer, &now, &weight);
	session->skel->bss->slice_weight = weight;
	/* The BPF side takes samples as soon as there is an end, by the weight. */
	__atomic_store_n(&session->skel->bss->slice_end_ns, end_ns, __ATOMIC_RELEASE);
	return set_timer(slices, end_ns - now.now_ns);
}

static int attach(struct sb_session *session)
{
	struct sb_slices *slices = &session->slices;
	struct sb_slicer_reading now;
	uint64_t since_ns = sb_thread_time_ns();
	int err = read_cost(session, slices->own_ns, &now);

	if (err)
		return err;
	sb_slicer_prepare(&slices->slicer, &now);
	slices->began_cost_ns = now.cost_ns;
	/* The first probes are called while the others are still being attached, so the number
	 * comes first. The time of the window begins when all are, because each call is seen from
	 * then on. */
	if (slices->tracing.is_sampled)
		session->skel->bss->latency_window++;
	err = slices->view->attach(session->skel, &session->opts.view_opts, &slices->links,
				   session->opts.reason);
	if (slices->tracing.is_sampled && !err)
		slices->window_ns = sb_now_ns();
	slices->own_ns += sb_thread_time_ns() - since_ns;
	return err;
}

/* Detach all but the first @nr links. */
static void detach(struct sb_slices *slices, size_t nr)
{
	uint64_t since_ns = sb_thread_time_ns();
	size_t i;

	for (i = nr; i < slices->links.nr; i++)
		sb_view_destroy_link(&slices->links.at[i]);
	slices->links.nr = nr < slices->links.nr ? nr : slices->links.nr;
	slices->own_ns += sb_thread_time_ns() - since_ns;
}

/* Detach, and begin no more slices. */
static void end(struct sb_slices *slices)
{
	detach(slices, 0);
	slices->view = NULL;
}

/* Add the window, if there is one, to the sums. Its probes are still attached, and see all calls
 * until the run ends. */
static void end_window(struct sb_session *session)
{
	struct sb_slices *slices = &session->slices;
	struct sb_held_windows *windows = &slices->windows;
	uint64_t now_ns = sb_now_ns(), end_ns = session->skel->bss->end_ns;

	now_ns = end_ns && end_ns < now_ns ? end_ns : now_ns;
	if (slices->window_ns && slices->window_ns < now_ns) {
		windows->first_ns = windows->nr ? windows->first_ns : slices->window_ns;
		windows->nr++;
		windows->ns += now_ns - slices->window_ns;
	}
	slices->window_ns = 0;
	slices->is_following = false;
}

int sb_session_prepare_slices(struct sb_session *session)
{
	const struct sb_views *views = &session->opts.views;
	struct sb_slices *slices = &session->slices;
	size_t i;

	for (i = 0; i < views->nr; i++)
		if (sb_session_is_sliced(session, views->at[i]))
			slices->view = views->at[i];
	if (!slices->view)
		return 0;
	slices->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return slices->fd < 0 ? -errno : 0;
}

static double allowed_cpus(const struct sb_session *session)
{
	const long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return session->opts.overhead_max * (double)(nr_cpus > 0 ? nr_cpus : 1);
}

static void init_slicer(struct sb_session *session, const struct sb_slicer_reading *now)
{
	sb_slicer_init(&session->slices.slicer, PART_OF_LIMIT * allowed_cpus(session),
		       session->skel->rodata->cfg_hash_seed[0], now);
}

/* To trace each call costs too much, so that from now on calls are traced in slices. What is held
 * since before stands for itself. */
static int go_over_to_slices(struct sb_session *session, const struct sb_slicer_reading *now)
{
	struct sb_slices *slices = &session->slices;

	/* While probes are detached, one after the other, calls would have no end. */
	__atomic_store_n(&session->skel->bss->slice_end_ns, 0, __ATOMIC_RELEASE);
	detach(slices, 0);
	init_slicer(session, now);
	sb_tracing_sample(&slices->tracing);
	sb_thinning_start(&session->thinning, now->run_ns);
	return set_timer(slices, PAUSE_NS);
}

/* The other view has the result. */
static void give_up(struct sb_session *session, enum sb_tracing_end why)
{
	struct sb_slices *slices = &session->slices;

	sb_tracing_give_up(&slices->tracing, why);
	end(slices);
}

/* While calls are traced, look at what that costs. */
static int look_at_tracing(struct sb_session *session)
{
	struct sb_slices *slices = &session->slices;
	struct sb_slicer_reading now;
	int err = read_cost(session, 0, &now);

	if (err)
		return err;
	if (sb_tracing_goes_on(&slices->tracing, &now) && !now.nr_full)
		return set_timer(slices, sb_tracing_look_ns(&slices->tracing));
	if (!now.nr_full && slices->view->is_sliced && slices->view->is_sliced(session->skel))
		return go_over_to_slices(session, &now);
	give_up(session, slices->tracing.end ?: SB_TRACING_FULL);
	sb_thinning_start(&session->thinning, now.run_ns);
	return 0;
}

bool sb_session_is_sliced(const struct sb_session *session, const struct sb_view *view)
{
	return session->opts.view_opts.fallback ? view == session->opts.views.at[0]
						: view->is_sliced && view->is_sliced(session->skel);
}

int sb_session_begin_slices(struct sb_session *session)
{
	struct sb_slices *slices = &session->slices;
	struct sb_slicer_reading now;
	int err;

	if (!slices->view)
		return 0;
	err = read_cost(session, 0, &now);
	if (err)
		return err;
	now.now_ns = session->began_ns;
	init_slicer(session, &now);
	sb_tracing_init(&slices->tracing, allowed_cpus(session), &now);
	err = attach(session);
	if (err)
		return err;
	if (session->opts.view_opts.fallback) {
		/* One slice, until each call costs too much. */
		session->skel->bss->slice_weight = 1u << SB_SLICE_SHIFT;
		session->skel->bss->slice_end_ns = UINT64_MAX;
		err = set_timer(slices, sb_tracing_look_ns(&slices->tracing));
	} else {
		err = begin_slice(session);
	}
	return err ? sb_reason_set(session->opts.reason, err,
				   "cannot set the timer that attaches and detaches probes")
		   : 0;
}

int sb_session_slice_fd(const struct sb_session *session)
{
	return session->slices.fd;
}

static int begin_next(struct sb_session *session)
{
	struct sb_slices *slices = &session->slices;
	int err = attach(session);

	if (err == -ENODATA && slices->tracing.is_sampled) {
		give_up(session, SB_TRACING_UNHOOKED);
		return 0;
	}
	/* Nothing is left to attach to: the closing report says since when there are no slices. */
	if (err == -ESRCH || err == -ENODATA) {
		end(slices);
		slices->slicer.stats.ended_ns = sb_now_ns();
		return 0;
	}
	return err ? err : begin_slice(session);
}

/*
 * The slice is over, and the window goes on until that has cost 0.5 to 1.5 times as much as the
 * slice. The length is random, because memory of one age would otherwise always be given back
 * between two windows, or never. The least cost makes sure that the program has run meanwhile, and
 * so could give back what it keeps for some milliseconds only.
 */
static int begin_rest(struct sb_session *session, const struct sb_slicer_reading *now)
{
	struct sb_slices *slices = &session->slices;
	struct sb_slicer_reading rest = {};
	int err;

	slices->rest_cost_ns = (double)(now->cost_ns - slices->began_cost_ns) *
			       (0.5 + sb_slicer_random(&slices->slicer));
	detach(slices, slices->view->nr_ends());
	slices->is_following = true;
	err = read_cost(session, slices->own_ns, &rest);
	slices->rest_began_cost_ns = rest.cost_ns;
	return err ? err : set_timer(slices, LOOK_NS);
}

static int end_window_and_slice(struct sb_session *session)
{
	struct sb_slices *slices = &session->slices;
	struct sb_slicer_reading now;
	int err;

	end_window(session);
	detach(slices, 0);
	err = read_cost(session, slices->own_ns, &now);
	return err ? err : set_timer(slices, sb_slicer_gap(&slices->slicer, &now));
}

/* Only what gives memory back is attached. */
static int look_at_rest(struct sb_session *session)
{
	struct sb_slices *slices = &session->slices;
	struct sb_slicer_reading now;
	int err = read_cost(session, slices->own_ns, &now);

	if (err)
		return err;
	if ((double)(now.cost_ns - slices->rest_began_cost_ns) < slices->rest_cost_ns &&
	    now.now_ns - slices->window_ns < WINDOW_NS_MAX)
		return set_timer(slices, LOOK_NS);
	return end_window_and_slice(session);
}

int sb_session_slice(struct sb_session *session)
{
	struct sb_slices *slices = &session->slices;
	struct sb_slicer_reading now;
	uint64_t nr_expired;
	int err;

	if (read(slices->fd, &nr_expired, sizeof(nr_expired)) < 0 || !slices->view)
		return 0;
	if (session->opts.view_opts.fallback && !slices->tracing.is_sampled)
		return look_at_tracing(session);
	if (!slices->links.nr)
		return begin_next(session);
	if (slices->is_following)
		return look_at_rest(session);
	err = read_cost(session, slices->own_ns, &now);
	if (err)
		return err;
	/* What could not be kept is missing from the sums, so that shares would be wrong. */
	if (slices->tracing.is_sampled && now.nr_full) {
		give_up(session, SB_TRACING_FULL);
		return 0;
	}
	if (sb_slicer_stays(&slices->slicer, &now))
		return begin_slice(session);
	return slices->view->nr_ends && slices->view->nr_ends() ? begin_rest(session, &now)
								: end_window_and_slice(session);
}

int sb_session_survive(struct sb_session *session)
{
	/* Of the two, the one whose calls are traced. slices->view is NULL if its process has
	 * ended. */
	const struct sb_view *view = session->opts.views.at[0];
	struct sb_slices *slices = &session->slices;
	int err;

	if (!slices->tracing.is_sampled || !view->survive)
		return 0;
	end_window(session);
	err = view->survive(session->skel, &slices->windows, &slices->estimate);
	return err ? sb_reason_set(session->opts.reason, err,
				   "cannot look at what was given back between slices")
		   : 0;
}

/* With the others nobody waits for them: detach.h. */
void sb_session_end_slices(struct sb_session *session)
{
	struct sb_slices *slices = &session->slices;
	size_t nr = slices->links.nr;

	while (nr && !sb_vec_push(&session->links, slices->links.at[nr - 1]))
		nr--;
	slices->links.nr = nr;
	end(slices);
}
