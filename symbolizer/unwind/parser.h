/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parsing of foreign files in a process that can do nothing else. The caller opens the file and
 * hands over its descriptor; the answer is checked like any other input before it is used
 * (sb_cfi_restore()). docs/privileges.md explains what this protects from.
 *
 *	caller	a thread that asks, on a seat of its own
 *	supervisor
 *		forked when the program starts; starts workers, kills those that take too long,
 *		and parses nothing
 *	worker	parses for one seat, and only files of one owner on one file system; for those of
 *		another owner the supervisor starts another worker. It can read what it was handed,
 *		write the answer, and exit.
 *
 * Supervisor and workers end when the caller's process ends, in whatever way it does.
 *
 * Order: sb_parser_new() and sb_parser_settle(); requests by sb_parser_seat(); sb_parser_stats()
 * and sb_parser_free(). A seat can be used again after any error: the next request gets a new
 * worker if it needs one, and only when the supervisor is gone all of them fail with -ECHILD. No
 * pointer is NULL unless a contract says so, and what is passed is used during the call only.
 */
#ifndef SB_PARSER_H
#define SB_PARSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/unwind/cfi.h"

struct sb_parser;
struct sb_parser_seat;

/* The seats: what the answer is for. */
enum sb_parser_who {
	SB_PARSER_TABLES, /* the unwinder: tables for the kernel */
	SB_PARSER_NAMES,  /* the symbolizer: tables for captured pieces of stacks */
	SB_PARSER_INTERP, /* addresses of functions of interpreters */
	SB_PARSER_WHO_MAX,
};

/* A worker that takes longer than this for one file is killed; no real file takes so long. */
#define SB_PARSER_PATIENCE_NS 10000000000ull

struct sb_parser_opts {
	/*
	 * Called in the supervisor, and then also in each worker, to drop the privileges that it
	 * does not need. A negative return value ends that process. NULL: keep all privileges.
	 */
	int (*confine_supervisor)(void);
	int (*confine_worker)(void);
	uint64_t patience_ns; /* 0: SB_PARSER_PATIENCE_NS */
	bool is_short_lived;  /* the caller samples for seconds only: workers keep what they free */
};

/*
 * Fork the supervisor. The caller ends *ret_parser with sb_parser_free().
 * Thread: the main one, before there are others. Return: 0; -ENOMEM; or a negative errno of making
 * memory, sockets and the process; *ret_parser is untouched then.
 */
int sb_parser_new(const struct sb_parser_opts *opts, struct sb_parser **ret_parser);
/* End the supervisor and the workers, wait for them, and free all seats, which no thread may use
 * any more. Thread: any, of the process that made @parser. Accepts NULL. */
void sb_parser_free(struct sb_parser *parser);

/*
 * Wait until the supervisor has dropped its privileges. Return: 0; what confine_supervisor()
 * returned, if negative, or another negative errno of the start of the supervisor and its first
 * worker; -ECHILD when the supervisor has died; others of recvmsg(2). After an error the supervisor
 * is gone or about to end. Later calls return the same at once. It need not be called before a seat
 * is used. Thread: one.
 */
int sb_parser_settle(struct sb_parser *parser);

/* Return: the seat for @who, borrowed: it lives as long as @parser; NULL if @parser is NULL.
 * Thread: any. */
struct sb_parser_seat *sb_parser_seat(struct sb_parser *parser, enum sb_parser_who who);

/*
 * sb_parser_cfi() compiles the unwind table of @elf or, where it has no CFI, of its debug file
 * @debug (may be NULL), as sb_cfi_new_native(); the caller ends *@ret_cfi with sb_cfi_free().
 * sb_parser_functions() lists its functions, which are the FDEs of @elf, ascending by their first
 * address, and may overlap, as sb_cfi_functions(); the caller frees *@ret. A worker parses, unless
 * another seat was given the same table shortly before; @seat NULL: the calling thread does. Both
 * wait for the answer. What they return by pointer is untouched
 * on error.
 * Return: 0; -ENODATA: no CFI; -ENOTSUP: a machine without rules, 32-bit, not linked, or (for
 * sb_parser_cfi()) not ours; -EBADMSG: nothing in it is usable; -EFBIG: a bound, or the budget of
 * @elf; others of pread(2); -ECHILD (the worker crashed, or the supervisor is gone), -ETIMEDOUT,
 * -EPROTO (the answer is invalid), which are counted. -ENOMEM and -EMFILE are not the file's fault.
 * Thread: any; threads that share a seat wait for each other.
 */
int sb_parser_cfi(struct sb_parser_seat *seat, const struct sb_elf *elf, const struct sb_elf *debug,
		  struct sb_cfi **ret_cfi);
int sb_parser_functions(struct sb_parser_seat *seat, const struct sb_elf *elf,
			struct sb_cfi_function **ret, size_t *ret_nr);

struct sb_parser_stats {
	uint64_t nr_answers; /* that were valid */
	uint64_t nr_crashed, nr_timeouts, nr_forged;
	uint64_t nr_workers; /* workers that were started */
	uint64_t cpu_ns;     /* of the supervisor and the workers, up to the last answer */
};
/* Get the counters, each the sum of all seats. Thread: any. @parser NULL: all are 0. */
void sb_parser_stats(const struct sb_parser *parser, struct sb_parser_stats *ret_stats);

#endif
