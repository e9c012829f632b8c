/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is said between the one who asks (parser.c), keeper and worker (parser_keeper.c). */
#ifndef SB_PARSER_PRIV_H
#define SB_PARSER_PRIV_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/peer.h"
#include "parser.h"

enum sb_parser_what {
	SB_PARSER_CFI,	     /* answer: sb_cfi_save() */
	SB_PARSER_FUNCTIONS, /* struct sb_cfi_function, ascending */
};

/* Files of one domain may know of each other. */
struct sb_parser_domain {
	uint64_t dev, uid;
};

/* With descriptors: of the file, unless it is an image, and of its debug file, if it has one. */
struct sb_parser_request {
	struct sb_parser_domain domain;
	uint64_t image_bytes; /* not 0: the file is the beginning of the area */
	uint32_t what;	      /* enum sb_parser_what */
	uint32_t
		is_distrusted; /* the worker: it answered nonsense, and another is to answer this */
};

struct sb_parser_answer {
	int32_t err;
	uint32_t len; /* with @err 0: what it is, is the beginning of the area */
	/* The keeper's; what a worker says here is not taken. */
	uint64_t cpu_ns;
	uint64_t nr_workers; /* started for it */
};

/* Memory of those who ask and of the workers of one seat: nobody can cut it under the others, and the
 * limit of file sizes, which is the user's, is not for it. */
struct sb_parser_area {
	void *at;
	size_t len;
};

struct sb_parser {
	struct sb_parser_opts opts;
	struct sb_peer keeper; /* its socket says at first what became of confine_keeper() */
	bool is_settled;
	int settle_err;
	struct sb_parser_seat {
		int fd;	     /* ours */
		int peer_fd; /* the keeper's: until it is forked */
		struct sb_parser_area area;
		pthread_mutex_t lock; /* of a question and its answer */
		uint64_t nr_images;
		bool has_lied;		      /* the worker */
		struct sb_parser_stats stats; /* atomic */
	} seats[SB_PARSER_WHO_MAX];
};

/* The life of the keeper. @arg: struct sb_parser, as it was when it was forked. */
void sb_parser_keep(void *arg, int fd);

#endif
