/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The protocol between the caller (parser.c), the supervisor, a process that starts and ends the
 * workers, and a worker, a process that parses files (both in parser_process.c). A seat is a part
 * of the program that asks; it has a worker of its own. A request is a struct sb_parser_request,
 * and one struct sb_parser_answer follows it, unless the supervisor ends. Thread: in the caller's
 * process any, one at a time for each seat by its lock; supervisor and workers have one.
 */
#ifndef SB_PARSER_PRIV_H
#define SB_PARSER_PRIV_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/peer.h"
#include "symbolizer/unwind/parser.h"

enum sb_parser_what {
	SB_PARSER_CFI,	     /* the answer is written by sb_cfi_save() */
	SB_PARSER_FUNCTIONS, /* the answer is an array of struct sb_cfi_function, ascending */
};

/* One worker may parse only files of the same domain. */
struct sb_parser_domain {
	uint64_t dev, uid;
};

/* Sent with descriptors: the file, unless it is an image, and its debug file, if it has one. */
struct sb_parser_request {
	struct sb_parser_domain domain;
	uint64_t image_bytes;	/* not 0: the file lies at the beginning of the area */
	uint32_t what;		/* enum sb_parser_what */
	uint32_t is_distrusted; /* the worker's last answer was invalid, so start another one */
};

struct sb_parser_answer {
	int32_t err;
	uint32_t len; /* if @err is 0: length of the answer, at the beginning of the area */
	/* Filled in by the supervisor, which ignores what a worker writes here. */
	uint64_t cpu_ns;
	uint64_t nr_workers; /* workers started for this request */
};

/* Memory shared by the callers and the workers of one seat. Nobody can shrink it under the others,
 * and the user's limit of file sizes (RLIMIT_FSIZE) does not apply to it. */
struct sb_parser_area {
	void *at;
	size_t len;
};

/* Bounds of the answers that are kept: those of the files of a busy machine, or of one browser. */
#define SB_PARSER_KEPT_MAX	 64u
#define SB_PARSER_KEPT_BYTES_MAX (4u << 20)

/* Which file, and in which state; compared byte by byte. */
struct sb_parser_key {
	struct sb_parser_file {
		uint64_t dev, ino, uid, size;
		struct timespec mtime, ctime;
	} file, debug; /* zeroes: there is no debug file */
};

struct sb_parser_seat;

/* Answers of SB_PARSER_CFI, the oldest first, each of which waits for another seat to ask. */
struct sb_parser_kept {
	pthread_mutex_t lock;
	struct sb_parser_answer_kept {
		struct sb_parser_key key;
		const struct sb_parser_seat *seat; /* that asked for it */
		void *bytes;			   /* owned */
		size_t len;
	} at[SB_PARSER_KEPT_MAX];
	size_t nr, nr_bytes;
};

struct sb_parser {
	struct sb_parser_opts opts;
	struct sb_peer supervisor; /* its first message is the result of confine_supervisor() */
	bool is_settled;
	int settle_err;
	struct sb_parser_kept kept;
	struct sb_parser_seat {
		struct sb_parser_kept *kept; /* of the parser: borrowed */
		int fd;			     /* the caller's end */
		int peer_fd;		     /* the supervisor's end; only until it is forked */
		struct sb_parser_area area;
		pthread_mutex_t lock; /* held from a request to its answer */
		uint64_t nr_images;
		bool has_lied;		      /* the worker's last answer was invalid */
		struct sb_parser_stats stats; /* atomic */
	} seats[SB_PARSER_WHO_MAX];
};

/*
 * The main function of the supervisor, in its own process; returns when the caller has closed its
 * end of the socket @fd, or if it cannot start, as its first message says. @arg: a copy of struct
 * sb_parser, from the fork
 */
void sb_parser_supervise(void *arg, int fd);

/* parser_kept.c; thread: any */

/* Say which files an answer is of. Return: 0; -ENOENT: one is an image in memory, and no answer is
 * kept; or a negative errno of fstat(2). */
int sb_parser_key_init(struct sb_parser_key *key, const struct sb_elf *elf,
		       const struct sb_elf *debug);
/* Return: the answer for these files that another seat than @seat was given, *@ret_len bytes, which
 * the caller frees; NULL: there is none, and *@ret_len is untouched. */
void *sb_parser_kept_take(struct sb_parser_kept *kept, const struct sb_parser_key *key,
			  const struct sb_parser_seat *seat, size_t *ret_len);
/* Keep a copy of an answer that was found valid. The oldest ones make room for it. Without memory,
 * or if it alone is beyond the bound, nothing is kept. */
void sb_parser_kept_put(struct sb_parser_kept *kept, const struct sb_parser_key *key,
			const struct sb_parser_seat *seat, const void *bytes, size_t len);
/* Free all answers; @kept can be used again. The caller has @kept to itself. */
void sb_parser_kept_release(struct sb_parser_kept *kept);

#endif
