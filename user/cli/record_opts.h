/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The options of the sampling commands: views, record, run, snap, top. sb_record_parse() (record.h)
 * parses them, and calls sb_record_opts_finish(). One thread. Pointers are not NULL unless it says
 * so. */
#ifndef SB_CLI_RECORD_OPTS_H
#define SB_CLI_RECORD_OPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/num.h"
#include "cli/command.h"
#include "cli/opts.h"
#include "cli/recorder_opts.h"
#include "events/definition.h"
#include "recorder/recorder.h"
#include "run/run.h"

/* Above, the timer itself is what is sampled. */
#define SB_FREQ_HZ_MAX 100000u

/* Strings are borrowed from argv. */
struct sb_record_opts {
	struct sb_common_opts common; /* first */
	struct sb_run_config
		run; /* `views`, `lines` and `modules` of it are set later, from other members */
	const char *shell_command; /* of -c */
	char *shell_argv[4];	   /* what run.command points to with -c */
	bool annotate, lines, modules;
	const char *event;	   /* of --event; NULL: the clock */
	struct sb_counter counter; /* what it means; run.view_opts borrows it */
	uint32_t limit;		   /* of stacks in the output; 0: none */
	sb_vec_str output_paths;
	const char *format, *title;
	bool no_header, stats;
	const char *kind; /* name of the view, for commands that are not views; NULL: oncpu */
	bool open;	  /* run: open the picture */
	struct sb_event_request request; /* its events: operands of views that take some */
	bool rate;			 /* count the events, take no stacks */
	sb_vec_str allocators;		 /* of --allocator: files */
	bool live;			 /* follow allocations until they are given back */
	const char *in, *until;		 /* events at which spans begin and end; NULL: none */
	bool list;			 /* print the events that match request.events */
	struct sb_run_probes probes;	 /* what all of these mean; run.view_opts borrows it */
	struct sb_recorder_config recorder;
	const char *definitions_path;	   /* of --definitions; NULL: the default */
	struct sb_definitions definitions; /* of that file, if --kinds names any */
	bool group;			   /* snap: show threads with equal stacks together */
	bool batch;			   /* top: print lines, use no screen */
	uint32_t nr_rounds;		   /* top: number of tables; 0: no limit */
	uint64_t every_ns, window_ns; /* top: refresh interval; duration of "the last seconds" */
};

/*
 * After sb_opts_parse(): finish with what concerns several options: operands, contradictions,
 * defaults. @fields: changed in place, and not to be moved afterwards, because `run` points into
 * it; it borrows the command from argv, too. @opts: that were parsed into @fields.
 * Return: 0; -EINVAL with opts->error; -ENOMEM. The caller releases @fields, also after an error.
 */
int sb_record_opts_finish(struct sb_record_opts *fields, struct sb_opts *opts);
/* Free what @fields owns, when the run is over, which borrows it, and also after an error of
 * parsing; strings of argv stay. sb_record_release() calls it. */
void sb_record_opts_release(struct sb_record_opts *fields);

/* Return: whether @command has a sampling option of this name, without dashes: whether any row of
 * the name is for it; false for a name without a row. @command: the name of a sampling command or
 * of a view, which is not checked: options that are for all commands are for any other word, too.
 * The rows are constant. */
bool sb_record_opt_is_for(const char *name, const char *command);

/* Return: whether the options say which tasks to sample, by -a, a command, or a rule that allows
 * some. */
bool sb_record_opts_has_target(const struct sb_record_opts *fields);

#endif
