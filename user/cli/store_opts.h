/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Options of the commands that ask a store: which one, which time, which kind, which tags. */
#ifndef SB_CLI_STORE_OPTS_H
#define SB_CLI_STORE_OPTS_H

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/complete.h"
#include "cli/opts.h"
#include "store/ask.h"

#define SB_STORE_DIR_DEFAULT  "/var/lib/stackbpf"
/* What shells complete. */
#define SB_STORE_FROM_SUGGEST "-1h -1d -7d -30d"
#define SB_STORE_TO_SUGGEST   "now"

/* All borrowed; zero-initialize. */
struct sb_store_args {
	const char *dir; /* NULL: SB_STORE_DIR_DEFAULT */
	const char *from, *to, *kind, *by;
	sb_vec_str tags;
};

/* The row for `struct sb_store_args MEMBER` in @fields, alone. */
#define SB_STORE_DIR_ROW(fields, member)                                                         \
	{                                                                                        \
		.name = "store", .metavar = "DIR", .type = SB_OPT_STRING, .group = SB_OPT_STORE, \
		.offset = offsetof(fields, member.dir), .complete = sb_complete_directory,       \
		.help = "the store; default " SB_STORE_DIR_DEFAULT                               \
	}

/* All rows but the above. */
#define SB_STORE_ASK_ROWS(fields, member)                                                                     \
	{                                                                                                     \
		.name = "from",                                                                               \
		.metavar = "TIME",                                                                            \
		.type = SB_OPT_TIME,                                                                          \
		.group = SB_OPT_STORE,                                                                        \
		.offset = offsetof(fields, member.from),                                                      \
		.suggest = SB_STORE_FROM_SUGGEST,                                                             \
		.help = "from here on: -1h (the default), now-2d, 2026-11-21T10:00 (local time), @1795255200" \
	},                                                                                                    \
		{ .name = "to",                                                                               \
		  .metavar = "TIME",                                                                          \
		  .type = SB_OPT_TIME,                                                                        \
		  .group = SB_OPT_STORE,                                                                      \
		  .offset = offsetof(fields, member.to),                                                      \
		  .suggest = SB_STORE_TO_SUGGEST,                                                             \
		  .help = "up to here; default now" },                                                        \
		{ .name = "kind",                                                                             \
		  .metavar = "KIND",                                                                          \
		  .type = SB_OPT_STRING,                                                                      \
		  .group = SB_OPT_STORE,                                                                      \
		  .offset = offsetof(fields, member.kind),                                                    \
		  .complete = sb_complete_kind,                                                               \
		  .help = "what was measured: oncpu (the default), offcpu, io, ..." },                        \
		{ .name = "tag",                                                                              \
		  .metavar = "RULE",                                                                          \
		  .type = SB_OPT_STRINGS,                                                                     \
		  .group = SB_OPT_STORE,                                                                      \
		  .offset = offsetof(fields, member.tags),                                                    \
		  .help = "only with these tags: KEY=VALUE[,VALUE], KEY!=VALUE, KEY=~REGEX, "                 \
			  "KEY!~REGEX; several must all hold" },                                              \
	{                                                                                                     \
		.name = "by", .metavar = "KEY[,KEY]", .type = SB_OPT_STRING,                                  \
		.group = SB_OPT_STORE, .offset = offsetof(fields, member.by),                                 \
		.help = "apart by the values of this tag"                                                     \
	}

#define SB_STORE_ROWS(fields, member) \
	SB_STORE_DIR_ROW(fields, member), SB_STORE_ASK_ROWS(fields, member)

SB_DEFINE_CLEANUP(struct sb_store, sb_store_close)

void sb_store_args_release(struct sb_store_args *args);

/* A command that takes options alone and asks a store. Functions return -1 to go on, or an exit status. */
struct sb_store_command {
	void *fields;		    /* its options */
	struct sb_store_args *args; /* of which these are the store's */
	/* What is wrong with the others, before anything is opened. */
	int (*check)(void *fields);
	/* Return: the exit status; errors were logged. */
	int (*answer)(const void *fields, struct sb_store *store, const struct sb_ask *ask);
};

/* Parse @argv, open the store, have it answered. Return: the exit status. */
int sb_store_command_run(const struct sb_store_command *asked, const struct sb_command *command,
			 char **argv);

/* What the options of @command say, at @now_s. Return: -1 to go on, or an exit status; errors were logged. */
int sb_store_args_ask(const struct sb_store_args *args, const char *command, int64_t now_s,
		      struct sb_ask *ask);
/* Rules alone: of a second set of tags, as `diff` has one. Return: as above. */
int sb_store_args_rules(const sb_vec_str *rules, const char *command, struct sb_ask *ask);

/* Tags of --by that nothing in the range has are an error, which is said. Return: -1, or the exit status. */
int sb_store_check_by(struct sb_store *store, const struct sb_ask *ask, const char *command);

/* Open for reading. Return: -1, or an exit status; errors were logged. */
int sb_store_args_open(const struct sb_store_args *args, struct sb_store **ret_store);
/* Log why the store at @dir cannot be opened. Return: the exit status. */
int sb_store_say_error(int err, const char *dir);

/*
 * Say on stderr what the answer is not: coarser than what was asked for, damaged, in another unit, "(other)".
 * With nothing in it, which range there is. Return: SB_EXIT_DATA, or SB_EXIT_EMPTY.
 */
int sb_store_say_answer(struct sb_store *store, const struct sb_ask *ask,
			const struct sb_store_answer *answer);

#endif
