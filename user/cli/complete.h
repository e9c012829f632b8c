/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shell completion. The scripts of shells (docs/completions) know no commands and options. At each
 * Tab they run `stackbpf completion -- WORD...`; the last word is the one at the cursor, up to the
 * cursor. The answer is
 *
 *	KIND N			what the shell is to complete itself, for all but the first N bytes
 *				of the word: "files", "directories", "programs", "hosts";
 *				"command": what follows "--" is a command line; or "none"
 *	WORD[<Tab>DESCRIPTION]	a possible completion of the word; any number of lines
 *
 * All functions add to the answer in @to, and keep nothing. They report errors, which can only be
 * -ENOMEM, in to->err, after which they add nothing more. KIND is to->by_shell: functions that add
 * lines leave it as it is. What they cannot read, such as a file of /proc, is not completed. Who
 * made @to writes out the answer, and frees to->answers by sb_str_release(). Pointers are not NULL
 * unless it says so. One thread.
 */
#ifndef SB_CLI_COMPLETE_H
#define SB_CLI_COMPLETE_H

#include "base/str.h"

/* The question, and the answer so far. Who makes it sets word, typed and nr_operands, which are
 * borrowed, and zeroes the rest. */
struct sb_completion {
	const char *word;      /* at the cursor */
	const char *typed;     /* its end that is the value: "14" in "--pid=1302,14" */
	size_t nr_operands;    /* before the word */
	const char *by_shell;  /* KIND; NULL: "none" */
	struct sb_str answers; /* lines of completions */
	int err;	       /* -ENOMEM: some are missing; else 0 */
};

/* Add @value if it begins with to->typed; control characters in it are replaced. @help: its
 * description, one line; NULL: none. Both are copied. */
void sb_complete_add(struct sb_completion *to, const char *value, const char *help);
/* Add those words of a list such as "1h 1d" that begin with to->typed, without a description. They
 * are copied. Words are shorter than 64 bytes. */
void sb_complete_add_all(struct sb_completion *to, const char *values);
/* Call it before the values are added, if the value is a list with commas: from then on its last
 * element is completed. */
void sb_complete_list(struct sb_completion *to);

/*
 * For sb_opt.complete: add those values that begin with to->typed, of which, as in
 * sb_complete_list(), only the last element of a list with commas counts: process IDs (pids), names
 * of users (users), kinds that can be recorded (kinds), and the root frames that --by adds to
 * stacks, such as comm and pid (roots).
 */
void sb_complete_pids(struct sb_completion *to);
void sb_complete_users(struct sb_completion *to);
void sb_complete_kinds(struct sb_completion *to);
void sb_complete_roots(struct sb_completion *to);
/*
 * For sb_opt.complete and sb_command.complete: add the values that begin with to->typed: names of
 * running processes (comm), views that take no events (kind), those of them that can be recorded
 * (stored_kind), output formats, file systems that this kernel knows, block devices, kernel
 * tracepoints and other events (events), hardware and software counters of perf (counters),
 * commands of stackbpf (command), and shells.
 */
void sb_complete_comm(struct sb_completion *to);
void sb_complete_kind(struct sb_completion *to);
void sb_complete_stored_kind(struct sb_completion *to);
void sb_complete_format(struct sb_completion *to);
void sb_complete_filesystem(struct sb_completion *to);
void sb_complete_device(struct sb_completion *to);
void sb_complete_events(struct sb_completion *to);
void sb_complete_counters(struct sb_completion *to);
void sb_complete_command(struct sb_completion *to);
void sb_complete_shell(struct sb_completion *to);
/* For sb_opt.complete and sb_command.complete: leave the value to the shell, by setting
 * to->by_shell to a constant: "files", "directories", "programs" and "hosts", in this order;
 * nothing is added. */
void sb_complete_file(struct sb_completion *to);
void sb_complete_directory(struct sb_completion *to);
void sb_complete_program(struct sb_completion *to);
void sb_complete_host(struct sb_completion *to);

/* The texts of the scripts, generated from docs/completions. */
extern const char sb_completion_bash[], sb_completion_zsh[], sb_completion_fish[];

#endif
