// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/session.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/time.h"
#include "capture/asleep.h"
#include "capture/cmdfiles.h"
#include "capture/detach.h"
#include "capture/drain.h"
#include "capture/hotplug.h"
#include "capture/interpwatch.h"
#include "capture/perf_event.h"
#include "capture/procwatch.h"
#include "capture/rawstack.h"
#include "capture/refused.h"
#include "capture/targets.h"
#include "capture/thinning.h"
#include "capture/unwinder.h"
#include "parser.h"
#include "sb_sym.h"
#include "views/skel.h"
#include "views/view.h"

/* Keys of one generation of counts: 5 MB of kernel memory each. Three quarters full wakes us. */
#define COUNTS_MAX_DEFAULT   32768u
/* Names of distinct stacks: 5 MB. Beyond, stacks are shipped at each sample instead of once. */
#define STACKS_MAX_DEFAULT   65536u
#define EVENT_DEFAULT	     "cpu-clock"
/* How long the begin of a run waits for tables and interpreters of its targets. Most take a few ms. A
 * command waits itself, and would be sampled without them for its first milliseconds. */
#define EXPECT_NS	     (500ull * SB_NS_PER_MS)
#define EXPECT_COMMAND_NS    (2ull * SB_NS_PER_SEC)
/* NR_PLACES of memo.bpf.c: 140 KB for each CPU. */
#define MEMOS_PER_SLOT	     128u
/* Programs that a run goes on without, see sb_view_do_without(): one by one, it is opened again for each. */
#define NR_WITHOUT_MAX	     4u
/* The ring `events`: room for raw stacks of each CPU (raw.bpf.c) when a run begins. */
#define EVENTS_BYTES_PER_CPU (2u << 20)
#define EVENTS_BYTES_MIN     (4u << 20)
#define EVENTS_BYTES_MAX     (64u << 20)

struct sb_session {
	struct sb_session_opts opts; /* pointers in it are borrowed from the caller */
	struct sampler_bpf *skel;
	struct sb_drain *drain;
	struct sb_procwatch *procwatch;
	struct sb_interpwatch *interps;		    /* NULL: not asked for */
	struct sb_unwinder *unwinder;		    /* NULL without unwind tables */
	struct bpf_program *timer, *begin, *settle; /* of the view; NULL: it has none */
	sb_vec_link links;
	int links_root; /* see capture/detach.h */
	sb_vec_link timers;
	sb_vec_u32 timer_cpus; /* of each of `timers` */
	struct sb_thinning thinning;
	struct sb_asleep_stacks asleep;
	sb_vec_u32 cpus;	/* that we sample */
	sb_vec_u32 online_cpus; /* when last looked at; with events of ours */
	int hotplug_fd;		/* -1: not to be had; then the list of CPUs has to do */
	uint64_t nr_cpus_went, nr_cpus_came, nr_cpus_refused;
	sb_vec_u32 new_tgids; /* to be seeded */
	uint64_t began_ns;
	uint64_t *stats; /* of each CPU: room for reading them, so that it is there at the end */
	struct sb_batch batch;
};

static int check_kernel(void)
{
	char ns[64];
	ssize_t len;

	if (!sb_can_access("/sys/kernel/btf/vmlinux", R_OK)) {
		sb_err(0,
		       "this kernel has no BTF (/sys/kernel/btf/vmlinux); Linux 5.15 or newer with "
		       "CONFIG_DEBUG_INFO_BTF is needed");
		return -EOPNOTSUPP;
	}
	/* 4026531836 is PROC_PID_INIT_INO. BPF sees the pids of that namespace, /proc ours. */
	len = readlink("/proc/self/ns/pid", ns, sizeof(ns) - 1);
	if (len > 0) {
		ns[len] = '\0';
		if (strcmp(ns, "pid:[4026531836]")) {
			sb_err(0,
			       "not in the host's pid namespace, so processes cannot be told apart; "
			       "start the container with --pid=host");
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

/* Side-band needs every CPU, also those that are not sampled: processes migrate. */
static int start_procwatch(struct sb_session *session)
{
	sb_vec_u32 *online = &session->online_cpus;
	int err;

	session->hotplug_fd = sb_hotplug_open();
	err = sb_cpus_online(online);
	if (!err)
		err = sb_procwatch_new(online->at, online->nr, &session->procwatch);
	return err ? sb_explain(err, "watch processes with perf events") : 0;
}

/* The size of a ring is a power of two. */
static uint32_t events_bytes(const struct sb_session *session)
{
	uint32_t nr_bytes = EVENTS_BYTES_MIN;

	if (!(session->opts.unwind & SB_UNWIND_CFI))
		return nr_bytes;
	while (nr_bytes < EVENTS_BYTES_MAX && nr_bytes / EVENTS_BYTES_PER_CPU < session->cpus.nr)
		nr_bytes *= 2;
	return nr_bytes;
}

/* Events come to the same places again; timers do not. */
static int prepare_memos(struct sb_session *session)
{
	uint32_t *first = (uint32_t *)session->skel->rodata->cfg_memo_first;
	uint32_t slots = session->opts.view->slots & ~(1u << SB_SCRATCH_TIMER), slot, nr = 0;

	for (slot = 0; slot < SB_SCRATCH_MAX; slot++) {
		first[slot] = UINT32_MAX;
		if (slots & (1u << slot))
			first[slot] = MEMOS_PER_SLOT * nr++;
	}
	session->skel->rodata->cfg_memo = nr > 0;
	return bpf_map__set_max_entries(session->skel->maps.memos, nr ? MEMOS_PER_SLOT * nr : 1);
}

/* What only the walk by unwind tables needs. */
static int prepare_tables(struct sb_session *session)
{
	struct sampler_bpf *skel = session->skel;
	uint32_t slot, nr_slots = 0;
	int err;

	if (!(session->opts.unwind & SB_UNWIND_CFI))
		return 0;
	for (slot = 0; slot < SB_SCRATCH_MAX; slot++)
		if (session->opts.view->slots & (1u << slot))
			((uint32_t *)skel->rodata->cfg_raw_slot)[slot] = nr_slots++;
	skel->rodata->cfg_nr_raw_slots = nr_slots;
	if (session->opts.command)
		skel->rodata->cfg_first_tgid = session->opts.command_tgid;
	err = prepare_memos(session);
	if (err)
		return sb_err(err, "cannot size the memory of walks");
	err = bpf_map__set_max_entries(skel->maps.raw_records,
				       nr_slots * (uint32_t)libbpf_num_possible_cpus());
	if (err)
		return sb_err(err, "cannot size the pieces of stack");
	err = sb_unwinder_prepare(session->unwinder, skel);
	return err ? sb_err(err, "cannot prepare the unwind tables") : 0;
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
	skel->rodata->cfg_counts_nudge = opts->counts_max / 4 * 3;
	skel->rodata->cfg_started_boot_ns = sb_boot_ns();
	err = bpf_map__set_max_entries(skel->maps.counts_first, opts->counts_max);
	if (err)
		return sb_err(err, "cannot size the table of %u counts", opts->counts_max);
	err = bpf_map__set_max_entries(skel->maps.stacks_seen, opts->stacks_max);
	if (err)
		return sb_err(err, "cannot size the table of %u stacks", opts->stacks_max);
	err = bpf_map__set_max_entries(skel->maps.events, events_bytes(session));
	if (err)
		return sb_err(err, "cannot size the ring of stacks");
	err = sb_targets_prepare(opts->targets, skel);
	if (err)
		return err;
	err = prepare_tables(session);
	if (err)
		return err;
	if (opts->interp)
		err = sb_interpwatch_prepare(skel, opts->interp_lines, opts->labels);
	if (err)
		return sb_err(err, "cannot size the tables of interpreters");
	if (opts->view->objects_max)
		err = bpf_map__set_max_entries(skel->maps.objects_seen, opts->view->objects_max);
	if (err)
		return sb_err(err, "cannot size the table of objects");
	session->opts.view_opts.is_governed = opts->overhead_max > 0;
	err = opts->view->prepare(skel, &opts->view_opts);
	if (err)
		return sb_err(err, "cannot prepare the view '%s'", opts->view->name);
	sb_thinning_init(&session->thinning,
			 &(struct sb_thinning_opts){
				 .view = opts->view,
				 .view_opts = &opts->view_opts,
				 .limit = opts->overhead_max,
				 .event = opts->event,
				 .freq_hz = opts->freq_hz,
				 .parser = opts->parser,
			 },
			 skel);
	return 0;
}

static void on_changed(void *arg, uint32_t tgid)
{
	struct sb_session *session = arg;

	if (session->unwinder)
		sb_unwinder_changed(session->unwinder, tgid);
	if (session->interps)
		sb_interpwatch_changed(session->interps, tgid);
}

static int start_interps(struct sb_session *session)
{
	int err;

	if (!session->opts.interp)
		return 0;
	err = sb_interpwatch_new(session->skel, session->opts.interp, &session->interps);
	session->asleep.interps = session->interps;
	return err ? sb_explain(err, "watch interpreters") : 0;
}

/* Targets that run already: so that their first samples have all frames. */
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

/* So that the first samples of the command have all frames, too. */
static void expect_command(struct sb_session *session)
{
	struct sb_cmdfiles *files;
	size_t i;

	if (!session->opts.command || !session->unwinder)
		return;
	sb_unwinder_first(session->unwinder, session->opts.command_tgid);
	/* The vDSO is everybody's. */
	sb_unwinder_expect_file(session->unwinder, -1, session->opts.command_tgid);
	files = sb_cmdfiles_find(session->opts.command);
	for (i = 0; files && i < files->nr; i++)
		sb_unwinder_expect_file(session->unwinder, sb_take_fd(files->at[i].fd),
					session->opts.command_tgid);
	sb_cmdfiles_free(files);
}

static void settle_targets(struct sb_session *session)
{
	uint64_t until_ns = sb_now_ns() + (session->opts.command ? EXPECT_COMMAND_NS : EXPECT_NS);
	const struct timespec until = {
		.tv_sec = (time_t)(until_ns / SB_NS_PER_SEC),
		.tv_nsec = (long)(until_ns % SB_NS_PER_SEC),
	};

	if (session->unwinder)
		sb_unwinder_settle(session->unwinder, &until);
	if (session->interps)
		sb_interpwatch_settle(session->interps, &until);
}

static int make_unwinder(struct sb_session *session)
{
	int err;

	if (!(session->opts.unwind & SB_UNWIND_CFI))
		return 0;
	err = sb_unwinder_new(session->opts.unwind_bytes_max,
			      sb_parser_seat(session->opts.parser, SB_PARSER_TABLES),
			      &session->unwinder);
	return err ? sb_explain(err, "make the memory of unwind tables") : 0;
}

static int start_unwinder(struct sb_session *session)
{
	int err = session->unwinder ? sb_unwinder_start(session->unwinder, session->skel) : 0;

	return err ? sb_explain(err, "make unwind tables") : 0;
}

struct refused {
	char names[NR_WITHOUT_MAX][64];
	size_t nr;
};

/* Return: 0; -EAGAIN: once more, without what the kernel has refused now; or a negative errno, logged. */
static int try_programs(struct sb_session *session, struct refused *refused)
{
	const char *name, *lacks = NULL;
	size_t i;
	int err;

	session->skel = sb_view_open(session->opts.view);
	if (!session->skel)
		return sb_explain(-errno, "open the BPF object");
	err = prepare(session);
	if (err)
		return err;
	for (i = 0; i < refused->nr && !err; i++)
		err = sb_view_do_without(session->skel, refused->names[i]);
	if (err)
		return sb_explain(err, "do without a BPF program");
	err = sb_load(session->skel);
	if (!err)
		return 0;
	name = sb_load_refused(err);
	if (name && refused->nr < NR_WITHOUT_MAX)
		lacks = sb_view_lacks_without(name);
	if (!lacks)
		return sb_load_explain(err);
	sb_warn("the kernel refuses the BPF program '%s' (%s), so %s", name, strerror(-err), lacks);
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

static int load(struct sb_session *session)
{
	int err = make_unwinder(session);

	if (!err)
		err = load_programs(session);
	if (err)
		return err;
	err = sb_drain_new(session->skel, session->opts.counts_max, &session->drain);
	if (err)
		return sb_explain(err, "make the maps of counts");
	err = start_unwinder(session);
	if (!err)
		err = start_interps(session);
	if (err)
		return err;
	sb_procwatch_notify(session->procwatch, on_changed, session);
	expect_targets(session);
	expect_command(session);
	return sb_targets_apply(session->opts.targets, session->skel);
}

static int make_stats(struct sb_session *session)
{
	int nr_cpus = libbpf_num_possible_cpus();

	if (nr_cpus < 0)
		return nr_cpus;
	session->stats = calloc((size_t)nr_cpus * SB_STAT_MAX, sizeof(*session->stats));
	return session->stats ? 0 : -ENOMEM;
}

int sb_session_new(const struct sb_session_opts *opts, struct sb_session **ret_session)
{
	struct sb_session *session;
	int err = check_kernel();

	if (err)
		return err;
	session = calloc(1, sizeof(*session));
	if (!session)
		return sb_explain(-ENOMEM, "start");
	session->opts = *opts;
	session->hotplug_fd = -1;
	session->links_root = -1;
	if (!session->opts.event)
		session->opts.event = EVENT_DEFAULT;
	if (!session->opts.counts_max)
		session->opts.counts_max = COUNTS_MAX_DEFAULT;
	if (!session->opts.stacks_max)
		session->opts.stacks_max = STACKS_MAX_DEFAULT;
	err = make_stats(session);
	if (!err)
		err = choose_cpus(session);
	if (err)
		sb_err(err, "cannot read which CPUs there are");
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

static int attach_timer(struct sb_session *session, uint32_t cpu)
{
	struct bpf_link *link;
	int fd, err;

	fd = sb_perf_open_timer(session->opts.event, session->opts.freq_hz, (int)cpu);
	if (fd == -ENODEV)
		return fd;
	if (fd == -ENOENT || fd == -EOPNOTSUPP) {
		sb_err(0, "this machine has no event '%s'; use -e cpu-clock", session->opts.event);
		return -EOPNOTSUPP;
	}
	if (fd == -EINVAL) {
		sb_err(0,
		       "cannot sample '%s' %u times a second; see -e, -F and sysctl "
		       "kernel.perf_event_max_sample_rate",
		       session->opts.event, session->opts.freq_hz);
		return fd;
	}
	if (fd < 0)
		return sb_explain(fd, "open a timer");
	link = bpf_program__attach_perf_event(session->timer, fd);
	if (!link) {
		err = -errno;
		close(fd);
		return sb_explain(err, "attach to a timer");
	}
	/* The link owns fd from here on. */
	err = sb_vec_reserve(&session->timer_cpus, session->timers.nr + 1);
	if (err) {
		bpf_link__destroy(link);
		return err;
	}
	err = sb_view_keep_link(&session->timers, link);
	if (!err)
		session->timer_cpus.at[session->timer_cpus.nr++] = cpu;
	return err ? err : sb_thinning_add_timer(&session->thinning, fd, cpu);
}

static int attach_timers(struct sb_session *session)
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
			sb_err(0, "CPU %u is not online", session->cpus.at[i]);
		if (err)
			return err;
	}
	return 0;
}

/* Whether the session attaches the program to what its section names. */
static bool is_for_attach(const struct sb_session *session, const struct bpf_program *prog)
{
	const struct sb_view *view = session->opts.view;

	if (!bpf_program__autoload(prog) || prog == session->timer || prog == session->begin ||
	    prog == session->settle)
		return false;
	return !view->attaches || !view->attaches(session->skel, prog);
}

static int attach_others(struct sb_session *session)
{
	const struct sb_view *view = session->opts.view;
	struct bpf_program *prog;
	struct bpf_link *link;
	int err;

	bpf_object__for_each_program(prog, session->skel->obj) {
		if (!is_for_attach(session, prog))
			continue;
		link = bpf_program__attach(prog);
		/* Without it, mappings that replace others of their size are seen later. */
		if (!link && errno == ENOENT && prog == session->skel->progs.proc_mapped)
			continue;
		err = sb_view_keep_link(&session->links, link);
		if (err)
			return sb_err(err, "cannot attach '%s'", bpf_program__name(prog));
	}
	if (!view->attach)
		return 0;
	return view->attach(session->skel, &session->opts.view_opts, &session->links);
}

/*
 * A process that is here already may end, or fork a child that ends, before its first sample has
 * been looked at; then nothing would be known of it. Processes asked for by number are few, and are
 * seeded with their first sample.
 */
static int seed_existing(struct sb_session *session)
{
	const struct sb_targets *targets = session->opts.targets;
	int err;

	if ((targets->tgids.nr || targets->tids.nr) && !targets->follow_children)
		return 0;
	err = sb_symbolizer_seed_all(session->opts.symbolizer, sb_now_ns());
	return err ? sb_err(err, "cannot look at the processes there are") : 0;
}

static void find_programs(struct sb_session *session)
{
	const struct sb_view *view = session->opts.view;

	session->timer = view->timer ? view->timer(session->skel) : NULL;
	session->begin = view->begin ? view->begin(session->skel) : NULL;
	session->settle = view->settle ? view->settle(session->skel) : NULL;
}

static void how_to_unwind(const struct sb_session *session, struct sb_rawstacks_into *ret_into)
{
	*ret_into = (struct sb_rawstacks_into){
		.modes = session->opts.unwind,
		.depth_max = session->opts.depth_max,
		.interp = session->opts.interp,
		.add = sb_drain_add,
		.arg = session->drain,
	};
}

/* There are more threads asleep than memory for their stacks up to the next drain. */
static int unwind_asleep(void *arg)
{
	struct sb_session *session = arg;
	struct sb_symbolizer *sym = session->opts.symbolizer;
	struct sb_rawstacks_into into;
	int err = sb_procwatch_drain(session->procwatch, sym);

	how_to_unwind(session, &into);
	into.add = sb_drain_add_early;
	if (!err)
		err = sb_rawstacks_unwind(&session->asleep.raw, sym, &into);
	sb_rawstacks_clear(&session->asleep.raw);
	return err;
}

/* Once more over all tasks, by one of the view's iterators. */
static int iterate(struct sb_session *session, const struct bpf_program *prog,
		   void (*found)(void *arg))
{
	int err = prog ? sb_asleep_run(&session->asleep, prog, found) : 0;

	return err ? sb_explain(err, "go through the threads there are") : 0;
}

static int sum_stats(const struct sb_session *session, uint64_t *stat)
{
	int nr_cpus = libbpf_num_possible_cpus(), cpu, i;
	const uint64_t *vals = session->stats;
	const uint32_t zero = 0;

	if (bpf_map_lookup_elem(bpf_map__fd(session->skel->maps.stats), &zero, session->stats))
		return -errno;
	for (cpu = 0; cpu < nr_cpus; cpu++)
		for (i = 0; i < SB_STAT_MAX; i++)
			stat[i] += vals[cpu * SB_STAT_MAX + i];
	return 0;
}

static uint64_t bpf_ns(const struct sb_session *session)
{
	uint64_t stat[SB_STAT_MAX] = {};

	(void)sum_stats(session, stat); /* what cannot be read is said at the end */
	return stat[SB_STAT_RUN_NS];
}

static void begin_now(void *arg)
{
	struct sb_session *session = arg;

	session->began_ns = sb_now_ns();
	session->skel->bss->begin_ns = session->began_ns;
}

int sb_session_start(struct sb_session *session)
{
	int err;

	session->asleep.unwind = unwind_asleep;
	session->asleep.arg = session;
	find_programs(session);
	session->skel->bss->begin_ns = session->begin ? UINT64_MAX : 0;
	err = attach_others(session);
	if (err)
		return err;
	if (session->links.nr > 1)
		session->links_root = sb_links_prepare();
	err = sb_targets_follow_existing(session->opts.targets, session->skel);
	if (err)
		return sb_err(err, "cannot list the children of the targets");
	settle_targets(session);
	/* Samples of a timer come at once; waits count when the iterator is through. */
	if (session->begin)
		err = seed_existing(session);
	if (!err)
		err = attach_timers(session);
	if (err)
		return err;
	if (session->begin) {
		err = iterate(session, session->begin, begin_now);
	} else {
		session->began_ns = sb_now_ns();
		err = seed_existing(session);
	}
	sb_thinning_start(&session->thinning, bpf_ns(session));
	return err;
}

uint64_t sb_session_began_ns(const struct sb_session *session)
{
	return session->began_ns;
}

void sb_session_end_at(struct sb_session *session, uint64_t end_ns)
{
	session->skel->bss->end_ns = end_ns;
}

int sb_session_follow(struct sb_session *session, uint32_t tgid, bool children)
{
	return sb_targets_add(session->skel, tgid, SB_RULE_ALLOW | (children ? SB_RULE_FOLLOW : 0));
}

int sb_session_poll_fd(const struct sb_session *session)
{
	return sb_drain_poll_fd(session->drain);
}

int sb_session_drain(struct sb_session *session, const struct sb_batch **ret_batch)
{
	struct sb_symbolizer *sym = session->opts.symbolizer;
	struct sb_rawstacks_into into;
	size_t i;
	int err;

	how_to_unwind(session, &into);
	session->new_tgids.nr = 0;
	err = sb_drain_run(session->drain, &session->new_tgids);
	if (err)
		return err;
	err = sb_procwatch_drain(session->procwatch, sym);
	if (err)
		return err;
	for (i = 0; i < session->new_tgids.nr; i++) {
		err = sb_symbolizer_seed(sym, sb_now_ns(), session->new_tgids.at[i]);
		if (err == -ENOMEM)
			return err;
		/* Gone or closed to us: its frames will say so. */
	}
	err = sb_rawstacks_unwind(sb_drain_raw(session->drain), sym, &into);
	if (!err)
		err = sb_rawstacks_unwind(&session->asleep.raw, sym, &into);
	if (!err && session->interps)
		err = sb_interpwatch_drain(session->interps, sb_drain_add, session->drain);
	if (err)
		return err;
	sb_rawstacks_clear(&session->asleep.raw);
	sb_drain_batch(session->drain, &session->batch);
	if (session->interps)
		session->batch.nr_labels =
			sb_interpwatch_take_labels(session->interps, &session->batch.labels);
	*ret_batch = &session->batch;
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

/* The @i-th of those that were online. Its events are dead. */
static void drop_cpu(struct sb_session *session, size_t i)
{
	uint32_t cpu = session->online_cpus.at[i];
	size_t t = find_cpu(&session->timer_cpus, cpu);

	sb_procwatch_drop_cpu(session->procwatch, cpu);
	if (t < session->timer_cpus.nr) {
		sb_thinning_forget_timer(&session->thinning, cpu);
		bpf_link__destroy(session->timers.at[t]);
		session->timers.at[t] = session->timers.at[--session->timers.nr];
		remove_cpu(&session->timer_cpus, t);
	}
	remove_cpu(&session->online_cpus, i);
	session->nr_cpus_went++;
}

/* What fails now would fail at each look. Return: 0; -ENODEV: it is offline again; others. */
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

/* @gone: were offline since the last look, for a moment at least; @is_any: all may have been. */
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
		session->nr_cpus_refused += err != 0;
	}
}

int sb_session_hotplug(struct sb_session *session)
{
	sb_vec_u32 online = {}, gone = {};
	int err = 0, read_err;

	if (session->hotplug_fd >= 0)
		err = sb_hotplug_read(session->hotplug_fd, &gone);
	/* In this order: whatever went offline before it is in the list again has been told of. */
	read_err = sb_cpus_online(&online);
	if (!read_err) {
		drop_cpus(session, &online, &gone, err != 0);
		add_cpus(session, &online);
	}
	sb_vec_release(&online);
	sb_vec_release(&gone);
	return read_err ? sb_err(read_err, "cannot read which CPUs are online") : 0;
}

int sb_session_settle(struct sb_session *session)
{
	return iterate(session, session->settle, NULL);
}

int sb_session_unwant(struct sb_session *session, uint64_t object)
{
	const uint32_t unwanted = SB_OBJECT_UNWANTED;

	if (bpf_map_update_elem(bpf_map__fd(session->skel->maps.objects_seen), &object, &unwanted,
				BPF_ANY))
		return -errno;
	return 0;
}

void sb_session_forget_labels(struct sb_session *session, const uint64_t *ids, size_t nr)
{
	int fd = bpf_map__fd(session->skel->maps.labels_seen);
	size_t i;

	for (i = 0; i < nr; i++)
		bpf_map_delete_elem(fd, &ids[i]);
}

void sb_session_forget_stacks(struct sb_session *session, const struct sb_stack_id *ids, size_t nr)
{
	int fd = bpf_map__fd(session->skel->maps.stacks_seen);
	size_t i;

	/* What is not there any more need not be deleted. */
	for (i = 0; i < nr; i++)
		bpf_map_delete_elem(fd, &ids[i]);
}

static void detach(struct sb_session *session)
{
	size_t i;

	sb_thinning_forget_timers(&session->thinning);
	for (i = 0; i < session->timers.nr; i++)
		bpf_link__destroy(session->timers.at[i]);
	session->timers.nr = session->timer_cpus.nr = 0;
	sb_links_release(&session->links, session->links_root);
}

int sb_session_stop(struct sb_session *session)
{
	int err;

	if (!session->skel->bss->end_ns)
		session->skel->bss->end_ns = sb_now_ns();
	err = sb_session_settle(session);
	detach(session);
	return err;
}

void sb_session_free(struct sb_session *session)
{
	if (!session)
		return;
	detach(session);
	sb_closep(&session->links_root);
	sb_asleep_release(&session->asleep);
	sb_vec_release(&session->timers);
	sb_thinning_release(&session->thinning);
	sb_vec_release(&session->links);
	sb_procwatch_free(session->procwatch);
	sb_interpwatch_free(session->interps);
	sb_unwinder_free(session->unwinder);
	sb_drain_free(session->drain);
	sampler_bpf__destroy(session->skel);
	sb_vec_release(&session->cpus);
	sb_vec_release(&session->timer_cpus);
	sb_vec_release(&session->online_cpus);
	if (session->hotplug_fd >= 0)
		close(session->hotplug_fd);
	sb_vec_release(&session->new_tgids);
	free(session->stats);
	free(session);
}

void sb_session_govern(struct sb_session *session, uint64_t weight, uint64_t nr_samples)
{
	sb_thinning_tick(&session->thinning, bpf_ns(session), nr_samples ? weight / nr_samples : 0);
}

static uint64_t recursion_misses(const struct sb_session *session)
{
	const struct sb_view *view = session->opts.view;
	struct bpf_program *prog;
	uint64_t nr = 0;

	bpf_object__for_each_program(prog, session->skel->obj) {
		struct bpf_prog_info info = {};
		uint32_t len = sizeof(info);

		if (view->nests && view->nests(session->skel, prog))
			continue;
		if (bpf_program__autoload(prog) &&
		    !bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &len))
			nr += info.recursion_misses;
	}
	return nr;
}

void sb_session_stats(const struct sb_session *session, struct sb_session_stats *ret_stats)
{
	struct sb_procwatch_stats watch;

	*ret_stats = (struct sb_session_stats){
		.nr_skipped_recursion = recursion_misses(session),
		.first_sample_ns = session->skel->bss->first_sample_ns,
		.nr_cpus = (uint32_t)session->cpus.nr,
		.freq_hz = session->opts.freq_hz,
		.nr_cpus_went = session->nr_cpus_went,
		.nr_cpus_came = session->nr_cpus_came,
		.nr_cpus_refused = session->nr_cpus_refused,
	};
	ret_stats->err = sum_stats(session, ret_stats->stat);
	ret_stats->nr_asleep = session->asleep.nr;
	ret_stats->nr_asleep_lost = session->asleep.nr_lost;
	if (session->opts.view->expected)
		ret_stats->expected = session->opts.view->expected(session->skel);
	sb_procwatch_stats(session->procwatch, &watch);
	if (session->unwinder)
		sb_unwinder_stats(session->unwinder, &ret_stats->unwinder);
	if (session->interps)
		sb_interpwatch_stats(session->interps, &ret_stats->interps);
	sb_thinning_stats(&session->thinning, &ret_stats->thinning);
	ret_stats->nr_sideband_records = watch.nr_records;
	ret_stats->nr_sideband_lost = watch.nr_lost;
	ret_stats->nr_no_fd = watch.nr_no_fd;
}

void sb_session_report(const struct sb_session *session,
		       void (*row)(const char *name, const char *value))
{
	if (session->opts.view->report)
		session->opts.view->report(session->skel, row);
}
