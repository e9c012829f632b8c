/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options of the commands that query a store: which store, time range, kind and tags. Also what
 * they have in common. Functions return -1 for the command to go on, or the exit status (exit.h)
 * with which it ends; then the error was logged. @command: its name, for messages. Pointers are not
 * NULL unless it says so. One thread.
 *
 * Order: sb_store_command_run() does all. A command with operands calls sb_command_parse(),
 * sb_store_args_ask(), sb_store_args_open(), a query of store/ask.h, sb_store_say_answer() or
 * sb_store_args_failed(), and then releases query, store and options.
 */
#ifndef SB_CLI_STORE_OPTS_H
#define SB_CLI_STORE_OPTS_H

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/complete.h"
#include "cli/opts.h"
#include "kinds/view_kind.h"
#include "store/ask.h"

#define SB_STORE_DIR_DEFAULT  "/var/lib/stackbpf"
/* For shell completion. */
#define SB_STORE_FROM_SUGGEST "-1h -1d -7d -30d"
#define SB_STORE_TO_SUGGEST   "now"

/* The options' values, borrowed from argv. Zero-initialise it. */
struct sb_store_args {
	const char *dir; /* NULL: SB_STORE_DIR_DEFAULT */
	const char *from, *to, *kind, *by;
	sb_vec_str tags;
	const char *side; /* "vs-": --vs-from, --vs-to; NULL: --from, --to */
};

/* The row of --store, for a member `struct sb_store_args MEMBER` of @fields. */
#define SB_STORE_DIR_ROW(fields, member)                                                         \
	{                                                                                        \
		.name = "store", .metavar = "DIR", .type = SB_OPT_STRING, .group = SB_OPT_STORE, \
		.offset = offsetof(fields, member.dir), .complete = sb_complete_directory,       \
		.help = "directory of the store (default " SB_STORE_DIR_DEFAULT ")"              \
	}

/* The rows of all other options. @by_what: a literal: as what --by shows values. */
#define SB_STORE_ASK_ROWS(fields, member, by_what)                                       \
	{ .name = "from",                                                                \
	  .metavar = "TIME",                                                             \
	  .type = SB_OPT_TIME,                                                           \
	  .group = SB_OPT_STORE,                                                         \
	  .offset = offsetof(fields, member.from),                                       \
	  .suggest = SB_STORE_FROM_SUGGEST,                                              \
	  .help = "start of the time range: -1h (default), now-2d, 14:00 (today), "      \
		  "2026-11-21T10:00 (local time), @1795255200" },                        \
		{ .name = "to",                                                          \
		  .metavar = "TIME",                                                     \
		  .type = SB_OPT_TIME,                                                   \
		  .group = SB_OPT_STORE,                                                 \
		  .offset = offsetof(fields, member.to),                                 \
		  .suggest = SB_STORE_TO_SUGGEST,                                        \
		  .help = "end of the time range (default now)" },                       \
		{ .name = "kind",                                                        \
		  .metavar = "KIND",                                                     \
		  .type = SB_OPT_STRING,                                                 \
		  .group = SB_OPT_STORE,                                                 \
		  .offset = offsetof(fields, member.kind),                               \
		  .complete = sb_complete_stored_kind,                                   \
		  .help = "kind of profile, as --kinds of record names it; with a "      \
			  "NAME that stackbpf-record(8) was given for events or spans: " \
			  "trace:NAME, oncpu:NAME; the first is the default:",           \
		  .help_values = sb_view_kind_names },                                   \
		{ .name = "tag",                                                         \
		  .metavar = "RULE",                                                     \
		  .type = SB_OPT_STRINGS,                                                \
		  .group = SB_OPT_STORE,                                                 \
		  .offset = offsetof(fields, member.tags),                               \
		  .help = "select series by their tags: KEY=VALUE[,VALUE], KEY!=VALUE, " \
			  "KEY=~REGEX, KEY!~REGEX; if repeated, all rules must match" }, \
	{                                                                                \
		.name = "by", .metavar = "KEY[,KEY]", .type = SB_OPT_STRING,             \
		.group = SB_OPT_STORE, .offset = offsetof(fields, member.by),            \
		.help = "show the values of these tags as " by_what                      \
	}

#define SB_STORE_ROWS(fields, member, by_what) \
	SB_STORE_DIR_ROW(fields, member), SB_STORE_ASK_ROWS(fields, member, by_what)

SB_DEFINE_CLEANUP(struct sb_store, sb_store_close)

/* Free the list of tags, also of zeroed options; all else is borrowed. */
void sb_store_args_release(struct sb_store_args *args);

/* A command without operands that queries a store. */
struct sb_store_command {
	void *fields;		    /* its options; they begin with a struct sb_common_opts */
	struct sb_store_args *args; /* the part of them that is about the store */
	/* Check the others, before the store is opened. Return: -1 to go on, or the exit status;
	 * errors were logged. */
	int (*check)(void *fields);
	/* Answer. @store and @ask are valid during the call. Return: the exit status; errors were
	 * logged. */
	int (*answer)(const void *fields, struct sb_store *store, const struct sb_ask *ask);
};

/* Parse @argv, open the store, call asked->answer(), close the store and release asked->args.
 * Return: the exit status (exit.h); errors were logged. */
int sb_store_command_run(const struct sb_store_command *asked, const struct sb_command *command,
			 char **argv);

/* Make a query from all options. @now_s: the time that relative times count from, in seconds since
 * the epoch. @ask: zero-initialized; the caller releases it, also after an error, and it borrows
 * args->by until then. Return: -1, or SB_EXIT_USAGE or SB_EXIT_FAILED. */
int sb_store_args_ask(const struct sb_store_args *args, const char *command, int64_t now_s,
		      struct sb_ask *ask);
/* Add the rules in @rules ("service=car") to a query and change nothing else of it, such as for the
 * second side of `diff`. They are copied. Return: -1, or SB_EXIT_USAGE or SB_EXIT_FAILED, and then
 * some may have been added; the caller releases @ask, also after an error. */
int sb_store_args_rules(const sb_vec_str *rules, const char *command, struct sb_ask *ask);

/* Open the store for reading. *ret_store is owned by the caller, who closes it by sb_store_close();
 * untouched on error. Return: -1 to go on, or the exit status of sb_store_say_error(). */
int sb_store_args_open(const struct sb_store_args *args, struct sb_store **ret_store);
/* Log that the store cannot be read because of @err, a negative errno. Return: SB_EXIT_FAILED. */
int sb_store_args_failed(const struct sb_store_args *args, const char *command, int err);
/* Log why the store at @dir cannot be opened. @err: what sb_store_open() or
 * sb_store_open_to_write() returned. Return: SB_EXIT_PRIVILEGE for -EACCES and -EPERM, otherwise
 * SB_EXIT_FAILED. */
int sb_store_say_error(int err, const char *dir);

/*
 * Log in which ways the answer is not what was asked for: coarser, damaged, in part in another unit
 * or in "(other)". If it is empty, log which time range the store has, or that a recorder is about
 * to fill it. @args: names the store and the options of the range in these messages. Return:
 * SB_EXIT_DATA, also if some of the data is damaged; SB_EXIT_EMPTY; SB_EXIT_FAILED: the answer is
 * empty, and what the store has cannot be read.
 */
int sb_store_say_answer(const struct sb_store_args *args, struct sb_store *store,
			const struct sb_ask *ask, const struct sb_store_answer *answer);
/* Log how many names of frames in @profile, which is of a store, are truncated. */
void sb_store_say_names(const struct sb_profile *profile);

#endif
