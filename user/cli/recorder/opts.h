/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Options of `stackbpf record` that other commands do not have; rows in record_opts.c. */
#ifndef SB_CLI_RECORDER_OPTS_H
#define SB_CLI_RECORDER_OPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "sb_abi_label.h"
#include "store/level.h"
#include "views/view.h"

#define SB_RECORDER_KINDS_MAX 8
#define SB_RECORDER_TAGS_MAX  16
#define SB_RECORDER_STORE     "/var/lib/stackbpf"

/* Strings are borrowed from argv. */
struct sb_recorder_opts {
	const char *store; /* NULL: SB_RECORDER_STORE */
	const struct sb_view *kinds[SB_RECORDER_KINDS_MAX];
	size_t nr_kinds; /* 0: oncpu */
	struct sb_recorder_tag {
		char *key, *value; /* owned */
	} tags[SB_RECORDER_TAGS_MAX];
	size_t nr_tags;
	const char *labels[SB_LABELS_MAX]; /* --label, of all recording commands */
	size_t nr_labels;
	uint64_t keep_s[SB_STORE_LEVELS]; /* of those in has_keep; 0: for ever */
	bool has_keep[SB_STORE_LEVELS];
	uint64_t bytes_max; /* 0: no bound */
	uint32_t no_sync;
	bool by_thread;
};

/* Parse functions of rows, for a field of this type: see struct sb_opt. */
int sb_recorder_parse_kinds(void *opts, const char *value, const char **ret_why);
int sb_recorder_parse_tag(void *opts, const char *value, const char **ret_why);
int sb_recorder_parse_label(void *opts, const char *value, const char **ret_why);
int sb_recorder_parse_retain(void *opts, const char *value, const char **ret_why);

void sb_recorder_opts_release(struct sb_recorder_opts *opts);

#endif
