/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What shells complete. Their scripts (docs/completions) know no command and no option: at each Tab they ask
 * `stackbpf completion -- WORD...`, whose last word is the one at the cursor, up to it. The answer:
 *
 *	KIND N			what the shell knows better for all but the first N bytes of the word: "files",
 *				"directories", "programs", "hosts"; "command": what follows "--" is a command
 *				line; or "none"
 *	WORD[<Tab>DESCRIPTION]	what the word can become; any number
 */
#ifndef SB_CLI_COMPLETE_H
#define SB_CLI_COMPLETE_H

#include "base/str.h"

struct sb_completion {
	const char *word;      /* at the cursor */
	const char *typed;     /* in it, what there is of the value; "--pid=1302,14": "14" */
	size_t nr_operands;    /* before it */
	const char *by_shell;  /* see above; NULL: none */
	struct sb_str answers; /* lines */
	int err;	       /* -ENOMEM: not all of them */
};

/* Offer @value, if what was typed can become it. @help: a phrase, or NULL. */
void sb_complete_add(struct sb_completion *to, const char *value, const char *help);
/* The same for each of a list: "1h 1d". */
void sb_complete_add_all(struct sb_completion *to, const char *values);
/* What is asked for is a list: of it, the last value. */
void sb_complete_list(struct sb_completion *to);

/* For rows. Lists: */
void sb_complete_pids(struct sb_completion *to);
void sb_complete_users(struct sb_completion *to);
void sb_complete_kinds(struct sb_completion *to);
void sb_complete_roots(struct sb_completion *to);
/* One: */
void sb_complete_comm(struct sb_completion *to);
void sb_complete_kind(struct sb_completion *to);
void sb_complete_format(struct sb_completion *to);
void sb_complete_filesystem(struct sb_completion *to);
void sb_complete_device(struct sb_completion *to);
void sb_complete_command(struct sb_completion *to); /* of stackbpf */
void sb_complete_shell(struct sb_completion *to);
/* What shells know: */
void sb_complete_file(struct sb_completion *to);
void sb_complete_directory(struct sb_completion *to);
void sb_complete_program(struct sb_completion *to);
void sb_complete_host(struct sb_completion *to);

/* The scripts, by complete_text of docs/completions. */
extern const char sb_completion_bash[], sb_completion_zsh[], sb_completion_fish[];

#endif
