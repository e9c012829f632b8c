/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options are rows: one row says everything about an option, and the parser, `--help`, what shells
 * complete (cli/complete.h) and the check of man pages (tests/lint/options.py) all go by the same rows.
 *
 * Accepted: -p 1, -p1, --pid 1, --pid=1, bundled flags (-uk, -ukp1), "--" before a command. A
 * value that begins with '-' must be attached to its option: a forgotten value would otherwise
 * swallow the next option. Names are not abbreviated; the nearest one is suggested.
 */
#ifndef SB_CLI_OPTS_H
#define SB_CLI_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/str.h"
#include "base/vec.h"

typedef SB_VEC(const char *) sb_vec_str;

struct sb_completion; /* cli/complete.h */

/* What an option does to its field. */
enum sb_opt_type {
	SB_OPT_NONE,	 /* nothing: accepted for the fingers' sake */
	SB_OPT_ON,	 /* bool: true */
	SB_OPT_OFF,	 /* bool: false */
	SB_OPT_SET,	 /* uint32_t: = bits */
	SB_OPT_BITS,	 /* uint32_t: |= bits */
	SB_OPT_U32,	 /* uint32_t: a number from min to max */
	SB_OPT_DURATION, /* uint64_t: nanoseconds, not 0; a bare number is in seconds */
	SB_OPT_BYTES,	 /* uint64_t: at least min */
	SB_OPT_STRING,	 /* const char *, borrowed from argv; not empty; of `words`, if any */
	SB_OPT_TIME,	/* const char *, borrowed: as sb_ask_time() has it; "-1h" is a value, too */
	SB_OPT_STRINGS, /* sb_vec_str: appended, borrowed from argv */
	SB_OPT_WORD,	/* uint32_t: = the value of one of `words` */
	SB_OPT_WORDS,	/* uint32_t: |= the values of some of `words`, separated by commas */
	SB_OPT_LIST,	/* sb_vec_u32: numbers up to max appended, "1,2,5-7" */
	SB_OPT_PARSED,	/* anything: parse() knows */
	SB_OPT_PRESET,	/* no value: parse() gets `preset` */
	SB_OPT_TYPE_MAX,
};

enum sb_opt_group {
	SB_OPT_TARGET,
	SB_OPT_WINDOW,
	SB_OPT_EVENTS,
	SB_OPT_STACKS,
	SB_OPT_SHAPE,
	SB_OPT_STORE,
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
	const char *letters;  /* of one meaning, the first is the usual one; NULL: none */
	const char *metavar;  /* what --help calls the value; NULL: it takes none */
	const char *help;     /* a phrase or a sentence or two; NULL: not shown */
	const char *synonyms; /* more letters, accepted and not shown; or NULL */
	const char
		*commands; /* "oncpu offcpu": only these have it; "!top": all but this; NULL: all of
				 the table */
	enum sb_opt_type type;
	enum sb_opt_group group;
	size_t offset;		 /* of the field in the command's options */
	uint32_t min, max, bits; /* see the types */
	const struct sb_opt_word *words;
	const char *preset; /* for other types than SB_OPT_PRESET: the value may be left out, means
			       this, and must be attached if it is there (--file=base) */
	/*
	 * For SB_OPT_PARSED. Return: 0, or -EINVAL with what is wrong with the value, as the end
	 * of a sentence ("is longer than ..."), -ENOMEM.
	 */
	int (*parse)(void *field, const char *value, const char **ret_why);
	/* What shells complete, beside `words`: values, "1h 1d"; those that have to be looked for. */
	const char *suggest;
	void (*complete)(struct sb_completion *to);
};

/* A table ends with a row that has neither name nor letters. */
#define SB_OPT_END \
	{          \
	}

/* What a command was given; zeroed but for the first three, which the caller sets. */
struct sb_opts {
	const char *command; /* its name */
	const struct sb_opt *rows;
	void *fields;
	sb_vec_str operands;  /* words that are no options, borrowed from argv */
	char **tail;	      /* what follows "--", NULL-terminated; NULL: there was none */
	const uint32_t *stop; /* parsing ends as soon as this is not 0 (--help); or NULL */
	struct sb_str error;  /* one sentence, after a failure */
};

/*
 * Parse @argv, which is NULL-terminated and begins with the first word after the command.
 * Return: 0; -EINVAL for wrong use, which opts->error explains; -ENOMEM.
 */
int sb_opts_parse(struct sb_opts *opts, char **argv);
void sb_opts_release(struct sb_opts *opts);

/* Write "command: <sentence>" into opts->error. Return: -EINVAL. */
int sb_opts_fail(struct sb_opts *opts, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Return: whether @command has this option. */
bool sb_opt_is_for(const struct sb_opt *row, const char *command);
bool sb_opt_is_end(const struct sb_opt *row);
/* Return: whether it can have a value, and whether that may be the next word. */
bool sb_opt_takes_value(const struct sb_opt *row);
bool sb_opt_takes_next(const struct sb_opt *row);
/* Return: the option of that name (without dashes) or letter that @command has; NULL: none. */
const struct sb_opt *sb_opt_find(const struct sb_opt *rows, const char *command, const char *name,
				 size_t len);
const struct sb_opt *sb_opt_find_letter(const struct sb_opt *rows, const char *command,
					char letter);

/* The options that are shown, under the headings of their groups. */
void sb_opts_print_help(const struct sb_opt *rows, const char *command, FILE *out);

#endif
