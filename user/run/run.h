/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A run: from a configuration to samples in a profile. It forks the processes that read and parse,
 * and the command; it drops privileges, attaches the BPF programs, and runs an event loop. In the
 * loop it drains the session and lets the resolver put the samples into the profile, from where a
 * sink takes them.
 *
 * Nothing here talks to the user. A run that failed has a reason; what a run is worth is in its
 * figures. All functions are called on the thread that called sb_run_go(), unless something else is
 * said. Pointers are not NULL unless it says so.
 *
 * Order: sb_run_config_init() and the caller's settings, sb_run_init(), sb_run_go(),
 * sb_run_wait_command() if run->child is set, sb_run_release(), sb_run_config_release(). Figures
 * and CPU times (sb_run_shown() and what follows, sb_run_has_samples()) may be asked for once the
 * run has begun to sample, which is when run->start_ns is not 0, until sb_run_release(); sinks ask
 * from begin() on.
 */
#ifndef SB_RUN_RUN_H
#define SB_RUN_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fs.h"
#include "base/num.h"
#include "base/reason.h"
#include "base/vec.h"
#include "bpf/abi/sb_abi_label.h"
#include "capture/session.h"
#include "events/allocator.h"
#include "events/probe.h"
#include "model/profile.h"
#include "process/process.h"
#include "resolve/resolve.h"
#include "symbolizer/process/reader.h"
#include "symbolizer/sb_sym.h"
#include "symbolizer/unwind/parser.h"
#include "views/view.h"

#define SB_OVERHEAD_MAX_PPM_DEFAULT 10000u

struct sb_child;
struct sb_interp;
struct sb_run;

/* What to do. sb_run_config_init() sets the defaults. Strings and arrays are borrowed while the run
 * lasts. */
struct sb_run_config {
	struct sb_views
		views; /* several only if the sink has series(), or with view_opts.fallback */
	struct sb_view_opts view_opts;
	struct sb_targets targets; /* with a command, a rule for it is added */
	bool all;		   /* every process, whatever `targets` has */
	char **command;		   /* to run and to sample, NULL-terminated; NULL: none */
	uint64_t time_ns;	   /* duration; 0: until it is stopped */
	uint32_t freq_hz;	   /* of the timer; 0: its counter has a period */
	bool is_freq_asked;	   /* by the user: it is lowered only for its cost in BPF */
	sb_vec_u32 cpus;	   /* empty: all */
	uint32_t sides;		   /* SB_SIDE_* */
	uint32_t depth_max;	   /* frames of a user stack; 0: SB_USTACK_DEPTH_MAX */
	uint32_t unwind;	   /* SB_UNWIND_* */
	uint64_t unwind_bytes;	   /* 0: the session's default */
	struct sb_root_list {
		enum sb_attr_kind at[SB_ROOTS_MAX];
		size_t nr;
	} roots;			   /* root first; empty: the resolver's default */
	const char *labels[SB_LABELS_MAX]; /* keys of the labels to read from threads */
	size_t nr_labels;
	/* Add a frame "-" between the user and the kernel part; tell frames of one function apart
	 * by line; give frames the names of their modules; tell them apart by offset. */
	bool delimited, lines, modules, offsets;
	/* No frames of inlined functions, so debug data is not read for them; fetch debug data that
	 * is not on this machine. */
	bool no_inlines, debuginfod;
	uint32_t demangle;	     /* enum sb_sym_demangle */
	uint32_t idle, file, interp; /* enum sb_idle_mode, sb_file_text, sb_interp_mode */
	uint64_t symbol_cache_bytes; /* 0: the symbolizer's default */
	uint64_t symbol_bytes_max;   /* limit while files are read; 0: by the machine's memory */
	uint32_t overhead_max_ppm;   /* as a part of all CPUs; 0: no limit */
};
/* Zero @config, and set the defaults that are not 0: unwind tables with frame pointers, and
 * SB_OVERHEAD_MAX_PPM_DEFAULT. The caller has yet to set `views`, `freq_hz` (unless
 * view_opts.counter has a period), and `sides` (0: no stacks are taken). */
void sb_run_config_init(struct sb_run_config *config);
/* Free the arrays of @config, not what its pointers borrow; also of a zeroed one. After the runs
 * that borrow it were released. */
void sb_run_config_release(struct sb_run_config *config);

/* How a run ended. The numbers are exit statuses of the command line (cli/exit.h) and of
 * samplers. */
enum sb_run_status {
	SB_RUN_OK = 0,
	SB_RUN_FAILED = 1,	 /* this and all that follow, but SB_RUN_EMPTY, have a reason */
	SB_RUN_WRONG = 2,	 /* the configuration asks for something that does not exist */
	SB_RUN_EMPTY = 3,	 /* nothing was sampled */
	SB_RUN_NO_PRIVILEGE = 4, /* a privilege or a feature of the kernel is missing */
	SB_RUN_NO_TARGET = 5,	 /* a process, thread or cgroup does not exist */
	SB_RUN_NO_EXEC = 126,	 /* the command cannot be executed */
	SB_RUN_NO_COMMAND = 127, /* the command does not exist */
};

/* Why sampling ended. */
enum sb_run_end {
	SB_END_NOT_YET,
	SB_END_TIME,
	SB_END_SIGNAL,
	SB_END_COMMAND,
	SB_END_TARGETS,
	SB_END_ORDERED, /* by the sink */
};

/*
 * Who takes the samples. Only take() is needed; zero what is not used. Functions run on the thread
 * of the run. They return 0, or a negative errno that ends the run, after they have set run->reason
 * or told the user why. To end the run without an error, they set run->end.
 */
struct sb_run_sink {
	uint64_t
		period_ns; /* of take(); 0: only at the end and when the sink calls sb_run_take() */
	/* Called with all privileges, before the run forks, makes threads or drops privileges.
	 * NULL: nothing to do. */
	int (*prepare)(struct sb_run_sink *sink, struct sb_run *run);
	/* Called when all is attached and privileges are dropped. NULL: nothing to do. */
	int (*begin)(struct sb_run_sink *sink, struct sb_run *run);
	/*
	 * Called every period_ns, on SIGUSR1, and after the end (then run->end_ns is set).
	 * run->profile has the samples since the last call, with waits accounted up to now, and
	 * weights in the BPF side's unit. It may be scaled, sealed and read during the call, and is
	 * cleared after it.
	 */
	int (*take)(struct sb_run_sink *sink, struct sb_run *run);
	/* The profile is not cleared but has the samples of the whole run; only the last take may
	 * modify it. */
	bool keeps_all;
	/* take() writes files during the run, and signals must be able to interrupt that. */
	bool is_slow;
	/* A descriptor that the loop polls; on_readable() is called when it is readable. NULL:
	 * there is none. */
	int fd;
	int (*on_readable)(struct sb_run_sink *sink, struct sb_run *run);
	/* Called about once a second, after a drain; if is_lasting, also while one goes on: then it
	 * must not use run->profile, and may ask the resolver for figures only. NULL: nothing to
	 * do. */
	void (*tick)(struct sb_run_sink *sink, struct sb_run *run);
	/* Called on a further signal after the one that ended the run: undo what is half done, and
	 * exit. Must be async-signal-safe. */
	void (*give_up)(int sig);
	/* Assigns samples to series in place of root frames. @labels: the values of config->labels,
	 * NULL where the thread has none. Return: 0 or -ENOMEM. NULL: root frames. */
	int (*series)(void *arg, const struct sb_sample_key *key, const char *const *labels,
		      uint32_t *ret_series);
	void *series_arg;
	uint32_t by;	   /* SB_BY_*: the fields of sb_sample_key that series() reads */
	uint32_t memo_max; /* frames in the symbolizer's cache of addresses; 0: 131,072 */
	/* The run has an owner process, which ends it; signals are not handled. */
	bool has_owner;
	bool has_terminal; /* the sink draws on a terminal */
	bool writes_files; /* the sink opens files after privileges are dropped */
	/* A process that the sink forked in prepare() writes the files. */
	bool has_file_writer;
	bool is_lasting; /* a long run: less memory, without room for the burst of its start */
};

/* A process or thread that is sampled and may end. */
struct sb_run_target {
	uint32_t id;
	int fd; /* pidfd, readable when it has ended; -1: closed after that */
};

/* The state of a run. Sinks and reports read it; they may set `end` and `reason` only. */
struct sb_run {
	struct sb_run_config *config; /* borrowed */
	struct sb_run_sink *sink;     /* borrowed */
	struct sb_run_unit {
		const char *name; /* unit of the weights as they are shown */
		uint64_t divisor; /* BPF weight / divisor = weight in the unit */
	} units[SB_VIEWS_MAX];
	SB_VEC(struct sb_run_target) targets; /* the tasks that config->targets allows by number */
	size_t nr_live_targets;		      /* of these, those that have not ended */

	struct sb_child *child;	  /* the command; NULL: none */
	struct sb_parser *parser; /* NULL: the run needs none */
	struct sb_symbolizer *sym;
	struct sb_profile *profile;
	struct sb_processes *processes;
	struct sb_interp *interp; /* NULL: no frames of interpreters */
	struct sb_resolver *resolver;
	struct sb_session *session;

	int epoll_fd, signal_fd, time_fd, tick_fd, sink_fd;
	enum sb_run_end end;
	int end_signal;
	enum sb_run_status command_status; /* SB_RUN_OK unless the command cannot run */
	struct sb_reason reason;	   /* of a failure; the caller tells the user */
	/* If -p names a thread that is not the main one: its ID, and that of its process. Otherwise
	 * 0. */
	uint32_t tid, tid_process;
	uint64_t entry_ns;	   /* when sb_run_init() was called; all times CLOCK_MONOTONIC */
	uint64_t start_ns, end_ns; /* of sampling; 0: not yet */
	uint64_t drained_ns;	   /* when the last drain began */
	uint64_t ticked_ns;	   /* of the last sb_run_tick(); at first start_ns */
	uint64_t stop_ns;	   /* end_ns, or later if the loop was busy when the time was up */
	uint64_t own_start_ns, own_end_ns; /* sb_run_own_ns() at start_ns and stop_ns */
	/* The same a second after the start, when the run has started up; 0: it ended before
	 * that. */
	uint64_t warm_ns, own_warm_ns;
};

/* Set up malloc() so that a process that runs for months does not keep much freed memory: for
 * processes that make no run themselves, at their start, before threads begin. It holds for the
 * whole process, and for those it forks. Again is harmless. */
void sb_run_save_memory(void);
/* Initialise a run, and call sb_run_save_memory(). @run is overwritten, and may not be moved until
 * sb_run_release(). */
void sb_run_init(struct sb_run *run);

/**
 * sb_run_go() - sample, from preparation to the last take
 * @run: initialised; goes once
 * @config: what to do; borrowed until sb_run_release(); with a command, its rule is appended to
 *	`targets`, so each run with a command needs a config of its own
 * @sink: who takes the samples; borrowed as long
 *
 * Drops privileges of the process for good, and takes over SIGINT, SIGTERM, SIGHUP and SIGUSR1
 * unless the sink has an owner; SIGHUP not if it is ignored. The profile and the figures can be
 * read until sb_run_release(). A command that was started may still run: sb_run_wait_command().
 *
 * Thread: the main thread, while there is no other one.
 * Return: how it ended. If it failed, run->reason says why, unless the sink has told the user
 * itself; the run can only be read and released then.
 */
enum sb_run_status sb_run_go(struct sb_run *run, struct sb_run_config *config,
			     struct sb_run_sink *sink);
/* Free all that the run has, also after sb_run_init() only or a failed sb_run_go(); stops what
 * still runs, but not the command. Not @config and @sink. Call it once; sb_run_init() makes another
 * run. */
void sb_run_release(struct sb_run *run);

/* Return: whether there is a command and it was executed; false, too, if that is not known because
 * its file system did not answer. */
bool sb_run_has_command_run(const struct sb_run *run);
/* Return: whether the command was executed and has not ended. */
bool sb_run_is_command_alive(const struct sb_run *run);
/*
 * After sb_run_go(), and only if run->child is set: wait until the command ends. SIGINT or SIGTERM
 * ends the waiting if SIGINT, SIGTERM or SIGHUP came before, during the run or the waiting; SIGHUP
 * never ends it. Return: the status of the command as a shell gives it, with *ret_signal 0; or 0,
 * with *ret_signal the signal that ended the waiting. If the command was not executed, it does not
 * wait, and *ret_signal is the signal that ended the run, or SIGKILL.
 */
int sb_run_wait_command(struct sb_run *run, int *ret_signal);

/* Return: which user the process becomes while it samples; uid 0: it stays root. May be called
 * before the run. */
struct sb_owner sb_run_identity(const struct sb_run_config *config);

/* Return: whether any rule of @targets allows tasks (SB_RULE_ALLOW). Any thread. */
bool sb_run_has_allow_rule(const struct sb_targets *targets);

/* In events.c. Return: the only process that is asked for by its ID; 0: there is none, or there are
 * several. */
uint32_t sb_run_tgid(const struct sb_run_config *config);

/* What events mean; view options borrow it. Zero-initialize; sb_run_probes_release() frees it. */
struct sb_run_probes {
	struct sb_probes events;    /* places at which samples are taken */
	struct sb_probes in, until; /* at which spans begin and end */
};
void sb_run_probes_release(struct sb_run_probes *probes);

/* Free @probes and begin it anew for the targets of @config: its members `tgid` and
 * `is_of_tgid_only` are set. */
void sb_run_renew_probes(const struct sb_run_config *config, struct sb_probes *probes);

/* Find the places of events for the view @kind, in probes->events, whose earlier contents are
 * freed. *view_opts borrows them until they are released, also after an error. Without stacks
 * (config->sides is 0) names tell the functions of a pattern apart. Return: 0; a negative errno
 * with @reason. */
int sb_run_find_events(const struct sb_run_config *config, const struct sb_view_kind *kind,
		       const struct sb_event_request *request, struct sb_run_probes *probes,
		       struct sb_view_opts *view_opts, struct sb_reason *reason);

/* A view of allocations, and where to look for them. */
struct sb_run_alloc_ask {
	const struct sb_view_kind *kind;
	const char *const
		*allocators; /* files in which to look, in place of those of the targets */
	size_t nr_allocators;
	bool is_recorded; /* continuously: only programs that sample by themselves are taken */
};

/* Why allocators that were found, or not found, are not probed. */
enum sb_run_alloc_refusal {
	SB_ALLOCS_ALLOWED,
	SB_ALLOCS_HELD,		  /* recorded: what is held is known at the end of a run only */
	SB_ALLOCS_NO_PRODUCER,	  /* recorded: no program samples its allocations */
	SB_ALLOCS_COSTLY,	  /* each call would be traced, under a limit of the overhead */
	SB_ALLOCS_OBJECTS_COSTLY, /* the same, and pages cannot replace it: is_of_objects */
	SB_ALLOCS_NO_OBJECTS,	  /* no allocator was found, and pages cannot replace it */
	SB_ALLOCS_STRIPPED_GO,	  /* found.stripped_go is all that was found */
	SB_ALLOCS_REFUSAL_MAX,
};

/* How allocations are sampled. */
struct sb_run_allocs {
	struct sb_alloc_found found;
	enum sb_run_alloc_refusal refusal;
	enum sb_run_alloc_way {
		SB_ALLOCS_BY_CALLS,
		SB_ALLOCS_BY_CALLS_FIRST, /* until they cost too much; then pages */
		SB_ALLOCS_BY_PAGES,
	} way;
	bool is_shared;	    /* other programs than the targets come to the probes, too */
	bool may_be_sliced; /* BY_CALLS_FIRST: slices of time are tried before pages */
};

/*
 * Find the places at which the targets allocate, in probes->events, whose earlier contents are
 * freed, and which *view_opts borrows, also after an error. If no allocator is found, or it costs
 * too much to follow its calls on the whole machine, the view of the run becomes its
 * sb_view.by_pages, if it has one. If it may cost too much for some processes, by_pages is added as
 * a second view, and view_opts->fallback says when calls are given up. Other members of *view_opts
 * that depend on what was found are set, too.
 * Return: 0; -EINVAL with ret_allocs->refusal and without @reason; another negative errno, also
 * -EINVAL, with @reason and without a refusal. *ret_allocs is overwritten, also on error.
 */
int sb_run_find_allocs(struct sb_run_config *config, const struct sb_run_alloc_ask *asked,
		       struct sb_run_probes *probes, struct sb_view_opts *view_opts,
		       struct sb_run_allocs *ret_allocs, struct sb_reason *reason);

/* Return: whether the @len bytes at @s can be the key of a label or of a tag: 1 to 64 letters,
 * digits, '_', '.', '-' and '/', the first a letter or '_'. Any thread. */
bool sb_run_is_key(const char *s, size_t len);
/*
 * Find the label that @in, the argument of --in, names as "label:KEY". @until: the argument of
 * --until, or NULL.
 * Return: 0, and *ret_key is KEY, which is a part of @in, or NULL if @in names an event; -EINVAL
 * with @reason if KEY is no valid key, or if @in names a label and @until is not NULL: *ret_key is
 * NULL.
 */
int sb_run_span_label(const char *in, const char *until, const char **ret_key,
		      struct sb_reason *reason);
/*
 * Find the spans that @in and @until name. If @in names a label ("label:KEY"), only
 * view_opts->in_label is set: it points to KEY in @in. Otherwise it is set to NULL; the places
 * where spans begin are written to probes->in and those where they end to probes->until, whose
 * earlier contents are freed first, and view_opts->in and view_opts->until point to them. If
 * @until is NULL, spans end where the preset @in says; if @in is no preset, or one without an end,
 * spans are calls of a function, and view_opts->until is NULL.
 * Return: 0; a negative errno with @reason: `in` and `until` may be set then, but are not to be
 * used.
 */
int sb_run_find_spans(const struct sb_run_config *config, const char *in, const char *until,
		      struct sb_run_probes *probes, struct sb_view_opts *view_opts,
		      struct sb_reason *reason);

/*
 * For sinks, in on_readable(): drain, call take() with what was sampled since the last time, and
 * clear run->profile, which stays the run's, unless the sink keeps all. struct sb_run_sink says
 * what take() may do with it.
 * Return: 0; or a negative errno, which the sink returns and which ends the run: the user was told,
 * or run->reason is set, and the profile was not cleared.
 */
int sb_run_take(struct sb_run *run);
/*
 * For sinks, at the end of take(): if run->profile has more frames or text than a long run may
 * keep, free it, continue in a new one, and set *ret_is_new; otherwise that is untouched. Frame IDs
 * of the old profile are not valid any more. Return: 0; -ENOMEM or -E2BIG, and the run cannot go
 * on: take() returns it, after it has set run->reason, which is not done here.
 */
int sb_run_renew_profile(struct sb_run *run, bool *ret_is_new);
/* For sinks: make a result of @profile, which is run->profile or a copy: scale its weights to
 * run->units, add what is missing of the expected weight, seal it, and set its metadata. Return: 0;
 * -ENOMEM or another negative errno, and the profile can only be freed. */
int sb_run_complete_profile(const struct sb_run *run, struct sb_profile *profile);
#define SB_RUN_WEIGHT_BYTES 24
/* Set @text to a weight of the BPF side in @unit: "4000"; less than 1 with three digits: "0.512".
 * Return: @text, for use in an argument. */
const char *sb_run_weight_text(const struct sb_run_unit *unit, uint64_t weight,
			       char text[SB_RUN_WEIGHT_BYTES]);
/* Return: when sampling ended; if it has not been stopped yet, the earlier of @now_ns and the time
 * at which the kernel ends it, config->time_ns. CLOCK_MONOTONIC. */
uint64_t sb_run_end_ns(const struct sb_run *run, uint64_t now_ns);
/* Return: whether any view has had samples for the profile so far. Those that were not drained yet,
 * or were left out, do not count. */
bool sb_run_has_samples(const struct sb_run *run);

/* Return: the CPU time of this process and of its parser and reader processes, in ns, since they
 * began; 0 if it cannot be read. */
uint64_t sb_run_own_ns(const struct sb_run *run);

/* Figures of the run, and of the samples of one view. */
struct sb_run_figures {
	uint32_t view; /* its index in config->views */
	struct sb_session_stats session;
	struct sb_resolve_stats resolve;
	struct sb_sym_stats symbolizer;
	struct sb_parser_stats parser;
	struct sb_reader_stats readers;
	struct sb_processes_stats processes;
	uint64_t nr_samples, nr_lost, nr_cut;
	uint64_t nr_frames, nr_unnamed; /* native ones and those of interpreters */
	uint64_t wall_ns;		/* from the start of sampling to its end, or up to now */
};
/* Return: the index in config->views of the view whose samples are in the profile: 0, unless the
 * sink has series() or the run has changed over to its fallback (sb_session_shown()). */
uint32_t sb_run_shown(const struct sb_run *run);
/* Get the figures up to now, or to the end of the run. @view: its index in config->views, which is
 * not checked. @ret_figures: overwritten; a copy, which needs no release. If the kernel's counters
 * could not be read, ret_figures->session.err is the negative errno. */
void sb_run_figures(const struct sb_run *run, uint32_t view, struct sb_run_figures *ret_figures);
/* Return: how much of the expected weight is accounted for, in percent, which can be slightly above
 * 100; 0 when none is expected. */
double sb_run_accounted(const struct sb_run_figures *figures);

#endif
