/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The protocol between the caller (parser.c), the keeper, a process that starts and ends the
 * workers, and a worker, a process that parses files (both in parser_process.c). A seat is a part
 * of the program that asks; it has a worker of its own. A request is a struct sb_parser_request,
 * and one struct sb_parser_answer follows it, unless the keeper ends. Thread: in the caller's
 * process any, one at a time for each seat by its lock; keeper and workers have one.
 */
#ifndef SB_PARSER_PRIV_H
#define SB_PARSER_PRIV_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

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
	/* Filled in by the keeper, which ignores what a worker writes here. */
	uint64_t cpu_ns;
	uint64_t nr_workers; /* workers started for this request */
};

/* Memory shared by the callers and the workers of one seat. Nobody can shrink it under the others,
 * and the user's limit of file sizes (RLIMIT_FSIZE) does not apply to it. */
struct sb_parser_area {
	void *at;
	size_t len;
};

struct sb_parser {
	struct sb_parser_opts opts;
	struct sb_peer keeper; /* its first message is the result of confine_keeper() */
	bool is_settled;
	int settle_err;
	struct sb_parser_seat {
		int fd;	     /* the caller's end */
		int peer_fd; /* the keeper's end; only until it is forked */
		struct sb_parser_area area;
		pthread_mutex_t lock; /* held from a request to its answer */
		uint64_t nr_images;
		bool has_lied;		      /* the worker's last answer was invalid */
		struct sb_parser_stats stats; /* atomic */
	} seats[SB_PARSER_WHO_MAX];
};

/*
 * The main function of the keeper, in its own process; returns when the caller has closed its end
 * of the socket @fd, or if it cannot start, as its first message says. @arg: a copy of struct
 * sb_parser, from the fork
 */
void sb_parser_keep(void *arg, int fd);

#endif
