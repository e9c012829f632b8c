// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Makes a session: options become loaded BPF programs, and the threads that serve them. Before the
 * load, each part writes its settings and the sizes of its maps into the object (prepare()); after
 * it, each part is made for the maps that it serves (load()); session.c attaches and drains. What
 * the parts tell each other is wired here:
 *
 *	procwatch -> unwinder, interps	what processes map, exec and exit: on_sideband()
 *	unwinder -> interps		which mappings it has read: start_interps()
 *	interps -> walkers		which runtimes lack their walker: start_interps()
 *	options -> unwinder, interps	which processes come first: expect_targets()
 *	command -> unwinder		which files it will map: expect_command()
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/time.h"
#include "capture/cmdfiles.h"
#include "capture/collector.h"
#include "capture/drain.h"
#include "capture/hotplug.h"
#include "capture/interpwatch.h"
#include "capture/kname.h"
#include "capture/perf_event.h"
#include "capture/procwatch.h"
#include "capture/refused.h"
#include "capture/session_priv.h"
#include "capture/targets.h"
#include "capture/unwinder.h"
#include "capture/walkers.h"
#include "events/counter.h"
#include "symbolizer/sb_sym.h"
#include "symbolizer/unwind/parser.h"
#include "views/skel.h"
#include "views/span.h"
#include "views/views.h"

/* Keys in one map of counts at most, for each view: 5 MB of kernel memory each. When it is three
 * quarters full, we are woken. */
#define COUNTS_MAX_DEFAULT    32768u
/* IDs of distinct stacks that are remembered at most, for each view: 5 MB. Beyond it, stacks are
 * shipped with each sample. */
#define STACKS_MAX_DEFAULT    65536u
/* One of the kernel, one of the user, one of interpreters. */
#define STACKS_PER_TICK	      3u
/* Maps have room for twice the ticks of a run, and of a second more: timers are not exact, and a
 * map that is almost full searches the free places of all CPUs. */
#define TICKS_SPARE	      2u
/* NR_PLACES of memo.bpf.c: 300 KB for each CPU. */
#define MEMOS_PER_SLOT	      128u
/* Threads whose last walk is remembered for each CPU: core/last_walk.bpf.c. */
#define LAST_WALKS	      32u
/* RULES_PLACES / RULES_AT_ONCE of core/unwind_tables.bpf.c: 16 KB for each CPU. */
#define FOUND_RULES	      8u
/* Programs that a run can go without: see sb_view_do_without(). The object is opened again for each
 * one. */
#define NR_WITHOUT_MAX	      4u
/* The ring `events`: room for raw stacks of each CPU (rawstack.bpf.c) when a run begins. */
#define EVENTS_BYTES_PER_CPU  (2u << 20)
#define EVENTS_BYTES_MIN      (4u << 20)
#define EVENTS_BYTES_MAX      (64u << 20)
/* The same for a long run. A ring that is mapped counts twice as memory of the process. */
#define LASTING_BYTES_PER_CPU (1u << 20)
#define LASTING_BYTES_MAX     (16u << 20)

static int check_kernel(struct sb_reason *reason)
{
	char ns[64];
	ssize_t len;

	if (!sb_can_access("/sys/kernel/btf/vmlinux", R_OK)) {
		sb_reason_set(
			reason, 0,
			"this kernel has no BTF (/sys/kernel/btf/vmlinux); Linux 5.15 or newer with "
			"CONFIG_DEBUG_INFO_BTF is needed");
		return -EOPNOTSUPP;
	}
	/* 4026531836 is PROC_PID_INIT_INO. BPF sees the pids of that namespace, /proc ours. */
	len = readlink("/proc/self/ns/pid", ns, sizeof(ns) - 1);
	if (len > 0) {
		ns[len] = '\0';
		if (strcmp(ns, "pid:[4026531836]")) {
			sb_reason_set(reason, 0,
				      "stackbpf runs outside the host's pid namespace, so it "
				      "cannot identify processes; start the container with "
				      "--pid=host");
			return -EOPNOTSUPP;
		}
	}
	return 0;
}

static int choose_cpus(struct sb_session *session)
{
	size_t i;
	int err;

	if (!session->opts.cpus)
		return sb_cpus_online(&session->cpus);
	for (i = 0; i < session->opts.nr_cpus; i++) {
		err = sb_vec_push(&session->cpus, session->opts.cpus[i]);
		if (err)
			return err;
	}
	return 0;
}

/* The slots of programs that take user stacks. */
static uint32_t slots_of(const struct sb_views *views)
{
	uint32_t slots = 0;
	size_t i;

	for (i = 0; i < views->nr; i++)
		slots |= views->at[i]->slots;
	return slots;
}

static bool has_only_tgids(const struct sb_targets *targets)
{
	return targets->tgids.nr && !targets->follow_children && !targets->tids.nr &&
	       !targets->nr_comms && !targets->nr_uids && !targets->nr_cgroups;
}

/*
 * Find the processes that samples can be of, if they are known: the list stays empty if they are
 * not. A command is not one of them: it may be short, so each of its records is to wake the reader.
 * Nor are targets of views that may take the stack of another process than the one that they
 * sample.
 */
static int list_sampled(const struct sb_session *session, sb_vec_u32 *tgids)
{
	const struct sb_targets *targets = session->opts.targets;
	const uint32_t slots_own = 1u << SB_SCRATCH_TIMER | 1u << SB_SCRATCH_SWITCH;
	int err = 0;
	size_t i;

	if (!has_only_tgids(targets) || session->opts.command ||
	    slots_of(&session->opts.views) & ~slots_own)
		return 0;
	for (i = 0; i < targets->tgids.nr && !err; i++)
		if (targets->tgids.at[i].rule & SB_RULE_ALLOW)
			err = sb_vec_push(tgids, targets->tgids.at[i].pid);
	return err;
}

/* Side-band records are needed from every CPU, also from those that are not sampled, because
 * processes migrate. */
static int start_procwatch(struct sb_session *session)
{
	sb_vec_u32 *online = &session->online_cpus, tgids = {};
	int err;

	session->hotplug_fd = sb_hotplug_open();
	err = sb_cpus_online(online);
	if (!err)
		err = list_sampled(session, &tgids);
	if (!err)
		err = sb_procwatch_new(online, &tgids, &session->procwatch);
	sb_vec_release(&tgids);
	return err ? sb_explain(session->opts.reason, err, "watch processes with perf events") : 0;
}

/* The size of a ring is a power of two. */
static uint32_t events_bytes(const struct sb_session *session)
{
	const bool is_lasting = session->opts.is_lasting;
	uint32_t per_cpu = is_lasting ? LASTING_BYTES_PER_CPU : EVENTS_BYTES_PER_CPU;
	uint32_t max = is_lasting ? LASTING_BYTES_MAX : EVENTS_BYTES_MAX;
	uint32_t nr_bytes = EVENTS_BYTES_MIN;

	if (!(session->opts.unwind & SB_UNWIND_CFI))
		return nr_bytes;
	while (nr_bytes < max && nr_bytes / per_cpu < session->cpus.nr)
		nr_bytes *= 2;
	return nr_bytes;
}

/* For each scratch slot, the view whose samples are taken in it. */
static void prepare_slots(struct sb_session *session)
{
	const struct sb_views *views = &session->opts.views;
	uint8_t *view_of = (uint8_t *)session->skel->rodata->cfg_slot_view;
	uint32_t slot, slots;
	size_t i;

	for (i = 0; i < views->nr; i++) {
		slots = views->at[i]->slots | views->at[i]->other_slots;
		for (slot = 0; slot < SB_SCRATCH_MAX; slot++)
			if (slots & (1u << slot))
				view_of[slot] = (uint8_t)i;
	}
}

/* Programs at events see the same stacks again; timers do not. */
static int prepare_memos(struct sb_session *session)
{
	uint32_t *first = (uint32_t *)session->skel->rodata->cfg_memo_first;
	uint32_t slots = slots_of(&session->opts.views) & ~(1u << SB_SCRATCH_TIMER), slot, nr = 0;

	for (slot = 0; slot < SB_SCRATCH_MAX; slot++) {
		first[slot] = UINT32_MAX;
		if (slots & (1u << slot))
			first[slot] = MEMOS_PER_SLOT * nr++;
	}
	session->skel->rodata->cfg_memo = nr > 0;
	return bpf_map__set_max_entries(session->skel->maps.memos, nr ? MEMOS_PER_SLOT * nr : 1);
}

/* Timers see most frames of a thread again, and most callers in others. */
static int prepare_last_walks(struct sb_session *session)
{
	bool has_timer = slots_of(&session->opts.views) & (1u << SB_SCRATCH_TIMER);
	int err;

	session->skel->rodata->cfg_last_walk = has_timer;
	err = bpf_map__set_max_entries(session->skel->maps.uw_rules, has_timer ? FOUND_RULES : 1);
	if (err)
		return err;
	return bpf_map__set_max_entries(session->skel->maps.last_walks, has_timer ? LAST_WALKS : 1);
}

/* Walks of interpreters keep what they have read. */
static int prepare_pieces(struct sb_session *session)
{
	uint32_t *pieces = (uint32_t *)session->skel->rodata->cfg_interp_pieces;
	uint32_t slots = slots_of(&session->opts.views), slot, nr = 0;

	for (slot = 0; slot < SB_SCRATCH_MAX; slot++)
		pieces[slot] = slots & (1u << slot) ? nr++ : UINT32_MAX;
	return bpf_map__set_max_entries(session->skel->maps.interp_pieces, nr ? nr : 1);
}

/* Set up what only the walk by unwind tables needs. */
static int prepare_tables(struct sb_session *session)
{
	struct sampler_bpf *skel = session->skel;
	uint32_t slots = slots_of(&session->opts.views), slot, nr_slots = 0;
	int err;

	if (!(session->opts.unwind & SB_UNWIND_CFI))
		return 0;
	for (slot = 0; slot < SB_SCRATCH_MAX; slot++)
		if (slots & (1u << slot))
			((uint32_t *)skel->rodata->cfg_raw_slot)[slot] = nr_slots++;
	skel->rodata->cfg_nr_raw_slots = nr_slots;
	if (session->opts.command)
		skel->rodata->cfg_first_tgid = session->opts.command_tgid;
	err = prepare_memos(session);
	if (!err)
		err = prepare_last_walks(session);
	if (err)
		return sb_explain_setting(session->opts.reason, err, "the memory of the unwinder");
	err = bpf_map__set_max_entries(skel->maps.raw_records,
				       nr_slots * (uint32_t)libbpf_num_possible_cpus());
	if (err)
		return sb_explain_setting(session->opts.reason, err, "the stack buffers");
	err = sb_unwinder_prepare(session->unwinder, skel);
	return err ? sb_explain_setting(session->opts.reason, err, "the unwind tables") : 0;
}

static bool is_command_alone(const struct sb_session_opts *opts)
{
	const struct sb_targets *targets = opts->targets;

	return opts->command && has_only_tgids(targets) && targets->tgids.nr == 1 &&
	       targets->tgids.at[0].pid == opts->command_tgid;
}

/* Hook functions in the address space of the command only, so that they cost others nothing. The
 * kernel follows the process to the address space that it has after execve(2). Hooked one by one,
 * each of a process takes 70 ms. */
static void hook_command_only(struct sb_session *session)
{
	struct sb_session_opts *opts = &session->opts;

	if (!opts->view_opts.probes || !is_command_alone(opts) ||
	    !sb_probe_multi_is_there(SB_PROBE_USER))
		return;
	session->probes = *opts->view_opts.probes;
	session->probes.tgid = opts->command_tgid;
	session->probes.is_of_tgid_only = true;
	opts->view_opts.probes = &session->probes;
}

static int prepare_views(struct sb_session *session)
{
	const struct sb_session_opts *opts = &session->opts;
	struct sampler_bpf *skel = session->skel;
	uint32_t objects_max = 0;
	size_t i;
	int err;

	prepare_slots(session);
	for (i = 0; i < opts->views.nr; i++)
		objects_max += opts->views.at[i]->objects_max;
	err = objects_max ? bpf_map__set_max_entries(skel->maps.objects_seen, objects_max) : 0;
	if (err)
		return sb_explain_setting(session->opts.reason, err,
					  "the BPF map of files and wakers");
	session->opts.view_opts.is_governed = opts->overhead_max > 0;
	session->opts.view_opts.has_command = opts->command;
	hook_command_only(session);
	err = sb_span_prepare(skel, &opts->view_opts);
	if (err)
		return sb_explain_setting(session->opts.reason, err,
					  "the BPF programs for the spans of --in");
	for (i = 0; i < opts->views.nr; i++) {
		err = opts->views.at[i]->prepare(skel, &opts->view_opts);
		if (err)
			return sb_reason_set(session->opts.reason, err,
					     "cannot prepare the view '%s'; -v may say why",
					     opts->views.at[i]->kind->name);
	}
	return 0;
}

static int prepare(struct sb_session *session)
{
	const struct sb_session_opts *opts = &session->opts;
	struct sampler_bpf *skel = session->skel;
	uint64_t *seed = (uint64_t *)skel->rodata->cfg_hash_seed;
	int err;

	/* The built-in seed is good enough when there is no entropy yet. */
	if (getrandom(seed, sizeof(skel->rodata->cfg_hash_seed), GRND_NONBLOCK) < 0)
		sb_debug("stack hashes use the built-in seed");
	skel->rodata->cfg_sides = opts->sides;
	skel->rodata->cfg_by = opts->by;
	skel->rodata->cfg_unwind = opts->unwind;
	skel->rodata->cfg_user_end = sb_sym_user_end();
	if (opts->depth_max)
		skel->rodata->cfg_ustack_depth_max = opts->depth_max;
	if (opts->freq_hz)
		skel->rodata->cfg_tick_ns =
			sb_perf_timer_period_ns(opts->view_opts.counter, opts->freq_hz);
	skel->rodata->cfg_counts_nudge = opts->counts_max / 4 * 3;
	skel->rodata->cfg_started_boot_ns = sb_boot_ns();
	err = bpf_map__set_max_entries(skel->maps.counts_first, opts->counts_max);
	if (err)
		return sb_explain_setting(session->opts.reason, err, "the BPF map of counts");
	err = bpf_map__set_max_entries(skel->maps.stacks_seen, opts->stacks_max);
	if (err)
		return sb_explain_setting(session->opts.reason, err, "the BPF map of stacks");
	err = bpf_map__set_max_entries(skel->maps.events, events_bytes(session));
	if (err)
		return sb_explain_setting(session->opts.reason, err, "the ring buffer of stacks");
	err = sb_targets_prepare(opts->targets, skel, opts->reason);
	if (err)
		return err;
	err = prepare_tables(session);
	if (err)
		return err;
	err = sb_kname_prepare(skel, opts->sides);
	if (err)
		return sb_explain_setting(session->opts.reason, err,
					  "the lookup of kernel functions");
	skel->rodata->cfg_interp_walkers = session->walkers_at_start;
	if (opts->interp)
		err = sb_interpwatch_prepare(skel, opts->interp_lines, opts->labels);
	if (!err && opts->interp)
		err = prepare_pieces(session);
	if (err)
		return sb_explain_setting(session->opts.reason, err, "the tables of interpreters");
	err = prepare_views(session);
	if (err)
		return err;
	sb_thinning_init(&session->thinning,
			 &(struct sb_thinning_opts){
				 .views = &opts->views,
				 .view_opts = &opts->view_opts,
				 .limit = opts->overhead_max,
				 .freq_hz = opts->freq_hz,
				 .is_freq_asked = opts->is_freq_asked,
				 .parser = opts->parser,
			 },
			 skel);
	return 0;
}

static void on_sideband(void *arg, const struct sb_sideband *event)
{
	struct sb_session *session = arg;

	if (session->unwinder)
		sb_unwinder_tell(session->unwinder, event);
	if (session->interps)
		sb_interpwatch_tell(session->interps, event);
}

static void follow_interps(void *arg, uint32_t tgid)
{
	const struct sb_session *session = arg;

	sb_interpwatch_follow(session->interps, tgid);
}

static bool is_plain(void *arg, const struct stat *st)
{
	const struct sb_session *session = arg;

	return sb_interp_is_plain(session->opts.interp, st);
}

static void on_interp_need(void *arg, const struct sb_uw_need_event *need, uint64_t since_ns,
			   bool is_plain)
{
	const struct sb_session *session = arg;

	sb_interpwatch_need(session->interps, &SB_SPACE_KEY(need), since_ns, is_plain);
}

static int start_interps(struct sb_session *session)
{
	int err;

	if (!session->opts.interp)
		return 0;
	err = sb_interpwatch_new(session->skel, session->opts.processes, session->opts.interp,
				 session->walkers, &session->interps);
	session->asleep.interps = session->interps;
	session->unwinder_interps =
		(struct sb_unwinder_interps){ follow_interps, is_plain, on_interp_need, session };
	if (!err && session->unwinder)
		sb_unwinder_serve_interps(session->unwinder, &session->unwinder_interps);
	return err ? sb_explain(session->opts.reason, err, "watch interpreters") : 0;
}

/* Prepare for targets that run already, so that their first samples have all frames. */
static void expect_targets(struct sb_session *session)
{
	const struct sb_targets *targets = session->opts.targets;
	size_t i;

	for (i = 0; i < targets->tgids.nr; i++) {
		const struct sb_pid_rule *rule = &targets->tgids.at[i];

		if ((rule->rule & (SB_RULE_ALLOW | SB_RULE_AT_EXEC)) != SB_RULE_ALLOW)
			continue;
		if (session->unwinder)
			sb_unwinder_expect(session->unwinder, rule->pid);
		if (session->interps)
			sb_interpwatch_expect(session->interps, rule->pid);
	}
}

/* Prepare for the command, so that its first samples have all frames. */
static void expect_command(struct sb_session *session)
{
	struct sb_cmdfiles *files;
	size_t i;

	if (!session->opts.command || !session->unwinder)
		return;
	sb_unwinder_first(session->unwinder, session->opts.command_tgid);
	/* Every process has the vDSO. */
	sb_unwinder_expect_file(session->unwinder, -1, session->opts.command_tgid);
	files = sb_cmdfiles_find(session->opts.command);
	for (i = 0; files && i < files->nr; i++)
		sb_unwinder_expect_file(session->unwinder, sb_take_fd(files->at[i].fd),
					session->opts.command_tgid);
	sb_cmdfiles_free(files);
}

static int make_unwinder(struct sb_session *session)
{
	int err;

	if (!(session->opts.unwind & SB_UNWIND_CFI))
		return 0;
	err = sb_unwinder_new(session->opts.unwind_bytes_max,
			      sb_parser_seat(session->opts.parser, SB_PARSER_TABLES),
			      &session->unwinder);
	return err ? sb_explain(session->opts.reason, err,
				"allocate memory for the unwind "
				"tables")
		   : 0;
}

static int start_unwinder(struct sb_session *session)
{
	int err = session->unwinder ? sb_unwinder_start(session->unwinder, session->skel,
							session->opts.processes)
				    : 0;

	return err ? sb_explain(session->opts.reason, err, "start building unwind tables") : 0;
}

struct refused {
	char names[NR_WITHOUT_MAX][64];
	size_t nr;
};

/* Return: 0; -EAGAIN: try again, without what the kernel has just refused; or a negative errno,
 * with the reason. */
static int try_programs(struct sb_session *session, struct refused *refused)
{
	sb_cleanup(sb_closep) int types_fd = -1;
	const char *name, *lacks = NULL;
	size_t i;
	int err;

	session->skel = sb_views_open(&session->opts.views, &types_fd);
	if (!session->skel)
		return sb_explain(session->opts.reason, -errno, "open the BPF object");
	err = prepare(session);
	if (err)
		return err;
	for (i = 0; i < refused->nr && !err; i++)
		err = sb_view_do_without(session->skel, refused->names[i]);
	if (err)
		return sb_explain(session->opts.reason, err, "disable an optional BPF program");
	err = sb_load(session->skel);
	if (!err)
		return 0;
	name = sb_load_refused(err);
	if (name && refused->nr < NR_WITHOUT_MAX)
		lacks = sb_view_lacks_without(name);
	if (!lacks)
		return sb_load_explain(session->opts.reason, err);
	sb_warn("the kernel rejects the BPF program '%s' (%s), so %s; -v shows the reason", name,
		strerror(-err), lacks);
	snprintf(refused->names[refused->nr++], sizeof(refused->names[0]), "%s", name);
	sampler_bpf__destroy(sb_take(session->skel));
	return -EAGAIN;
}

static int load_programs(struct sb_session *session)
{
	struct refused refused = {};
	int err;

	do {
		err = try_programs(session, &refused);
	} while (err == -EAGAIN);
	return err;
}

/* Before load: choose the walkers of interpreters that are loaded. */
static void choose_walkers(struct sb_session *session)
{
	struct sb_session_opts *opts = &session->opts;

	session->walkers_at_start = sb_walkers_choose(opts);
	opts->view_opts.is_replaceable =
		opts->interp && session->walkers_at_start != sb_interp_wanted(opts->interp);
}

static int make_walkers(struct sb_session *session)
{
	int err = 0;

	if (session->opts.view_opts.is_replaceable)
		err = sb_walkers_new(&session->opts, session->skel, session->walkers_at_start,
				     &session->walkers);
	return err ? sb_explain(session->opts.reason, err,
				"start the process that loads walkers of interpreters")
		   : 0;
}

static int make_resident(struct sb_session *session)
{
	struct sb_resident_opts opts = {
		.skel = session->skel,
		.what = session->opts.view_opts.memory_what,
		.kinds = session->opts.view_opts.memory_kinds,
		.is_summed = session->opts.is_summed,
		.is_of_time = session->opts.view_opts.is_of_time,
		.is_fallback = session->opts.view_opts.fallback,
	};
	bool follows = false;
	size_t i;

	for (i = 0; i < session->opts.views.nr; i++) {
		follows |= session->opts.views.at[i]->follows_pages;
		opts.counts_ended |= session->opts.views.at[i]->counts_ended ||
				     session->opts.view_opts.has_command;
	}
	return follows ? sb_resident_new(&opts, &session->resident) : 0;
}

static int make_goheap(struct sb_session *session)
{
	const struct sb_goheap_opts opts = {
		.seed = session->skel->rodata->cfg_hash_seed[0],
		.is_of_growth = session->opts.view_opts.memory_what == SB_MEMORY_OLD,
		.is_summed = session->opts.is_summed,
	};

	return session->opts.view_opts.has_own_profiles ? sb_goheap_new(&opts, &session->goheap)
							: 0;
}

static int load(struct sb_session *session)
{
	int err = make_unwinder(session);

	choose_walkers(session);
	if (!err)
		err = load_programs(session);
	if (!err)
		err = make_walkers(session);
	if (err)
		return err;
	err = sb_kname_new(session->skel, session->opts.symbolizer, &session->kname);
	if (err)
		return sb_explain(session->opts.reason, err,
				  "make a socket whose filter names kernel functions");
	err = sb_drain_new(session->skel, session->opts.counts_max,
			   session->opts.is_lasting ? SB_DRAIN_EARLY_BYTES_LASTING
						    : SB_DRAIN_EARLY_BYTES_MAX,
			   &session->drain);
	if (err)
		return sb_explain(session->opts.reason, err, "create the BPF maps of counts");
	if (sb_view_has_spans(&session->opts.view_opts))
		err = sb_spans_new(session->skel, session->opts.view_opts.slower_than_ns,
				   &session->spans);
	if (err)
		return sb_explain(session->opts.reason, err, "allocate memory for spans");
	err = make_resident(session);
	if (!err)
		err = make_goheap(session);
	if (err)
		return sb_explain(session->opts.reason, err, "allocate memory for pages");
	err = sb_session_prepare_slices(session);
	if (err)
		return sb_explain(session->opts.reason, err, "make a timer for slices");
	err = sb_collector_new(session->drain, &session->collector);
	if (err)
		return sb_explain(session->opts.reason, err,
				  "create the thread that reads "
				  "samples");
	err = start_unwinder(session);
	if (!err)
		err = start_interps(session);
	if (err)
		return err;
	sb_procwatch_notify(session->procwatch, on_sideband, session);
	expect_targets(session);
	expect_command(session);
	return sb_targets_apply(session->opts.targets,
				session->opts.command ? session->opts.command_tgid : 0,
				session->skel, session->opts.reason);
}

static int make_stats(struct sb_session *session)
{
	int nr_cpus = libbpf_num_possible_cpus();

	if (nr_cpus < 0)
		return nr_cpus;
	session->stats = calloc((size_t)nr_cpus * SB_STAT_MAX, sizeof(*session->stats));
	return session->stats ? 0 : -ENOMEM;
}

/* Return: how many ticks a run can have; UINT32_MAX: unknown, or other events take samples, too. */
static uint32_t ticks_max(const struct sb_session_opts *opts)
{
	const int nr_cpus = libbpf_num_possible_cpus();
	uint64_t ticks;

	if (!opts->time_ns || !opts->freq_hz || nr_cpus < 0 || opts->views.nr != 1 ||
	    opts->view_opts.counter != &sb_counter_clock ||
	    opts->views.at[0]->slots != 1u << SB_SCRATCH_TIMER)
		return UINT32_MAX;
	ticks = (opts->time_ns / SB_NS_PER_SEC + 1) * opts->freq_hz;
	return ticks < UINT32_MAX / (uint32_t)nr_cpus ? (uint32_t)ticks * (uint32_t)nr_cpus
						      : UINT32_MAX;
}

/* Maps are filled before the first sample, so a short run has smaller ones. */
static void choose_sizes(struct sb_session_opts *opts)
{
	const uint64_t room = (uint64_t)ticks_max(opts) * TICKS_SPARE;
	const uint64_t counts_max = COUNTS_MAX_DEFAULT * (uint64_t)opts->views.nr;
	const uint64_t stacks_max = STACKS_MAX_DEFAULT * (uint64_t)opts->views.nr;

	if (!opts->counts_max)
		opts->counts_max = (uint32_t)(room < counts_max ? room : counts_max);
	if (!opts->stacks_max)
		opts->stacks_max =
			(uint32_t)(room * STACKS_PER_TICK < stacks_max ? room * STACKS_PER_TICK
								       : stacks_max);
}

int sb_session_new(const struct sb_session_opts *opts, struct sb_session **ret_session)
{
	struct sb_session *session;
	int err = check_kernel(opts->reason);

	if (err)
		return err;
	session = calloc(1, sizeof(*session));
	if (!session)
		return sb_explain(opts->reason, -ENOMEM, "start");
	session->opts = *opts;
	session->hotplug_fd = session->slices.fd = -1;
	session->links_root = -1;
	if (!session->opts.view_opts.counter)
		session->opts.view_opts.counter = &sb_counter_clock;
	choose_sizes(&session->opts);
	err = make_stats(session);
	if (!err)
		err = choose_cpus(session);
	if (err)
		sb_reason_set(session->opts.reason, err,
			      "cannot read the lists of CPUs in /sys/devices/system/cpu");
	if (!err)
		err = start_procwatch(session);
	if (!err)
		err = load(session);
	if (err) {
		sb_session_free(session);
		return err;
	}
	*ret_session = session;
	return 0;
}
