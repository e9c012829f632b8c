// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The timers of the CPUs that are sampled, and CPUs that go offline or come online. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <unistd.h>

#include "base/log.h"
#include "capture/hotplug.h"
#include "capture/perf_event.h"
#include "capture/procwatch.h"
#include "capture/refused.h"
#include "capture/session_priv.h"
#include "events/counter.h"

/* Add a timer to the session, which owns @link then, and @link owns @fd. Return: 0 or -ENOMEM, with
 * the reason. */
static int keep_timer(struct sb_session *session, struct bpf_link *link, int fd, uint32_t cpu)
{
	int err = sb_vec_reserve(&session->timer_cpus, session->timers.nr + 1);

	if (err)
		bpf_link__destroy(link);
	else
		err = sb_view_keep_link(&session->timers, link);
	if (!err) {
		session->timer_cpus.at[session->timer_cpus.nr++] = cpu;
		err = sb_thinning_add_timer(&session->thinning, fd, cpu);
	}
	return err ? sb_reason_set(session->opts.reason, err, "cannot start sampling on CPU %u",
				   cpu)
		   : 0;
}

static int attach_timer(struct sb_session *session, uint32_t cpu)
{
	const struct sb_counter *counter = session->opts.view_opts.counter;
	struct bpf_link *link;
	int fd, err;

	fd = sb_perf_open_timer(counter, session->opts.freq_hz, (int)cpu);
	if (fd == -ENODEV)
		return fd;
	if (fd == -EINVAL) {
		sb_reason_set(
			session->opts.reason, 0,
			"cannot sample '%s' at %u Hz; choose a lower -F, another -e "
			"(some PMUs only count), or raise sysctl kernel.perf_event_max_sample_rate",
			counter->text, session->opts.freq_hz);
		return fd;
	}
	if (fd < 0 && sb_counter_explain(counter->text, fd, session->opts.reason))
		return -EOPNOTSUPP;
	if (fd < 0)
		return sb_explain(session->opts.reason, fd, "open a sampling timer");
	link = bpf_program__attach_perf_event(session->timer, fd);
	if (!link) {
		err = -errno;
		close(fd);
		return sb_explain(session->opts.reason, err,
				  "attach a BPF program to a "
				  "sampling timer");
	}
	return keep_timer(session, link, fd, cpu);
}

int sb_session_attach_timers(struct sb_session *session)
{
	size_t i;
	int err;

	if (!session->timer)
		return 0;
	for (i = 0; i < session->cpus.nr; i++) {
		err = attach_timer(session, session->cpus.at[i]);
		if (err == -ENODEV && !session->opts.cpus)
			continue; /* went offline meanwhile */
		if (err == -ENODEV)
			sb_reason_set(session->opts.reason, 0,
				      "CPU %u is not online; lscpu(1) lists those that are",
				      session->cpus.at[i]);
		if (err)
			return err;
	}
	return 0;
}

int sb_session_hotplug_fd(const struct sb_session *session)
{
	return session->hotplug_fd;
}

static size_t find_cpu(const sb_vec_u32 *cpus, uint32_t cpu)
{
	size_t i;

	for (i = 0; i < cpus->nr && cpus->at[i] != cpu; i++)
		;
	return i;
}

static bool has_cpu(const sb_vec_u32 *cpus, uint32_t cpu)
{
	return find_cpu(cpus, cpu) < cpus->nr;
}

static void remove_cpu(sb_vec_u32 *cpus, size_t i)
{
	cpus->at[i] = cpus->at[--cpus->nr];
}

/* Let go of the @i-th CPU that was online. Its events do not work any more. */
static void drop_cpu(struct sb_session *session, size_t i)
{
	uint32_t cpu = session->online_cpus.at[i];
	size_t t = find_cpu(&session->timer_cpus, cpu);

	sb_procwatch_drop_cpu(session->procwatch, cpu);
	if (t < session->timer_cpus.nr) {
		sb_thinning_forget_timer(&session->thinning, cpu);
		sb_view_destroy_link(&session->timers.at[t]);
		session->timers.at[t] = session->timers.at[--session->timers.nr];
		remove_cpu(&session->timer_cpus, t);
	}
	remove_cpu(&session->online_cpus, i);
	session->nr_cpus_went++;
}

/* A failure is final, since it would repeat at each look. Return: 0; -ENODEV: it is offline again;
 * another negative errno. */
static int add_cpu(struct sb_session *session, uint32_t cpu)
{
	bool is_sampled = !session->opts.cpus || has_cpu(&session->cpus, cpu);
	int err = sb_procwatch_add_cpu(session->procwatch, cpu);

	if (!err && session->timer && is_sampled)
		err = attach_timer(session, cpu);
	if (!err && !has_cpu(&session->cpus, cpu) && is_sampled)
		err = sb_vec_push(&session->cpus, cpu);
	if (err == -ENODEV)
		sb_procwatch_drop_cpu(session->procwatch, cpu);
	else if (sb_vec_push(&session->online_cpus, cpu))
		err = -ENOMEM;
	return err;
}

/* @gone: CPUs that were offline since the last look, even if only for a moment; @is_any: all CPUs
 * may have been. */
static void drop_cpus(struct sb_session *session, const sb_vec_u32 *online, const sb_vec_u32 *gone,
		      bool is_any)
{
	size_t i = session->online_cpus.nr;

	while (i--) {
		uint32_t cpu = session->online_cpus.at[i];

		if (is_any || has_cpu(gone, cpu) || !has_cpu(online, cpu))
			drop_cpu(session, i);
	}
}

static void add_cpus(struct sb_session *session, const sb_vec_u32 *online)
{
	size_t i;
	int err;

	for (i = 0; i < online->nr; i++) {
		if (has_cpu(&session->online_cpus, online->at[i]))
			continue;
		err = add_cpu(session, online->at[i]);
		if (err == -ENODEV)
			continue; /* offline again */
		session->nr_cpus_came++;
		if (!err)
			continue;
		/* The run continues, and the closing report says how many. */
		session->nr_cpus_refused++;
		if (session->opts.reason) {
			sb_debug("CPU %u: %s", online->at[i], session->opts.reason->text);
			*session->opts.reason = (struct sb_reason){};
		}
	}
}

int sb_session_hotplug(struct sb_session *session)
{
	sb_vec_u32 online = {}, gone = {};
	int err = 0, read_err;

	if (session->hotplug_fd >= 0)
		err = sb_hotplug_read(session->hotplug_fd, &gone);
	/* The order matters: a CPU that is in the list again was reported as offline before. */
	read_err = sb_cpus_online(&online);
	if (!read_err) {
		drop_cpus(session, &online, &gone, err != 0);
		add_cpus(session, &online);
	}
	sb_vec_release(&online);
	sb_vec_release(&gone);
	return read_err ? sb_reason_set(session->opts.reason, read_err,
					"cannot read the list of online CPUs in "
					"'/sys/devices/system/cpu/online'")
			: 0;
}
