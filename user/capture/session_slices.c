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
		.cost_ns = sb_probe_cost_ns(stat) + own_ns,
		.run_ns = stat[SB_STAT_RUN_NS],
		.nr_full = stat[SB_STAT_CALLS_FULL],
	};
	return 0;
}

static int set_timer(struct sb_slices *slices, uint64_t ns)
{
	const struct itimerspec spec = {
		/* Not 0, which would stop it. */
		.it_value.tv_sec = (time_t)((ns + 1) / SB_NS_PER_SEC),
		.it_value.tv_nsec = (long)((ns + 1) % SB_NS_PER_SEC),
	};

	return timerfd_settime(slices->fd, 0, &spec, NULL) ? -errno : 0;
}

/* The probes are attached. */
static int begin_slice(struct sb_session *session)
{
	struct sb_slices *slices = &session->slices;
	uint64_t now_ns = sb_now_ns(), weight, end_ns;

	end_ns = sb_slicer_begin(&slices->slicer, now_ns, &weight);
	session->skel->bss->slice_weight = weight;
	/* The BPF side takes samples as soon as there is an end, by the weight. */
	__atomic_store_n(&session->skel->bss->slice_end_ns, end_ns, __ATOMIC_RELEASE);
	return set_timer(slices, end_ns - now_ns);
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
	err = slices->view->attach(session->skel, &session->opts.view_opts, &slices->links,
				   session->opts.reason);
	slices->own_ns += sb_thread_time_ns() - since_ns;
	return err;
}

static void detach(struct sb_slices *slices)
{
	uint64_t since_ns = sb_thread_time_ns();
	size_t i;

	for (i = 0; i < slices->links.nr; i++)
		sb_view_destroy_link(&slices->links.at[i]);
	slices->links.nr = 0;
	slices->own_ns += sb_thread_time_ns() - since_ns;
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
	detach(slices);
	init_slicer(session, now);
	sb_tracing_sample(&slices->tracing);
	session->skel->bss->latency_sliced_ns = now->now_ns;
	sb_thinning_start(&session->thinning, now->run_ns);
	return set_timer(slices, PAUSE_NS);
}

/* The other view has the result. */
static void give_up(struct sb_session *session, enum sb_tracing_end why)
{
	struct sb_slices *slices = &session->slices;

	sb_tracing_give_up(&slices->tracing, why);
	detach(slices);
	slices->view = NULL;
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
	/* Sums of slices can be too low to tell whether calls explain what pages hold. */
	if (!now.nr_full && session->opts.view_opts.fallback == SB_FALLBACK_IF_COSTLY &&
	    slices->view->is_sliced && slices->view->is_sliced(session->skel))
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
	if (!slices->links.nr) {
		err = attach(session);
		if (err == -ENODATA && slices->tracing.is_sampled) {
			give_up(session, SB_TRACING_UNHOOKED);
			return 0;
		}
		/* Nothing is left to attach to: the closing report says since when there are no
		 * slices. */
		if (err == -ESRCH || err == -ENODATA) {
			detach(slices);
			slices->view = NULL;
			slices->slicer.stats.ended_ns = sb_now_ns();
			return 0;
		}
		return err ? err : begin_slice(session);
	}
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
	detach(slices);
	err = read_cost(session, slices->own_ns, &now);
	return err ? err : set_timer(slices, sb_slicer_gap(&slices->slicer, &now));
}

/* With the others nobody waits for them: detach.h. */
void sb_session_end_slices(struct sb_session *session)
{
	struct sb_slices *slices = &session->slices;
	size_t nr = slices->links.nr;

	while (nr && !sb_vec_push(&session->links, slices->links.at[nr - 1]))
		nr--;
	slices->links.nr = nr;
	detach(slices);
	slices->view = NULL;
}
