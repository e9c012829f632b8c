/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The options of the commands that record: oncpu, ... */
#ifndef SB_CLI_RECORD_OPTS_H
#define SB_CLI_RECORD_OPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/num.h"
#include "capture/session.h"
#include "cli/command.h"
#include "cli/opts.h"
#include "cli/recorder/opts.h"
#include "resolve/resolve.h"

#define SB_OVERHEAD_MAX_PPM_DEFAULT 10000u

/* Strings are borrowed from argv. */
struct sb_record_opts {
	struct sb_common_opts common; /* first */
	struct sb_targets targets;
	bool all;
	const char *shell_command; /* -c */
	char **command;		   /* what to run, NULL-terminated: from -- or -c; or NULL */
	char *shell_argv[4];	   /* what `command` points at for -c */
	uint64_t time_ns;	   /* 0: until it is stopped */
	uint32_t freq_hz;
	bool is_freq_asked;
	const char *event;
	sb_vec_u32 cpus;
	uint32_t sides; /* SB_SIDE_* */
	uint32_t depth_max;
	uint32_t unwind;       /* SB_UNWIND_*; set to the default by the caller */
	uint64_t unwind_bytes; /* 0: the session's default */
	struct sb_root_list {
		enum sb_root at[SB_ROOTS_MAX];
		size_t nr;
	} roots; /* in the order given; none: the resolver's default */
	bool delimited, annotate, lines, no_inlines, modules, offsets;
	uint32_t demangle; /* enum sb_sym_demangle */
	uint32_t limit;	   /* 0: none */
	sb_vec_str output_paths;
	const char *format, *title;
	bool no_header, stats, debuginfod;
	struct sb_view_opts view;
	uint32_t idle, file;	     /* enum sb_idle_mode, enum sb_file_text */
	uint32_t interp;	     /* enum sb_interp_mode */
	uint64_t symbol_cache_bytes; /* 0: the symbolizer's default */
	uint64_t symbol_bytes_max;   /* while files are read, too; 0: what the machine allows */
	const char *kind; /* of commands that are no view: the name of one; NULL: oncpu */
	bool open;	  /* run: show the picture */
	struct sb_recorder_opts recorder;
	bool group;		      /* snap: equal stacks together */
	bool batch;		      /* top: lines, no screen */
	uint32_t nr_rounds;	      /* top: so many tables; 0: no limit */
	uint64_t every_ns, window_ns; /* top: between two; what the last seconds are */
	uint32_t overhead_max_ppm; /* of all CPUs; 0: no limit; set to the default by the caller */
};

/*
 * What single options cannot know: operands, options that contradict each other, defaults.
 * Return: 0; -EINVAL with opts->error; -ENOMEM.
 */
int sb_record_opts_finish(struct sb_record_opts *fields, struct sb_opts *opts);
void sb_record_opts_release(struct sb_record_opts *fields);

/* Return: whether @command has the option of this name. */
bool sb_record_opt_is_for(const char *name, const char *command);

/* Return: whether anything says which tasks to sample, -a and a command included. */
bool sb_record_opts_has_target(const struct sb_record_opts *fields);
/* Return: whether a rule does. */
bool sb_targets_have_allow_rule(const struct sb_targets *targets);

#endif
