/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tags of samples: what is known of the process, found once while it lives, and what the sample's own key
 * says. Samples of the same tags are one series. What a process says of itself (its environment, its name) is
 * text that may be anything: bounded, and printable when it gets out of here.
 *
 *	cgroup unit container	of the process, from /proc/PID/cgroup
 *	service			OTEL_SERVICE_NAME, service.name of OTEL_RESOURCE_ATTRIBUTES, or the unit, the
 *				container, the name of the program
 *	runtime			sb_interp_runtime_of(), or "kernel"; none where nobody could look in time
 *	comm			of the thread
 *	uid			the real user ID of the process
 *	pid tid			wide; tid if asked for; of a process that began before the block, or outlives it
 */
#ifndef SB_CLI_RECORDER_SERIES_H
#define SB_CLI_RECORDER_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sb_abi.h"
#include "store/block.h"

struct sb_interp;
struct sb_series_table;

struct sb_series_opts {
	bool by_thread;
	const char *const *labels; /* keys, borrowed */
	size_t nr_labels;
	uint32_t nr_kinds; /* whose samples come together: sb_sample_key.view */
};
int sb_series_new(const struct sb_series_opts *opts, struct sb_series_table **ret_table);
void sb_series_free(struct sb_series_table *table);
/* Who knows what processes run, borrowed; NULL, as at first: nobody. */
void sb_series_set_interp(struct sb_series_table *table, struct sb_interp *interp);
/* Bits of SB_BY_* that keys must be split by. */
uint32_t sb_series_by(const struct sb_series_table *table);

/*
 * The number of the series of @key, in the block that is being sampled; @table is a void pointer for struct
 * sb_resolve_opts. Near SB_BLOCK_SERIES_MAX of its kind owners have fair
 * shares (store/share.h); what is beyond is "(other)" of its owner. Return: 0 or
 * -ENOMEM.
 */
int sb_series_of(void *table, const struct sb_sample_key *key, const char *const *labels,
		 uint32_t *ret_series);

/*
 * All of the block, at its end: what is known of processes now is said of all of their samples in it. Valid until
 * the next call. Return: 0 or -ENOMEM.
 */
int sb_series_all(struct sb_series_table *table, const struct sb_block_tags **ret_tags,
		  size_t *ret_nr);
/* A new block: series are numbered from the beginning; processes that are in none of the last two are
 * forgotten. */
void sb_series_next_block(struct sb_series_table *table);

/* For tests. Append the path of a cgroup that is told by /proc/PID/cgroup, whose text this is: of version 2, or
 * of systemd's or another hierarchy of version 1. Return: 0, -ENOENT: none but the root, -ENOMEM. */
int sb_series_cgroup(const char *text, struct sb_str *path);
/* The same: the service that an environment (strings ended by NUL, @len bytes in all) tells. */
int sb_series_service(const char *env, size_t len, struct sb_str *service);

#endif
