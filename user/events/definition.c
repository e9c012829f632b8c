// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "events/definition.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/nearest.h"
#include "base/num.h"
#include "base/reason.h"
#include "base/str.h"
#include "base/time.h"

#define BLANKS " \t\r"

struct parsing {
	const char *path;
	unsigned int line;
	struct sb_reason *reason;
};

static int fail(const struct parsing *parsing, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int fail(const struct parsing *parsing, const char *fmt, ...)
{
	char why[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	sb_reason_set(parsing->reason, 0, "%s:%u: %s", parsing->path, parsing->line, why);
	return -EINVAL;
}

/* Cut off the next word at *@p, without its quotes. *ret_word: NULL at the end of the line, or
 * where a comment begins. */
static int next_word(const struct parsing *parsing, char **p, const char **ret_word)
{
	char *from = *p + strspn(*p, BLANKS), *to = from, quote = '\0';

	*ret_word = NULL;
	if (!*from || *from == '#')
		return 0;
	*ret_word = to;
	for (; *from && (quote || !strchr(BLANKS, *from)); from++) {
		if (quote ? *from == quote : *from == '\'' || *from == '"')
			quote = quote ? '\0' : *from;
		else
			*to++ = *from;
	}
	if (quote)
		return fail(parsing, "the quote %c is not closed", quote);
	*p = from + (*from != '\0');
	*to = '\0';
	return 0;
}

static int take_name(const struct parsing *parsing, const char *word, struct sb_definition *to)
{
	size_t len = strlen(word), i;

	if (!len || word[len - 1] != ':')
		return fail(parsing,
			    "'%.64s' is not a name with a colon, such as 'ssl: c:SSL_read'", word);
	for (i = 0; i < len - 1; i++)
		if (!isalnum((unsigned char)word[i]) && word[i] != '_' && word[i] != '-')
			break;
	if (i < len - 1 || i == 0 || i > SB_DEFINITION_NAME_MAX)
		return fail(parsing,
			    "the name '%.64s' is not one of 1 to %u letters, digits, '_' and '-'",
			    word, SB_DEFINITION_NAME_MAX);
	to->name = word;
	((char *)word)[len - 1] = '\0';
	return 0;
}

static int take_time(const struct parsing *parsing, const char *text, uint64_t *ret_ns)
{
	if (!sb_parse_duration(text, SB_NS_PER_SEC / 1000000, ret_ns) && *ret_ns)
		return 0;
	return fail(parsing, "'%.64s' is not a time such as 500 (microseconds), 10ms, 2s", text);
}

static int take_event(const struct parsing *parsing, const char *word, sb_vec_str *events,
		      const struct sb_definition *to)
{
	if (events->nr == SB_DEFINITION_EVENTS_MAX)
		return fail(parsing, "'%s' has more than %u events", to->name,
			    SB_DEFINITION_EVENTS_MAX);
	return sb_vec_push(events, word);
}

/* "--when" and what follows it. */
static int take_option(const struct parsing *parsing, const char *option, char **p,
		       struct sb_definition *to)
{
	const struct {
		const char *name, **text;
		uint64_t *ns;
		sb_vec_str *events;
	} options[] = {
		{ "--when", .text = &to->request.when },
		{ "--weight", .text = &to->request.weight },
		{ "--value", .text = &to->request.value },
		{ "--key", .text = &to->request.key },
		{ "--to-key", .text = &to->request.to_key },
		{ "--min", .ns = &to->min_ns },
		{ "--max", .ns = &to->max_ns },
		{ "--from", .events = &to->request.from },
		{ "--to", .events = &to->request.to },
		{ "--in", .text = &to->in },
		{ "--until", .text = &to->until },
		{ "--slower-than", .ns = &to->slower_than_ns },
	};
	const char *value;
	size_t i;
	int err = next_word(parsing, p, &value);

	if (err)
		return err;
	for (i = 0; i < SB_ARRAY_SIZE(options) && !sb_streq(options[i].name, option); i++)
		;
	if (i == SB_ARRAY_SIZE(options))
		return fail(parsing,
			    "'%.64s' is not one of --when, --weight, --value, --min, --max, "
			    "--from, --to, --key, --to-key, --in, --until, --slower-than",
			    option);
	if (!value)
		return fail(parsing, "there is nothing behind %s", option);
	if (options[i].events)
		return take_event(parsing, value, options[i].events, to);
	if (options[i].ns ? *options[i].ns != 0 : *options[i].text != NULL)
		return fail(parsing, "%s is there twice", option);
	if (options[i].ns)
		return take_time(parsing, value, options[i].ns);
	*options[i].text = value;
	return 0;
}

/* Which of events and spans a definition has. */
static int check(const struct parsing *parsing, const struct sb_definition *to)
{
	const struct sb_event_request *request = &to->request;
	bool has_events = request->events.nr || request->from.nr || request->to.nr;
	bool has_others = has_events || request->when || request->weight || request->value ||
			  request->key || request->to_key || to->min_ns || to->max_ns;

	if (to->in && has_others)
		return fail(parsing,
			    "'%s' has spans (--in), with which only --until and --slower-than go",
			    to->name);
	if (!to->in && (to->until || to->slower_than_ns))
		return fail(parsing, "'%s' has %s but no --in, the function or event of spans",
			    to->name, to->until ? "--until" : "--slower-than");
	if (!to->in && !has_events)
		return fail(parsing, "'%s' has no event", to->name);
	return 0;
}

static int take_words(const struct parsing *parsing, char *p, struct sb_definition *to)
{
	const char *word;
	int err = next_word(parsing, &p, &word);

	for (; !err && word; err = err ?: next_word(parsing, &p, &word)) {
		if (!strncmp(word, "--", 2))
			err = take_option(parsing, word, &p, to);
		else
			err = take_event(parsing, word, &to->request.events, to);
	}
	return err ?: check(parsing, to);
}

static int take_line(const struct parsing *parsing, char *line, struct sb_definitions *list)
{
	struct sb_definition definition = { .line = parsing->line };
	const char *word;
	size_t i;
	int err = next_word(parsing, &line, &word);

	if (err || !word)
		return err;
	err = take_name(parsing, word, &definition);
	for (i = 0; !err && i < list->at.nr; i++)
		if (sb_streq(list->at.at[i].name, definition.name))
			err = fail(parsing, "'%s' is defined in line %u already", definition.name,
				   list->at.at[i].line);
	if (!err && list->at.nr == SB_DEFINITIONS_MAX)
		err = fail(parsing, "there are more than %u definitions", SB_DEFINITIONS_MAX);
	err = err ?: take_words(parsing, line, &definition);
	err = err ?: sb_vec_push(&list->at, definition);
	if (err)
		sb_event_request_release(&definition.request);
	return err;
}

int sb_definitions_parse(char *text, const char *path, struct sb_definitions *list,
			 struct sb_reason *reason)
{
	struct parsing parsing = { .path = path, .reason = reason };
	char *next;
	int err = 0;

	list->text = text;
	for (; text && !err; text = next) {
		next = strchr(text, '\n');
		if (next)
			*next++ = '\0';
		parsing.line++;
		err = take_line(&parsing, text, list);
	}
	return err;
}

/* Whether nobody else could have written what a privileged process is to do. */
static bool is_safe(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && !(st.st_mode & (S_IWGRP | S_IWOTH)) &&
	       (st.st_uid == 0 || st.st_uid == geteuid());
}

int sb_definitions_read(const char *path, struct sb_definitions *list, struct sb_reason *reason)
{
	/* Somebody else's pipe must not stop us. */
	sb_cleanup(sb_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *text;
	size_t len;
	int err = fd < 0 ? -errno : 0;

	if (!err && !is_safe(fd)) {
		sb_reason_set(
			reason, 0,
			"'%s' is not a file that belongs to root or you and that nobody else can "
			"write; see chown(1) and chmod(1)",
			path);
		return -EPERM;
	}
	err = err ?: sb_read_fd(fd, SB_DEFINITIONS_BYTES_MAX, &text, &len);
	if (err)
		return sb_reason_set(reason, err,
				     "cannot read '%s', which defines the events of --kinds", path);
	if (memchr(text, '\0', len)) {
		free(text);
		sb_reason_set(reason, 0,
			      "'%s' is not a text file; name one that defines events for --kinds",
			      path);
		return -EINVAL;
	}
	return sb_definitions_parse(text, path, list, reason);
}

const struct sb_definition *sb_definitions_find(const struct sb_definitions *list, const char *name,
						const char *path, struct sb_reason *reason)
{
	struct sb_nearest nearest = { .typed = name };
	size_t i;

	for (i = 0; i < list->at.nr; i++) {
		if (sb_streq(list->at.at[i].name, name))
			return &list->at.at[i];
		sb_nearest_offer(&nearest, list->at.at[i].name);
	}
	sb_reason_set(reason, 0, "'%s' has no definition of '%s'%s%s%s", path, name,
		      nearest.name ? "; did you mean '" : ", such as '",
		      nearest.name ? nearest.name : name, nearest.name ? "'?" : ": c:fsync'");
	return NULL;
}

void sb_definitions_release(struct sb_definitions *list)
{
	size_t i;

	for (i = 0; i < list->at.nr; i++)
		sb_event_request_release(&list->at.at[i].request);
	sb_vec_release(&list->at);
	free(list->text);
	list->text = NULL;
}
