// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/opts.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/num.h"
#include "base/time.h"
#include "kinds/view_kind.h"

/* An option as it was typed, for messages: "-p" or "--pid". */
struct spelling {
	int len;
	const char *s;
};

bool sb_opt_is_end(const struct sb_opt *row)
{
	return !row->name && !row->letters;
}

bool sb_opt_is_for(const struct sb_opt *row, const char *command)
{
	const struct sb_view_kind *view = row->views ? sb_view_kind_find(command) : NULL;
	size_t len = strlen(command);
	const char *at = row->commands;
	bool is_listed = true;

	if (view)
		return view->options & row->views;
	if (!at)
		return !row->views;
	if (*at == '!') {
		is_listed = false;
		at++;
	}
	for (; *at; at += strcspn(at, " "), at += strspn(at, " "))
		if (strcspn(at, " ") == len && !memcmp(at, command, len))
			return is_listed;
	return !is_listed;
}

int sb_opts_fail(struct sb_opts *opts, const char *fmt, ...)
{
	char *sentence = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&sentence, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -ENOMEM;
	sb_str_clear(&opts->error);
	n = sb_str_addf(&opts->error, "%s: %s", opts->command, sentence);
	free(sentence);
	return n ? n : -EINVAL;
}

/* One function for each type: put @value into @field. Return: 0, -EINVAL or -ERANGE, -ENOMEM. */

static int set_none(const struct sb_opt *row, void *field, const char *value, const char **ret_why)
{
	return 0;
}

static int set_on(const struct sb_opt *row, void *field, const char *value, const char **ret_why)
{
	*(bool *)field = true;
	return 0;
}

static int set_off(const struct sb_opt *row, void *field, const char *value, const char **ret_why)
{
	*(bool *)field = false;
	return 0;
}

static int set_set(const struct sb_opt *row, void *field, const char *value, const char **ret_why)
{
	*(uint32_t *)field = row->bits;
	return 0;
}

static int set_bits(const struct sb_opt *row, void *field, const char *value, const char **ret_why)
{
	*(uint32_t *)field |= row->bits;
	return 0;
}

static int set_u32(const struct sb_opt *row, void *field, const char *value, const char **ret_why)
{
	uint64_t number;
	int err = sb_parse_u64(value, row->max, &number);

	if (!err && number < row->min)
		err = -ERANGE;
	if (!err)
		*(uint32_t *)field = (uint32_t)number;
	return err;
}

static int set_duration(const struct sb_opt *row, void *field, const char *value,
			const char **ret_why)
{
	uint64_t ns;
	int err = sb_parse_duration(value, SB_NS_PER_SEC, &ns);

	if (err == -ERANGE)
		*ret_why = "is longer than 100 years; choose a shorter time";
	if (!err && !ns)
		err = -ERANGE;
	if (!err)
		*(uint64_t *)field = ns;
	return err;
}

static int set_bytes(const struct sb_opt *row, void *field, const char *value, const char **ret_why)
{
	uint64_t bytes;
	int err = sb_parse_bytes(value, &bytes);

	if (!err && bytes < row->min)
		err = -ERANGE;
	if (!err)
		*(uint64_t *)field = bytes;
	return err;
}

static int find_word(const struct sb_opt *row, const char *s, size_t len, uint32_t *ret_value)
{
	const struct sb_opt_word *word;

	for (word = row->words; word->name; word++) {
		if (strlen(word->name) == len && !memcmp(word->name, s, len)) {
			*ret_value = word->value;
			return 0;
		}
	}
	return -EINVAL;
}

static int set_string(const struct sb_opt *row, void *field, const char *value,
		      const char **ret_why)
{
	uint32_t unused;

	if (!*value)
		*ret_why = "is empty";
	if (!*value || (row->words && find_word(row, value, strlen(value), &unused)))
		return -EINVAL;
	*(const char **)field = value;
	return 0;
}

static int set_strings(const struct sb_opt *row, void *field, const char *value,
		       const char **ret_why)
{
	sb_vec_str *strings = field;

	if (!*value) {
		*ret_why = "is empty";
		return -EINVAL;
	}
	return sb_vec_push(strings, value);
}

static int set_word(const struct sb_opt *row, void *field, const char *value, const char **ret_why)
{
	return find_word(row, value, strlen(value), field);
}

static int set_words(const struct sb_opt *row, void *field, const char *value, const char **ret_why)
{
	uint32_t bits = 0, one;
	size_t len;

	for (;; value += len + 1) {
		len = strcspn(value, ",");
		if (find_word(row, value, len, &one))
			return -EINVAL;
		bits |= one;
		if (!value[len])
			break;
	}
	*(uint32_t *)field |= bits;
	return 0;
}

static int set_list(const struct sb_opt *row, void *field, const char *value, const char **ret_why)
{
	sb_vec_u32 *list = field;
	size_t nr = list->nr;
	int err = sb_parse_list(value, row->max, list);

	if (err)
		list->nr = nr;
	return err;
}

static int set_parsed(const struct sb_opt *row, void *field, const char *value,
		      const char **ret_why)
{
	return row->parse(field, value, ret_why);
}

static int set_preset(const struct sb_opt *row, void *field, const char *value,
		      const char **ret_why)
{
	return row->parse(field, row->preset, ret_why);
}

static const struct {
	bool takes_value;
	int (*set)(const struct sb_opt *row, void *field, const char *value, const char **ret_why);
	const char *expects; /* NULL: made from the row */
} types[] = {
	[SB_OPT_NONE] = { false, set_none, NULL },
	[SB_OPT_ON] = { false, set_on, NULL },
	[SB_OPT_OFF] = { false, set_off, NULL },
	[SB_OPT_SET] = { false, set_set, NULL },
	[SB_OPT_BITS] = { false, set_bits, NULL },
	[SB_OPT_U32] = { true, set_u32, NULL },
	[SB_OPT_DURATION] = { true, set_duration, "a time such as 5 (seconds), 500ms or 2m" },
	[SB_OPT_BYTES] = { true, set_bytes, NULL },
	[SB_OPT_STRING] = { true, set_string, "a name" },
	[SB_OPT_TIME] = { true, set_string, "a time" },
	[SB_OPT_STRINGS] = { true, set_strings, "a name" },
	[SB_OPT_WORD] = { true, set_word, NULL },
	[SB_OPT_WORDS] = { true, set_words, NULL },
	[SB_OPT_LIST] = { true, set_list, NULL },
	[SB_OPT_PARSED] = { true, set_parsed, "a value it knows" },
	[SB_OPT_PRESET] = { false, set_preset, "possible" },
};
_Static_assert(SB_ARRAY_SIZE(types) == SB_OPT_TYPE_MAX, "a row for each type");

/* What the option takes, as the end of "... is not". */
static int add_expected(struct sb_str *to, const struct sb_opt *row)
{
	const struct sb_opt_word *word;
	int err;

	if (types[row->type].expects && !row->words)
		return sb_str_add(to, types[row->type].expects);
	if (row->type == SB_OPT_U32)
		return sb_str_addf(to, "a number from %u to %u", row->min, row->max);
	if (row->type == SB_OPT_LIST)
		return sb_str_addf(to, "a list such as 0,2,4-7 of numbers up to %u", row->max);
	if (row->type == SB_OPT_BYTES)
		return sb_str_addf(to, "a number of bytes such as 256M, at least %u", row->min);
	err = sb_str_add(to, row->type == SB_OPT_WORDS ? "a list of" : "one of");
	for (word = row->words; !err && word->name; word++)
		err = sb_str_addf(to, "%s %s", word == row->words ? "" : ",", word->name);
	return err;
}

static int apply(struct sb_opts *opts, const struct sb_opt *row, struct spelling as,
		 const char *value)
{
	struct sb_str expected = {};
	const char *why = NULL;
	int err;

	err = types[row->type].set(row, (char *)opts->fields + row->offset, value, &why);
	if (!err || err == -ENOMEM)
		return err;
	if (why)
		return sb_opts_fail(opts, "option '%.*s': '%s' %s", as.len, as.s, value, why);
	err = add_expected(&expected, row);
	if (!err)
		err = sb_opts_fail(opts, "option '%.*s': '%s' is not %s", as.len, as.s, value,
				   expected.s);
	sb_str_release(&expected);
	return err;
}

/* The value is the next word. Moves *@argv to it. */
static int apply_next(struct sb_opts *opts, const struct sb_opt *row, struct spelling as,
		      char ***argv)
{
	const char *value = (*argv)[1];

	if (!value || sb_streq(value, "--"))
		return sb_opts_fail(opts, "option '%.*s' needs a value: %s", as.len, as.s,
				    row->metavar);
	if (value[0] == '-' && value[1] &&
	    !(row->type == SB_OPT_TIME && isdigit((unsigned char)value[1])))
		return sb_opts_fail(opts,
				    "option '%.*s' needs a value (%s), but '%s' follows; if "
				    "that is the value, write it without a space before it",
				    as.len, as.s, row->metavar, value);
	++*argv;
	return apply(opts, row, as, value);
}

bool sb_opt_takes_value(const struct sb_opt *row)
{
	return types[row->type].takes_value;
}

bool sb_opt_takes_next(const struct sb_opt *row)
{
	return types[row->type].takes_value && !row->preset;
}

const struct sb_opt *sb_opt_find(const struct sb_opt *rows, const char *command, const char *name,
				 size_t len)
{
	const struct sb_opt *row;

	for (row = rows; !sb_opt_is_end(row); row++)
		if (row->name && sb_opt_is_for(row, command) && strlen(row->name) == len &&
		    !memcmp(row->name, name, len))
			return row;
	return NULL;
}

const struct sb_opt *sb_opt_find_letter(const struct sb_opt *rows, const char *command, char letter)
{
	const struct sb_opt *row;

	for (row = rows; !sb_opt_is_end(row); row++) {
		if (!sb_opt_is_for(row, command))
			continue;
		if ((row->letters && strchr(row->letters, letter)) ||
		    (row->synonyms && strchr(row->synonyms, letter)))
			return row;
	}
	return NULL;
}

static int unknown_long(struct sb_opts *opts, struct spelling as)
{
	sb_cleanup(sb_freep) char *typed = strndup(as.s + 2, (size_t)as.len - 2);
	struct sb_nearest nearest = { .typed = typed };
	const struct sb_opt *row;

	if (!typed)
		return -ENOMEM;
	for (row = opts->rows; !sb_opt_is_end(row); row++)
		if (row->name && sb_opt_is_for(row, opts->command))
			sb_nearest_offer(&nearest, row->name);
	if (nearest.name)
		return sb_opts_fail(opts, "there is no option '%.*s'; did you mean '--%s'?", as.len,
				    as.s, nearest.name);
	return sb_opts_fail(opts, "there is no option '%.*s'; 'stackbpf help %s' lists them",
			    as.len, as.s, opts->command);
}

static int parse_long(struct sb_opts *opts, char ***argv)
{
	const char *word = **argv;
	size_t len = strcspn(word + 2, "=");
	const char *value = word[2 + len] ? word + 2 + len + 1 : NULL;
	struct spelling as = { .len = (int)len + 2, .s = word };
	const struct sb_opt *row = sb_opt_find(opts->rows, opts->command, word + 2, len);

	if (!row)
		return unknown_long(opts, as);
	if (!types[row->type].takes_value) {
		if (value)
			return sb_opts_fail(opts,
					    "option '%.*s' takes no value; leave out '=' "
					    "and what follows it",
					    as.len, as.s);
		return apply(opts, row, as, NULL);
	}
	/* Of a value that may be missing, none can follow: it would be the next word's place. */
	if (!value && row->preset)
		value = row->preset;
	return value ? apply(opts, row, as, value) : apply_next(opts, row, as, argv);
}

static int parse_letters(struct sb_opts *opts, char ***argv)
{
	const char *at;
	char name[] = "-?";
	struct spelling as = { .len = 2, .s = name };
	int err = 0;

	for (at = **argv + 1; *at && !err; at++) {
		const struct sb_opt *row = sb_opt_find_letter(opts->rows, opts->command, *at);

		name[1] = *at;
		if (!row)
			return sb_opts_fail(
				opts, "there is no option '%s'; 'stackbpf help %s' lists them",
				name, opts->command);
		if (types[row->type].takes_value)
			return at[1] ? apply(opts, row, as, at + 1)
				     : apply_next(opts, row, as, argv);
		err = apply(opts, row, as, NULL);
	}
	return err;
}

int sb_opts_parse(struct sb_opts *opts, char **argv)
{
	int err = 0;

	for (; *argv && !err && !(opts->stop && *opts->stop); argv++) {
		const char *word = *argv;

		if (sb_streq(word, "--")) {
			opts->tail = argv + 1;
			break;
		}
		if (word[0] == '-' && word[1] == '-')
			err = parse_long(opts, &argv);
		else if (word[0] == '-' && word[1])
			err = parse_letters(opts, &argv);
		else
			err = sb_vec_push(&opts->operands, word);
	}
	return err;
}

void sb_opts_release(struct sb_opts *opts)
{
	sb_vec_release(&opts->operands);
	sb_str_release(&opts->error);
}
