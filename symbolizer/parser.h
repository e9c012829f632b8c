/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files that others made, parsed by a process that can do nothing else. The one that asks opens the
 * file and hands over its descriptor; what comes back is checked like any other input before it is used
 * (cfi.h: sb_cfi_restore()). docs/privileges.md tells what that is worth.
 *
 *	we	threads that ask, each on a seat of its own
 *	keeper	forked by us at the beginning; starts processes that parse, and ends those that take
 *		too long. It parses nothing.
 *	worker	parses for one seat, and files of one owner in one file system: those of another get
 *		another process. It can read what it was handed, write the answer, and end.
 *
 * All end with us, whatever our end is.
 */
#ifndef SB_PARSER_H
#define SB_PARSER_H

#include <stddef.h>
#include <stdint.h>

#include "cfi.h"

struct sb_parser;
struct sb_parser_seat;

/* Who asks. */
enum sb_parser_who {
	SB_PARSER_TABLES, /* the unwinder: tables for the kernel */
	SB_PARSER_NAMES,  /* the symbolizer: tables for pieces of stack */
	SB_PARSER_INTERP, /* where functions of interpreters begin and end */
	SB_PARSER_WHO_MAX,
};

/* Longer than any file takes; then the worker is killed. */
#define SB_PARSER_PATIENCE_NS 10000000000ull

struct sb_parser_opts {
	/* Lay everything down that is not needed any more, in the keeper and then, further, in a
	 * worker. Return: 0 or a negative errno, and then it ends. NULL: nothing. */
	int (*confine_keeper)(void);
	int (*confine_worker)(void);
	uint64_t patience_ns; /* 0: SB_PARSER_PATIENCE_NS */
};

/* Fork. Before threads are made. Return: 0 or a negative errno. */
int sb_parser_new(const struct sb_parser_opts *opts, struct sb_parser **ret_parser);
/* Waits for the end of all. Accepts NULL. */
void sb_parser_free(struct sb_parser *parser);

/* Wait until the keeper has laid down what it has to. Return: 0, what the function said, or -ECHILD. */
int sb_parser_settle(struct sb_parser *parser);

/* Accepts NULL, for NULL. */
struct sb_parser_seat *sb_parser_seat(struct sb_parser *parser, enum sb_parser_who who);

/*
 * As sb_cfi_new_native() and sb_cfi_functions(), and that is what is called here if @seat is NULL. Beside
 * their errors, each counted: -ECHILD (the worker crashed, or there is no keeper any more), -ETIMEDOUT,
 * -EPROTO (the answer is none). -ENOMEM and -EMFILE say nothing of the file.
 */
int sb_parser_cfi(struct sb_parser_seat *seat, const struct sb_elf *elf, const struct sb_elf *debug,
		  struct sb_cfi **ret_cfi);
int sb_parser_functions(struct sb_parser_seat *seat, const struct sb_elf *elf,
			struct sb_cfi_function **ret, size_t *ret_nr);

/* Of all seats. Any thread; zeroes without @parser. */
struct sb_parser_stats {
	uint64_t nr_answers; /* with a table or a list */
	uint64_t nr_crashed, nr_timeouts, nr_forged;
	uint64_t nr_workers; /* that were started */
	uint64_t cpu_ns;     /* of keeper and workers, up to the last answer */
};
void sb_parser_stats(const struct sb_parser *parser, struct sb_parser_stats *ret_stats);

#endif
