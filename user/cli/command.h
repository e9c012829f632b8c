/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The commands of stackbpf. Each is a row in cmd_table.c, or a view, for which sb_cmd_view()
 * (record.c) is called. A new command is one file and one row; a new view needs no change here.
 * main.c finds the command by sb_command_find() and calls its run(), which begins with
 * sb_command_parse() or what contains it (record.h, store_opts.h). Exit statuses are enum sb_exit
 * (exit.h). Thread: the main thread. Pointers are not NULL unless it says so.
 */
#ifndef SB_CLI_COMMAND_H
#define SB_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/exit.h"
#include "cli/opts.h"

struct sb_command {
	const char *name, *summary;
	const char *alias;	   /* another name; NULL: none */
	const char *synopsis;	   /* what follows the name in the first line of its help */
	const struct sb_opt *opts; /* not NULL: all have SB_COMMON_ROWS */
	const char *notes;	   /* further lines of its help; NULL: none */
	/* Complete an operand: see complete.h. NULL: nothing */
	void (*complete)(struct sb_completion *to);
	/* Run it. @argv: the end of that of main(), from the first word after the name. Return: the
	 * exit status; errors were logged. */
	int (*run)(const struct sb_command *command, char **argv);
};

/* Get the @i-th command, from 0; views come first. Return: whether there is one; if not,
 * *ret_command is untouched. What it points to is static. */
bool sb_command_at(size_t i, struct sb_command *ret_command);
/* Find a command by name or alias. Return: whether there is one; if not, *ret_command is untouched.
 * What it points to is static. */
bool sb_command_find(const char *name, struct sb_command *ret_command);
/* Log that there is no such command, with the nearest name. Return: SB_EXIT_USAGE. */
int sb_command_unknown(const char *name);

/* For sb_command.run: run the command of this name; sb_command.summary says what it does. @argv:
 * the words after the name of the command, which is not among them, and a NULL. Both are used
 * during the call only. Return: the exit status for main(); errors were logged. */
int sb_cmd_view(const struct sb_command *command, char **argv);
int sb_cmd_record(const struct sb_command *command, char **argv);
int sb_cmd_query(const struct sb_command *command, char **argv);
int sb_cmd_timeline(const struct sb_command *command, char **argv);
int sb_cmd_store(const struct sb_command *command, char **argv);
int sb_cmd_run(const struct sb_command *command, char **argv);
int sb_cmd_snap(const struct sb_command *command, char **argv);
int sb_cmd_top(const struct sb_command *command, char **argv);
int sb_cmd_serve(const struct sb_command *command, char **argv);
int sb_cmd_diff(const struct sb_command *command, char **argv);
int sb_cmd_doctor(const struct sb_command *command, char **argv);
int sb_cmd_export(const struct sb_command *command, char **argv);
int sb_cmd_help(const struct sb_command *command, char **argv);
int sb_cmd_completion(const struct sb_command *command, char **argv);

/* Options of commands: sb_command.opts. */
extern const struct sb_opt sb_record_rows[];
extern const struct sb_opt sb_serve_rows[];
extern const struct sb_opt sb_diff_option_rows[];
extern const struct sb_opt sb_query_rows[];
extern const struct sb_opt sb_timeline_rows[];
extern const struct sb_opt sb_store_rows[];
extern const struct sb_opt sb_doctor_rows[];
extern const struct sb_opt sb_export_rows[];
extern const struct sb_opt sb_help_rows[];

/* Print to @out what 'stackbpf' prints without a command: examples. The caller checks @out for
 * errors with ferror() or fflush(). */
void sb_print_usage(FILE *out);
/* Print the list of commands to @out, for 'stackbpf help'. The caller checks @out for errors with
 * ferror() or fflush(). */
void sb_print_overview(FILE *out);
/* Print the help of a command to @out. The caller checks @out for errors with ferror() or
 * fflush(). */
void sb_print_command_help(const struct sb_command *command, FILE *out);
/* Print the version, and what was compiled in, to stdout, which the caller checks for errors. */
void sb_print_version(void);

/* The options that all commands have. A command's own options begin with this struct. */
struct sb_common_opts {
	uint32_t ask; /* enum sb_common_ask */
	bool quiet, verbose;
};

enum sb_common_ask { SB_ASK_NOTHING, SB_ASK_HELP, SB_ASK_VERSION };

/* Rows for the struct sb_common_opts at the start of a command's options. */
#define SB_COMMON_ROWS                                                                       \
	{ .name = "quiet",                                                                   \
	  .letters = "q",                                                                    \
	  .type = SB_OPT_ON,                                                                 \
	  .group = SB_OPT_META,                                                              \
	  .offset = offsetof(struct sb_common_opts, quiet),                                  \
	  .help = "print nothing but errors to stderr" },                                    \
		{ .name = "verbose",                                                         \
		  .letters = "v",                                                            \
		  .type = SB_OPT_ON,                                                         \
		  .group = SB_OPT_META,                                                      \
		  .offset = offsetof(struct sb_common_opts, verbose),                        \
		  .help = "print debug messages, too, including those of libbpf" },          \
		{ .name = "help",                                                            \
		  .letters = "h",                                                            \
		  .type = SB_OPT_SET,                                                        \
		  .group = SB_OPT_META,                                                      \
		  .offset = offsetof(struct sb_common_opts, ask),                            \
		  .bits = SB_ASK_HELP,                                                       \
		  .help = "show this help" },                                                \
	{                                                                                    \
		.name = "version", .letters = "V", .type = SB_OPT_SET, .group = SB_OPT_META, \
		.offset = offsetof(struct sb_common_opts, ask), .bits = SB_ASK_VERSION,      \
		.help = "show the version and what was compiled in"                          \
	}

/*
 * Parse @argv (opts.h) into opts->fields, which the caller has set, and which begins with a struct
 * sb_common_opts; the other members of @opts are zeroed before. Operands are in opts->operands
 * then, the words after "--" in opts->tail; all of it borrows from @argv. Answers --help and
 * --version, and sets the log level. Return: -1 to go on; SB_EXIT_DATA if it was an answer;
 * SB_EXIT_USAGE for wrong options or SB_EXIT_FAILED without memory, which was logged. The caller
 * calls sb_opts_release() afterwards, also after an error.
 */
int sb_command_parse(const struct sb_command *command, struct sb_opts *opts, char **argv);
/* Do what sb_command_parse() does, for a command that takes no operands. @instead: what to name in
 * place of operands and "--", as the end of a message: "store with --store". Return: -1 to go on;
 * SB_EXIT_DATA after --help or --version; SB_EXIT_USAGE for operands, "--" and wrong options, and
 * SB_EXIT_FAILED without memory, which was logged. The caller calls sb_opts_release() afterwards,
 * also after an error. */
int sb_command_parse_options(const struct sb_command *command, struct sb_opts *opts, char **argv,
			     const char *instead);

#endif
