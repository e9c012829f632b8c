/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The command line parser. Each option is described by one row, which the parser, --help, shell
 * completion (cli/complete.h) and the check of man pages (tests/lint/options.py) use.
 *
 * Accepted forms are -p 1, -p1, --pid 1, --pid=1, bundled flags (-uk, -ukp1), and "--" before a
 * command. A value that begins with '-' must be attached to its option; otherwise a forgotten value
 * would swallow the next option. Names cannot be abbreviated; the nearest one is suggested. Nothing
 * is logged here. Thread: any, one for each struct sb_opts. Pointers are not NULL unless it says
 * so. Rows that come back are parts of the table that was passed.
 *
 * Order: set a struct sb_opts, and its fields to their defaults; sb_opts_parse(), once; on -EINVAL
 * log opts->error; use the fields; sb_opts_release(). For commands, sb_command_parse() (command.h)
 * parses and logs.
 */
#ifndef SB_CLI_OPTS_H
#define SB_CLI_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"

struct sb_completion; /* cli/complete.h */

/* What an option does to its field. */
enum sb_opt_type {
	SB_OPT_NONE,	 /* nothing: accepted because other tools have it */
	SB_OPT_ON,	 /* bool: true */
	SB_OPT_OFF,	 /* bool: false */
	SB_OPT_SET,	 /* uint32_t: = bits */
	SB_OPT_BITS,	 /* uint32_t: |= bits */
	SB_OPT_U32,	 /* uint32_t: a number from min to max */
	SB_OPT_DURATION, /* uint64_t: nanoseconds, not 0; a bare number is in seconds */
	SB_OPT_BYTES,	 /* uint64_t: at least min */
	SB_OPT_STRING,	 /* const char *, borrowed from argv; not empty; one of `words`, if any */
	SB_OPT_TIME,	 /* const char *, borrowed: a time for sb_ask_time(); may begin with '-' */
	SB_OPT_STRINGS,	 /* sb_vec_str: appended, borrowed from argv */
	SB_OPT_WORD,	 /* uint32_t: = the value of one of `words` */
	SB_OPT_WORDS,	 /* uint32_t: |= the values of some of `words`, separated by commas */
	SB_OPT_LIST,	 /* sb_vec_u32: numbers up to max appended, "1,2,5-7" */
	SB_OPT_PARSED,	 /* what parse() makes of the value */
	SB_OPT_PRESET,	 /* takes no value; parse() gets `preset` */
	SB_OPT_TYPE_MAX,
};

/* Under which heading --help has it. */
enum sb_opt_group {
	SB_OPT_TARGET,
	SB_OPT_WINDOW,
	SB_OPT_EVENTS,
	SB_OPT_STACKS,
	SB_OPT_SHAPE,
	SB_OPT_STORE,
	SB_OPT_ACCESS,
	SB_OPT_OUTPUT,
	SB_OPT_META,
	SB_OPT_GROUP_MAX,
};

struct sb_opt_word {
	const char *name; /* NULL ends a list of words */
	uint32_t value;
};

struct sb_opt {
	const char *name;     /* without dashes; NULL: letters only */
	const char *letters;  /* all with the same meaning, the usual one first; NULL: none */
	const char *metavar;  /* name of the value in --help; NULL: it takes none */
	const char *help;     /* a phrase, or a sentence or two; NULL: not shown */
	const char *synonyms; /* more letters, accepted but not shown; NULL: none */
	/* Bits of enum sb_view_options: views with one of them have the option; 0: see
	 * `commands`. */
	uint32_t views;
	/* "run top": only these commands have it, besides the views of `views`. "!top": all but
	 * this one. NULL: all commands with this table; or, with `views`, only those views. */
	const char *commands;
	enum sb_opt_type type;
	enum sb_opt_group group;
	size_t offset;		 /* of the member in the command's options */
	uint32_t min, max, bits; /* see enum sb_opt_type */
	const struct sb_opt_word *words;
	/* With other types than SB_OPT_PRESET: the value that is used if none is given. If one is
	 * given, it must be attached then (--file=base). */
	const char *preset;
	/*
	 * For SB_OPT_PARSED and SB_OPT_PRESET: parse @value into @field. @value lives as long as
	 * argv. *ret_why is NULL before. Return: 0; -EINVAL, with *ret_why the end of a sentence
	 * about the value ("is longer than ..."), static, or NULL: it is not a possible value;
	 * -ENOMEM.
	 */
	int (*parse)(void *field, const char *value, const char **ret_why);
	/* Get the end of `help`, when the values are in a table elsewhere. NULL: there is none. */
	const char *(*help_values)(void);
	/* Values to complete besides `words`: a fixed list, "1h 1d", and what a function finds. */
	const char *suggest;
	void (*complete)(struct sb_completion *to);
};

/* A table ends with a row that has neither name nor letters. */
#define SB_OPT_END \
	{          \
	}

/* A command line. The caller sets the first three members and `stop`; the others are zeroed. */
struct sb_opts {
	const char *command; /* its name */
	const struct sb_opt *rows;
	void *fields;
	sb_vec_str operands;  /* words that are not options, borrowed from argv */
	char **tail;	      /* what follows "--", NULL-terminated; NULL: there was no "--" */
	const uint32_t *stop; /* parsing ends as soon as this is not 0 (--help); or NULL */
	struct sb_str error;  /* after -EINVAL: one sentence */
};

/*
 * Parse @argv, which is NULL-terminated and begins with the first word after the command. What is
 * stored points into @argv, which must live as long as opts->fields.
 * Return: 0; -EINVAL for wrong usage, with opts->error; -ENOMEM. Operands are in opts->operands,
 * what follows "--" in opts->tail. After an error the options before the wrong one are in the
 * fields. The caller releases @opts by sb_opts_release(), and what the fields own, also after an
 * error.
 */
int sb_opts_parse(struct sb_opts *opts, char **argv);
/* Free the operands and the error, not the fields; allowed also before sb_opts_parse(). */
void sb_opts_release(struct sb_opts *opts);

/* Set opts->error to "command: <sentence>" in place of an earlier one, for -EINVAL that the caller
 * then returns; @fmt as for printf(). Return: -EINVAL; or -ENOMEM, and opts->error is not to be
 * used. */
int sb_opts_fail(struct sb_opts *opts, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Return: whether the command or view named @command has this option, by row->views and
 * row->commands. */
bool sb_opt_is_for(const struct sb_opt *row, const char *command);
/* Return: whether the row is the one that ends its table, and no option. */
bool sb_opt_is_end(const struct sb_opt *row);
/* Return: whether the option can have a value, in the next word or attached. */
bool sb_opt_takes_value(const struct sb_opt *row);
/* Return: whether the value may be the next word. Of an option with a preset it must be attached;
 * an option that takes no value gives false, too. */
bool sb_opt_takes_next(const struct sb_opt *row);
/* Find an option of @command by name (without dashes, @len bytes, in full) or by a letter of
 * `letters` or `synonyms`. Return: its row; NULL: there is none. */
const struct sb_opt *sb_opt_find(const struct sb_opt *rows, const char *command, const char *name,
				 size_t len);
const struct sb_opt *sb_opt_find_letter(const struct sb_opt *rows, const char *command,
					char letter);

/* Print the options of @command that have help, by group. The caller checks @out for errors with
 * ferror(). */
void sb_opts_print_help(const struct sb_opt *rows, const char *command, FILE *out);

#endif
