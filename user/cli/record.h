/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between the stages of a recording command; cmd_record.c has their order. */
#ifndef SB_CLI_RECORD_H
#define SB_CLI_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "base/vec.h"
#include "base/writer.h"
#include "capture/child.h"
#include "capture/session.h"
#include "cli/record_opts.h"
#include "interp/interp.h"
#include "model/profile.h"
#include "output/output.h"
#include "parser.h"
#include "reader.h"
#include "resolve/resolve.h"
#include "sb_sym.h"
#include "views/view.h"

/* Why the sampling came to its end. */
enum sb_run_end {
	SB_END_NOT_YET,
	SB_END_TIME,
	SB_END_SIGNAL,
	SB_END_COMMAND,
	SB_END_TARGETS,
	SB_END_ORDERED, /* by the sink */
};

/* A thing that is sampled and that can end. */
struct sb_run_target {
	uint32_t id;
	int fd; /* readable when it has ended; -1: it has */
};

struct sb_run_output {
	const char *path; /* "-": stdout */
	const struct sb_output *format;
	size_t writer_i; /* its number for run->writer */
	bool is_by_writer;
};

struct sb_run;

/*
 * Who takes what was sampled while the run goes on, in the place of outputs that are written at its end.
 * Functions return 0 or a negative errno, logged, which ends the run.
 */
struct sb_run_sink {
	uint64_t period_ns; /* 0: it calls sb_run_take() itself */
	/*
	 * Every period_ns, on SIGUSR1, and after the end (run->end_ns is set then): run->profile has what was
	 * sampled since the last call, waits that are not over up to now included; weights as the BPF side
	 * has them. It can be scaled, sealed and read during the call, and is cleared after it.
	 */
	int (*take)(struct sb_run_sink *sink, struct sb_run *run);
	/* What the loop waits for, too; NULL: nothing. */
	int fd;
	int (*on_readable)(struct sb_run_sink *sink, struct sb_run *run);
	/* When all is attached and privileges are laid down; NULL: nothing. */
	int (*begin)(struct sb_run_sink *sink, struct sb_run *run);
	/* About once a second, when what was sampled has been taken from the kernel; NULL: nothing. */
	void (*tick)(struct sb_run_sink *sink);
	/* Samples are kept apart by what it says and not by roots: struct sb_resolve_opts; NULL: by roots. */
	int (*series)(void *arg, const struct sb_sample_key *key, const char *const *labels,
		      uint32_t *ret_series);
	void *series_arg;
	uint32_t by;	   /* SB_BY_*: what keys are split by for that */
	uint32_t memo_max; /* struct sb_symbolizer_opts */
	/* Of a process whose owner says when to end: signals are none of its business. */
	bool has_owner;
	bool has_terminal; /* it draws on one */
	bool is_lasting;   /* struct sb_session_opts */
	bool has_report;   /* what it writes says what it is worth: no closing report */
};

struct sb_run {
	struct sb_views views; /* more than one only for a sink; none: that of opts.kind */
	struct sb_run_unit {
		const char *name; /* of the weights as they are shown */
		uint64_t divisor; /* of those of the BPF side to these */
	} units[SB_VIEWS_MAX];
	struct sb_run_sink *sink; /* borrowed; NULL: a result at the end */
	struct sb_record_opts opts;
	SB_VEC(struct sb_run_output) outputs;
	SB_VEC(struct sb_run_target) targets; /* of -p and -L */
	size_t nr_live_targets;

	struct sb_child *child;
	struct sb_writer *writer; /* NULL: files are made by ourselves */
	struct sb_parser *parser; /* NULL: nothing is parsed that needs one */
	struct sb_symbolizer *sym;
	struct sb_profile *profile;
	struct sb_interp *interp; /* NULL: no frames of interpreters */
	struct sb_resolver *resolver;
	struct sb_session *session;

	int epoll_fd, signal_fd, time_fd, tick_fd, sink_fd;
	enum sb_run_end end;
	bool has_written; /* all outputs, at the end */
	int end_signal;
	bool has_progress;		   /* a line of it stands on the terminal */
	uint64_t entry_ns;		   /* when we were called */
	uint64_t start_ns, end_ns;	   /* of sampling */
	uint64_t drained_ns;		   /* when the last drain began */
	uint64_t own_start_ns, own_end_ns; /* CPU time of ours at these */
	/* The same when the run had started up, a second after the begin of sampling; 0: it ended before. */
	uint64_t warm_ns, own_warm_ns;
};

/* A run of nothing yet, with the defaults of its options. */
void sb_run_init(struct sb_run *run);
/* Parse @argv into run->opts. Return: -1 to go on, or the exit status. */
int sb_run_parse(struct sb_run *run, const struct sb_command *command, char **argv);
/* All stages of a run of run->views. Return: the exit status, which is that of a command it ran. */
int sb_run_go(struct sb_run *run);
void sb_run_release(struct sb_run *run);

/*
 * Stages. Each logs what goes wrong as one sentence and returns -1 to go on, or the exit status.
 */
int sb_run_choose_outputs(struct sb_run *run);
int sb_run_check_targets(struct sb_run *run);

/* Return: whether one of the outputs shows modules, files and lines. */
bool sb_run_has_places(const struct sb_run *run);

/* Fork what writes files as root, if we are going to be somebody else. */
int sb_run_make_writer(struct sb_run *run);
/* Fork what parses files. */
int sb_run_make_parser(struct sb_run *run);
/* Fork what reads memory and files of other processes. */
int sb_run_make_readers(struct sb_run *run);
/* Become somebody else; and when all is attached, keep only what is needed: capture/privileges.h. */
int sb_run_begin_privileges(struct sb_run *run);
int sb_run_settle_privileges(struct sb_run *run);

/* Signals are read from a descriptor from here on. Before any thread is made: it inherits this. */
int sb_run_block_signals(struct sb_run *run);
/* Make what the loop waits for. */
int sb_run_loop_init(struct sb_run *run);
/* Until something ends the sampling. */
int sb_run_loop(struct sb_run *run);
/* From here on a signal gives up: what is half written is removed, and the program ends. */
int sb_run_arm_abort(struct sb_run *run);
/* Wait for the command. Return: its status, as a shell has it. */
int sb_run_wait_child(struct sb_run *run);
void sb_run_loop_release(struct sb_run *run);

/* Take what there is, and put it into the profile. Return: 0 or a negative errno, logged. */
int sb_run_drain(struct sb_run *run);

/* Drain, and hand all that was sampled since the last time to the sink. Return: as sb_run_drain(). */
int sb_run_take(struct sb_run *run);

/*
 * For sinks, while they take: if run->profile has more frames and text than a run without end may keep, go on in
 * a new one. *ret_is_new: it did. Return: 0 or a negative errno: there is none to go on with.
 */
int sb_run_renew_profile(struct sb_run *run, bool *ret_is_new);

/* Write all outputs from run->profile as it is now, which is sealed if @is_last. */
int sb_run_write(struct sb_run *run, bool is_last);

/*
 * For sinks. An output of a format that may be the caller's own, before the run; as a stage. Write @profile, which
 * is sealed, to all of them. Return: 0 or a negative errno, logged.
 */
int sb_run_add_output(struct sb_run *run, const char *path, const struct sb_output *format);
int sb_run_write_as(struct sb_run *run, const struct sb_profile *profile,
		    const struct sb_output_opts *opts);

/* CPU time of this process and of those that parse for it, in nanoseconds. */
uint64_t sb_run_own_ns(const struct sb_run *run);

/* What the run is worth: the samples of one view. */
struct sb_run_figures {
	uint32_t view; /* its number */
	struct sb_session_stats session;
	struct sb_resolve_stats resolve;
	struct sb_sym_stats symbolizer;
	struct sb_parser_stats parser;
	struct sb_reader_stats readers;
	uint64_t nr_samples, nr_lost, nr_cut;
	uint64_t nr_frames, nr_unnamed; /* of the machine and of interpreters */
	uint64_t wall_ns;
};
/* How much of what should be accounted for is, in percent. */
double sb_run_accounted(const struct sb_run_figures *figures);
void sb_run_figures(const struct sb_run *run, uint32_t view, struct sb_run_figures *ret_figures);

/* The closing report or, with --stats, all figures, for each view: docs/loss.md. */
void sb_run_report(const struct sb_run *run);
/* The interpreters in the samples: for the closing report, a line each; for --stats; and what is missing. */
void sb_run_add_interps(const struct sb_run *run, const struct sb_run_figures *figures,
			struct sb_str *list);
void sb_run_report_interps(const struct sb_run *run, const struct sb_run_figures *figures,
			   void (*row)(const char *name, const char *value));
/* Who we are, and what we may do. */
void sb_run_report_privileges(const struct sb_run *run,
			      void (*row)(const char *name, const char *value));
void sb_run_warn_interps(const struct sb_run *run);
/* Say why nothing was sampled. */
void sb_run_explain_empty(const struct sb_run *run);

#endif
