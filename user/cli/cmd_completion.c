// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* stackbpf completion: prints the scripts of shells, and answers what they ask at each Tab. See
 * complete.h. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/complete.h"

/* Of a description, so much is shown in any case; then it ends where examples and defaults
 * begin. */
#define HELP_MIN 16
#define HELP_MAX 100

static const struct {
	const char *shell, *text;
} scripts[] = {
	{ "bash", sb_completion_bash },
	{ "zsh", sb_completion_zsh },
	{ "fish", sb_completion_fish },
};

static int print_script(const sb_vec_str *operands)
{
	size_t i;

	for (i = 0; operands->nr == 1 && i < SB_ARRAY_SIZE(scripts); i++)
		if (sb_streq(scripts[i].shell, operands->at[0])) {
			fputs(scripts[i].text, stdout);
			return SB_EXIT_DATA;
		}
	return sb_fail(SB_EXIT_USAGE, 0, "completion: name a shell: bash, zsh or fish");
}

static size_t help_len(const char *help)
{
	const char *at = help;

	while (*at && at - help < HELP_MAX &&
	       (at - help < HELP_MIN ||
		(strncmp(at, " (", 2) && strncmp(at, ": ", 2) && strncmp(at, "; ", 2))))
		at++;
	return (size_t)(at - help);
}

static void add_option(struct sb_completion *to, const struct sb_opt *row)
{
	char name[64], text[HELP_MAX + 1];
	const char *letter, *help = NULL;

	if (row->help) {
		snprintf(text, sizeof(text), "%.*s", (int)help_len(row->help), row->help);
		help = text;
	}
	for (letter = row->letters ? row->letters : ""; *letter; letter++) {
		snprintf(name, sizeof(name), "-%c", *letter);
		sb_complete_add(to, name, help);
	}
	if (!row->name)
		return;
	snprintf(name, sizeof(name), "--%s", row->name);
	sb_complete_add(to, name, help);
	if (sb_opt_takes_value(row) && !sb_opt_takes_next(row)) {
		snprintf(name, sizeof(name), "--%s=", row->name);
		sb_complete_add(to, name, help);
	}
}

static void complete_option(struct sb_completion *to, const struct sb_command *command)
{
	const struct sb_opt *row;

	for (row = command->opts; !sb_opt_is_end(row); row++)
		if (sb_opt_is_for(row, command->name))
			add_option(to, row);
}

static void complete_value(struct sb_completion *to, const struct sb_opt *row)
{
	const struct sb_opt_word *word;

	if (row->type == SB_OPT_WORDS)
		sb_complete_list(to);
	for (word = row->words; word && word->name; word++)
		sb_complete_add(to, word->name, NULL);
	if (row->suggest)
		sb_complete_add_all(to, row->suggest);
	if (row->complete)
		row->complete(to);
}

/* The option in "-ukp1302" that takes a value, which is at *@ret_value; or NULL. */
static const struct sb_opt *find_letter(const struct sb_command *command, const char *word,
					const char **ret_value)
{
	const struct sb_opt *row;
	const char *at;

	for (at = word + 1; *at; at++) {
		row = sb_opt_find_letter(command->opts, command->name, *at);
		if (!row)
			return NULL;
		if (!sb_opt_takes_value(row))
			continue;
		*ret_value = at + 1;
		return row;
	}
	return NULL;
}

/* The option in "--pid=1302", as above; in "--pid" its value is empty. */
static const struct sb_opt *find_name(const struct sb_command *command, const char *word,
				      const char **ret_value)
{
	size_t len = strcspn(word, "=");
	const struct sb_opt *row = sb_opt_find(command->opts, command->name, word + 2, len - 2);

	if (!row || !sb_opt_takes_value(row))
		return NULL;
	*ret_value = word[len] ? word + len + 1 : word + len;
	return row;
}

static bool is_option(const char *word)
{
	return word[0] == '-' && word[1];
}

static const struct sb_opt *find_option(const struct sb_command *command, const char *word,
					const char **ret_value)
{
	return word[1] == '-' ? find_name(command, word, ret_value)
			      : find_letter(command, word, ret_value);
}

/* The option of @word whose value is the next one, or NULL. */
static const struct sb_opt *expects(const struct sb_command *command, const char *word)
{
	const char *value = NULL;
	const struct sb_opt *row = is_option(word) ? find_option(command, word, &value) : NULL;

	/* "--pid=" has one, and it is empty. */
	return row && !*value && value[-1] != '=' && sb_opt_takes_next(row) ? row : NULL;
}

static void complete_word(struct sb_completion *to, const struct sb_command *command)
{
	const struct sb_opt *row =
		is_option(to->word) ? find_option(command, to->word, &to->typed) : NULL;

	if (row && (*to->typed || to->typed[-1] == '=')) {
		complete_value(to, row);
		return;
	}
	to->typed = to->word;
	if (to->word[0] == '-' && to->word[1] != '-' && to->word[1] && to->word[2])
		sb_complete_add(to, to->word, NULL); /* letters: whole as they are */
	else if (to->word[0] == '-' || (!*to->word && !command->complete))
		complete_option(to, command);
	else if (command->complete)
		command->complete(to);
}

/* @words: after the name of @command. */
static void complete_after(struct sb_completion *to, const struct sb_command *command, char **words)
{
	const struct sb_opt *row = NULL;

	for (; words[1]; words++) {
		if (row) {
			row = NULL;
			continue;
		}
		if (sb_streq(words[0], "--")) {
			to->by_shell = "command";
			return;
		}
		row = expects(command, words[0]);
		to->nr_operands += !is_option(words[0]);
	}
	to->word = to->typed = words[0];
	if (row)
		complete_value(to, row);
	else
		complete_word(to, command);
}

static int answer(char **words)
{
	struct sb_completion to = { .word = "", .typed = "" };
	struct sb_command command;
	int status = SB_EXIT_DATA;

	if (words[0] && words[1]) {
		if (sb_command_find(words[0], &command))
			complete_after(&to, &command, words + 1);
	} else {
		to.word = to.typed = words[0] ? words[0] : "";
		sb_complete_command(&to);
		if (to.word[0] == '-')
			sb_complete_add_all(&to, "-h --help -V --version");
	}
	if (to.err) {
		sb_err(to.err, "completion: cannot list what may follow on the command line");
		status = SB_EXIT_FAILED;
	} else {
		printf("%s %zu\n%s", to.by_shell ? to.by_shell : "none",
		       (size_t)(to.typed - to.word), to.answers.s ? to.answers.s : "");
	}
	sb_str_release(&to.answers);
	return status;
}

int sb_cmd_completion(const struct sb_command *command, char **argv)
{
	struct sb_common_opts fields = {};
	struct sb_opts opts = { .fields = &fields };
	int status = sb_command_parse(command, &opts, argv);

	if (status < 0)
		status = opts.tail ? answer(opts.tail) : print_script(&opts.operands);
	sb_opts_release(&opts);
	return status;
}
